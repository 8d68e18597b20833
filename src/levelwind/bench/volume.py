"""How exact the feasible set's volume is, against hit-or-miss with as many points.

Every planner that searches, and every measure that is printed, rests on this number. We integrate along
rays, where every ray counts; hit-or-miss draws points from the ideal set and counts those inside. Both get
the same number of points, on plans of rod and of random for random trees; errors are relative to the exact
volume from SciPy's convex hull or, without SciPy, to a million rays with another seed.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from math import factorial
from time import perf_counter
from typing import Any

import numpy as np

from levelwind.bench.result import Result, Settings, compared
from levelwind.frontend.generate import random_trees
from levelwind.loads import feasible_volume, make_problem, planes
from levelwind.loads.arrays import Floats
from levelwind.loads.feasible import SHIFTS
from levelwind.model import Cluster
from levelwind.placement import make_planner

NAME = "volume"
NODES, STREAMS, OPERATORS = 10, 5, 100
PLANNERS = ("rod", "random")
GRAPHS, ROUNDS = 10, 10
# What `feasible_volume` starts with, and stops at if any error will do.
POINTS = 1024 * SHIFTS
FAR_SEED = 2**20


def run(settings: Settings, *, graphs: int = GRAPHS) -> Result:
    """Mean relative error over all plans, anew in each round."""
    settings.step("plans and their exact volumes")
    weights = _plans(graphs, settings.seed)
    hull = _hull()
    exact = np.array([_high_resolution(w) if hull is None else hull_ratio(w, hull) for w in weights])
    ways: dict[str, Callable[[Floats, int], float]] = {"rays": along_rays, "hit_or_miss": hit_or_miss}
    errors: dict[str, list[float]] = {name: [] for name in ways}
    seconds = dict.fromkeys(ways, 0.0)
    rounds = settings.rounds(ROUNDS)
    for i in range(rounds):
        settings.step(f"round {i + 1} of {rounds}")
        for name, way in ways.items():
            started = perf_counter()
            found = [way(w, settings.seed + 1000 * (i + 1) + j) for j, w in enumerate(weights)]
            seconds[name] += perf_counter() - started
            errors[name].append(100.0 * float(np.mean(np.abs(np.array(found) / exact - 1.0))))
    once = {name: 1000.0 * total / rounds / len(weights) for name, total in seconds.items()}
    return compared(
        NAME,
        errors["rays"],
        errors["hit_or_miss"],
        labels=("mean relative error along rays", "hit-or-miss"),
        unit="%",
        notes=(
            f"{POINTS:,} points, {NODES} nodes, {STREAMS} streams, {len(weights)} plans "
            f"with feasible ratios from {exact.min():.3f} to {exact.max():.3f}",
            "true volumes " + ("along a million rays" if hull is None else "exact, by SciPy's convex hull"),
            f"{once['rays']:.1f} ms a volume against {once['hit_or_miss']:.1f} ms",
        ),
        details={"rounds_percent": errors, "milliseconds": once, "exact": exact.tolist()},
    )


def along_rays(weights: Floats, seed: int) -> float:
    """Our estimate, stopped after its first and smallest lattice."""
    return feasible_volume(weights, np.zeros(weights.shape[1]), seed=seed, relative_error=np.inf).ratio


def hit_or_miss(weights: Floats, seed: int) -> float:
    """The share of points, uniform in the ideal set, that overload no node."""
    d = weights.shape[1]
    points = np.random.default_rng(seed).dirichlet(np.ones(d + 1), size=POINTS)[:, :d]
    return float(((points @ weights.T).max(axis=1) <= 1.0).mean())


def hull_ratio(weights: Floats, spatial: Any) -> float:
    """The exact volume of {x ≥ 0 : weights·x ≤ 1} as a share of the ideal set's, which is 1/d!."""
    d = weights.shape[1]
    above = np.hstack([weights, -np.ones((len(weights), 1))])
    positive = np.hstack([-np.eye(d), np.zeros((d, 1))])
    inside = np.full(d, 0.5 / weights.sum(axis=1).max())
    corners = spatial.HalfspaceIntersection(np.vstack([above, positive]), inside).intersections
    return float(spatial.ConvexHull(corners).volume) * factorial(d)


def _hull() -> Any:
    try:
        return import_module("scipy.spatial")
    except ImportError:
        return None


def _high_resolution(weights: Floats) -> float:
    zero = np.zeros(weights.shape[1])
    return feasible_volume(weights, zero, seed=FAR_SEED, relative_error=0.0).ratio


def _plans(graphs: int, seed: int) -> list[Floats]:
    found = []
    for g in range(graphs):
        rng = np.random.default_rng((seed, g))
        network = random_trees(rng, operators=OPERATORS, streams=STREAMS)
        problem = make_problem(network, Cluster.equal(NODES))
        for planner in PLANNERS:
            assignment = make_planner(planner).plan(problem, rng=rng).assignment
            assert assignment is not None  # nothing is pinned, so everything is placed
            found.append(planes(problem, assignment).all)
    return found
