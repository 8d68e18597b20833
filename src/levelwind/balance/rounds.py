"""One period of a pair-wise policy over all nodes, compiled.

References: seed 000, section 5.2.1 and figure 5.5; seed 001, sections 3.3 and 3.3.4. Where figure 5.5 puts
the old plan back, it names the wrong node (j for s): both nodes of the pair are restored. Load levels are
relative to the nodes' CPU. An exchange that would leave a pair further apart than the threshold *and* raise
its larger load is not made: correlation alone does not ask. Nodes improve in falling order of their divergent
load level, not in the order in which they are numbered.

Priorities are ours: a pair tries with its least important units alone, and lets the more important ones take
part, rank by rank, only while it is not relieved. With equal priorities all take part at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from levelwind.balance.worth import exchange_by_worth
from levelwind.loads.arrays import Floats, Ints
from levelwind.placement.pairs import (
    BY_CORRELATION,
    BY_LOAD,
    BY_PRIORITY,
    Flags,
    chains,
    compiled,
    exchange,
    members,
    node_correlation,
    node_series,
    one_way,
    redistribute,
    relink,
)
from levelwind.placement.unit_series import TIE, UnitSeries

# What is done with a pair.
ONE_WAY, LARGEST_FIRST, BY_CHANCE, REDISTRIBUTE, EXCHANGE, BY_WORTH = range(6)

# How often a period lets nodes choose a partner, by worth.
ROUNDS = 3


@compiled
def run_round(
    series: UnitSeries, node: Ints, free: Flags, cpu: Floats, pairs: Ints, partner: Ints, method: int,
    improving: bool, threshold: float, score: float, correlated: float, chance: Floats, rank: Floats,
    ready: Flags,
) -> Any:  # fmt: skip
    """Balance the pairs, then improve correlation if asked to; units move in ``node``.

    Parameters
    ----------
    pairs
        Nodes that balance with each other, if their relative loads differ by more than ``threshold`` (ε).
    partner
        For each node the one node that it may improve its correlation with, or −1: any.
    score
        Least score of an exchange (δ).
    correlated
        Nodes correlated more than this are left alone (θ).
    chance
        A number for each unit, for `BY_CHANCE`: the largest goes first.
    rank
        Priority of each unit.
    ready
        Which nodes take part in the improving; ``pairs`` have no others.

    Returns
    -------
    For each unit the number of the exchange that moved it last, −1 if none did.

    Notes
    -----
    O(nodes × units per pair² × samples), and O(nodes² × samples) if every node needs improving; times the
    number of priorities on a pair.
    """
    count = len(cpu)
    x, level = node_series(series, node, count)
    head, link = chains(node, count)
    turn = np.full(len(node), -1, dtype=np.int64)
    turns = 0
    for p in range(len(pairs)):
        one, other = pairs[p, 0], pairs[p, 1]
        if abs(level[one] / cpu[one] - level[other] / cpu[other]) > threshold + TIE:
            turns += _exchanged(
                series, node, free, cpu, one, other, method, threshold, score, -np.inf, chance, rank,
                x, level, head, link, turn, turns,
            )  # fmt: skip
    if improving:
        danger = np.zeros(count)
        for one in range(count):
            danger[one] = _divergent(level[one], x[one]) / cpu[one]
        for one in np.argsort(-danger, kind="mergesort"):
            if not ready[one] or _divergent(level[one], x[one]) <= cpu[one]:
                continue
            least, other = correlated, -1
            for k in range(count):
                if k != one and ready[k] and (partner[one] < 0 or partner[one] == k):
                    found = node_correlation(series, x[one], x[k])
                    if found < least - TIE:
                        least, other = found, k
            if other >= 0:
                turns += _exchanged(
                    series, node, free, cpu, one, other, method, threshold, score, least, chance, rank,
                    x, level, head, link, turn, turns,
                )  # fmt: skip
    return turn


@compiled
def _exchanged(
    series: UnitSeries, node: Ints, free: Flags, cpu: Floats, one: int, other: int, method: int,
    threshold: float, score: float, least: float, chance: Floats, rank: Floats, x: Floats, level: Floats,
    head: Ints, link: Ints, turn: Ints, turns: int,
) -> int:  # fmt: skip
    """Treat a pair, and keep the result if the nodes are correlated more than ``least`` then; 1 if kept.

    Units of the lowest rank are tried first; those of the next take part if that is not enough.
    """
    pair = np.array([one, other])
    ids = members(head, link, one, other)
    before = (node[ids] == other).astype(np.int64)
    side, kept = before.copy(), before
    pair_x, pair_level, pair_cpu, pair_free, pair_rank = x[pair], level[pair], cpu[pair], free[ids], rank[ids]
    kept_x, kept_level = pair_x, pair_level
    highest = -np.inf
    while True:
        above = pair_free & (pair_rank > highest)
        if not above.any():
            break
        highest = pair_rank[above].min()
        _treat(
            series, ids, side, pair_free & (pair_rank <= highest), pair_x, pair_level, pair_cpu, method,
            score, chance,
        )  # fmt: skip
        if _acceptable(series, pair_x, pair_level, level[pair], pair_cpu, threshold, least):
            kept, kept_x, kept_level = side.copy(), pair_x.copy(), pair_level.copy()
            if least > -np.inf or _relieved(pair_x, pair_level, pair_cpu, method, threshold):
                break
    if (kept == before).all():
        return 0
    node[ids] = pair[kept]
    turn[ids[kept != before]] = turns
    x[pair], level[pair] = kept_x, kept_level
    relink(head, link, one, other, ids, kept)
    return 1


@compiled
def _treat(
    series: UnitSeries, ids: Ints, side: Ints, free: Flags, x: Floats, level: Floats, cpu: Floats,
    method: int, score: float, chance: Floats,
) -> None:  # fmt: skip
    """Do with a pair what the method says; arguments are those of `pairs`."""
    if method == REDISTRIBUTE:
        redistribute(series, ids, side, free, x, level, cpu)
    elif method == EXCHANGE:
        exchange(series, ids, side, free, x, level, cpu, score)
    elif method == BY_WORTH:
        exchange_by_worth(series, ids, side, free, x, level, cpu, score)
    else:
        rule = BY_CORRELATION if method == ONE_WAY else BY_LOAD if method == LARGEST_FIRST else BY_PRIORITY
        one_way(series, ids, side, free, x, level, cpu, rule, chance)


@compiled
def _acceptable(
    series: UnitSeries, x: Floats, level: Floats, was: Floats, cpu: Floats, threshold: float, least: float
) -> bool:
    """Whether a pair is correlated more than ``least``, and not both fuller than it was and far apart."""
    # The same as not moving: two nodes that trade places carry the same loads.
    if least > -np.inf and node_correlation(series, x[0], x[1]) <= least + TIE:
        return False
    old, new = was / cpu, level / cpu
    return not (new.max() > old.max() * (1.0 + TIE) and new.max() - new.min() > threshold)


@compiled
def _relieved(x: Floats, level: Floats, cpu: Floats, method: int, threshold: float) -> bool:
    """Whether a pair is even; by worth also that neither of its nodes is likely to be overloaded."""
    if abs(level[0] / cpu[0] - level[1] / cpu[1]) > threshold + TIE:
        return False
    return method != BY_WORTH or (
        _divergent(level[0], x[0]) <= cpu[0] and _divergent(level[1], x[1]) <= cpu[1]
    )


@compiled
def _divergent(level: float, x: Floats) -> float:
    """Mean load plus its standard deviation: above the node's CPU, overload is likely."""
    return level + np.sqrt((x * x).sum() / max(1, len(x)))


@compiled
def run_worth(
    series: UnitSeries, node: Ints, free: Flags, cpu: Floats, pairs: Ints, threshold: float, worth: float,
    rank: Floats, ready: Flags,
) -> Any:  # fmt: skip
    """A period of the policy by worth: nodes in danger find the partner that they differ from most.

    A node is in danger if its divergent load level is above its CPU, or its relative load above another's by
    more than ``threshold``. The most endangered chooses first, among nodes that nobody has chosen yet:
    the one with which evening out would gain most, CᵢCⱼ/(Cᵢ + Cⱼ)·E(Xᵢ/Cᵢ − Xⱼ/Cⱼ)². Nodes still in danger
    choose again, `ROUNDS` times at most: operators move once, whatever the rounds did with them. ``pairs``
    are the only ones allowed, all if it is empty; ``rank`` is each unit's priority; nodes that are not
    ``ready`` take no part. Returns as `run_round`.
    O(nodes² × samples + exchanges).
    """
    count = len(cpu)
    x, level = node_series(series, node, count)
    head, link = chains(node, count)
    turn = np.full(len(node), -1, dtype=np.int64)
    partner = np.full(count, -1, dtype=np.int64)
    for p in range(len(pairs)):
        partner[pairs[p, 0]], partner[pairs[p, 1]] = pairs[p, 1], pairs[p, 0]
    relative = np.empty((x.shape[1], count))  # load over CPU; a node's samples stand in a column
    for i in range(count):
        relative[:, i] = (level[i] + x[i]) / cpu[i]
    turns = 0
    danger, taken = np.zeros(count), np.zeros(count, dtype=np.bool_)
    for _ in range(ROUNDS):
        before, least = turns, np.inf
        taken[:] = ~ready
        for i in range(count):
            danger[i] = _divergent(level[i], x[i]) / cpu[i]
            if ready[i]:
                least = min(least, level[i] / cpu[i])
        for one in np.argsort(-danger, kind="mergesort"):
            if taken[one] or (danger[one] <= 1.0 and level[one] / cpu[one] - least <= threshold):
                continue
            other = partner[one] if len(pairs) else _most_to_gain(relative, cpu, one, taken)
            if other >= 0 and not taken[other] and _exchanged(
                series, node, free, cpu, one, other, BY_WORTH, threshold, worth, -np.inf, series.mean, rank,
                x, level, head, link, turn, turns,
            ):  # fmt: skip
                for i in (one, other):
                    taken[i] = True
                    relative[:, i] = (level[i] + x[i]) / cpu[i]
                turns += 1
        if turns == before:
            break
    return turn


@compiled
def _most_to_gain(relative: Floats, cpu: Floats, one: int, taken: Flags) -> int:
    """The node with which evening out would lower Σ E(X²)/C most; −1 if there is none. O(nodes × samples)."""
    apart = np.zeros(len(cpu))
    for t in range(len(relative)):
        for k in range(len(cpu)):
            apart[k] += (relative[t, one] - relative[t, k]) ** 2
    best, other = 0.0, -1
    for k in range(len(cpu)):
        gain = apart[k] * cpu[one] * cpu[k] / (cpu[one] + cpu[k])
        if k != one and not taken[k] and gain > best * (1.0 + TIE):
            best, other = gain, k
    return other
