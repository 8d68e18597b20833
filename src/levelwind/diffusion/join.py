"""The join that is spread: its windows, what it costs, and what was measured of its streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Array = NDArray[Any]

# Times before all and after all, far enough from the ends of 64 bits that windows can be added.
FIRST = -(2**62)
LAST = 2**62
MICROSECONDS = 1_000_000
# A chance is never taken as less.
LEAST_CHANCE = 1e-12
Pairs = frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """CPU seconds: for a row sent, for one received, and for one look into one host's part of one window.

    ``copy`` is how much a copy of another stream's row counts beside a row of the master, when segments are
    shared out. As much, if a look costs the same whatever it finds. Little, if it costs as much as the rows
    that it meets: each group has a row of the master, so that whoever has those has the work.
    """

    send_s: float = 0.001
    receive_s: float = 0.001
    probe_s: float = 0.010
    copy: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What is known of the streams: rows per second, and the chance that a pair of rows agrees.

    ``selectivity[i, k]`` is that of a row of i (or a partial group that ends with i) and a row of k.
    """

    rates: tuple[float, ...]
    selectivity: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, rates: Sequence[float], selectivity: float | Sequence[Sequence[float]]) -> Measured:
        """With one selectivity for all pairs, or a matrix."""
        n = len(rates)
        if isinstance(selectivity, int | float):
            return cls(rates=tuple(rates), selectivity=((float(selectivity),) * n,) * n)
        return cls(rates=tuple(rates), selectivity=tuple(tuple(row) for row in selectivity))

    @classmethod
    def of_pairs(
        cls,
        rates: Sequence[float],
        chances: Mapping[tuple[int, int], float],
        otherwise: float,
        unlinked: Pairs = frozenset(),
    ) -> Measured:
        """With the chances of some pairs of streams, smaller number first.

        A pair about which nothing is asked, one of ``unlinked``, always agrees. A partial group still meets
        such a stream through a condition on another of its rows, so that the least chance of that stream with
        any other counts. Other pairs that were not seen take the geometric mean of those that were, or
        ``otherwise``.
        """
        n = len(rates)
        told = {pair: max(own, LEAST_CHANCE) for pair, own in chances.items() if pair not in unlinked}
        usual = float(np.exp(np.mean(np.log(list(told.values()))))) if told else otherwise
        asked = np.full((n, n), usual)
        for (i, k), chance in told.items():
            asked[i, k] = asked[k, i] = chance
        is_asked = np.ones((n, n), dtype=np.bool_)
        for i, k in unlinked:
            is_asked[i, k] = is_asked[k, i] = False
        others = np.where(is_asked & ~np.eye(n, dtype=np.bool_), asked, 1.0)
        return cls.of(rates, np.where(is_asked, asked, others.min(axis=0)).tolist())

    def partners(self, windows_us: Sequence[int]) -> Floats:
        """``x[i, k] = σ · r · W``: the rows of k's window that agree with a row of i, in the mean."""
        inside = np.array(self.rates) * np.array(windows_us, dtype=np.float64) / MICROSECONDS
        return np.array(self.selectivity) * inside[np.newaxis, :]

    def met(self, shape: JoinShape, weight: float = 1.0) -> Floats:
        """As `partners`, but of a stream about which and i nothing is asked a row of i meets all rows.

        A partial group meets of k the least that one of its rows does. Rows that are met because nothing is
        asked count ``weight`` times.
        """
        found = self.partners(shape.windows_us)
        inside = np.array(self.rates) * np.array(shape.windows_us, dtype=np.float64) / MICROSECONDS
        for i, k in shape.unlinked:
            found[i, k], found[k, i] = weight * inside[k], weight * inside[i]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinShape:
    """A join to be spread.

    Parameters
    ----------
    windows_us
        Of each stream. A group counts iff each member is at most so much older than the latest, ends
        included.
    instances
        Hosts there are, numbered from 0.
    unlinked
        Pairs of streams, smaller number first, about which the condition asks nothing.
    """

    windows_us: tuple[int, ...]
    instances: int
    costs: Costs = field(default_factory=Costs)
    unlinked: Pairs = frozenset()

    def links(self, stream: int) -> int:
        """With how many others something is asked of a stream."""
        return self.streams - 1 - sum(stream in pair for pair in self.unlinked)

    @property
    def streams(self) -> int:
        """How many streams are joined."""
        return len(self.windows_us)

    @property
    def longest_us(self) -> int:
        """The longest window."""
        return max(self.windows_us)
