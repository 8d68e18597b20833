"""Which rows a multijoin holds: those that may still be in a group, by the windows of the day.

When windows change, rows that the old ones gave up do not come back, and rows that come from then on are held
by the new ones. A join that is spread holds rows for that day by the same rules (see `Diffuser`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from levelwind.operators.rows import BEGINNING, END, Arrived
from levelwind.operators.state import Table

# Each input's window in microseconds, so that a run that goes on with other windows can tell.
WINDOW = "window "


def has_changed(marks: Mapping[str, int], alias: str, window_us: int) -> bool:
    """Whether an input had another window in the step before."""
    return marks.get(WINDOW + alias, window_us) != window_us


def freed(table: Table) -> Table:
    """The rows of a table, without the bound below which it takes none: that was set by another window."""
    rows = table.read()
    return Table(table.clock) if rows is None else Table(table.clock).append(rows)


def others(inputs: Sequence[Arrived], input: int) -> int:
    """The smallest watermark of the inputs but one."""
    return min(arrived.watermark for other, arrived in enumerate(inputs) if other != input)


def held(table: Table, new: pl.DataFrame, watermark: int, window_us: int) -> Table:
    """The table with new rows, without those that can be in no group any more.

    A row that comes is not older than its input's watermark, and for it to be in a group with a row of this
    input, that must not be older than the window before it. So a row goes once it is older than its window
    before the smallest watermark of the other inputs, which is given.
    """
    if watermark == END:
        # Nothing is open in a join. A later run may go on from here, and find groups for what is kept.
        return table.append(new)
    bound = max(watermark - window_us, BEGINNING)
    if new.height and bound > BEGINNING:
        new = new.filter(pl.col(table.clock).to_physical() >= bound)
    return table.append(new).evict(bound).compact()
