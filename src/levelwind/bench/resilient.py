"""What our own planner gains over ROD in a third of a second, and whether it keeps its budget.

The feasible set of ``resilient`` over that of ``rod``, on the random trees of the dissertation (10 nodes, 5
streams). The graphs are the repeats, so ``--repeat`` sets their number. Volumes are taken along other rays
than the search used. CPU time is that of the whole call, ROD and the last comparison included; compilation
is over before the first graph.
"""

from __future__ import annotations

from statistics import geometric_mean, mean, median
from time import process_time
from typing import Any

import numpy as np

from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.frontend.generate import random_trees
from levelwind.loads import Problem, make_problem, planes, volume_of_planes
from levelwind.loads.arrays import Ints
from levelwind.model import Cluster
from levelwind.placement import make_planner

NAME = "resilient"
NODES, STREAMS = 10, 5
SIZES = (25, 50, 100, 200)
GRAPHS, FULL_GRAPHS = 20, 100
BUDGET, FULL_BUDGET = 0.3, 3.0
RAYS_SEED = 7


def run(settings: Settings, *, sizes: tuple[int, ...] = SIZES, budget: float = BUDGET) -> Result:
    """Plan every graph with both; with ``full`` more graphs, and a second time with ten times the budget."""
    graphs = settings.rounds(FULL_GRAPHS if settings.full else GRAPHS)
    budgets = [budget, budget * FULL_BUDGET / BUDGET] if settings.full else [budget]
    _compile()
    points: list[dict[str, Any]] = []
    for size in sizes:
        for g in range(graphs):
            settings.step(f"{size} operators, graph {g + 1} of {graphs}")
            points.append(_compare(size, settings.seed, g, budgets))
    gains = [p["resilient"][0] / p["rod"] for p in points]
    figures = [
        Figure(
            label="CPU time, most of any graph",
            value=max(p["cpu_s"][0] for p in points),
            unit="s",
            limit=budget,
        )
    ]
    for b, allowed in enumerate(budgets):
        for size in sizes:
            own = [p["resilient"][b] / p["rod"] for p in points if p["operators"] == size]
            label = f"gain at {size} operators, budget {allowed:g} s"
            figures.append(Figure(label=label, value=geometric_mean(own), unit="times"))
    if settings.full:
        longest = max(p["cpu_s"][1] for p in points)
        figures.append(
            Figure(label=f"CPU time, budget {budgets[1]:g} s", value=longest, unit="s", limit=budgets[1])
        )
    return Result(
        name=NAME,
        ours=Figure(label="mean feasible ratio", value=mean(p["resilient"][0] for p in points), unit="ratio"),
        baseline=Figure(label="rod's", value=mean(p["rod"] for p in points), unit="ratio"),
        ratio=geometric_mean(gains),
        spread=spread_of(gains),
        figures=figures,
        notes=(
            "the ratio is the geometric mean of the gains, not the quotient of the two means",
            f"{graphs} graphs of each size, budget {budget:g} s; "
            f"gains from {min(gains):.3f} to {max(gains):.3f}",
            f"CPU time {median(p['cpu_s'][0] for p in points):.3f} s in the median, rod alone "
            f"{median(p['rod_cpu_s'] for p in points):.3f} s",
        ),
        details={"points": points, "budgets_s": budgets},
    )


def _compare(operators: int, seed: int, graph: int, budgets: list[float]) -> dict[str, Any]:
    rng = np.random.default_rng((seed, operators, graph))
    problem = _problem(rng, operators)
    rod, rod_cpu = _planned(problem, "rod", 0.0)
    found = [_planned(problem, "resilient", budget) for budget in budgets]
    return {
        "operators": operators,
        "rod": _ratio(problem, rod),
        "rod_cpu_s": rod_cpu,
        "resilient": [_ratio(problem, assignment) for assignment, _ in found],
        "cpu_s": [cpu for _, cpu in found],
    }


def _planned(problem: Problem, planner: str, budget: float) -> tuple[Ints, float]:
    """The assignment and the CPU time that it took."""
    chosen = make_planner(planner, {"budget": budget} if planner == "resilient" else None)
    started = process_time()
    assignment = chosen.plan(problem, rng=np.random.default_rng(0)).assignment
    spent = process_time() - started
    assert assignment is not None  # nothing is pinned, so everything is placed
    return assignment, spent


def _ratio(problem: Problem, assignment: Ints) -> float:
    found = volume_of_planes(planes(problem, assignment), problem.normalised_lower, seed=RAYS_SEED)
    return found.ratio


def _problem(rng: np.random.Generator, operators: int) -> Problem:
    network = random_trees(rng, operators=operators, streams=STREAMS)
    return make_problem(network, Cluster.equal(NODES))


def _compile() -> None:
    """Make the compiled code ready, on a graph that is not measured."""
    _planned(_problem(np.random.default_rng(0), 25), "resilient", 0.001)
