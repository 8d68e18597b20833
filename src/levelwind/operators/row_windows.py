"""Windows that are counted in rows: every so many rows, over the last so many, group by group.

Rows are numbered in their order within the group, so a row can be numbered only once no row before it can
come any more: it waits in the table ``pending`` until the watermark has passed it. Numbered rows that a
window still needs are kept in the table ``open``, and the table ``groups`` says how far each group is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from levelwind.errors import input_error
from levelwind.model import Operator
from levelwind.model.operator import Aggregate, RowWindow
from levelwind.operators.aggregate_calls import first_reason, split_compute
from levelwind.operators.aggregate_rows import aggregate_rows
from levelwind.operators.equality import as_key, from_key
from levelwind.operators.expressions.sparktypes import dtype_of
from levelwind.operators.protocol import Stepped
from levelwind.operators.row_window_layout import Layout, sliding, timed
from levelwind.operators.rows import BEGINNING, END, ORDER, TIME, Arrived, Rejected, RowType, split_rejected
from levelwind.operators.state import EMPTY, State, Table
from levelwind.operators.timespans import Numbers, microseconds, plus

WINDOW_COLUMNS = ("window_start", "window_end", "window_time")
LATE = "late: its window was already put out"
UNTIMED = "it has no event time"
# Rows of windows that are computed together; a window with more rows is computed alone.
CHUNK = 1 << 20
# The table of open rows is written anew when more than half of it, and so many rows, are no longer needed.
SLACK = 4096
_ALL, _TIME, _NUMBER, _WINDOW, _PLACE = "__all", "__time", "__number", "__window", "__place"
# Of a group: its next row's number; before this batch; the first that is needed, and that row's time.
_NEXT, _BASE, _NEEDED, _FIRST, _NEW = "__next", "__base", "__needed", "__first", "__new"
_CLOSED = "closed"


class RowWindows:
    """An aggregate over windows of rows.

    Window k of a group covers its rows k · slide … k · slide + rows − 1 and is put out when the last of
    them is settled: when the watermark is beyond its time. Rows are in order of event time, then of source
    and offset where known, then of their other values, so that their numbers never depend on how they
    arrived. Without an event time they are settled as they arrive.

    With a timeout a window also ends that long after its first row, and the next row begins a new one.
    At the end all windows that have a row are put out.

    A step costs O(rows that become settled · (log + rows / slide)) and, where windows close, O(rows kept).

    Parameters
    ----------
    operator
        An aggregate with a window of rows.
    rows
        The type of the rows it reads.
    """

    def __init__(self, operator: Operator, rows: RowType) -> None:
        spec = operator.spec
        assert isinstance(spec, Aggregate)
        assert isinstance(spec.window, RowWindow)
        self._rows, self._slide = spec.window.rows, spec.window.slide
        self._time, self._columns = rows.time, list(rows.types)
        self._by = list(spec.by)
        self._keys = self._by or [_ALL]
        self._timeout = None if spec.timeout_s is None else microseconds(spec.timeout_s)
        if self._timeout is not None:
            _check_timeout(operator.name, spec.window, rows)
        self._computation = split_compute(spec.compute, rows.types)
        kinds = {name: rows.types[name] for name in spec.by}
        kinds |= {name: scalar.type for name, scalar in self._computation.finals.items()}
        schema = {name: dtype_of(kind) or pl.Null() for name, kind in kinds.items()}
        self._key_types = {name: schema[name] for name in self._by}
        self._nothing = pl.DataFrame(schema={**schema, **dict.fromkeys(WINDOW_COLUMNS, TIME)})

    def step(self, state: State, inputs: Sequence[Arrived]) -> Stepped:
        """Takes in rows, and puts out the windows whose last row the watermark has passed."""
        (arrived,) = inputs
        watermark = arrived.watermark
        if arrived.rows.is_empty() and not self._may_close(state, watermark):
            return Stepped({None: self._nothing}, state)
        rows, rejected = self._sound(arrived.rows, state.marks.get(_CLOSED, BEGINNING))
        pending = state.table("pending", self._time or _NUMBER)
        settled, pending = self._settle(pending, rows, watermark)
        kept = state.table("open", _NUMBER)
        before = state.table("groups", _NEXT)

        if settled.is_empty() and self._timeout is None and watermark != END:
            return Stepped({None: self._nothing}, state.with_table("pending", pending), rejected)

        groups = self._counted(before.read(), settled, _first_free(kept, before))
        settled = self._numbered(settled, groups)
        closing = groups.select(self._closes(watermark)).to_series()
        outputs: pl.DataFrame = self._nothing
        failed: tuple[Rejected, ...] = ()
        if closing.any():
            outputs, failed, groups = self._put_out(groups, closing, kept, settled, watermark)
        if watermark == END:
            return Stepped({None: outputs}, _ended(state, outputs), rejected + failed)
        if settled.height or closing.any():
            groups = groups.filter(pl.col(_NEEDED) != pl.col(_NEXT)).drop(_BASE)
            kept = self._kept(kept, settled, groups)
            state = state.with_table("open", kept).with_table("groups", Table(_NEXT).append(groups))
        return Stepped({None: outputs}, state.with_table("pending", pending), rejected + failed)

    def _may_close(self, state: State, watermark: int) -> bool:
        """Whether the watermark alone can settle a row or end a window: most steps may see no rows."""
        if watermark == END or any(s.low < watermark for s in state.table("pending", _NUMBER).segments):
            return True
        if self._timeout is None:
            return False
        groups = state.table("groups", _NEXT).read()
        if groups is None:
            return False
        first = groups.get_column(_FIRST).min()
        return isinstance(first, int) and first <= watermark - self._timeout

    def _sound(self, rows: pl.DataFrame, closed: int) -> tuple[pl.DataFrame, tuple[Rejected, ...]]:
        """The rows that count: in time, and none of them fails in what is computed of it."""
        if rows.is_empty():
            return rows, ()
        reasons = [self._computation.arguments(rows)[1]]
        if self._time is not None:
            time = pl.col(self._time)
            late = pl.when(time.to_physical() < closed).then(pl.lit(LATE))
            untimely = pl.when(time.is_null()).then(pl.lit(UNTIMED)).otherwise(late)
            reasons.insert(0, rows.select(untimely.alias("reason")).to_series())
        good, bad = split_rejected(rows, first_reason(reasons))
        return good, () if bad is None else (bad,)

    def _settle(self, pending: Table, rows: pl.DataFrame, watermark: int) -> tuple[pl.DataFrame, Table]:
        """The rows before which none can come any more, in order, and the table of the others."""
        if self._time is None:
            return self._prepared(rows), pending
        time = pl.col(self._time).to_physical()
        waited = Table(
            pending.clock, tuple(s for s in pending.segments if s.low < watermark), pending.horizon
        )
        settled = _together(waited.read(), rows).filter(time < watermark)
        names = [name for name in self._columns if name != self._time]
        order = [self._time, *([ORDER] if ORDER in settled.columns else []), *names]
        settled = settled.sort(order, maintain_order=True)
        pending = pending.append(rows.filter(time >= watermark)).evict(watermark).compact()
        return self._prepared(settled), pending

    def _prepared(self, rows: pl.DataFrame) -> pl.DataFrame:
        """What is kept of rows that are settled: their group, their time, and what calls are made on."""
        arguments, _ = self._computation.arguments(rows)
        none = pl.zeros(rows.height, pl.Int64, eager=True)
        keys = [
            as_key(rows.get_column(name)) if of.is_float() else rows.get_column(name)
            for name, of in self._key_types.items()
        ]
        keys = keys or [none.alias(_ALL)]
        time = none if self._time is None else rows.get_column(self._time).to_physical()
        return pl.DataFrame([*keys, time.alias(_TIME), *arguments.get_columns()])

    def _counted(self, groups: pl.DataFrame | None, settled: pl.DataFrame, free: int) -> pl.DataFrame:
        """The groups with the rows that are new in each; a new group's numbers begin at ``free``."""
        new = settled.group_by(self._keys, maintain_order=True).agg(
            pl.len().cast(pl.Int64).alias(_NEW), pl.col(_TIME).first().alias(_FIRST + "_new")
        )
        if groups is None:
            groups = new.clear().select(
                *self._keys, *(pl.lit(0, pl.Int64).alias(name) for name in (_NEXT, _NEEDED, _FIRST))
            )
        both = groups.join(
            new, on=self._keys, how="full", nulls_equal=True, coalesce=True, maintain_order="left_right"
        )
        return both.select(
            *self._keys,
            pl.col(_NEXT).fill_null(free).alias(_BASE),
            pl.col(_NEXT).fill_null(free) + pl.col(_NEW).fill_null(0),
            pl.col(_NEEDED).fill_null(free),
            pl.coalesce(_FIRST, _FIRST + "_new").alias(_FIRST),
        )

    def _numbered(self, settled: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
        """The settled rows with their numbers."""
        place = pl.int_range(pl.len(), dtype=pl.Int64).over(self._keys)
        found = self._in_groups(settled, groups, _BASE)
        return found.with_columns((pl.col(_BASE) + place).alias(_NUMBER)).drop(_BASE)

    def _in_groups(self, rows: pl.DataFrame, groups: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """The rows that are in some of the groups, in their order, with columns of the group."""
        wanted = groups.select(*self._keys, *columns)
        return rows.join(wanted, on=self._keys, how="inner", nulls_equal=True, maintain_order="left")

    def _closes(self, watermark: int) -> pl.Expr:
        """Whether some window of a group is to be put out."""
        if watermark == END:
            return pl.col(_NEEDED) < pl.col(_NEXT)
        full = pl.col(_NEXT) - pl.col(_NEEDED) >= self._rows
        if self._timeout is None:
            return full
        bound = watermark - self._timeout
        return full | (pl.col(_FIRST) <= bound) if bound >= BEGINNING else full

    def _put_out(
        self, groups: pl.DataFrame, closing: pl.Series, kept: Table, settled: pl.DataFrame, watermark: int
    ) -> tuple[pl.DataFrame, tuple[Rejected, ...], pl.DataFrame]:
        """The windows that close: their results, those that failed, and how far the groups are then."""
        chosen = groups.filter(closing).with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(_PLACE))
        rows = self._in_groups(_together(kept.read(), settled), chosen, _PLACE, _NEEDED)
        rows = rows.filter(pl.col(_NUMBER) >= pl.col(_NEEDED)).sort(_PLACE, _NUMBER)
        counts = chosen.select((pl.col(_NEXT) - pl.col(_NEEDED)).clip(lower_bound=0)).to_series().to_numpy()
        times = rows.get_column(_TIME).to_numpy()
        if self._timeout is None:
            layout = sliding(counts, self._rows, self._slide, to_end=watermark == END)
        else:
            layout = timed(counts, times, self._rows, self._timeout, watermark)

        outputs, failed = [], []
        for part in layout.chunks(CHUNK):
            good, bad = self._computed(rows, times, layout, part)
            outputs.append(good)
            failed += [] if bad is None else [bad]
        after = _advanced(groups, closing, layout.left, _time_after(counts, times, layout.left))
        return pl.concat(outputs), tuple(failed), after

    def _computed(
        self, rows: pl.DataFrame, times: Numbers, layout: Layout, part: slice
    ) -> tuple[pl.DataFrame, Rejected | None]:
        """The results of some windows."""
        window, position = layout.members(part)
        names = dict.fromkeys(call.column for call in self._computation.calls if call.column is not None)
        members = pl.DataFrame(
            [pl.Series(_WINDOW, window), *(rows.get_column(name).gather(position) for name in names)]
        )
        found, reasons = aggregate_rows(self._computation.calls, members, _WINDOW)

        starts = layout.starts[part]
        groups = [rows.get_column(name).gather(starts) for name in self._by]
        found = found.with_columns(from_key(keys, self._key_types[keys.name]) for keys in groups)
        results, failed = self._computation.results(found)
        columns = [*(found.get_column(name) for name in self._by), *results.get_columns()]
        if self._time is None:
            stamps = [pl.Series(name, [None], TIME).new_from_index(0, len(starts)) for name in WINDOW_COLUMNS]
        else:
            last = plus(times[starts + layout.sizes[part] - 1], 1)
            end = np.where(layout.ends[part] == END, last, layout.ends[part])
            stamps = [
                pl.Series(name, values).cast(TIME)
                for name, values in zip(WINDOW_COLUMNS, (times[starts], end, end - 1), strict=True)
            ]
        return split_rejected(pl.DataFrame([*columns, *stamps]), first_reason([reasons, failed]))

    def _kept(self, table: Table, settled: pl.DataFrame, groups: pl.DataFrame) -> Table:
        """The table of open rows with those that are new, without those that no window needs any more."""
        if groups.is_empty():
            return Table(_NUMBER)
        fresh = self._needed(settled, groups)
        lowest = groups.select(pl.min_horizontal(_NEEDED, _NEXT).min()).item()
        table = table.append(fresh).evict(lowest)
        live = groups.select((pl.col(_NEXT) - pl.col(_NEEDED)).clip(lower_bound=0).sum()).item()
        if table.rows > 2 * live + SLACK:
            whole = table.read()
            return table if whole is None else Table(_NUMBER).append(self._needed(whole, groups))
        return table.compact()

    def _needed(self, rows: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
        found = self._in_groups(rows, groups, _NEEDED)
        return found.filter(pl.col(_NUMBER) >= pl.col(_NEEDED)).drop(_NEEDED)


def _check_timeout(name: str, window: RowWindow, rows: RowType) -> None:
    """A timeout ends one window and begins the next, which windows that overlap do not know."""
    key = f"operators.{name}.timeout"
    if window.slide != window.rows:
        rule = "a timeout must go with windows that do not overlap"
        raise input_error(
            rule, key=key, value=f"slide {window.slide}", hint="leave out the slide or the timeout"
        )
    if rows.time is None:
        rule = "a timeout counts in event time, which what it reads must have"
        raise input_error(rule, key=key, hint="state 'time' for the stream, or leave out the timeout")


def _together(older: pl.DataFrame | None, newer: pl.DataFrame) -> pl.DataFrame:
    """Rows of a table and rows that come after them."""
    if older is None or older.is_empty():
        return newer
    return older if newer.is_empty() else pl.concat([older, newer], how="diagonal")


def _first_free(kept: Table, groups: Table) -> int:
    """A number above that of every kept row: a group that comes back must not meet its own old rows."""
    return max((*(s.high + 1 for s in kept.segments), *(s.high for s in groups.segments)), default=0)


def _time_after(counts: Numbers, times: Numbers, left: Numbers) -> Numbers:
    """The time of each group's first row after the windows that were put out; any time if there is none."""
    if not len(times):
        return np.zeros_like(left)
    return times[np.minimum(np.cumsum(counts) - counts + left, len(times) - 1)]


def _advanced(groups: pl.DataFrame, closing: pl.Series, left: Numbers, first: Numbers) -> pl.DataFrame:
    """The groups after some of their windows were put out."""
    place = closing.arg_true().to_numpy()
    needed = groups.get_column(_NEEDED).to_numpy().copy()
    since = groups.get_column(_FIRST).to_numpy().copy()
    needed[place] += left
    since[place] = first
    return groups.with_columns(pl.Series(_NEEDED, needed), pl.Series(_FIRST, since))


def _ended(state: State, outputs: pl.DataFrame) -> State:
    """What is left once everything is put out: up to when, for a later run that goes on from here."""
    last = outputs.get_column("window_end").to_physical().max()
    closed = max(state.marks.get(_CLOSED, BEGINNING), last if isinstance(last, int) else BEGINNING)
    return EMPTY if closed == BEGINNING else EMPTY.with_mark(_CLOSED, closed)
