"""Figure 4.5: the feasible set against g, the product of least axis distances (heuristic MMAD)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levelwind.loads.arrays import Floats
from levelwind.reproduce import matrices
from levelwind.reproduce.heuristics import draw_cloud, judged
from levelwind.reproduce.outcome import Outcome, Result

TITLE = "Feasible set against the product of least axis distances, 10,000 random matrices"
PAPER = (
    "A cloud whose upper and lower edge both rise with g; the lower edge is g itself (printed as a picture)"
)
CLAIM = (
    "No matrix has a feasible ratio below g, and the 2% and 98% quantiles of the ratio rise in every tenth "
    "of the matrices by g"
)
cells = matrices.cells
measure = matrices.measure


def summarise(results: Sequence[Result]) -> Outcome:
    """Check bound and trend."""
    return judged(results, "g", _itself, PAPER, CLAIM)


def draw(results: Sequence[Result], path: Path) -> None:
    """The cloud over its bound."""
    draw_cloud(
        results,
        path,
        name="g",
        bound=_itself,
        x_label="g = product over inputs of the least axis distance",
        bound_label="lower bound: g",
    )


def _itself(g: Floats) -> Floats:
    return g
