"""The simulator against the engine: the same operators under the same bursts, simulated and on a cluster.

The world is that of `burst`: four capped workers, streams whose bursts take turns. Compared are the nodes'
loads (share of their CPU at work), and how planners rank by the 99th percentile of latency. On the engine a
batch holds some seconds of rows; one that takes longer delays those behind it, as rows arrive second by
second whatever the cluster does: a batch begins when its rows are there and the one before is done.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from levelwind.bench.burst import (
    BATCH_S,
    CAP,
    ROUND,
    WARM_UP,
    WORKERS,
    cap_after_warm_up,
    document,
    node_loads,
    phases,
)
from levelwind.bench.result import Figure, Result, Settings
from levelwind.model import Cluster, Network
from levelwind.planning import plan
from levelwind.reproduce.figure_6_12 import latencies
from levelwind.runtime.coordinator import Step
from levelwind.sim.driver import simulate
from levelwind.sim.scenario import Scenario
from levelwind.spark.api import run as run_network
from levelwind.spark.session import start_session
from levelwind.testing.loopback import LoopbackCluster
from levelwind.testing.sides import answer, network_of, ours

NAME = "agreement"
MODULE = "levelwind.bench.agreement"
# Planners whose fullest nodes are clearly apart when it matters: in the bursts.
PLANNERS = ("connected", "random_balanced", "llf", "resilient")
# Mean load of the whole cluster: bursts overload nodes under some of the plans, on average none.
LOAD = 0.7
ROUNDS = 4
LIMIT = 0.1


def network(seed: int) -> Network:
    """Operators under bursts, the same again for some rounds."""
    rng = np.random.default_rng(seed)
    return network_of(document(phases(rng), rng, LOAD, [1.0] * ROUNDS))


def simulated(seed: int, planner: str) -> dict[str, Any]:
    """Load of each node and latency in the simulator."""
    told, nodes = network(seed), Cluster.equal(WORKERS, cpu=CAP)
    scenario = Scenario(
        network=told,
        cluster=nodes,
        start=dict(plan(told, nodes, planner).placement),
        warmup_s=float(ROUND * BATCH_S),
        duration_s=float(ROUNDS * ROUND * BATCH_S),
        clean=True,
    )
    found = simulate(scenario, seed=seed)
    return {"loads": found.timeline.busy.mean(axis=1).tolist(), "p99_s": found.latency_p99_s}


def engine_side(folder: str, seed: int) -> dict[str, Any]:
    """The same on a capped cluster."""
    told, found, capped = network(seed), {}, True
    with LoopbackCluster(workers=WORKERS) as cluster:
        session = start_session(cluster.master, cluster.configuration, log=Path(folder, "spark.log"))
        for planner in PLANNERS:
            steps: list[Step] = []

            def note(step: Step, steps: list[Step] = steps) -> None:
                steps.append(step)
                cap_after_warm_up(cluster, len(steps))

            run_network(
                told,
                cluster.nodes(CAP),
                spark=session,
                placement=plan(told, cluster.nodes(CAP), planner),
                run_dir=Path(folder, planner),
                until_idle=True,
                reuse=False,
                on_step=note,
            )
            capped = capped and cluster.capped
            cluster.cap(None)
            counted = [step for step in steps if not step.commit.closed][WARM_UP:]
            found[planner] = {
                "loads": np.mean([node_loads(step) for step in counted], axis=0).tolist(),
                "p99_s": float(np.quantile(latencies([step.wall_s for step in counted], BATCH_S), 0.99)),
            }
    return {"plans": found, "capped": capped}


def run(settings: Settings) -> Result:
    """Both sides, for every planner."""
    settings.step(f"{len(PLANNERS)} planners on a capped cluster")
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        engine = ours(MODULE, "engine", folder=folder, seed=settings.seed)
    sim = {planner: simulated(settings.seed, planner) for planner in PLANNERS}
    apart = {
        planner: float(
            np.max(np.abs(np.divide(sim[planner]["loads"], engine["plans"][planner]["loads"]) - 1.0))
        )
        for planner in PLANNERS
    }
    ranked = [sorted(PLANNERS, key=lambda planner: of[planner]["p99_s"]) for of in (sim, engine["plans"])]
    worst = max(apart.values())
    return Result(
        name=NAME,
        ours=Figure(
            label="simulated node load, furthest from the engine's", value=worst, unit="", limit=LIMIT
        ),
        baseline=Figure(label="allowed", value=LIMIT, unit=""),
        ratio=LIMIT / max(worst, 1e-9),
        spread=max(apart.values()) - min(apart.values()),
        notes=[
            f"order by p99 {'equal' if ranked[0] == ranked[1] else 'differs'}: "
            f"{' < '.join(ranked[0])} simulated, {' < '.join(ranked[1])} on the engine",
            *(
                f"{planner}: p99 {sim[planner]['p99_s']:.2f} s simulated, "
                f"{engine['plans'][planner]['p99_s']:.2f} s on the engine; "
                f"node loads at most {apart[planner]:.1%} apart"
                for planner in PLANNERS
            ),
            f"workers {'capped at' if engine['capped'] else 'could not be capped at'} {CAP} core each",
        ],
        details={"simulated": sim, "engine": engine},
    )


if __name__ == "__main__":
    answer({"engine": engine_side})
