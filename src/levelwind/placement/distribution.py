"""All nodes at once: the global correlation-based distribution, compiled.

References: seed 000, figures 5.6 and 5.7; seed 001, section 3.4. Print says n(n − 1) tries in figure 5.7 and
as many as there are pairs in the text: the text counts. After a new plan for nodes i and j, their pairs with
*every* other node are candidates again (print forgets those of j).
"""

from __future__ import annotations

import numpy as np

from levelwind.loads.arrays import Floats, Ints
from levelwind.placement.pairs import (
    BY_CORRELATION,
    Flags,
    chains,
    choose,
    compiled,
    correlation,
    members,
    node_correlation,
    node_series,
    one_way,
    redistribute,
    relink,
)
from levelwind.placement.unit_series import TIE, UnitSeries


def distribute(series: UnitSeries, fixed: Ints, cpu: Floats, *, threshold: float) -> Ints:
    """Node of each unit: greedy distribution, a round of balancing, correlation improvement.

    Parameters
    ----------
    fixed
        Node that each unit must stand on, or −1.
    threshold
        Pairs of nodes correlated less than this (θ) are redistributed, as long as that raises it.

    Notes
    -----
    O(units × (units × samples + nodes) + nodes² × (nodes² + units per node² × samples)).
    """
    nodes = fixed.copy()
    greedy(series, nodes, cpu)
    balance(series, nodes, fixed < 0, cpu)
    improve(series, nodes, fixed < 0, cpu, threshold)
    return nodes


@compiled
def greedy(series: UnitSeries, nodes: Ints, cpu: Floats) -> None:
    """The least loaded node takes the unit with the best score, until every unit has a node (figure 5.6).

    The score is the mean over nodes of ρ(unit, node) less ρ(unit, receiver). Of equally loaded nodes the one
    with the fewest units receives, then the first.
    """
    units, count = len(nodes), len(cpu)
    x, level, held = np.zeros((count, series.centred.shape[1])), np.zeros(count), np.zeros(count)
    left = nodes < 0
    for unit in range(units):
        if not left[unit]:
            node = nodes[unit]
            held[node] += 1
            level[node] += series.mean[unit]
            x[node] += series.centred[unit]
    rho, total, score = np.zeros((count, units)), np.zeros(units), np.zeros(units)
    for node in range(count):
        if held[node]:
            for unit in range(units):
                if left[unit]:
                    rho[node, unit] = correlation(series, unit, x[node], False)
                    total[unit] += rho[node, unit]
    for _ in range(left.sum()):
        least = np.inf
        for node in range(count):
            least = min(least, level[node] / cpu[node])
        taker = -1
        for node in range(count):
            if level[node] / cpu[node] <= least + TIE * abs(least) and (
                taker < 0 or held[node] < held[taker]
            ):
                taker = node
        for unit in range(units):
            score[unit] = total[unit] / count - rho[taker, unit]
        unit = choose(score, series.mean, left)
        left[unit] = False
        nodes[unit] = taker
        held[taker] += 1
        level[taker] += series.mean[unit]
        x[taker] += series.centred[unit]
        for other in range(units):
            if left[other]:
                fresh = correlation(series, other, x[taker], False)
                total[other] += fresh - rho[taker, other]
                rho[taker, other] = fresh


@compiled
def balance(series: UnitSeries, nodes: Ints, free: Flags, cpu: Floats) -> None:
    """One round of one-way balancing, the i-th most loaded node with the i-th least loaded."""
    count = len(cpu)
    x, level = node_series(series, nodes, count)
    head, link = chains(nodes, count)
    order = np.argsort(-level / cpu, kind="mergesort")
    for i in range(count // 2):
        one, other = order[i], order[count - 1 - i]
        pair = np.array([one, other])
        ids = members(head, link, one, other)
        side = (nodes[ids] == other).astype(np.int64)
        pair_x, pair_level = x[pair], level[pair]
        one_way(
            series, ids, side, free[ids], pair_x, pair_level, cpu[pair], BY_CORRELATION, series.mean
        )  # fmt: skip
        nodes[ids] = pair[side]


@compiled
def improve(series: UnitSeries, nodes: Ints, free: Flags, cpu: Floats, threshold: float) -> None:
    """Redistribute the least correlated pair of nodes, again and again, where that helps (figure 5.7)."""
    count = len(cpu)
    x, level = node_series(series, nodes, count)
    head, link = chains(nodes, count)
    rho = np.full((count, count), np.inf)  # of candidates; infinite for all other pairs
    for i in range(count):
        for j in range(i + 1, count):
            found = node_correlation(series, x[i], x[j])
            if found < threshold:
                rho[i, j] = found
    for _ in range(count * (count - 1) // 2):
        least, one, other = np.inf, -1, -1
        for i in range(count):
            for j in range(i + 1, count):
                if rho[i, j] < least - TIE:
                    least, one, other = rho[i, j], i, j
        if one < 0:
            break
        rho[one, other] = np.inf
        pair = np.array([one, other])
        ids = members(head, link, one, other)
        side = (nodes[ids] == other).astype(np.int64)
        pair_x, pair_level = x[pair], level[pair]
        redistribute(series, ids, side, free[ids], pair_x, pair_level, cpu[pair])
        if node_correlation(series, pair_x[0], pair_x[1]) <= least + TIE:
            continue
        nodes[ids] = pair[side]
        relink(head, link, one, other, ids, side)
        x[pair], level[pair] = pair_x, pair_level
        for changed in pair:
            for k in range(count):
                if k != one and k != other:
                    i, j = min(changed, k), max(changed, k)
                    found = node_correlation(series, x[i], x[j])
                    rho[i, j] = found if found < threshold else np.inf
