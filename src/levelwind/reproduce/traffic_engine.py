"""Traffic monitoring on a real cluster: what figures 6.12 and 6.13 of seed 000 were measured with.

Five workers on this machine, each capped at a part of a core. Ten sub-streams carry the packet counts of real
captures (bench/packet_counts.csv says where they come from), each read by 16 operators that stand for the
16 aggregates and burn their cost; some seconds of packets are a batch. Every planner has seen the first part
of the trace, and is measured on the rest of it, at one rate after the other.

A batch takes some of the workers' CPU however little it holds. How much is measured first, and the rates are
such that at the highest of them this and the work on the packets together use as much CPU as is asked for.

Batches are run as fast as they go. Latency is then reckoned as if packets came second by second, whatever the
cluster does: a batch begins when its packets are there and the one before is done.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from levelwind.model import Network, Plan
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
# To find out what a batch takes however little it holds: so many, with so much work.
OWN_BATCHES, NEXT_TO_NOTHING = 6, 0.01
# Batches of few packets before those that count: the caps come into force for the last `SETTLE` of them, so
# that compiling is charged to nobody.
WARM_UP, SETTLE = 12, 4


def counts() -> Any:
    """Packets a second, one column per sub-stream."""
    with resources.files("levelwind.bench").joinpath("packet_counts.csv").open() as file:
        rows = list(csv.reader(line for line in file if not line.startswith("#")))
    return np.array(rows[1:], dtype=float)


def network(uses: Sequence[float], batches: int, batch_s: int) -> Network:
    """The workload; its sources play the measured part at every use of the CPUs, its rates are those seen."""
    packets = counts()
    seen, left = packets[:SEEN_S], packets[SEEN_S : SEEN_S + batches * batch_s]
    full = WORKERS * CAP / (left.sum(axis=1).mean() * UNIT_S * sum(COSTS))
    quiet = np.full((WARM_UP * batch_s, packets.shape[1]), 1.0)
    played = np.concatenate([quiet, *(use * full * left for use in uses)])
    streams = {
        f"p{k}": {
            "schema": {"ts": "timestamp"},
            "time": "ts",
            "rate": [round(float(rate), 3) for rate in full * seen[:, k]],
            "source": {
                "format": "generator", "shape": "series", "speed": "max", "batch": f"{batch_s}s",
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


def fullest_mean(placement: Mapping[str, str], use: float, seconds: int) -> float:
    """Mean load of the fullest node over the measured part, by the model: above 1 it falls behind for good.

    ``use`` is that of all CPUs; what the engine needs for itself comes on top.
    """
    packets = counts()[SEEN_S : SEEN_S + seconds].mean(axis=0)
    loads: dict[str, float] = {}
    for k, rate in enumerate(packets.tolist()):
        for number, cost in enumerate(COSTS):
            node = placement[f"o{k}_{number}"]
            loads[node] = loads.get(node, 0.0) + rate * cost
    return use * WORKERS * max(loads.values()) / sum(loads.values())


def engine_side(
    folder: str,
    planners: Sequence[str],
    multipliers: Sequence[float],
    full_use: float,
    batches: int,
    batch_s: int,
    seed: int,
) -> dict[str, Any]:
    """How long each batch took under each planner, one list per multiplier."""
    found, caps = {}, []
    with LoopbackCluster(workers=WORKERS) as cluster:
        session = start_session(cluster.master, cluster.configuration, log=Path(folder, "spark.log"))
        nodes = cluster.nodes(CAP)

        def took(told: Network, planner: str, place: str) -> list[float]:
            made = plan(told, nodes, planner, seed=seed)
            seconds, capped = _took(told, made, cluster, session, Path(folder, place))
            caps.append(capped)
            return seconds

        little = network([NEXT_TO_NOTHING], OWN_BATCHES, batch_s)
        own_use = median(took(little, "rod", "own")) / batch_s
        uses = [(full_use - own_use) * multiplier / max(multipliers) for multiplier in multipliers]
        told = network(uses, batches, batch_s)
        for planner in planners:
            seconds = took(told, planner, planner)
            found[planner] = [seconds[at : at + batches] for at in range(0, batches * len(uses), batches)]
    return {"took_s": found, "capped": all(caps), "own_use": own_use}


def _took(
    told: Network, made: Plan, cluster: LoopbackCluster, session: Any, folder: Path
) -> tuple[list[float], bool]:
    """Seconds of each batch after the warm-up, and whether the caps were in force."""
    seconds: list[float] = []

    def note(step: Step) -> None:
        if not step.commit.closed:
            seconds.append(step.wall_s)
        if len(seconds) == WARM_UP - SETTLE:
            cluster.cap(CAP)

    run_network(
        told,
        cluster.nodes(CAP),
        spark=session,
        placement=made,
        run_dir=folder,
        until_idle=True,
        reuse=False,
        on_step=note,
    )
    capped = cluster.capped
    cluster.cap(None)
    return seconds[WARM_UP:], capped


if __name__ == "__main__":
    answer({"engine": engine_side})
