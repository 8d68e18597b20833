"""Traffic monitoring on a real cluster: what figures 6.12 and 6.13 of seed 000 were measured with.

Five workers on this machine, each capped at a part of a core. Ten sub-streams carry the packet counts of real
captures (bench/packet_counts.csv says where they come from), each read by 16 operators that stand for the
16 aggregates and burn their cost; a second of packets is a batch. Every planner has seen the first part of
the trace, and is measured on the rest of it, at one rate after the other.

Batches are run as fast as they go. Latency is then reckoned as if packets came second by second, whatever the
cluster does: a batch begins when its packets are there and the one before is done.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from levelwind.model import Network
from levelwind.planning import plan
from levelwind.runtime.coordinator import Step
from levelwind.spark.api import run as run_network
from levelwind.spark.session import start_session
from levelwind.testing.loopback import LoopbackCluster
from levelwind.testing.sides import answer, network_of

WORKERS, CAP = 5, 0.3
# Relative costs: sliding windows cost more than tumbling ones, pairs more than sources; count and mean.
COSTS = tuple(window * key for window in (1.0, 1.0, 1.5, 1.5) for key in (1.0, 1.2) for _ in range(2))
# Seconds per packet of the cheapest; a model row stands for many packets, so that making rows costs little.
UNIT_S = 1e-3
SEEN_S = 24
WARM_UP = 8


def counts() -> Any:
    """Packets a second, one column per sub-stream."""
    with resources.files("levelwind.bench").joinpath("packet_counts.csv").open() as file:
        rows = list(csv.reader(line for line in file if not line.startswith("#")))
    return np.array(rows[1:], dtype=float)


def network(utilisations: Sequence[float], seconds: int) -> Network:
    """The workload; its sources play the measured part at every utilisation, its rates are those seen."""
    packets = counts()
    seen, left = packets[:SEEN_S], packets[SEEN_S : SEEN_S + seconds]
    per_row = UNIT_S * sum(COSTS)
    full = WORKERS * CAP / (left.sum(axis=1).mean() * per_row)
    quiet = np.full((WARM_UP, packets.shape[1]), 1.0)
    played = np.concatenate([quiet, *(utilisation * full * left for utilisation in utilisations)])
    streams = {
        f"p{k}": {
            "schema": {"ts": "timestamp"},
            "time": "ts",
            "rate": [round(float(rate), 3) for rate in utilisations[0] * full * seen[:, k]],
            "source": {
                "format": "generator", "shape": "series", "speed": "max", "batch": "1s",
                "rates": [round(float(rate), 3) for rate in played[:, k]],
            },
        }
        for k in range(packets.shape[1])
    }  # fmt: skip
    operators = [
        {"name": f"o{k}_{number}", "kind": "model", "input": f"p{k}", "cost": cost * UNIT_S}
        for k in range(packets.shape[1])
        for number, cost in enumerate(COSTS)
    ]
    return network_of({"name": "traffic", "hops": "next", "streams": streams, "operators": operators})


def engine_side(
    folder: str, planners: Sequence[str], utilisations: Sequence[float], seconds: int, seed: int
) -> dict[str, Any]:
    """Batch times under each planner, one list per utilisation."""
    told, found, capped = network(utilisations, seconds), {}, True
    with LoopbackCluster(workers=WORKERS) as cluster:
        session = start_session(cluster.master, cluster.configuration, log=Path(folder, "spark.log"))
        nodes = cluster.nodes(CAP)
        for planner in planners:
            steps: list[Step] = []
            cluster.cap(CAP)
            run_network(
                told,
                nodes,
                spark=session,
                placement=plan(told, nodes, planner, seed=seed),
                run_dir=Path(folder, planner),
                until_idle=True,
                reuse=False,
                on_step=steps.append,
            )
            capped = capped and cluster.capped
            cluster.cap(None)
            batches = [step.wall_s for step in steps if not step.commit.closed][WARM_UP:]
            found[planner] = [
                batches[at : at + seconds] for at in range(0, seconds * len(utilisations), seconds)
            ]
    return {"batch_s": found, "capped": capped}


if __name__ == "__main__":
    answer({"engine": engine_side})
