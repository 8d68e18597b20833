"""Two nodes and what stands on them: the pair-wise algorithms, compiled.

All work on a *pair*: ``ids`` are the units on the two nodes, ``side`` says on which of them each stands (0 or
1), ``free`` which of them may move. ``x`` (2 × samples) holds the nodes' load series less their means,
``level`` their mean loads, ``cpu`` their capacities. They change ``side``, ``x`` and ``level`` in place.

References: seed 000, figures 5.2 to 5.4, and section 5.3 for unequal nodes; seed 001, section 3.3. Where we
differ from print:

- the node that receives an operator gains its series (figure 5.4 takes it away);
- ρ(o, own node) leaves o out everywhere, as the text defines it;
- an operator without load never moves, and one whose load is just the load to be moved may (in print it must
  be smaller: two equal operators on one of two nodes would stay there for ever);
- a correlation with a series that does not vary is 0.

The tie rule: of the units whose scores are equal, the heaviest; of these, the one written first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from levelwind.loads.arrays import Floats, Ints
from levelwind.placement.unit_series import TIE, UnitSeries

Flags = NDArray[np.bool_]

# The cache does not see changes in functions of other files: after one, delete the *.nbi and *.nbc files.
compiled = njit(cache=True, error_model="numpy")

# How the one-way step chooses: by correlation, by largest load, or by a priority handed in.
BY_CORRELATION, BY_LOAD, BY_PRIORITY = range(3)


@compiled
def correlation(series: UnitSeries, unit: int, x: Floats, inside: bool) -> float:
    """ρ of a unit's series and a node's, ``inside``: less the unit's own. O(samples)."""
    own = series.centred[unit]
    own_length = series.length[unit]
    if own_length == 0.0:
        return 0.0
    product, square = 0.0, 0.0
    for t in range(len(own)):
        other = x[t] - own[t] if inside else x[t]
        product += own[t] * other
        square += other * other
    length = np.sqrt(square)
    if length <= series.constant:
        return 0.0
    return product / (own_length * length)


@compiled
def node_correlation(series: UnitSeries, one: Floats, other: Floats) -> float:
    """ρ of two nodes' load series, 0 if either is constant. O(samples)."""
    product, first, second = 0.0, 0.0, 0.0
    for t in range(len(one)):
        product += one[t] * other[t]
        first += one[t] * one[t]
        second += other[t] * other[t]
    lengths = np.sqrt(first), np.sqrt(second)
    if lengths[0] <= series.constant or lengths[1] <= series.constant:
        return 0.0
    return product / (lengths[0] * lengths[1])


@compiled
def choose(score: Floats, mean: Floats, allowed: Flags) -> int:
    """Position of the best score by the tie rule, −1 if nothing is allowed. O(positions)."""
    best = -np.inf
    for k in range(len(score)):
        if allowed[k] and score[k] > best:
            best = score[k]
    if best == -np.inf:
        return -1
    heaviest = -np.inf
    for k in range(len(score)):
        if allowed[k] and score[k] >= best - TIE and mean[k] > heaviest:
            heaviest = mean[k]
    for k in range(len(score)):
        if allowed[k] and score[k] >= best - TIE and mean[k] >= heaviest - TIE * abs(heaviest):
            return k
    return -1


@compiled
def settle(series: UnitSeries, ids: Ints, side: Ints, x: Floats, level: Floats) -> None:
    """Add the pair's series and loads up anew, so that no rounding is carried on and an empty node has 0."""
    x[:] = 0.0
    level[:] = 0.0
    for k in range(len(ids)):
        level[side[k]] += series.mean[ids[k]]
        for t in range(x.shape[1]):
            x[side[k], t] += series.centred[ids[k], t]


@compiled
def shift(series: UnitSeries, unit: int, x: Floats, level: Floats, giver: int) -> None:
    """Take a unit's load from ``giver`` and add it to the other node."""
    level[giver] -= series.mean[unit]
    level[1 - giver] += series.mean[unit]
    for t in range(x.shape[1]):
        x[giver, t] -= series.centred[unit, t]
        x[1 - giver, t] += series.centred[unit, t]


@compiled
def fuller(level: Floats, cpu: Floats) -> int:
    """The node with the larger relative load; of equal ones the second, as figures 5.3 and 5.4 have it."""
    return 0 if level[0] * cpu[1] > level[1] * cpu[0] else 1


@compiled
def one_way(
    series: UnitSeries, ids: Ints, side: Ints, free: Flags, x: Floats, level: Floats, cpu: Floats,
    rule: int, priority: Floats,
) -> None:  # fmt: skip
    """The fuller node gives until nothing fits the load that is still to be moved (figure 5.2).

    That load is (L₁C₂ − L₂C₁)/(C₁ + C₂), half the difference on equal nodes. O(units² × samples).
    """
    giver = fuller(level, cpu)
    taker = 1 - giver
    count = len(ids)
    score, mean, allowed = np.zeros(count), np.zeros(count), np.zeros(count, dtype=np.bool_)
    for k in range(count):
        mean[k] = series.mean[ids[k]]
    while True:
        gap = (level[giver] * cpu[taker] - level[taker] * cpu[giver]) / (cpu[giver] + cpu[taker])
        found = False
        for k in range(count):
            fits = 0.0 < mean[k] <= gap * (1.0 + TIE)
            allowed[k] = fits and free[k] and side[k] == giver
            if allowed[k]:
                found = True
                if rule == BY_CORRELATION:
                    here = correlation(series, ids[k], x[giver], True)
                    there = correlation(series, ids[k], x[taker], False)
                    score[k] = (here - there) / 2.0
                elif rule == BY_LOAD:
                    score[k] = mean[k]
                else:
                    score[k] = priority[ids[k]]
        if not found:
            break
        k = choose(score, mean, allowed)
        side[k] = taker
        shift(series, ids[k], x, level, giver)
    settle(series, ids, side, x, level)


@compiled
def redistribute(
    series: UnitSeries, ids: Ints, side: Ints, free: Flags, x: Floats, level: Floats, cpu: Floats
) -> None:
    """Place all free units anew, each time on the emptier node, then balance one-way (figure 5.3).

    O(units² × samples).
    """
    count = len(ids)
    x[:] = 0.0
    level[:] = 0.0
    left = np.zeros(count, dtype=np.bool_)
    score, mean = np.zeros(count), np.zeros(count)
    for k in range(count):
        mean[k] = series.mean[ids[k]]
        left[k] = free[k] and mean[k] > 0.0
        if not left[k]:
            level[side[k]] += mean[k]
            for t in range(x.shape[1]):
                x[side[k], t] += series.centred[ids[k], t]
    rho = np.zeros((2, count))
    for k in range(count):
        if left[k]:
            for i in range(2):
                rho[i, k] = correlation(series, ids[k], x[i], False)
    while True:
        taker = 0 if level[0] * cpu[1] < level[1] * cpu[0] else 1
        for k in range(count):
            score[k] = (rho[1 - taker, k] - rho[taker, k]) / 2.0
        k = choose(score, mean, left)
        if k < 0:
            break
        left[k] = False
        side[k] = taker
        level[taker] += mean[k]
        for t in range(x.shape[1]):
            x[taker, t] += series.centred[ids[k], t]
        for other in range(count):
            if left[other]:
                rho[taker, other] = correlation(series, ids[other], x[taker], False)
    settle(series, ids, side, x, level)
    one_way(series, ids, side, free, x, level, cpu, BY_CORRELATION, series.mean)


@compiled
def exchange(
    series: UnitSeries, ids: Ints, side: Ints, free: Flags, x: Floats, level: Floats, cpu: Floats,
    least_score: float,
) -> None:  # fmt: skip
    """Balance one-way, move what scores above δ from the fuller node, balance again (figure 5.4).

    O(units² × samples).
    """
    one_way(series, ids, side, free, x, level, cpu, BY_CORRELATION, series.mean)
    count = len(ids)
    score, mean, allowed = np.zeros(count), np.zeros(count), np.zeros(count, dtype=np.bool_)
    for k in range(count):
        mean[k] = series.mean[ids[k]]
    for _ in range(count):
        giver = fuller(level, cpu)
        for k in range(count):
            allowed[k] = free[k] and side[k] == giver and mean[k] > 0.0
            if allowed[k]:
                here = correlation(series, ids[k], x[giver], True)
                there = correlation(series, ids[k], x[1 - giver], False)
                score[k] = (here - there) / 2.0
                allowed[k] = score[k] > least_score
        k = choose(score, mean, allowed)
        if k < 0:
            break
        side[k] = 1 - giver
        shift(series, ids[k], x, level, giver)
    settle(series, ids, side, x, level)
    one_way(series, ids, side, free, x, level, cpu, BY_CORRELATION, series.mean)


@compiled
def members(head: Ints, link: Ints, one: int, other: int) -> Any:
    """Units on two nodes in rising order. ``head`` and ``link`` chain the units of each node."""
    count = 0
    for node in (one, other):
        unit = head[node]
        while unit >= 0:
            count += 1
            unit = link[unit]
    ids = np.empty(count, dtype=np.int64)
    count = 0
    for node in (one, other):
        unit = head[node]
        while unit >= 0:
            ids[count] = unit
            count += 1
            unit = link[unit]
    ids.sort()
    return ids


@compiled
def relink(head: Ints, link: Ints, one: int, other: int, ids: Ints, side: Ints) -> None:
    """Chain the units of two nodes anew."""
    head[one] = head[other] = -1
    for k in range(len(ids) - 1, -1, -1):
        node = one if side[k] == 0 else other
        link[ids[k]] = head[node]
        head[node] = ids[k]


@compiled
def chains(node: Ints, nodes: int) -> Any:
    """Units chained by node, in rising order."""
    head = np.full(nodes, -1, dtype=np.int64)
    link = np.full(len(node), -1, dtype=np.int64)
    for unit in range(len(node) - 1, -1, -1):
        link[unit] = head[node[unit]]
        head[node[unit]] = unit
    return head, link


@compiled
def node_series(series: UnitSeries, node: Ints, nodes: int) -> Any:
    """Load series less its mean, and mean load, of each node. O(units × samples)."""
    x, level = np.zeros((nodes, series.centred.shape[1])), np.zeros(nodes)
    for unit in range(len(node)):
        level[node[unit]] += series.mean[unit]
        for t in range(x.shape[1]):
            x[node[unit], t] += series.centred[unit, t]
    return x, level
