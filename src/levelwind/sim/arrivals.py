"""When the rows of a source come: a law, and the rate as a step function or the times themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from levelwind.loads.arrays import shared
from levelwind.sim.tables import Floats, Law

_NONE: Floats = shared(np.zeros(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Rows of one source over the whole run.

    Parameters
    ----------
    law
        Exponential gaps, even gaps, or recorded times.
    until_s, rate
        The rate in rows per second up to each of these times, the first step beginning at 0. Nothing comes
        after the last.
    times_s, cycle_s
        Recorded times (rising, from 0 up to the cycle), which come again every ``cycle_s`` seconds.
    """

    law: Law = Law.POISSON
    until_s: Floats = field(default_factory=lambda: _NONE)
    rate: Floats = field(default_factory=lambda: _NONE)
    times_s: Floats = field(default_factory=lambda: _NONE)
    cycle_s: float = 1.0

    def scaled(self, factor: float) -> Arrivals:
        """The same with all rates multiplied; recorded times come that much faster instead."""
        if self.law is Law.GIVEN:
            if factor <= 0.0:
                return Arrivals()
            return replace(self, times_s=self.times_s / factor, cycle_s=self.cycle_s / factor)
        return replace(self, rate=self.rate * factor)

    def rows(self, edges_s: Floats) -> Floats:
        """Rows to be expected between consecutive edges. O((steps + edges)·log)."""
        if self.law is Law.GIVEN:
            whole, rest = np.divmod(edges_s, self.cycle_s)
            before = whole * len(self.times_s) + np.searchsorted(self.times_s, rest)
            return np.diff(before).astype(float)
        starts = np.concatenate([[0.0], self.until_s])
        due = np.concatenate([[0.0], np.cumsum(np.diff(starts) * self.rate)])
        return np.diff(np.interp(edges_s, starts, due))


def constant(rate: float, until_s: float, *, law: Law = Law.POISSON) -> Arrivals:
    """One rate all the time."""
    return Arrivals(law=law, until_s=np.array([until_s]), rate=np.array([float(rate)]))


def steps(times_s: Floats, rates: Floats, horizon_s: float, *, law: Law = Law.POISSON) -> Arrivals:
    """The rate from each of some rising times on, cut to the time from 0 to ``horizon_s``.

    The first time must not be above 0.
    """
    ends = np.append(times_s[1:], np.inf)
    inside = (ends > 0.0) & (times_s < horizon_s)
    return Arrivals(law=law, until_s=np.minimum(ends[inside], horizon_s), rate=rates[inside])


def listed(times_s: Sequence[float] | Floats, *, cycle_s: float = np.inf) -> Arrivals:
    """Rows at these times and, unless ``cycle_s`` is stated, never again.

    Examples
    --------
    >>> listed([0.5, 0.7]).rows(np.array([0.0, 0.6, 1.0])).tolist()
    [1.0, 1.0]
    """
    times = np.sort(np.asarray(times_s, dtype=float))
    if np.isinf(cycle_s):
        cycle_s = 1e18  # later than any run ends, and still a number that can be counted with
    return Arrivals(law=Law.GIVEN, times_s=times, cycle_s=cycle_s)
