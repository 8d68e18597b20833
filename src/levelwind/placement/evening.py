"""Even first, then steady: a search over moves and swaps that keeps mean loads in a band, compiled.

Two passes. The first brings mean loads into a band around the fair level, as far as moves and swaps can, by
lowering Σ L_i²/C_i. The second lowers the variation Σ (var(X_i) + u_i)/C_i, and takes a step only if no node
that it touches leaves the band, or strays further from the fair level than it already had: a node that nobody
can bring into the band gets no worse.

X_i is the load of node i in the samples seen. u_i is what the samples do not show: every source of load (a
stream, or what a join adds) may vary by a share of its mean on its own, and a node suffers by the square of
what it carries of one source. A short window of noisy samples alone would have the search fit the noise.
Σ var(X_i)/C_i is least when every node carries the same mix, X_i = C_i·X/ΣC (theorem 4 of seed 000, for
unequal nodes), and so is Σ u_i/C_i: the two pull the same way.

A try costs O(samples + sources of the units), however many nodes there are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from levelwind.loads.arrays import Floats, Ints
from levelwind.placement.pairs import node_series
from levelwind.placement.unit_series import UnitSeries

# Sums may be reordered, so that they vectorise: the search compares, and nothing depends on the last digit.
compiled = njit(cache=True, fastmath=True, error_model="numpy")
# For what is called millions of times a second: handing a tuple of arrays over costs as much as the work.
inlined = njit(fastmath=True, error_model="numpy", inline="always")

# Steps that gain less than this share of the whole are rounding.
LEAST_GAIN = 1e-12
# Annealing: the first temperature as a share of the mean variation a unit brings, and the last of the first.
HOT, COLD = 0.3, 1e-4
# Sweeps of the first pass and of the closing descent; both end earlier as a rule.
MOST_SWEEPS, DESCENT = 50, 10
# Up to this many units the search starts this many times: it costs little, and one start may end in a corner.
FEW, STARTS = 64, 8
# How many units of similar load the descent looks at for each unit.
REACH = 250


class Sources(NamedTuple):
    """Which sources each unit's load comes from: for unit u the entries ``start[u]`` to ``start[u + 1]``.

    ``source`` numbers them, rising within a unit; ``amount`` is the part of the unit's load that may vary
    unseen with this source, times √samples, so that its square is comparable to a sum over samples.
    """

    start: Ints
    source: Ints
    amount: Floats
    total: int


def sources(load: Floats, *, unseen: float, samples: int) -> Sources:
    """Sources from the mean load that each unit (row) owes to each of them (column)."""
    unit, source = np.nonzero(load > 0.0) if unseen > 0.0 else (np.zeros(0, dtype=np.int64),) * 2
    start = np.searchsorted(unit, np.arange(len(load) + 1)).astype(np.int64)
    amount = load[unit, source] * (unseen * np.sqrt(samples))
    return Sources(
        start=start,
        source=source.astype(np.int64),
        amount=np.ascontiguousarray(amount, dtype=np.float64),
        total=load.shape[1],
    )


def even_out(
    series: UnitSeries,
    unseen: Sources,
    nodes: Ints,
    free: Ints,
    cpu: Floats,
    *,
    band: float,
    tries: int,
    seed: int,
    descent: int = DESCENT,
) -> Ints:
    """Nodes of the units after both passes.

    Parameters
    ----------
    unseen
        What may vary beyond the series; see `sources`.
    nodes
        Where the units stand at first; those not in ``free`` stay.
    free
        Positions of the units that may move.
    band
        How far a node's relative load may lie from the fair level, as a share of that level.
    tries
        Random steps of the second pass.
    descent
        Most sweeps over all pairs of similar units that end it.

    Notes
    -----
    O((tries + descent × units × REACH) × (samples + sources of a unit)).
    """
    found = nodes.copy()
    if not len(free) or len(cpu) < 2 or series.mean.sum() <= 0.0:
        return found
    order = free[np.argsort(series.mean[free], kind="stable")]
    _even(series.mean, found, order, cpu, band)
    best, least = found, np.inf
    for again in range(STARTS if len(free) <= FEW else 1):
        trial = found.copy()
        random = np.uint64(2 * (seed + again) + 1)
        value = _steady(series, unseen, trial, order, cpu, band, tries, random, descent)
        if value < least:
            best, least = trial, value
    return best


@compiled
def _even(mean: Floats, nodes: Ints, order: Ints, cpu: Floats, band: float) -> None:
    """First pass: nodes outside the band give and take, a unit alone or one for one."""
    count = len(cpu)
    level = np.zeros(count)
    for unit in range(len(nodes)):
        level[nodes[unit]] += mean[unit]
    fair = mean.sum() / cpu.sum()
    least = LEAST_GAIN * fair * fair
    for _ in range(MOST_SWEEPS):
        changed = False
        for unit in order:
            home = nodes[unit]
            if abs(level[home] / cpu[home] - fair) <= band * fair:
                continue
            best, partner, gain = -1, -1, least
            for node in range(count):
                if node != home:
                    won = _evened(level, cpu, home, node, mean[unit])
                    if won > gain:
                        best, gain = node, won
            for other in order:
                node = nodes[other]
                if node != home:
                    won = _evened(level, cpu, home, node, mean[unit] - mean[other])
                    if won > gain:
                        best, partner, gain = node, other, won
            if best >= 0:
                carried = mean[unit]
                if partner >= 0:
                    carried -= mean[partner]
                    nodes[partner] = home
                nodes[unit] = best
                level[home] -= carried
                level[best] += carried
                changed = True
        if not changed:
            break


@compiled
def _evened(level: Floats, cpu: Floats, home: int, node: int, carried: float) -> float:
    """How much Σ L²/C falls when ``carried`` goes from ``home`` to ``node``."""
    given = carried * (2.0 * level[home] - carried) / cpu[home]
    return given - carried * (2.0 * level[node] + carried) / cpu[node]


class _State(NamedTuple):
    """Where the second pass stands. ``room`` is how far each node may lie from the fair level."""

    nodes: Ints
    x: Floats
    level: Floats
    carried: Floats
    room: Floats
    fair: float
    band: float


@compiled
def _steady(
    series: UnitSeries, unseen: Sources, nodes: Ints, order: Ints, cpu: Floats, band: float, tries: int,
    random: Any, descent: int,
) -> float:  # fmt: skip
    """Second pass: annealing over random steps, then a descent over all that is left. The variation then."""
    units, count = len(order), len(cpu)
    x, level = node_series(series, nodes, count)
    carried = np.zeros((count, unseen.total))
    for unit in range(len(nodes)):
        for e in range(unseen.start[unit], unseen.start[unit + 1]):
            carried[nodes[unit], unseen.source[e]] += unseen.amount[e]
    fair = series.mean.sum() / cpu.sum()
    room = np.zeros(count)
    for node in range(count):
        room[node] = max(band * fair, abs(level[node] / cpu[node] - fair))
    state = _State(nodes, x, level, carried, room, fair, band)
    brought = 0.0
    for unit in order:
        brought += series.length[unit] ** 2
        for e in range(unseen.start[unit], unseen.start[unit + 1]):
            brought += unseen.amount[e] ** 2
    hot = HOT * brought / units * count / cpu.sum()
    fade = COLD ** (1.0 / max(1, tries))
    near = max(4, units // 8)
    for _ in range(tries):
        hot *= fade
        random = _next(random)
        p = int(_uniform(random) * units)
        unit = order[p]
        random = _next(random)
        draw = _uniform(random)
        if draw < 0.1:
            node, other = int(draw * 10.0 * count), -1
        else:
            # A unit of similar load: swaps of unlike ones seldom stay in the band.
            q = p + int((draw - 0.1) / 0.9 * (2 * near + 1)) - near
            if q < 0 or q >= units:
                continue
            other = order[q]
            node = nodes[other]
        if node == nodes[unit] or not _fits(series, state, unit, other, node, cpu):
            continue
        change = _change(series, unseen, state, unit, other, node, cpu)
        if change > 0.0:
            random = _next(random)
            if change >= -hot * np.log(1.0 - _uniform(random)):
                continue
        _take(series, unseen, state, unit, other, node, cpu)
    _descend(series, unseen, state, order, cpu, descent)
    return _variation(state, cpu)


@compiled
def _variation(state: _State, cpu: Floats) -> float:
    """Σ (|X_i|² + |carried_i|²)/C_i."""
    whole = 0.0
    for node in range(len(cpu)):
        whole += ((state.x[node] ** 2).sum() + (state.carried[node] ** 2).sum()) / cpu[node]
    return whole


@compiled
def _descend(
    series: UnitSeries, unseen: Sources, state: _State, order: Ints, cpu: Floats, sweeps: int
) -> None:
    """Take every step that gains, until none is left. Units are ordered by load: similar ones stand near."""
    units, count = len(order), len(cpu)
    nodes = state.nodes
    whole = _variation(state, cpu)
    for _ in range(sweeps):
        changed = False
        widest = 2.0 * (state.room * cpu).max()
        for p in range(units):
            unit = order[p]
            best, partner, gain = -1, -1, -LEAST_GAIN * whole
            home = nodes[unit]
            for node in range(count):
                if node != home and _fits(series, state, unit, -1, node, cpu):
                    change = _change(series, unseen, state, unit, -1, node, cpu)
                    if change < gain:
                        best, partner, gain = node, -1, change
            for q in range(p + 1, min(units, p + REACH)):
                other = order[q]
                if series.mean[other] - series.mean[unit] > widest:
                    break
                node = nodes[other]
                if node != home and _fits(series, state, unit, other, node, cpu):
                    change = _change(series, unseen, state, unit, other, node, cpu)
                    if change < gain:
                        best, partner, gain = node, other, change
            if best >= 0:
                _take(series, unseen, state, unit, partner, best, cpu)
                changed = True
        if not changed:
            break


@inlined
def _fits(series: UnitSeries, state: _State, unit: int, other: int, node: int, cpu: Floats) -> bool:
    """Whether both nodes keep to their room if ``unit`` goes to ``node`` and ``other``, if any, comes."""
    home = state.nodes[unit]
    carried = series.mean[unit]
    if other >= 0:
        carried -= series.mean[other]
    here = abs((state.level[home] - carried) / cpu[home] - state.fair)
    there = abs((state.level[node] + carried) / cpu[node] - state.fair)
    return here <= state.room[home] and there <= state.room[node]


@inlined
def _change(
    series: UnitSeries, unseen: Sources, state: _State, unit: int, other: int, node: int, cpu: Floats
) -> float:
    """Change of Σ (|X_i|² + |carried_i|²)/C_i by a move, or by a swap with ``other``."""
    home = state.nodes[unit]
    x = state.x
    here, there, square = 0.0, 0.0, 0.0
    for t in range(x.shape[1]):
        step = series.centred[unit, t]
        if other >= 0:
            step -= series.centred[other, t]
        here += step * x[home, t]
        there += step * x[node, t]
        square += step * step
    # The two units' sources rise: one walk along both lists meets every source once.
    e, end = unseen.start[unit], unseen.start[unit + 1]
    f, last = (unseen.start[other], unseen.start[other + 1]) if other >= 0 else (0, 0)
    while e < end or f < last:
        source = unseen.source[e] if e < end else unseen.total
        if f < last and unseen.source[f] < source:
            source = unseen.source[f]
        step = 0.0
        if e < end and unseen.source[e] == source:
            step += unseen.amount[e]
            e += 1
        if f < last and unseen.source[f] == source:
            step -= unseen.amount[f]
            f += 1
        here += step * state.carried[home, source]
        there += step * state.carried[node, source]
        square += step * step
    return (square - 2.0 * here) / cpu[home] + (square + 2.0 * there) / cpu[node]


@compiled
def _take(
    series: UnitSeries, unseen: Sources, state: _State, unit: int, other: int, node: int, cpu: Floats
) -> None:
    """Carry a step out; the nodes' room shrinks with it, down to the band."""
    home = state.nodes[unit]
    _move(series, unseen, state, unit, node)
    if other >= 0:
        _move(series, unseen, state, other, home)
    for end in (home, node):
        stray = abs(state.level[end] / cpu[end] - state.fair)
        state.room[end] = max(state.band * state.fair, min(state.room[end], stray))


@compiled
def _move(series: UnitSeries, unseen: Sources, state: _State, unit: int, node: int) -> None:
    home = state.nodes[unit]
    state.nodes[unit] = node
    state.level[home] -= series.mean[unit]
    state.level[node] += series.mean[unit]
    for t in range(state.x.shape[1]):
        state.x[home, t] -= series.centred[unit, t]
        state.x[node, t] += series.centred[unit, t]
    for e in range(unseen.start[unit], unseen.start[unit + 1]):
        state.carried[home, unseen.source[e]] -= unseen.amount[e]
        state.carried[node, unseen.source[e]] += unseen.amount[e]


@compiled
def _next(random: Any) -> Any:
    """The next state of xorshift64, a small generator that is the same on every machine."""
    random ^= random << np.uint64(13)
    random ^= random >> np.uint64(7)
    random ^= random << np.uint64(17)
    return random


@compiled
def _uniform(random: Any) -> float:
    """A number in [0, 1) from a generator's state."""
    return float((random * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0
