"""An exchange by worth: what a move saves, for the load that is moved, compiled."""

from __future__ import annotations

import numpy as np

from levelwind.loads.arrays import Floats, Ints
from levelwind.placement.pairs import Flags, compiled, settle
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
    less a step must bring. No unit moves twice. Arguments are those of `pairs`.
    O(units² × (samples + steps)).
    """
    idle = max(LEAST_IDLE, 1.0 - level.sum() / cpu.sum())
    count, samples = len(ids), max(1, x.shape[1])
    moved, share = np.zeros(count, dtype=np.bool_), 1.0 / cpu
    # Mean products of all series with each other, and with both nodes': no step looks at samples after this.
    cross, dot = np.zeros((count, count)), np.zeros((2, count))
    for a in range(count):
        for b in range(a + 1):
            product = 0.0
            for t in range(x.shape[1]):
                product += series.centred[ids[a], t] * series.centred[ids[b], t]
            cross[a, b] = cross[b, a] = product / samples
        for i in range(2):
            for t in range(x.shape[1]):
                dot[i, a] += series.centred[ids[a], t] * x[i, t] / samples
    for _ in range(count):
        best, first, second = worth * idle, -1, -1
        for a in range(count):
            load = series.mean[ids[a]]
            if not free[a] or moved[a] or load <= 0.0:
                continue
            home = side[a]
            gain = _gain(load, dot[home, a], dot[1 - home, a], cross[a, a], level, share, home)
            if gain > best * load * (1.0 + TIE):
                best, first, second = gain / load, a, -1
            if home == 1:
                continue
            for b in range(count):
                other = series.mean[ids[b]]
                if side[b] == home or not free[b] or moved[b] or other <= 0.0:
                    continue
                gain = _gain(
                    load - other, dot[home, a] - dot[home, b], dot[1 - home, a] - dot[1 - home, b],
                    cross[a, a] + cross[b, b] - 2.0 * cross[a, b], level, share, home,
                )  # fmt: skip
                if gain > best * (load + other) * (1.0 + TIE):
                    best, first, second = gain / (load + other), a, b
        if first < 0:
            break
        for k in (first, second):
            if k >= 0:
                home = side[k]
                level[home] -= series.mean[ids[k]]
                level[1 - home] += series.mean[ids[k]]
                for other in range(count):
                    dot[home, other] -= cross[k, other]
                    dot[1 - home, other] += cross[k, other]
                side[k] = 1 - home
                moved[k] = True
    settle(series, ids, side, x, level)


@compiled
def _gain(
    load: float, here: float, there: float, square: float, level: Floats, share: Floats, home: int
) -> float:
    """How much Σ E(X²)/C falls when a load with these products leaves ``home``; ``share`` is 1/C of both."""
    away = 1 - home
    given = load * (2.0 * level[home] - load) + 2.0 * here - square
    taken = load * (2.0 * level[away] + load) + 2.0 * there + square
    return given * share[home] - taken * share[away]
