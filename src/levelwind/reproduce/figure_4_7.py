"""Figure 4.7: the feasible set against r/r*, the least plane distance (heuristic MMPD)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levelwind.reproduce import matrices
from levelwind.reproduce.heuristics import draw_cloud, judged
from levelwind.reproduce.matrices import ball_bound
from levelwind.reproduce.outcome import Outcome, Result

TITLE = "Feasible set against the least plane distance, 10,000 random matrices"
PAPER = "A cloud whose upper and lower edge both rise with r/r*, above the hypersphere's volume (a picture)"
CLAIM = (
    "No matrix has a feasible ratio below its ball's volume, and the 2% and 98% quantiles of the ratio rise "
    "in every tenth of the matrices by r/r*"
)
cells = matrices.cells
measure = matrices.measure


def summarise(results: Sequence[Result]) -> Outcome:
    """Check bound and trend."""
    return judged(results, "r", ball_bound, PAPER, CLAIM)


def draw(results: Sequence[Result], path: Path) -> None:
    """The cloud over its bound."""
    draw_cloud(
        results,
        path,
        name="r",
        bound=ball_bound,
        x_label="r / r* = least plane distance / that of the ideal plane",
        bound_label="lower bound:\nvolume of the ball",
    )
