"""A situation as the compiled rounds see it, and their answer as proposals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from levelwind.balance.protocol import Proposal, Situation
from levelwind.loads.arrays import Floats, Ints
from levelwind.placement.pairs import Flags
from levelwind.placement.unit_series import UnitSeries, unit_series


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Units and where they stand.

    Parameters
    ----------
    of
        Unit of each operator, numbered from 0 without gaps.
    free
        Whether a unit may move: all its operators may, and it has load. Moving an idle one changes nothing.
    rank
        Priority of each unit, that of its most important operator; 0 where nobody knows any.
    ready
        Whether each node can take units now.
    """

    of: Ints
    series: UnitSeries
    node: Ints
    free: Flags
    cpu: Floats
    rank: Floats
    ready: Flags

    @property
    def relative(self) -> Floats:
        """Mean load of each node over its CPU."""
        return np.bincount(self.node, weights=self.series.mean, minlength=len(self.cpu)) / self.cpu


def standing(situation: Situation) -> Standing:
    """Sum operators up to the units they move in. O(operators × samples)."""
    of, first = situation.unit, None
    count = len(of)
    series, movable, node = situation.series, situation.movable, situation.node
    if count and (of != np.arange(count)).any():
        _, first, of = np.unique(of, return_index=True, return_inverse=True)
        order = np.argsort(of, kind="stable")
        start = np.searchsorted(of[order], np.arange(len(first)))
        series = np.add.reduceat(series[order], start, axis=0)
        movable = np.logical_and.reduceat(movable[order], start)
        node = node[first]
    summed = unit_series(series)
    # Loads this small are the rounding of none.
    idle = summed.mean <= 1e-12 * summed.mean.max(initial=0.0)
    return Standing(
        of=np.asarray(of, dtype=np.int64),
        series=summed,
        node=np.ascontiguousarray(node, dtype=np.int64).copy(),
        free=np.ascontiguousarray(movable & ~idle),
        cpu=np.ascontiguousarray(situation.cpu, dtype=np.float64),
        rank=_ranks(situation, np.asarray(of), len(node)),
        ready=situation.open.copy(),
    )


def _ranks(situation: Situation, of: Ints, units: int) -> Floats:
    if situation.facts is None:
        return np.zeros(units)
    rank = np.full(units, -np.inf)
    np.maximum.at(rank, of, situation.facts.priority)
    return rank


def proposals(before: Standing, node: Ints, turn: Ints, reason: str) -> tuple[Proposal, ...]:
    """The moves that lead from where units stand to ``node``, exchange by exchange, low priorities first."""
    moved = np.flatnonzero((node != before.node)[before.of])
    if not len(moved):
        return ()
    units = before.of[moved]
    order = np.lexsort((moved, before.rank[units], turn[units]))
    relative = before.relative.tolist()

    @cache
    def text(source: int, target: int) -> str:
        levels = f"from a node at {relative[source]:.2f} of its CPU to one at {relative[target]:.2f}"
        return f"{reason}: {levels}"

    return tuple(
        Proposal(
            operator=operator,
            to=target,
            group=group,
            reason=text(source, target),
        )
        for operator, target, source, group in zip(
            moved[order].tolist(),
            node[units][order].tolist(),
            before.node[units][order].tolist(),
            turn[units][order].tolist(),
            strict=True,
        )
    )
