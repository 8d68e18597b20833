"""The worlds that section 6.1 of seed 000 measures in: random trees on ten equal nodes, random rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from levelwind.loads import Problem, make_problem, planes, volume_of_planes
from levelwind.loads.arrays import Floats, Ints
from levelwind.model import Cluster, Network
from levelwind.placement import check_needs, make_planner

NODES = 10
STREAMS = 5
SIZES = (25, 50, 100, 200)
# Samples of a rate series: as many as the paper's statistics windows hold (section 6.2.1).
SAMPLES = 10


def cell_seed(seed: int, *parts: int) -> int:
    """A seed for one cell, unlike that of any other cell; small enough for a JSON number."""
    state = np.random.SeedSequence((seed, *parts)).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(11))


def equal_cluster() -> Cluster:
    """The paper's ten homogeneous nodes."""
    return Cluster.equal(NODES)


def random_rates(network: Network, rng: np.random.Generator, *, samples: int = 1) -> Network:
    """The network with a random mean rate per stream, uniform in (0, 1); the unit does not matter.

    With several samples the rate is a series: the mean times independent noise, uniform in (0, 2). The
    paper says only that rates and series are random; this gives every balancing rival the same knowledge.
    """
    rates = {}
    for name in network.streams:
        mean = rng.random()
        rates[name] = (mean,) if samples == 1 else tuple((2.0 * mean * rng.random(samples)).tolist())
    return with_rates(network, rates)


def even_rates(network: Network, rng: np.random.Generator, *, samples: int) -> Network:
    """The network with long independent series that all have the same mean: the kindest to correlation."""
    return with_rates(network, {name: tuple(rng.random(samples).tolist()) for name in network.streams})


def with_rates(network: Network, rates: Mapping[str, tuple[float, ...]]) -> Network:
    """The network with these rates stated."""
    return replace(network, streams={n: replace(s, rate=rates[n]) for n, s in network.streams.items()})


def planned(
    problem: Problem, planner: str, *, seed: int = 0, options: Mapping[str, Any] | None = None
) -> Ints:
    """The planner's assignment, also where it says that the lower bound is already too much."""
    chosen = make_planner(planner, options)
    check_needs(chosen, problem)
    assignment = chosen.plan(problem, rng=np.random.default_rng(seed)).assignment
    assert assignment is not None  # nothing is pinned here, so every planner places everything
    return assignment


def feasible_ratio(problem: Problem, assignment: Ints) -> float:
    """The measure of that name, without the others: they cost time and are not asked for."""
    return volume_of_planes(planes(problem, assignment), problem.normalised_lower).ratio


def ratio_of(problem: Problem, planner: str, *, seed: int = 0, **options: Any) -> float:
    """Plan and measure."""
    return feasible_ratio(problem, planned(problem, planner, seed=seed, options=options))


def ideal_point(rng: np.random.Generator, dimension: int) -> Floats:
    """A point uniform in the normalised ideal set {x ≥ 0, Σx ≤ 1}."""
    return rng.dirichlet(np.ones(dimension + 1))[:dimension]


def bounded(network: Network, problem: Problem, point: Floats) -> Problem:
    """The problem with a normalised point as the streams' lower bound, stated as ``min_rate``."""
    rate = dict(zip(problem.variables, point * problem.cpu.sum() / problem.total_load, strict=True))
    streams = {name: replace(s, min_rate=float(rate[name])) for name, s in network.streams.items()}
    return make_problem(replace(network, streams=streams), problem.cluster)
