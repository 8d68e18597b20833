"""Loads as the offered rates ask for them, sample by sample: what planners, policies and measures see.

A load counts what would arrive if no node were ever behind, not what got through (seed 001, section 2.2): the
rows that entered in a sample, followed through selectivities, times costs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

from levelwind.loads.arrays import shared, sum_by
from levelwind.loads.planes import copies
from levelwind.loads.problem import Problem, is_carried
from levelwind.loads.rates import stated_rates, value_of
from levelwind.placement.measures import mean_correlation
from levelwind.sim.layout import PORTION_S
from levelwind.sim.spreading import SpreadJoins
from levelwind.sim.tables import Floats, Ints


class IdealLoads:
    """Turns rates of sources into loads of operators and nodes, joins included.

    Sources are those of a `Plumbing`: streams, then operators that state a load series.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.streams = tuple(problem.network.streams)
        self._carried = [s for s in problem.physical.streams if is_carried(problem, s)]
        self._sending = bool((problem.carried.transfer_s > 0).any())
        self._with_series = np.flatnonzero(problem.stated_peak > 0)
        self._linear = not problem.linear.introduced and set(problem.variables) <= set(self.streams)
        number = {name: k for k, name in enumerate(self.streams)}
        self._columns = [number[v] for v in problem.variables] if self._linear else []
        self._weights: Floats | None = None

    def follow_parts(self, spread: SpreadJoins) -> None:
        """Spread joins are shared out by the nodes of their parts from now on, not all parts alike."""
        self._weights = spread.weights
        ends = [(s.producer, s.route) for s in self._carried]
        self._sent = np.array([1.0 if j is None else spread.weight_of(j, route) for j, route in ends])

    def of(self, rates: Floats) -> Floats:
        """Load of each operator at these rates of the sources. O(operators × streams)."""
        if self._linear:
            values = rates[self._columns]
        else:
            by_name = stated_rates(self.problem.network, self.problem.linear, self._named(rates))
            values = np.array(
                [value_of(by_name, self.problem.linear, v)[0] for v in self.problem.variables], dtype=float
            )
        load: Floats = self.problem.operator_load @ values
        if self._weights is not None:
            load *= self._weights
        load[self._with_series] += rates[len(self.streams) :] * PORTION_S
        return load

    def of_nodes(self, load: Floats, rates: Floats, assignment: Ints, count: int) -> Floats:
        """Load of each of ``count`` nodes, the CPU cost of sending included. O(operators + arcs)."""
        placed = assignment >= 0
        total = sum_by(assignment[placed], load[placed], count)
        # A network whose operators stand on lost or later nodes is judged without what sending costs there.
        if self._sending and placed.all() and assignment.max() < len(self.problem.cpu):
            stream, sender, receiver = copies(self.problem, assignment)
            named = stated_rates(self.problem.network, self.problem.linear, self._named(rates))
            rows = np.array(
                [named.of(self.problem.linear.rates[s.source, s.route])[0] * s.share for s in self._carried]
            )
            if self._weights is not None:
                rows *= self._sent
            half = (rows * self.problem.carried.transfer_s / 2)[stream]
            total += sum_by(sender, half, count) + sum_by(receiver, half, count)
        return total

    def _named(self, rates: Floats) -> Mapping[str, float]:
        return dict(zip(self.streams, rates.tolist(), strict=False))


class Window:
    """The last samples of rates and loads. Arrays are worked out once per sample, however often asked for."""

    def __init__(self, samples: int) -> None:
        self._rates: deque[Floats] = deque(maxlen=samples)
        self._loads: deque[Floats] = deque(maxlen=samples)
        self._stacked: tuple[Floats, Floats, Floats] | None = None

    def add(self, rates: Floats, load: Floats) -> None:
        """Take a sample in; the oldest goes if there are too many."""
        self._rates.append(rates)
        self._loads.append(load)
        self._stacked = None

    @property
    def rates(self) -> Floats:
        """Sources × samples, oldest first."""
        return self._arrays()[0]

    @property
    def loads(self) -> Floats:
        """Operators × samples, oldest first."""
        return self._arrays()[1]

    @property
    def mean_load(self) -> Floats:
        """Mean load of each operator."""
        return self._arrays()[2]

    def _arrays(self) -> tuple[Floats, Floats, Floats]:
        if self._stacked is None:
            rates, loads = np.stack(self._rates, axis=1), np.stack(self._loads, axis=1)
            self._stacked = (shared(rates), shared(loads), shared(loads.mean(axis=1)))
        return self._stacked


def load_std(series: Floats, cpu: Floats) -> float:
    """Mean over nodes of the standard deviation of relative load."""
    return float((series / cpu[:, None]).std(axis=1).mean())


def load_std_bound(series: Floats, cpu: Floats) -> float:
    """What no placement can be below: all load spread evenly over all CPU."""
    return float(series.sum(axis=0).std() / cpu.sum())


def load_correlation(series: Floats) -> float | None:
    """Mean correlation over pairs of nodes; None for a single node."""
    return mean_correlation(series) if len(series) > 1 else None


def load_spread(series: Floats, cpu: Floats) -> float:
    """Mean relative load of the fullest node less that of the emptiest."""
    mean = series.mean(axis=1) / cpu
    return float(mean.max() - mean.min())
