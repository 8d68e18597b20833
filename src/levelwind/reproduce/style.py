"""One look for all figures. Matplotlib is imported when something is drawn, not before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from levelwind.reproduce.statistics import Estimate

# Okabe and Ito's palette, told apart by colour-blind readers too. A planner has one colour in all figures.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, GREY, BLACK = "#56B4E9", "#CC79A7", "#7F7F7F", "#222222"
COLOURS = {
    "rod": BLUE,
    "resilient": BLACK,
    "correlation": ORANGE,
    "correlation_even": ORANGE,
    "llf": GREEN,
    "max_rate": SKY,
    "random": PURPLE,
    "random_balanced": PURPLE,
    "connected": VERMILION,
    "cut": BLUE,
    "steady": BLACK,
    "cor_bal": VERMILION,
    "cor_re_imp": SKY,
    "cor_se_imp": BLUE,
    "llf_bal": GREEN,
    "rand_bal": PURPLE,
    "steady_pairs": BLACK,
}
MARKERS = {
    "rod": "o",
    "resilient": "D",
    "correlation": "s",
    "correlation_even": "s",
    "llf": "^",
    "max_rate": "P",
    "random": "v",
    "random_balanced": "v",
    "connected": "X",
    "cut": "o",
    "steady": "D",
    "cor_bal": "X",
    "cor_re_imp": "P",
    "cor_se_imp": "o",
    "llf_bal": "^",
    "rand_bal": "v",
    "steady_pairs": "D",
}
LABELS = {
    "rod": "ROD",
    "resilient": "resilient (ours)",
    "correlation": "correlation",
    "correlation_even": "correlation, equal means",
    "llf": "largest load first",
    "max_rate": "maximum rates",
    "random": "random",
    "random_balanced": "random, balanced",
    "connected": "connected",
    "cut": "cut",
    "steady": "steady (ours)",
    "cor_bal": "COR-BAL",
    "cor_re_imp": "COR-RE-IMP",
    "cor_se_imp": "COR-SE-IMP",
    "llf_bal": "LLF-BAL",
    "rand_bal": "RAND-BAL",
    "steady_pairs": "steady pairs (ours)",
}
SEQUENCE = (SKY, BLUE, BLACK)
DPI = 200
RC = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.6,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


@contextmanager
def figure(
    path: Path,
    *,
    width: float = 5.2,
    height: float = 3.4,
    rows: int = 1,
    columns: int = 1,
    share_y: bool = True,
) -> Iterator[Any]:
    """A figure's axes (a list of them, row by row, if there are several), saved as PNG at the end.

    Drawn without pyplot, so nothing global is touched and no window system is asked for.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(RC):
        drawing = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(drawing)
        axes = drawing.subplots(rows, columns, sharey=share_y)
        yield axes if rows == columns == 1 else list(axes.flat)
        drawing.savefig(path, dpi=DPI, metadata={"Software": None})


def curve(
    axes: Any,
    x: Sequence[float] | Sequence[str],
    points: Sequence[Estimate],
    *,
    colour: str,
    marker: str = "o",
    line: str = "-",
    label: str | None = None,
) -> None:
    """A line through means, with their intervals as bars."""
    mean = [point.mean for point in points]
    below = [point.mean - point.low for point in points]
    above = [point.high - point.mean for point in points]
    axes.errorbar(
        x,
        mean,
        yerr=[below, above],
        color=colour,
        marker=marker,
        linestyle=line,
        capsize=2,
        elinewidth=0.9,
        markeredgecolor="white",
        markeredgewidth=0.6,
        label=label,
    )


def label_ends(axes: Any, ends: Sequence[tuple[float, float, str, str]], *, gap: float = 11.0) -> None:
    """Names beside the last points of curves, (x, y, text, colour), pushed apart where they would overlap.

    ``gap`` is the least distance of two names in points. Call it last: it reads the final axes.
    """
    axes.figure.canvas.draw()
    height = axes.transData.transform
    scale = 72.0 / axes.figure.dpi
    placed = sorted((float(height((x, y))[1]) * scale, x, y, text, colour) for x, y, text, colour in ends)
    wanted = [at for at, *_ in placed]
    spots = _apart(wanted, gap)
    for (at, x, y, text, colour), spot in zip(placed, spots, strict=True):
        axes.annotate(
            text,
            (x, y),
            xytext=(8, spot - at),
            textcoords="offset points",
            color=colour,
            fontsize=8.5,
            va="center",
            annotation_clip=False,
        )


def reference(axes: Any, y: float, text: str, *, x: float = 0.99, below: bool = False) -> None:
    """A thin horizontal line that other points are read against, named at its right end."""
    axes.axhline(y, color=GREY, linewidth=1.0, zorder=0)
    axes.annotate(
        text,
        (x, y),
        xycoords=("axes fraction", "data"),
        xytext=(0, -3 if below else 3),
        textcoords="offset points",
        ha="right",
        va="top" if below else "bottom",
        fontsize=8,
        color=GREY,
    )


def legend_above(axes: Sequence[Any], *, columns: int) -> None:
    """One legend over all panels of a figure, made from the first: they show the same curves."""
    drawing = axes[0].figure
    drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=columns)


def plain_ticks(axes: Any, values: Sequence[float], *, axis: str = "x") -> None:
    """Ticks at the measured values only, written as they are: log axes included."""
    from matplotlib.ticker import FixedLocator, NullLocator

    which = axes.xaxis if axis == "x" else axes.yaxis
    which.set_major_locator(FixedLocator(list(values)))
    which.set_minor_locator(NullLocator())
    which.set_major_formatter(lambda value, _: f"{value:g}")


def with_prefixes(axis: Any) -> None:
    """Large and small numbers of an axis with k, M, G or m, µ: 40 M instead of 4e7."""
    from matplotlib.ticker import EngFormatter

    axis.set_major_formatter(EngFormatter())


def _apart(wanted: list[float], gap: float) -> list[float]:
    """Rising positions at least ``gap`` apart, each block of them centred on what it wanted."""
    blocks: list[list[float]] = []
    for value in wanted:
        blocks.append([value])
        while len(blocks) > 1 and _start(blocks[-1], gap) < _start(blocks[-2], gap) + gap * len(blocks[-2]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return [_start(block, gap) + gap * i for block in blocks for i in range(len(block))]


def _start(block: list[float], gap: float) -> float:
    return sum(block) / len(block) - gap * (len(block) - 1) / 2
