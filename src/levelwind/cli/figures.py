"""Numbers for people: three significant digits, a name in words, and which way is better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from levelwind.model import Measures

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """A measure as people read it. ``best`` is max or min; None where neither is better by itself."""

    name: str
    label: str
    meaning: str
    best: str | None = None


FIGURES = (
    Figure("feasible_ratio", "feasible ratio", "share of the rates that an ideal plan survives", "max"),
    Figure("min_plane_distance", "plane distance", "from idle to the nearest overload", "max"),
    Figure("min_axis_distance", "axis distance", "to overload by one stream alone", "max"),
    Figure("max_load", "max load", "share of its CPU that the fullest node uses", "min"),
    Figure("load_spread", "load spread", "fullest node minus emptiest", "min"),
    Figure("load_std", "load std", "how much the nodes' loads vary over time", "min"),
    Figure("load_std_bound", "load std bound", "no placement can vary less"),
    Figure("load_correlation", "load correlation", "near 1: all nodes are busy at once", "max"),
    Figure("network_usage", "network usage", "data under way between nodes", "min"),
    Figure("delay", "delay (ms)", "on the longest way through the network", "min"),
    Figure("cut_streams", "cut streams", "links between operators that cross nodes", "min"),
    Figure("moved_load", "moved load", "CPU use of operators that change nodes", "min"),
)
FIGURE = {figure.name: figure for figure in FIGURES}


def number(value: float | int | None) -> str:
    """A number with three significant digits; an integer whole; a dash if there is none.

    Examples
    --------
    >>> [number(x) for x in (0.98765, 1.0, 1234.5, 0, 1.2e-5, 7, None)]
    ['0.988', '1.00', '1230', '0', '1.20e-05', '7', '-']
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, int) or value == 0:
        return str(int(value))
    if 1000 <= abs(value) < 1e7:
        return f"{float(f'{value:.3g}'):.0f}"
    return f"{value:#.3g}".rstrip(".")


def signed(change: float | None) -> str:
    """A change with its sign; a true zero says so.

    Examples
    --------
    >>> [signed(x) for x in (0.25, -2, 0.0, None)]
    ['+0.250', '-2', '0', '-']
    """
    if change is None:
        return "-"
    if abs(change) < 1e-12:
        return "0"
    return f"{'+' if change > 0 else '-'}{number(abs(change))}"


def shown(measures: Measures, name: str) -> str:
    """A measure with its error, where it has one.

    Examples
    --------
    >>> shown(Measures(feasible_ratio=0.5, feasible_error=0.00123), "feasible_ratio")
    '0.500 ± 0.001'
    """
    value = getattr(measures, name)
    text = number(value)
    if name == "feasible_ratio" and value is not None and measures.feasible_error:
        text += f" ± {_one_digit(measures.feasible_error)}"
    return text


def _one_digit(value: float) -> str:
    """A small positive number with one significant digit and no exponent."""
    digits = max(0, -math.floor(math.log10(value)))
    return f"{value:.{min(digits, 9)}f}"


def measure_table(measures: Measures) -> Table:
    """The measures that are known, a line each, with what they mean."""
    table = plain_table()
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_column("what it says", style="dim")
    for figure in FIGURES:
        if getattr(measures, figure.name) is not None:
            table.add_row(figure.label, shown(measures, figure.name), figure.meaning)
    return table


def figure_columns(table: Table, figures: Sequence[Figure]) -> None:
    """A column for each figure; its head may take two lines, so that many fit into 80 columns."""
    for figure in figures:
        table.add_column(figure.label, justify="right", min_width=max(map(len, figure.label.split())))


def plain_table() -> Table:
    """A table with a line under its head and no frame: it is read, copied and compared as text."""
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False, header_style="bold"
    )
