"""An exchange by worth: what a move saves, for the load that is moved, compiled."""

from __future__ import annotations

import numpy as np

from levelwind.loads.arrays import Floats, Ints
from levelwind.placement.pairs import Flags, compiled, settle, shift
from levelwind.placement.unit_series import TIE, UnitSeries

# A pair without idle CPU still does not move for next to nothing.
LEAST_IDLE = 0.1


@compiled
def exchange_by_worth(
    series: UnitSeries, ids: Ints, side: Ints, free: Flags, x: Floats, level: Floats, cpu: Floats,
    worth: float,
) -> None:  # fmt: skip
    """Take the step that lowers Σ E(X²)/C most for the load it moves, until none is worth it.

    E(X²) is mean² plus variance: evenness and steadiness in one figure, in which both nodes carrying the same
    mix is the least there is. A step is a move, or a swap of two units, and must lower the figure, per load
    moved, by at least ``worth`` times the share of the pair's CPU that is idle: the fuller two nodes are, the
    less a step must bring. No unit moves twice. Arguments are those of `pairs`. O(steps × units² × samples).
    """
    idle = max(LEAST_IDLE, 1.0 - level.sum() / cpu.sum())
    count, samples = len(ids), max(1, x.shape[1])
    moved = np.zeros(count, dtype=np.bool_)
    dot, length = np.zeros((2, count)), np.zeros(count)
    for k in range(count):
        length[k] = series.length[ids[k]] ** 2
    for _ in range(count):
        for k in range(count):
            for i in range(2):
                dot[i, k] = (series.centred[ids[k]] * x[i]).sum()
        best, first, second = worth * idle, -1, -1
        for a in range(count):
            load = series.mean[ids[a]]
            if not free[a] or moved[a] or load <= 0.0:
                continue
            home = side[a]
            gain = _gain(load, dot[home, a], dot[1 - home, a], length[a], level, cpu, home, samples)
            if gain / load > best * (1.0 + TIE):
                best, first, second = gain / load, a, -1
            if home == 1:
                continue
            for b in range(count):
                other = series.mean[ids[b]]
                if side[b] == home or not free[b] or moved[b] or other <= 0.0:
                    continue
                cross = (series.centred[ids[a]] * series.centred[ids[b]]).sum()
                gain = _gain(
                    load - other, dot[home, a] - dot[home, b], dot[1 - home, a] - dot[1 - home, b],
                    length[a] + length[b] - 2.0 * cross, level, cpu, home, samples,
                )  # fmt: skip
                if gain / (load + other) > best * (1.0 + TIE):
                    best, first, second = gain / (load + other), a, b
        if first < 0:
            break
        for k in (first, second):
            if k >= 0:
                shift(series, ids[k], x, level, side[k])
                side[k] = 1 - side[k]
                moved[k] = True
    settle(series, ids, side, x, level)


@compiled
def _gain(
    load: float, here: float, there: float, square: float, level: Floats, cpu: Floats, home: int, samples: int
) -> float:
    """How much Σ E(X²)/C falls when a load with these products leaves ``home`` for the other node."""
    away = 1 - home
    given = load * (2.0 * level[home] - load) + (2.0 * here - square) / samples
    taken = load * (2.0 * level[away] + load) + (2.0 * there + square) / samples
    return given / cpu[home] - taken / cpu[away]
