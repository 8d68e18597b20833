"""Groups that differ in load: the query that goes from the fullest to the emptiest, if that is worth it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

import numpy as np

from levelwind.control.membership import Membership

DIFFERENCE = 0.1
# A query moves if the larger load falls by this part of what the fuller group is rid of.
WORTH = 0.25


class Levelling(NamedTuple):
    """A query that is to go to another group, and why."""

    query: int
    target: str
    reason: str


def levelling(
    books: Membership,
    levels: Mapping[str, float],
    cpu: Mapping[str, float],
    load: Mapping[str, float],
    *,
    going: Set[str],
    difference: float,
) -> Levelling | None:
    """The query whose move lowers the larger load enough, the least important first; None if none does.

    ``levels`` are loads over CPU of groups that have a node, ``load`` those of operators as placed, ``going``
    operators that are on their way. O(operators).
    """
    if len(levels) < 2:
        return None
    full, empty = max(levels, key=lambda g: levels[g]), min(levels, key=lambda g: levels[g])
    if levels[full] - levels[empty] <= difference:
        return None
    best: tuple[float, float, int] | None = None
    for number, names in enumerate(books.queries):
        if books.group[number] != full or not _may_move(books, number, going):
            continue
        own = sum(load[name] for name in books.physical[number])
        larger = max(levels[full] - own / cpu[full], levels[empty] + own / cpu[empty])
        # For less it would be back with the next report: loads are estimates.
        if own > 0 and larger <= levels[full] - WORTH * own / cpu[full]:
            priority = max(books.network.operators[name].priority for name in names)
            best = min(best or (np.inf, np.inf, 0), (priority, larger, number))
    if best is None:
        return None
    why = f"group {full} is at {levels[full]:.2f} of its CPU, group {empty} at {levels[empty]:.2f}"
    return Levelling(best[2], empty, why)


def _may_move(books: Membership, number: int, going: Set[str]) -> bool:
    operators = (books.network.operators[name] for name in books.queries[number])
    if any(o.pinned is not None or not o.movable for o in operators):
        return False
    return going.isdisjoint(books.physical[number])
