"""What figures 4.5 and 4.7 have in common: a heuristic's value against the feasible set, and its bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from levelwind.loads.arrays import Floats
from levelwind.reproduce import style
from levelwind.reproduce.matrices import TOLERANCE, columns, envelopes
from levelwind.reproduce.outcome import Check, Outcome, Result, judge
from levelwind.reproduce.statistics import rising, rounded, spearman

Bound = Callable[[Floats], Floats]


def judged(results: Sequence[Result], name: str, bound: Bound, paper: str, claim: str) -> Outcome:
    """No point below its bound, and both edges of the cloud rising from bin to bin."""
    x, y = columns(results, name)
    margin = y - bound(x)
    below = int((margin < -TOLERANCE).sum())
    _, low, high = envelopes(x, y)
    checks = [
        Check(passed=below == 0, reason=f"{below} of {len(x)} points lie below the bound"),
        Check(passed=rising(low), reason="the lower edge does not rise in every bin"),
        Check(passed=rising(high), reason="the upper edge does not rise in every bin"),
    ]
    ours = {
        "matrices": len(x),
        "below_bound": below,
        "least_margin": float(margin.min()),
        "rank_correlation": spearman(x, y),
        "lower_edge": low.tolist(),
        "upper_edge": high.tolist(),
    }
    return judge(paper, claim, rounded(ours), checks)


def draw_cloud(
    results: Sequence[Result], path: Path, *, name: str, bound: Bound, x_label: str, bound_label: str
) -> None:
    """All matrices as points, the bound as a line below them."""
    x, y = columns(results, name)
    grid = np.linspace(0.0, 1.0, 200)
    with style.figure(path, width=4.6, height=3.8) as axes:
        axes.scatter(x, y, s=3, color=style.BLUE, alpha=0.25, linewidths=0, rasterized=True)
        axes.plot(grid, bound(grid), color=style.VERMILION, linewidth=1.6)
        at = 0.65
        axes.annotate(
            bound_label,
            (at, float(bound(np.array([at]))[0])),
            xytext=(14, -14),
            textcoords="offset points",
            color=style.VERMILION,
            fontsize=8.5,
            va="top",
            ha="left",
        )
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_xlabel(x_label)
        axes.set_ylabel("feasible set / ideal set")
