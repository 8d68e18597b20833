"""The system load level: rates scaled until all nodes together are as busy as wanted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from levelwind.errors import input_error
from levelwind.loads.problem import Problem
from levelwind.model import Network
from levelwind.sim.arrivals import Arrivals
from levelwind.sim.statistics import IdealLoads
from levelwind.sim.tables import Floats

# Of the uniform distribution that unstated rates are drawn from (seed 001, table 2).
LEAST_RATE, MOST_RATE = 0.8, 1.2
_PRECISION = 1e-12


def base_rates(network: Network, rng: np.random.Generator) -> dict[str, float]:
    """The mean rate of each stream: as stated, else drawn from U(0.8, 1.2) rows per second."""
    drawn = rng.uniform(LEAST_RATE, MOST_RATE, size=len(network.streams)).tolist()
    return {
        name: draw if stream.mean_rate is None else stream.mean_rate
        for (name, stream), draw in zip(network.streams.items(), drawn, strict=True)
    }


def at_level(
    problem: Problem, arrivals: Mapping[str, Arrivals], level: float, *, from_s: float, until_s: float
) -> dict[str, Arrivals]:
    """Multiply all rates by one factor, so that the load offered between two times is ``level``.

    The level is the busy time of all nodes over their number and the duration (seed 001, section 5.1.4); with
    unequal nodes, over the sum of their capacities. Rows count as expected, so that a Poisson stream keeps
    its chance. O(streams × steps), times about 60 where joins make load grow faster than rates.
    """
    edges = np.array([from_s, until_s])
    rates = np.array([arrivals[name].rows(edges)[0] for name in problem.network.streams]) / (until_s - from_s)
    ideal = IdealLoads(problem)
    wanted = level * float(problem.cpu.sum()) - float(problem.stated_load.sum())
    factor = _factor(ideal, rates, wanted)
    return {name: one.scaled(factor) for name, one in arrivals.items()}


def _factor(ideal: IdealLoads, rates: Floats, wanted: float) -> float:
    background = np.zeros(len(ideal.problem.physical.operators) + len(rates))
    further = len(np.flatnonzero(ideal.problem.stated_peak > 0))

    def load(factor: float) -> float:
        return float(ideal.of(np.concatenate([factor * rates, background[:further]])).sum())

    if wanted <= 0 or load(1.0) <= 0:
        rule = "the load level must be reachable by scaling the streams' rates"
        hint = "the stated load series alone are above it, or no stream causes load"
        raise input_error(rule, key="load", hint=hint)
    low, high = 0.0, wanted / load(1.0)
    while load(high) < wanted * (1 - _PRECISION):
        low, high = high, 2 * high
    if abs(load(high) - wanted) <= wanted * _PRECISION:
        return high
    while high - low > high * _PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if load(middle) < wanted else (low, middle)
    return high
