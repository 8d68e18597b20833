"""In which order a row meets the other inputs: by how many rows of each would agree with it, as measured.

The order decides what a step costs, never what it finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from levelwind.operators.multijoin.condition import GroupCondition
from levelwind.operators.multijoin.extending import admitted, candidates
from levelwind.operators.multijoin.meeting import BY_TIME, Meeting
from levelwind.operators.multijoin.partials import single
from levelwind.operators.timespans import minus

Pair = tuple[int, int]
# What is taken of a pair of inputs that was not measured yet, by what links them.
_EQUAL, _NEAR, _OTHER = 0.01, 0.1, 0.5
# Rows of an input that are tried against another one, and pairs of them that are looked at.
_ROWS, _PAIRS = 64, 1 << 14
# What was seen before counts three quarters each time: about the last four measurements matter.
_FORGET = 4
# After every pair was measured so often, one is measured in every so many steps.
_ROUNDS, _EVERY = 2, 8
# With more inputs than that, the best order is not searched for among all.
_MOST_INPUTS = 9


def measured_now(step: int, condition: GroupCondition, turn: int = 0) -> tuple[Pair, ...]:
    """The pairs of inputs to measure in a step, which count from 0.

    All of them in the first: an order by guesses can cost more than all steps after it. Then in turn. Parts
    of one join with different ``turn`` measure in different steps, so that of all of them one mostly does.
    """
    linked = condition.linked
    if not step or not linked:
        return linked
    if step >= _ROUNDS * len(linked):
        if (step + turn) % _EVERY:
            return ()
        step = (step + turn) // _EVERY
    return (linked[(step + turn) % len(linked)],)


def is_due(step: int, inputs: int, turn: int = 0) -> bool:
    """Whether pairs of inputs are measured in a step, for those who take what pairs there are."""
    return step < _ROUNDS * inputs * (inputs - 1) // 2 or (step + turn) % _EVERY == 0


def measure(meeting: Meeting, pair: Pair) -> tuple[int, int]:
    """How many pairs of rows of two inputs are near enough in time, and how many of them agree, of a sample.

    Rows that may not meet at all are no pair.
    O(rows log rows) for indexes that are not at hand, and a bounded number of pairs.
    """
    first, second = pair
    count = len(meeting.members[first].times)
    sample = single(meeting, first, np.unique(np.linspace(0, count - 1, min(count, _ROWS)).astype(np.int64)))
    low = minus(sample.latest, meeting.windows_us[second])
    same = ((0, first),) if meeting.condition.together else ()
    index = meeting.index(second, tuple(number for number, _ in same), BY_TIME)
    near = index.find(meeting.keys(same, sample.at), low, sample.until)
    met = int((near[1] - near[0]).sum())
    found = candidates(meeting, sample, second)
    looked_at = next(found.pairs(_PAIRS), None)
    if looked_at is None:
        return met, 0
    agreed = len(admitted(meeting, sample, second, found, *looked_at))
    return met, round(agreed / len(looked_at[0]) * found.count)


def mark_names(first: str, second: str) -> tuple[str, str]:
    """The marks under which is remembered how many pairs of rows of two inputs were near, and agreed."""
    return f"near {first}, {second}", f"agreed {first}, {second}"


def with_measure(marks: Mapping[str, int], names: tuple[str, str], seen: Pair) -> dict[str, int]:
    """What is remembered of a pair of inputs, with more pairs of rows seen."""
    before = (marks.get(name, 0) for name in names)
    return {name: old - old // _FORGET + more for name, old, more in zip(names, before, seen, strict=True)}


def total_names(first: str, second: str) -> tuple[str, str]:
    """The marks under which parts of a spread join count all pairs that they have measured so far."""
    near, agreed = mark_names(first, second)
    return f"all {near}", f"all {agreed}"


def with_total(marks: Mapping[str, int], names: tuple[str, str], seen: Pair) -> dict[str, int]:
    """What is counted of a pair of inputs, with more pairs of rows seen."""
    return {name: marks.get(name, 0) + more for name, more in zip(names, seen, strict=True)}


def selectivities(condition: GroupCondition, seen: Mapping[Pair, tuple[int, int]]) -> dict[Pair, float]:
    """For each pair of inputs that a condition links, the share of its rows near in time that agree.

    Parameters
    ----------
    seen
        Pairs of rows that were near in time, and of them those that agreed.
    """
    found = {}
    for pair in condition.linked:
        met, agreed = seen.get(pair, (0, 0))
        if met:
            found[pair] = (agreed + 0.5) / (met + 1)
        elif condition.equal(pair[:1], pair[1]):
            found[pair] = _EQUAL
        else:
            found[pair] = _NEAR if condition.near(pair[:1], pair[1]) else _OTHER
    return found


def best_order(start: int, rows: Sequence[int], chances: Mapping[Pair, float]) -> tuple[int, ...]:
    """The order of the other inputs in which fewest partial groups are made, taking pairs as independent.

    How many groups a set of inputs makes is then the same in any order, so that the best way to a set ends
    with the best way to one less: O(2^n n) for n inputs, up to nine; beyond that, the next best each time.

    Parameters
    ----------
    rows
        How many rows each input has.
    chances
        The share of pairs that agree, of each pair of inputs that is linked.
    """
    others = [input for input in range(len(rows)) if input != start]

    def groups(members: Sequence[int]) -> float:
        made = 1.0
        for member in members:
            made *= max(rows[member], 1)
        inside = sorted((start, *members))
        for pair in combinations(inside, 2):
            made *= chances.get(pair, 1.0)
        return made

    if len(rows) > _MOST_INPUTS:
        order: list[int] = []
        while len(order) < len(others):
            rest = [input for input in others if input not in order]
            order.append(min(rest, key=lambda each: (groups([*order, each]), each)))
        return tuple(order)
    best: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {frozenset(): (0.0, ())}
    for size in range(1, len(others) + 1):
        for members in combinations(others, size):
            whole = frozenset(members)
            ways = (best[whole - {last}] + (last,) for last in members)
            cost, before, last = min(ways)
            best[whole] = cost + groups(members), (*before, last)
    return best[frozenset(others)][1]
