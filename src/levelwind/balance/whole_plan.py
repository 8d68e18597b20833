"""A search for the placement whose costliest node costs least, sending and receiving counted; compiled.

The cost of a node is the work of its operators, with what they send to and receive from other nodes, over its
CPU: what `WorkCost` says. When a unit moves, only the two nodes change that it leaves and comes to; so that
a step is judged by its own arcs alone, O(arcs of a unit and of its neighbours).

Steps make Σ cost⁸ less, in which the costliest node counts for nearly everything, and which still falls while
another one stands in its way. Of the placements that steps lead to, that is the best whose costliest node
costs least.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from levelwind.loads.arrays import Floats, Ints
from levelwind.placement.pairs import Flags, compiled

# A gain below this share is rounding.
TIE = 1e-9
# Nodes that a unit is tried on: those of its neighbours, and as many of the cheapest.
CHEAPEST = 2
# How large a part of a node's fair share of the work a bunch may be.
BUNCHES = (0.15, 0.3, 0.6, 1.0)
# Units times nodes up to which placements are made from nothing, too.
SMALL = 100_000
# At most so many units move together when a search looks elsewhere.
KICKED = 6
# How much worse than the best a placement may be from which it looks further.
ASTRAY = 0.1
# Numbers by chance for each look elsewhere.
CHANCES = 3


class Work(NamedTuple):
    """What operators do and send, and how they hang together.

    ``working`` is an operator's work without sending. ``readers`` of operator o are those from
    ``reader_start[o]`` on, ``sources`` likewise. ``sending`` is what it costs to send a reader its rows,
    ``reader_stream`` says which readers get the same ones: they stand side by side, and these rows are made
    ready once. ``receiving`` is what the rows of a source cost on another node, ``dear`` what a reader's rows
    cost at both ends. ``members`` are the operators of a unit. Nodes that are not ``ready`` take nothing:
    what stands on them must not be free to move either.
    """

    working: Floats
    reader_start: Ints
    readers: Ints
    reader_stream: Ints
    sending: Floats
    dear: Floats
    source_start: Ints
    sources: Ints
    receiving: Floats
    unit: Ints
    member_start: Ints
    members: Ints
    cpu: Floats
    ready: Flags


class Found(NamedTuple):
    """A placement of the units, and the cost of every node under it."""

    node: Ints
    cost: Floats


@compiled
def search(work: Work, node: Ints, free: Flags, chance: Floats, budget: int) -> Any:
    """Better placements: the one that steps lead to from ``node``, and the best of all that were tried.

    Parameters
    ----------
    node
        Where units stand.
    free
        Which units may move.
    chance
        Numbers from 0 to 1, `CHANCES` for each look elsewhere.
    budget
        Steps that are tried at most, once a beginning is laid.

    Returns
    -------
    Two of `Found`.
    """
    stamp = np.full(len(work.unit), -1, dtype=np.int64)
    left = np.array([budget, 0], dtype=np.int64)  # steps left, and the last stamp
    near = node.copy()
    near_cost = costs(work, near)
    descend(work, near, near_cost, free, stamp, left)
    best, best_cost = near.copy(), near_cost.copy()
    small = len(node) * len(work.cpu) <= SMALL
    for share in BUNCHES:
        if left[0] <= 0 or not small:
            break
        trial = _laid(work, node, free, share, stamp, left)
        cost = costs(work, trial)
        descend(work, trial, cost, free, stamp, left)
        if _is_better(cost, best_cost):
            best, best_cost = trial, cost
    units, here, here_cost = np.flatnonzero(free), best.copy(), best_cost.copy()
    for turn in range(len(chance) // CHANCES if len(units) and len(work.cpu) > 1 else 0):
        if left[0] <= 0:
            break
        trial = here.copy()
        _kick(work, trial, here_cost, free, units, chance[turn * CHANCES : (turn + 1) * CHANCES])
        cost = costs(work, trial)
        descend(work, trial, cost, free, stamp, left)
        if _is_better(cost, best_cost):
            best, best_cost = trial.copy(), cost.copy()
        if cost.max() <= best_cost.max() * (1.0 + ASTRAY):
            here, here_cost = trial, cost
    return Found(near, near_cost), Found(best, best_cost)


@compiled
def costs(work: Work, node: Ints) -> Any:
    """Cost of every node; units on no node (−1) cost nothing. O(operators + arcs)."""
    cost = np.zeros(len(work.cpu))
    for operator in range(len(work.unit)):
        place = node[work.unit[operator]]
        if place >= 0:
            cost[place] += _amount(work, node, operator) / work.cpu[place]
    return cost


@compiled
def _amount(work: Work, node: Ints, operator: int) -> float:
    """What an operator costs where it stands. Whoever is on no node yet counts as near."""
    home, amount, sent = node[work.unit[operator]], work.working[operator], -1
    for k in range(work.reader_start[operator], work.reader_start[operator + 1]):
        away = node[work.unit[work.readers[k]]]
        if away >= 0 and away != home and work.reader_stream[k] != sent:
            sent = work.reader_stream[k]
            amount += work.sending[k]
    for k in range(work.source_start[operator], work.source_start[operator + 1]):
        away = node[work.unit[work.sources[k]]]
        if away >= 0 and away != home:
            amount += work.receiving[k]
    return amount


@compiled
def _change(work: Work, node: Ints, unit: int, target: int, stamp: Ints, left: Ints) -> tuple[float, float]:
    """How the costs of a unit's node and of ``target`` change when it moves there."""
    home, change = node[unit], np.zeros(2)
    _count(work, node, unit, -1.0, change, home, target, stamp, left)
    node[unit] = target
    _count(work, node, unit, 1.0, change, home, target, stamp, left)
    node[unit] = home
    return change[0] / work.cpu[home], change[1] / work.cpu[target]


@compiled
def _count(
    work: Work,
    node: Ints,
    unit: int,
    sign: float,
    change: Floats,
    one: int,
    other: int,
    stamp: Ints,
    left: Ints,
) -> None:
    """Add what a unit's operators and their neighbours cost where they stand, each once, times ``sign``.

    Those on node ``one`` count in the first place of ``change``, those on ``other`` in the second, no others;
    with −1 for both every node has a place of its own.
    """
    left[1] += 1
    for m in range(work.member_start[unit], work.member_start[unit + 1]):
        operator = work.members[m]
        _count_one(work, node, operator, sign, change, one, other, stamp, left[1])
        for k in range(work.reader_start[operator], work.reader_start[operator + 1]):
            _count_one(work, node, work.readers[k], sign, change, one, other, stamp, left[1])
        for k in range(work.source_start[operator], work.source_start[operator + 1]):
            _count_one(work, node, work.sources[k], sign, change, one, other, stamp, left[1])


@compiled
def _count_one(
    work: Work,
    node: Ints,
    operator: int,
    sign: float,
    change: Floats,
    one: int,
    other: int,
    stamp: Ints,
    mark: int,
) -> None:
    """Count one operator, unless it was counted with this mark or stands nowhere."""
    place = node[work.unit[operator]]
    if stamp[operator] == mark or place < 0 or (one >= 0 and place != one and place != other):
        return
    stamp[operator] = mark
    at = place if one < 0 else int(place == other)
    change[at] += sign * _amount(work, node, operator)


@compiled
def _power(cost: float) -> float:
    square = cost * cost
    return square * square * square * square


@compiled
def _badness(cost: Floats) -> float:
    total = 0.0
    for one in cost:
        total += _power(one)
    return total


@compiled
def _is_better(cost: Floats, than: Floats) -> bool:
    """Whether the costliest node costs less; if it costs the same, whether the others do."""
    ours, theirs = cost.max(), than.max()
    if abs(ours - theirs) > TIE * theirs:
        return ours < theirs
    return _badness(cost) < _badness(than) * (1.0 - TIE)


@compiled
def descend(work: Work, node: Ints, cost: Floats, free: Flags, stamp: Ints, left: Ints) -> None:
    """Move units, then swap two, as long as that helps and steps are left; ``node`` and ``cost`` change.

    Units of the costliest nodes go first. A pass of moves tries each unit on few nodes; swaps are tried for
    units of the costliest node alone. O(units × nodes near a unit) a pass of moves.
    """
    moved = True
    while moved and left[0] > 0:
        moved, home = False, -1
        cheap = _cheapest(cost, work.ready)
        for unit in np.argsort(-cost[node], kind="mergesort"):
            if not free[unit] or left[0] <= 0:
                continue
            if node[unit] != home:
                home, cheap = node[unit], _cheapest(cost, work.ready)
            if _moved(work, node, cost, unit, cheap, stamp, left):
                moved = True
        if not moved and _swapped(work, node, cost, free, stamp, left):
            moved = True


@compiled
def _moved(work: Work, node: Ints, cost: Floats, unit: int, cheap: Ints, stamp: Ints, left: Ints) -> bool:
    """Move a unit where Σ cost⁸ is least, if that is elsewhere."""
    home, best, chosen = node[unit], 0.0, -1
    mine, theirs = 0.0, 0.0
    for target in _near(work, node, unit, cheap):
        if target == home:
            continue
        left[0] -= 1
        given, taken = _change(work, node, unit, target, stamp, left)
        before = _power(cost[home]) + _power(cost[target])
        gain = before - _power(cost[home] + given) - _power(cost[target] + taken)
        if gain > TIE * before and gain > best:
            best, chosen, mine, theirs = gain, target, given, taken
    if chosen < 0:
        return False
    node[unit] = chosen
    cost[home] += mine
    cost[chosen] += theirs
    return True


@compiled
def _cheapest(cost: Floats, ready: Flags) -> Any:
    """The nodes of the least cost that can take something. O(nodes × `CHEAPEST`)."""
    count = min(CHEAPEST, ready.sum())
    found = np.full(count, -1, dtype=np.int64)
    for place in range(count):
        best = -1
        for i in range(len(cost)):
            taken = not ready[i]
            for k in range(place):
                taken |= found[k] == i
            if not taken and (best < 0 or cost[i] < cost[best]):
                best = i
        found[place] = best
    return found


@compiled
def _near(work: Work, node: Ints, unit: int, cheap: Ints) -> Any:
    """Nodes worth trying for a unit: those of its neighbours, and the cheapest, each once."""
    count = len(cheap)
    for m in range(work.member_start[unit], work.member_start[unit + 1]):
        operator = work.members[m]
        count += work.reader_start[operator + 1] - work.reader_start[operator]
        count += work.source_start[operator + 1] - work.source_start[operator]
    found, place = np.empty(count, dtype=np.int64), 0
    for m in range(work.member_start[unit], work.member_start[unit + 1]):
        operator = work.members[m]
        for k in range(work.reader_start[operator], work.reader_start[operator + 1]):
            place = _noted(found, place, node[work.unit[work.readers[k]]], work.ready)
        for k in range(work.source_start[operator], work.source_start[operator + 1]):
            place = _noted(found, place, node[work.unit[work.sources[k]]], work.ready)
    for i in cheap:
        place = _noted(found, place, i, work.ready)
    return found[:place]


@compiled
def _noted(found: Ints, place: int, node: int, ready: Flags) -> int:
    """Write a node down unless it is there, or can take nothing; how many there are."""
    if node < 0 or not ready[node]:
        return place
    for k in range(place):
        if found[k] == node:
            return place
    found[place] = node
    return place + 1


@compiled
def _swapped(work: Work, node: Ints, cost: Floats, free: Flags, stamp: Ints, left: Ints) -> bool:
    """Swap a unit of the costliest node with one of a node near it: the first two that help."""
    heavy, cheap = int(np.argmax(cost)), _cheapest(cost, work.ready)
    for one in np.flatnonzero((node == heavy) & free):
        for target in _near(work, node, one, cheap):
            if target == heavy:
                continue
            given, taken = _change(work, node, one, target, stamp, left)
            before = _power(cost[heavy]) + _power(cost[target])
            node[one] = target
            for other in np.flatnonzero((node == target) & free):
                if other == one or left[0] <= 0:
                    continue
                left[0] -= 1
                lost, gained = _change(work, node, other, heavy, stamp, left)
                mine, theirs = cost[heavy] + given + gained, cost[target] + taken + lost
                if before - _power(mine) - _power(theirs) > TIE * before:
                    node[other] = heavy
                    cost[heavy], cost[target] = mine, theirs
                    return True
            node[one] = heavy
    return False


@compiled
def _laid(work: Work, node: Ints, free: Flags, share: float, stamp: Ints, left: Ints) -> Any:
    """A placement from nothing: bunches along the dearest arcs, the largest first, each where it costs least.

    ``share`` bounds a bunch, in fair shares of a node. O(arcs log arcs + bunches × nodes × (arcs of a bunch +
    nodes)).
    """
    bunch, amount = _bunches(work, free, share)
    laid = node.copy()
    laid[free] = -1
    cost = costs(work, laid)
    by_bunch = np.argsort(bunch, kind="mergesort")
    start = np.searchsorted(bunch[by_bunch], np.arange(len(bunch) + 1))
    trial = cost.copy()
    for leader in np.argsort(-amount, kind="mergesort"):
        own = by_bunch[start[leader] : start[leader + 1]]
        if not len(own) or not free[leader]:
            continue
        least, chosen = np.inf, -1
        for target in range(len(cost)):
            if not work.ready[target]:
                continue
            left[0] -= 1
            trial[:] = cost
            _put(work, laid, own, target, trial, stamp, left)
            bad = _badness(trial)
            if chosen < 0 or bad < least * (1.0 - TIE):
                least, chosen = bad, target
            laid[own] = -1
        _put(work, laid, own, chosen, cost, stamp, left)
    return laid


@compiled
def _put(work: Work, node: Ints, units: Ints, target: int, cost: Floats, stamp: Ints, left: Ints) -> None:
    """Place units that are on no node, and count what that costs everyone who is on one."""
    change = np.zeros(len(cost))
    for unit in units:
        _count(work, node, unit, -1.0, change, -1, -1, stamp, left)
        node[unit] = target
        _count(work, node, unit, 1.0, change, -1, -1, stamp, left)
    cost += change / work.cpu


@compiled
def _bunches(work: Work, free: Flags, share: float) -> tuple[Ints, Floats]:
    """The leader of every unit's bunch, and what each leader's bunch works. Dear arcs come first."""
    count = len(work.member_start) - 1
    leader, amount = np.arange(count), np.zeros(count)
    for operator in range(len(work.unit)):
        amount[work.unit[operator]] += work.working[operator]
    most = share * amount.sum() / len(work.cpu)
    producer = np.empty(len(work.readers), dtype=np.int64)
    for operator in range(len(work.unit)):
        producer[work.reader_start[operator] : work.reader_start[operator + 1]] = operator
    for k in np.argsort(-work.dear, kind="mergesort"):
        one, other = work.unit[producer[k]], work.unit[work.readers[k]]
        while leader[one] != one:
            one = leader[one]
        while leader[other] != other:
            other = leader[other]
        if one != other and free[one] and free[other] and amount[one] + amount[other] <= most:
            leader[other] = one
            amount[one] += amount[other]
            amount[other] = 0.0
    for unit in range(count):
        top = unit
        while leader[top] != top:
            top = leader[top]
        leader[unit] = top
    return leader, amount


@compiled
def _kick(work: Work, node: Ints, cost: Floats, free: Flags, units: Ints, chance: Floats) -> None:
    """Move a unit, and some that hang together with it on its node, to another node, all by chance."""
    first = units[min(len(units) - 1, int(chance[0] * len(units)))]
    home = node[first]
    rank = np.argsort(cost, kind="mergesort")
    others = rank[(rank != home) & work.ready[rank]]
    if not len(others):
        return
    target = others[min(len(others) - 1, int(chance[1] * len(others)))]
    wanted = 1 + int(chance[2] * KICKED)
    going = np.full(wanted, first, dtype=np.int64)
    count, looked = 1, 0
    while looked < count:
        unit = going[looked]
        looked += 1
        for m in range(work.member_start[unit], work.member_start[unit + 1]):
            operator = work.members[m]
            for k in range(work.reader_start[operator], work.reader_start[operator + 1]):
                count = _joined(going, count, work.unit[work.readers[k]], node, free, home)
            for k in range(work.source_start[operator], work.source_start[operator + 1]):
                count = _joined(going, count, work.unit[work.sources[k]], node, free, home)
    node[going[:count]] = target


@compiled
def _joined(going: Ints, count: int, unit: int, node: Ints, free: Flags, home: int) -> int:
    """Take a unit along if it is free, at home, and there is room; how many go."""
    if count >= len(going) or not free[unit] or node[unit] != home:
        return count
    for k in range(count):
        if going[k] == unit:
            return count
    going[count] = unit
    return count + 1
