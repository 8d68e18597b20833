"""Time windows that a timeout may close before their end.

Which row is a window's first is certain only once no row before it can come any more. So a row waits in the
table ``pending`` until the watermark has passed it. Then either every window that holds it was closed by
the timeout before it, and it is late, or it goes to the table ``open``. The table ``windows`` has the first
row's time of each window of each group until the window's end has passed, that is beyond its timeout: it
tells the windows that were put out.

A window's first row is never after that of a later window that holds the same row. So the last window that
holds a row tells about them all: while that one takes the row in some window does, and while that one is
open the row is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import polars as pl

from levelwind.model import Operator
from levelwind.model.operator import Aggregate, TimeWindow
from levelwind.operators.aggregate.kernels import CLOSED, LATE, WINDOW_COLUMNS
from levelwind.operators.aggregate.windows import Windows
from levelwind.operators.aggregate_calls import first_reason, split_compute
from levelwind.operators.aggregate_rows import aggregate_rows
from levelwind.operators.equality import as_key, from_key
from levelwind.operators.expressions.sparktypes import dtype_of
from levelwind.operators.protocol import Stepped
from levelwind.operators.row_window_layout import Layout
from levelwind.operators.row_windows import CHUNK, SLACK
from levelwind.operators.rows import BEGINNING, END, ORDER, TIME, Arrived, Rejected, RowType, split_rejected
from levelwind.operators.state import EMPTY, State, Table
from levelwind.operators.timespans import Numbers, microseconds

TIMED_OUT = "late: its window was closed by the timeout"
PENDING, OPEN, WINDOWS = "pending", "open", "windows"
# The watermark up to which windows were put out, and the first instant at which one that is open closes.
REACHED, NEXT = "reached", "next"
_ALL, _TIME, _PANE, _WINDOW, _FIRST, _CLOSES, _PLACE = (
    "__all",
    "__time",
    "__pane",
    "__window",
    "__first",
    "__closes",
    "__place",
)


class TimedOutWindows:
    """An aggregate over time windows with a timeout.

    A window of a group closes at its end or ``timeout`` after its first row, whichever is earlier, and
    holds the group's rows before that; its bounds stay its own. A row that comes after every window that
    holds it was so closed is late, as event time has it: neither the batches nor the order of arrival
    within the lateness matter.

    A step in which rows become settled costs O(those rows · log + windows that have not ended), and one in
    which windows close O(open rows · log + rows of the windows that close) besides; no table is written
    anew as a whole but that of open rows, when more than half of them are no longer needed.

    Parameters
    ----------
    operator
        An aggregate with a window of time and a timeout.
    rows
        The type of the rows it reads.
    """

    def __init__(self, operator: Operator, rows: RowType) -> None:
        spec = operator.spec
        assert isinstance(spec, Aggregate)
        assert isinstance(spec.window, TimeWindow)
        assert spec.timeout_s is not None
        assert rows.time is not None
        self._windows = Windows.of(spec.window)
        # No row of a window is further from the first than the window's size.
        self._timeout = min(max(microseconds(spec.timeout_s), 1), self._windows.size)
        self._time = rows.time
        self._by = list(spec.by)
        self._keys = self._by or [_ALL]
        self._key_types = {name: dtype_of(rows.types[name]) or pl.Null() for name in spec.by}
        self._computation = split_compute(spec.compute, rows.types)
        self._arguments = list(
            dict.fromkeys(call.column for call in self._computation.calls if call.column is not None)
        )

    def step(self, state: State, inputs: Sequence[Arrived]) -> Stepped:
        """Take in what has arrived, and put out the windows that the watermark closes."""
        (arrived,) = inputs
        watermark = arrived.watermark
        closed = state.marks.get(CLOSED, BEGINNING)
        reached = state.marks.get(REACHED, BEGINNING)
        if arrived.rows.is_empty() and not _is_due(state, watermark):
            return Stepped({}, state.with_mark(REACHED, watermark) if watermark > reached else state)
        sound, rejected = self._sound(arrived.rows, max(closed, reached))
        waiting, pending = self._settle(state.table(PENDING, self._time), sound, watermark)
        settled = self._prepared(waiting)
        table = state.table(WINDOWS, _WINDOW)
        windows, fresh = self._opened(table.read(), settled, closed)
        settled, late = self._in_time(waiting, settled, windows)

        windows = windows.with_columns(self._closes()).filter(pl.col(_CLOSES) > reached)
        closing = windows.filter(pl.col(_CLOSES) <= watermark)
        kept = state.table(OPEN, _TIME).append(settled)
        outputs, failed = self._put_out(closing, kept)
        bad = (*rejected, *late, *failed)
        if watermark == END:
            return Stepped(outputs, self._ended(max(closed, reached), table.append(fresh)), bad)

        windows = windows.filter(pl.col(_CLOSES) > watermark)
        if closing.height:
            kept = self._needed(kept, windows)
        soonest = windows.get_column(_CLOSES).min()
        state = (
            state.with_table(PENDING, pending)
            .with_table(OPEN, kept.compact())
            .with_table(WINDOWS, table.append(fresh).evict(self._windows.first_open(watermark)).compact())
            .with_mark(REACHED, max(watermark, reached))
            .with_mark(NEXT, soonest if isinstance(soonest, int) else END)
        )
        return Stepped(outputs, state, bad)

    def _sound(self, rows: pl.DataFrame, closed: int) -> tuple[pl.DataFrame, tuple[Rejected, ...]]:
        """The rows that some window may hold and none of which fails, with what calls are made on.

        Between windows that leave gaps a row is nobody's, and not late either.
        """
        if rows.is_empty():
            return rows, ()
        time = pl.col(self._time).to_physical()
        end = time // self._windows.slide * self._windows.slide + self._windows.size
        late = rows.select(pl.when((end <= closed) & (time < end)).then(pl.lit(LATE))).to_series()
        arguments, failed = self._computation.arguments(rows)
        reasons = first_reason([late, failed])
        whole = pl.concat([rows, arguments], how="horizontal")
        if reasons is not None:
            whole = whole.filter(reasons.is_null())
        _, bad = split_rejected(rows, reasons)
        return whole.filter(time < end), () if bad is None else (bad,)

    def _settle(self, pending: Table, rows: pl.DataFrame, watermark: int) -> tuple[pl.DataFrame, Table]:
        """The rows before which none can come any more, in order, and the table of the others."""
        time = pl.col(self._time).to_physical()
        passed = tuple(segment for segment in pending.segments if segment.low < watermark)
        waited = Table(pending.clock, passed, pending.horizon).read()
        whole = rows if waited is None else pl.concat([waited, rows], how="diagonal")
        order = [self._time, *([ORDER] if ORDER in whole.columns else [])]
        settled = whole.filter(time < watermark).sort(order, maintain_order=True)
        return settled, pending.append(rows.filter(time >= watermark)).evict(watermark).compact()

    def _prepared(self, rows: pl.DataFrame) -> pl.DataFrame:
        """What is kept of settled rows: their group, their time, and what calls are made on."""
        keys = [
            as_key(rows.get_column(name)) if of.is_float() else rows.get_column(name)
            for name, of in self._key_types.items()
        ]
        keys = keys or [pl.zeros(rows.height, pl.Int64, eager=True).alias(_ALL)]
        times = rows.get_column(self._time).to_physical().alias(_TIME)
        arguments = [rows.get_column(name) for name in self._arguments if name in rows.columns]
        return pl.DataFrame([*keys, times, *arguments])

    def _opened(
        self, known: pl.DataFrame | None, settled: pl.DataFrame, closed: int
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """All windows with their first rows' times, and of these the ones that settled rows begin.

        Rows of one pane are in the same windows: the first of them stands for all.
        """
        pane, size, slide = self._windows.pane, self._windows.size, self._windows.slide
        panes = settled.group_by(
            *self._keys, (pl.col(_TIME) // pane * pane).alias(_PANE), maintain_order=True
        ).agg(pl.col(_TIME).min().alias(_FIRST))
        lowest = (pl.col(_PANE) - size) // slide + 1
        if closed > BEGINNING:
            lowest = lowest.clip(lower_bound=self._windows.first_open(closed))
        numbers = pl.int_ranges(lowest, pl.col(_PANE) // slide + 1).alias(_WINDOW)
        found = (
            panes.with_columns(numbers)
            .explode(_WINDOW, empty_as_null=False, keep_nulls=False)
            .group_by(*self._keys, _WINDOW, maintain_order=True)
            .agg(pl.col(_FIRST).min())
        )
        if known is None:
            return found, found
        fresh = found.join(
            known, on=[*self._keys, _WINDOW], how="anti", nulls_equal=True, maintain_order="left"
        )
        return pl.concat([known, fresh]), fresh

    def _in_time(
        self, rows: pl.DataFrame, settled: pl.DataFrame, windows: pl.DataFrame
    ) -> tuple[pl.DataFrame, tuple[Rejected, ...]]:
        """The settled rows without those that come after every window that holds them was closed."""
        if settled.is_empty():
            return settled, ()
        first = self._last_window(settled, windows, _FIRST, how="left").get_column(_FIRST)
        late = settled.get_column(_TIME) >= first + self._timeout
        if not late.any():
            return settled, ()
        bad = rows.drop(self._arguments).filter(late)
        reasons = pl.repeat(TIMED_OUT, bad.height, dtype=pl.String, eager=True)
        return settled.filter(~late), (Rejected(bad, reasons),)

    def _last_window(
        self, rows: pl.DataFrame, windows: pl.DataFrame, column: str, *, how: Literal["inner", "left"]
    ) -> pl.DataFrame:
        """Rows with a column of the last window that holds each, in their order."""
        keys = [*self._keys, _WINDOW]
        last = (pl.col(_TIME) // self._windows.slide).alias(_WINDOW)
        wanted = windows.select(*keys, column)
        return rows.with_columns(last).join(
            wanted,
            on=keys,
            how=how,
            nulls_equal=True,
            maintain_order="left",
        )

    def _closes(self) -> pl.Expr:
        """When a window closes."""
        end = pl.col(_WINDOW) * self._windows.slide + self._windows.size
        return pl.min_horizontal(pl.col(_FIRST) + self._timeout, end).alias(_CLOSES)

    def _put_out(
        self, closing: pl.DataFrame, table: Table
    ) -> tuple[dict[str | None, pl.DataFrame], tuple[Rejected, ...]]:
        """The results of windows that close, and those that failed."""
        kept = table.read() if closing.height else None
        if kept is None:
            return {}, ()
        groups = closing.select(self._keys).unique(maintain_order=True).with_row_index(_PLACE)
        closing = closing.join(groups, on=self._keys, how="inner", nulls_equal=True, maintain_order="left")
        rows = kept.join(groups, on=self._keys, how="inner", nulls_equal=True, maintain_order="left")
        rows = rows.sort(_PLACE, maintain_order=True)
        layout = self._layout(rows, closing)
        outputs, failed = [], []
        for part in layout.chunks(CHUNK):
            good, bad = self._computed(rows, closing[part], layout, part)
            outputs.append(good)
            failed += [] if bad is None else [bad]
        return {None: pl.concat(outputs)}, tuple(failed)

    def _layout(self, rows: pl.DataFrame, closing: pl.DataFrame) -> Layout:
        """Where the rows of windows lie among rows in order of group and time."""
        starts, ends = _positions(
            rows.get_column(_PLACE).to_numpy().astype(np.int64),
            rows.get_column(_TIME).to_numpy(),
            closing.get_column(_PLACE).to_numpy().astype(np.int64),
            (
                closing.get_column(_WINDOW).to_numpy() * self._windows.slide,
                closing.get_column(_CLOSES).to_numpy(),
            ),
        )
        return Layout(starts, ends - starts, closing.get_column(_CLOSES).to_numpy(), np.zeros(0, np.int64))

    def _computed(
        self, rows: pl.DataFrame, closing: pl.DataFrame, layout: Layout, part: slice
    ) -> tuple[pl.DataFrame, Rejected | None]:
        """The results of some windows."""
        window, position = layout.members(part)
        members = pl.DataFrame(
            [
                pl.Series(_WINDOW, window),
                *(rows.get_column(name).gather(position) for name in self._arguments),
            ]
        )
        found, reasons = aggregate_rows(self._computation.calls, members, _WINDOW)
        found = found.with_columns(
            from_key(closing.get_column(name), of) for name, of in self._key_types.items()
        )
        results, failed = self._computation.results(found)
        start = closing.get_column(_WINDOW) * self._windows.slide
        instants = (start, start + self._windows.size, start + (self._windows.size - 1))
        put_out = pl.DataFrame(
            [
                *(found.get_column(name) for name in self._by),
                *results.get_columns(),
                *(at.cast(TIME).alias(name) for name, at in zip(WINDOW_COLUMNS, instants, strict=True)),
            ]
        )
        return split_rejected(put_out, first_reason([reasons, failed]))

    def _needed(self, kept: Table, windows: pl.DataFrame) -> Table:
        """The table of open rows after windows were closed; written anew if most of it is not needed."""
        if windows.is_empty():
            return Table(_TIME)
        soonest = windows.get_column(_WINDOW).min()
        assert isinstance(soonest, int)
        kept = kept.evict(soonest * self._windows.slide)
        whole = kept.read()
        if whole is None:
            return kept
        needed = self._last_window(whole, windows, _FIRST, how="inner").drop(_WINDOW, _FIRST)
        return Table(_TIME).append(needed) if kept.rows > 2 * needed.height + SLACK else kept

    def _ended(self, closed: int, windows: Table) -> State:
        """What is left once everything is put out: up to when, for a later run that goes on from here."""
        last = max((segment.high for segment in windows.segments), default=None)
        if last is not None:
            closed = max(closed, self._windows.end_of(last))
        return EMPTY if closed == BEGINNING else EMPTY.with_mark(CLOSED, closed)


def _is_due(state: State, watermark: int) -> bool:
    """Whether the watermark alone can settle a row or close a window: most steps may see no rows."""
    if watermark == END or state.marks.get(NEXT, END) <= watermark:
        return True
    pending = state.tables.get(PENDING)
    return pending is not None and any(segment.low < watermark for segment in pending.segments)


def _positions(
    place: Numbers, times: Numbers, places: Numbers, wanted: tuple[Numbers, Numbers]
) -> tuple[Numbers, Numbers]:
    """For groups and instants the first row of the group, or the end of it, at or after the instant."""
    steps = np.unique(times)
    span = len(steps) + 1
    keys = place * span + np.searchsorted(steps, times)
    low, high = (np.searchsorted(keys, places * span + np.searchsorted(steps, at)) for at in wanted)
    return low, high
