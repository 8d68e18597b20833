"""Figure 5.1 of seed 000: what the correlation of two series says of their variance, for one sum."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from levelwind.loads.arrays import Floats
from levelwind.reproduce import style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.statistics import rounded
from levelwind.reproduce.worlds import SAMPLES, cell_seed

TITLE = "Correlation of two series against their variance, their sum being fixed"
CHUNKS = 4
# Rounding only: the bounds are exact.
TOLERANCE = 1e-9
PAPER = "all points between var X and var X/(1 + r), which meet at r = 0 (a cloud printed without numbers)"
CLAIM = (
    "var X₁ + var X₂ of every random pair with X₁ + X₂ = X lies between var X and var X/(1 + r): "
    "below var X if r > 0, above if r < 0"
)


def cells(quick: bool, seed: int) -> list[Item]:
    """Pairs of one series X, in chunks."""
    series = np.random.default_rng(cell_seed(seed, 501)).uniform(0.6, 1.0, SAMPLES).tolist()
    return [
        {
            "chunk": chunk,
            "points": 500 if quick else 2500,
            "series": series,
            "seed": cell_seed(seed, 501, chunk),
        }
        for chunk in range(CHUNKS)
    ]


def measure(item: Item) -> Result:
    """Random pairs: correlation, and variance of the two over that of their sum.

    X₁ gets a share of X in each sample. Shares that hardly differ make a pair that rises together, shares
    that differ much one that rises in turn; how much they differ is drawn as well.
    """
    rng = np.random.default_rng(item["seed"])
    whole = np.array(item["series"])
    count = item["points"]
    level, spread = rng.uniform(0.02, 0.98, (count, 1)), rng.random((count, 1)) ** 2
    parts = (level + spread * (rng.random((count, len(whole))) - level)) * whole
    rest = whole - parts
    total = parts.var(axis=1) + rest.var(axis=1)
    covariance = (whole.var() - total) / 2
    correlation = covariance / (parts.std(axis=1) * rest.std(axis=1))
    return {**item, "correlation": correlation.tolist(), "variance": (total / whole.var()).tolist()}


def summarise(results: Sequence[Result]) -> Outcome:
    """How many points lie outside of the bounds."""
    correlation, variance = _points(results)
    other = 1 / (1 + correlation)
    outside = (variance < np.minimum(1.0, other) - TOLERANCE) | (
        variance > np.maximum(1.0, other) + TOLERANCE
    )
    ours = {
        "pairs": len(correlation),
        "outside": int(outside.sum()),
        "correlation": [float(correlation.min()), float(correlation.max())],
        "variance_over_bound_if_correlated": float((variance / other)[correlation > 0].mean()),
    }
    check = Check(passed=not outside.any(), reason=f"{ours['outside']} of {ours['pairs']} pairs are outside")
    return judge(PAPER, CLAIM, rounded(ours), [check])


def draw(results: Sequence[Result], path: Path) -> None:
    """The cloud, and its two bounds."""
    correlation, variance = _points(results)
    with style.figure(path) as axes:
        axes.scatter(correlation, variance, s=5, color=style.SKY, alpha=0.45, linewidths=0, rasterized=True)
        bound = np.linspace(float(correlation.min()), 1.0, 200)
        axes.plot(bound, 1 / (1 + bound), color=style.BLUE, label="var X/(1 + r)")
        axes.axhline(1.0, color=style.BLACK, label="var X")
        axes.set_yscale("log")
        style.plain_ticks(axes, (0.5, 1, 2, 5, 10, 20), axis="y")
        axes.set_ylim(bottom=0.4)
        axes.set_xlim(-1, 1)
        axes.set_xlabel("correlation r of X₁ and X₂")
        axes.set_ylabel("(var X₁ + var X₂)/var X (log)")
        axes.legend()


def _points(results: Sequence[Result]) -> tuple[Floats, Floats]:
    names = ("correlation", "variance")
    correlation, variance = (np.concatenate([r[name] for r in results]) for name in names)
    return correlation, variance
