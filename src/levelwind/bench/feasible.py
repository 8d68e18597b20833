"""The feasible set measured on the engine, against the model's: figures 6.1 and 6.2 of seed 000 on Spark.

Rate points are drawn evenly from the ideal set. Every point is run for some seconds of stream on a loopback
cluster whose workers are capped, with `model` operators that burn their stated cost and ``hops: next``, so
that a batch takes as long as its fullest node. A point is feasible if the fullest node is done with its rows
in no more time than they took to arrive, in the better of two batches: others on the machine can only add to
it. The model says the same of these points from loads and capacities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from levelwind.bench.result import Figure, Result, Settings
from levelwind.bench.runtime_worlds import file_source, write_files
from levelwind.loads.problem import make_problem
from levelwind.model import Cluster, Network
from levelwind.planning import plan
from levelwind.spark.api import run as run_network
from levelwind.spark.session import start_session
from levelwind.testing.loopback import LoopbackCluster
from levelwind.testing.sides import answer, network_of, ours

NAME = "feasible"
MODULE = "levelwind.bench.feasible"
PLANNERS = ("rod", "llf", "connected")
STREAMS, WORKERS = 3, 4
CAP = 0.3
# Seconds of stream per batch: long against what a task costs besides its operators.
STRETCH_S = 1.6
# Operators read streams or operators that do: after two batches at a point nothing older is under way.
BATCHES, COUNTED = 3, 2
POINTS, FULL_POINTS = 15, 60
# Batches of little at first, while workers start and their code is compiled.
WARM_UP = 10
LIMIT = 0.07


def document(rng: np.random.Generator, data: Path) -> dict[str, Any]:
    """Three streams, each read by four operators that feed two more each: 36 operators of random cost."""
    operators = []
    for stream in range(STREAMS):
        for root in range(4):
            name = f"o{stream}{root}"
            operators.append(_box(rng, name, f"I{stream}"))
            operators += [_box(rng, f"{name}{leaf}", name) for leaf in "ab"]
    return {
        "name": "feasible",
        "hops": "next",
        "streams": {
            f"I{stream}": {
                "schema": {"ts": "timestamp"},
                "time": "ts",
                "rate": float(rng.uniform(0.5, 1.5)),
                "source": file_source(data / f"I{stream}"),
            }
            for stream in range(STREAMS)
        },
        "operators": operators,
    }


def _box(rng: np.random.Generator, name: str, reads: str) -> dict[str, Any]:
    keeps_all = rng.random() < 0.5
    return {
        "name": name,
        "kind": "model",
        "input": reads,
        "cost": float(rng.uniform(5e-4, 5e-3)),
        "selectivity": 1.0 if keeps_all else round(float(rng.uniform(0.5, 1.0)), 3),
    }


def coefficients(network: Network, cluster: Cluster) -> tuple[tuple[str, ...], Any]:
    """Load of every operator per row a second of each stream."""
    problem = make_problem(network, cluster)
    return problem.physical.names, np.asarray(problem.operator_load)


def points(rng: np.random.Generator, loads: Any, capacity: float, count: int) -> Any:
    """Rates drawn evenly from the ideal set: all loads together within all capacities together."""
    shares = rng.dirichlet(np.ones(loads.shape[1] + 1), size=count)[:, :-1]
    return shares * capacity / loads.sum(axis=0)


def model_says(
    names: Sequence[str], loads: Any, placement: Mapping[str, str], cluster: Cluster, rates: Any
) -> Any:
    """The fullest node's load at each point."""
    fullest = np.zeros(len(rates))
    for node in cluster.nodes:
        here = [i for i, name in enumerate(names) if placement[name] == node.name]
        fullest = np.maximum(fullest, rates @ loads[here].sum(axis=0) / node.cpu)
    return fullest


def engine_side(folder: str, seed: int, count: int) -> dict[str, Any]:
    """Run all points under each plan on a capped cluster."""
    rng = np.random.default_rng(seed)
    data = Path(folder, "data")
    told = network_of(document(rng, data))
    names, loads = coefficients(told, Cluster.equal(WORKERS, cpu=CAP))
    rates = points(rng, loads, WORKERS * CAP, count)
    small = np.full((1, STREAMS), 1.0)
    plan_of_batches = [small] * WARM_UP + [point[None] for point in rates for _ in range(BATCHES)]
    counts = np.maximum(np.rint(np.concatenate(plan_of_batches) * STRETCH_S), 1).astype(int)
    for stream in range(STREAMS):
        write_files(data / f"I{stream}", (_rows(batch, n) for batch, n in enumerate(counts[:, stream])))
    found: dict[str, Any] = {}
    capped = True
    with LoopbackCluster(workers=WORKERS) as cluster:
        nodes = cluster.nodes(CAP)
        session = start_session(cluster.master, cluster.configuration, log=Path(folder, "spark.log"))
        for planner in PLANNERS:
            made = plan(told, nodes, planner)
            cluster.cap(CAP)
            slowest: list[float] = []
            hosts: list[dict[int, str]] = []

            def note(step: Any, slowest: list[float] = slowest, hosts: list[dict[int, str]] = hosts) -> None:
                at_work = [report for report in step.reports if report.node >= 0]
                slowest.append(max(report.wall_s for report in at_work))
                hosts.append({report.node: report.host for report in at_work})

            run_network(
                told,
                nodes,
                spark=session,
                placement=made,
                run_dir=Path(folder, planner),
                until_idle=True,
                reuse=False,
                on_step=note,
            )
            capped = capped and cluster.capped
            cluster.cap(None)
            at_points = np.array(slowest[WARM_UP : WARM_UP + BATCHES * count]).reshape(count, BATCHES)
            home = [here[k] == host for here in hosts for k, host in enumerate(cluster.hosts)]
            found[planner] = {
                "measured": (at_points[:, -COUNTED:].min(axis=1) / STRETCH_S).tolist(),
                "batches": at_points.tolist(),
                "model": model_says(names, loads, dict(made.placement), nodes, rates).tolist(),
                "at_home": sum(home) / len(home),
            }
    return {"plans": found, "capped": capped}


def _rows(batch: int, count: int) -> pa.Table:
    times = pa.array([int((batch + i / count) * 1e6) for i in range(count)], pa.timestamp("us", tz="UTC"))
    return pa.table({"ts": times})


def run(settings: Settings) -> Result:
    """Compare the engine's feasible set with the model's."""
    count = settings.rounds(FULL_POINTS if settings.full else POINTS)
    settings.step(f"{count} rate points under each of {', '.join(PLANNERS)}")
    with TemporaryDirectory() as folder:
        found = ours(MODULE, "engine", folder=folder, seed=settings.seed, count=count, patience_s=7200.0)
    plans = found["plans"]
    ratio = {
        name: {way: float(np.mean(np.asarray(told[way]) <= 1.0)) for way in ("measured", "model")}
        for name, told in plans.items()
    }
    apart = {name: abs(both["measured"] - both["model"]) for name, both in ratio.items()}
    ranked = [sorted(PLANNERS, key=lambda name: -ratio[name][way]) for way in ("measured", "model")]
    best, worst = ratio["rod"]["measured"], ratio["connected"]["measured"]
    return Result(
        name=NAME,
        ours=Figure(label="feasible set of rod, measured on the engine", value=best, unit="of the ideal"),
        baseline=Figure(label="that of connected", value=worst, unit="of the ideal"),
        ratio=best / max(worst, 1.0 / count),
        spread=max(apart.values()),
        figures=tuple(
            Figure(label=f"{name}: measured against model, apart", value=apart[name], unit="", limit=LIMIT)
            for name in PLANNERS
        ),
        notes=(
            *(
                f"{name}: measured {both['measured']:.3f}, model {both['model']:.3f} of {count} points"
                for name, both in ratio.items()
            ),
            f"ranking {'equal' if ranked[0] == ranked[1] else 'differs'}: {' > '.join(ranked[0])}",
            f"workers {'capped at' if found['capped'] else 'could not be capped at'} {CAP} core each",
            "measured over the model's load, median: "
            + ", ".join(f"{_quotient(told):.3f} ({name})" for name, told in plans.items()),
            f"tasks on their own host: {min(told['at_home'] for told in plans.values()):.1%} at least",
        ),
        details={"plans": plans},
    )


def _quotient(told: Mapping[str, Any]) -> float:
    return float(np.median(np.asarray(told["measured"]) / np.asarray(told["model"])))


if __name__ == "__main__":
    answer({"engine": engine_side})
