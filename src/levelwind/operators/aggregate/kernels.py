"""Aggregates over time windows, alone or several together that read the same rows by the same groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from levelwind.model import Operator
from levelwind.model.operator import Aggregate, RowWindow, TimeWindow
from levelwind.operators.aggregate.accumulators import PANE, TIME_OF, Kept, keep, merges
from levelwind.operators.aggregate.sliding import CHECK, CODE, WINDOW, coded, is_plain, merge_windows
from levelwind.operators.aggregate.windows import Windows
from levelwind.operators.aggregate_calls import Computation, first_reason, split_compute
from levelwind.operators.aggregate_rows import as_decimal
from levelwind.operators.equality import one_form
from levelwind.operators.protocol import Kernel, Stepped
from levelwind.operators.rows import BEGINNING, END, ORDER, TIME, Arrived, Rejected, RowType, split_rejected
from levelwind.operators.state import Segment, State, Table, one_frame

PANES = "panes"
# The instant up to which windows have been put out.
CLOSED = "closed"
WINDOW_COLUMNS = ("window_start", "window_end", "window_time")
LATE = "late: its window was already put out"


def make_aggregate(operator: Operator, inputs: Sequence[RowType]) -> Kernel:
    """The kernel of an aggregate."""
    assert isinstance(operator.spec, Aggregate)
    if isinstance(operator.spec.window, RowWindow):
        from levelwind.operators.row_windows import RowWindows

        return RowWindows(operator, inputs[0])
    if operator.spec.timeout_s is not None:
        from levelwind.operators.aggregate.timeouts import TimedOutWindows

        return TimedOutWindows(operator, inputs[0])
    return TimeWindows.of(operator, inputs[0])


@dataclass(frozen=True)
class TimeWindows:
    """An aggregate over time windows.

    A step costs O(rows + entries of the windows that close), an entry being one pane of one group; rows
    cost the same whatever the windows' size and slide.
    """

    windows: Windows
    by: tuple[str, ...]
    time: str
    compute: Mapping[str, str]
    types: Mapping[str, str]
    computation: Computation
    kept: Mapping[str, Kept]
    # Everything in one select: where every output column is the result of a call, which cannot fail.
    simple: tuple[pl.Expr, ...] | None
    # What the output columns are computed from, where there is more to compute.
    general: tuple[pl.Expr, ...]
    parts: tuple[pl.Expr, ...]
    reasons: tuple[pl.Expr, ...]
    decimals: Mapping[str, str]

    @classmethod
    def of(cls, operator: Operator, rows: RowType) -> TimeWindows:
        """From the model."""
        spec = operator.spec
        assert isinstance(spec, Aggregate)
        assert isinstance(spec.window, TimeWindow)
        assert rows.time is not None
        computation = split_compute(spec.compute, rows.types)
        kept = {call.placeholder: keep(call, ordered=True) for call in computation.calls}
        windows = Windows.of(spec.window)
        by, bounds = [pl.col(name) for name in spec.by], _bounds(windows)
        results = [each.result.alias(name) for name, each in kept.items()]
        simple = None
        if len(computation.plain) == len(spec.compute) and all(each.certain for each in kept.values()):
            named = [kept[computation.plain[name]].result.alias(name) for name in spec.compute]
            simple = (*by, *named, *bounds)
        return cls(
            windows=windows,
            by=spec.by,
            time=rows.time,
            compute=spec.compute,
            types=rows.types,
            computation=computation,
            kept=kept,
            simple=simple,
            general=(*by, *results, *bounds),
            parts=tuple(part for each in kept.values() for part in each.parts),
            reasons=tuple(each.reason for each in kept.values() if each.reason is not None),
            decimals={name: each.decimal for name, each in kept.items() if each.decimal is not None},
        )

    def step(self, state: State, inputs: Sequence[Arrived]) -> Stepped:
        """Take in what has arrived."""
        (arrived,) = inputs
        return step_together((self,), (state,), arrived)[0]


def may_join(first: TimeWindows, other: TimeWindows) -> bool:
    """Whether two aggregates that read the same rows can share panes: the finer ones fit the coarser."""
    fine, coarse = sorted((first.windows.pane, other.windows.pane))
    return first.by == other.by and coarse % fine == 0


def step_together(members: Sequence[TimeWindows], states: Sequence[State], arrived: Arrived) -> list[Stepped]:
    """One step of several aggregates that read the same rows by the same groups.

    Rows are grouped once for all of them, and the new segment of state is one and the same: it is
    written once. Windows that are equal are merged once.
    """
    rows = arrived.rows
    segment: Segment | None = None
    rejected: tuple[Rejected, ...] = ()
    if rows.height:
        closed = max(state.marks.get(CLOSED, BEGINNING) for state in states)
        arguments, reasons = _arguments(members, rows)
        troubled = reasons is not None or _may_be_late(members, rows, closed)
        if troubled and len(members) > 1:
            # A bad row is bad for one aggregate, not for its neighbours: each for itself.
            return [
                step_together((member,), (state,), arrived)[0]
                for member, state in zip(members, states, strict=True)
            ]
        if troubled:
            rows, arguments, rejected = _without_bad(members[0], rows, arguments, reasons, closed)
        segment = _segment(members, rows, arguments)
    memo: dict[object, pl.DataFrame | Table | None] = {}
    return [
        _advance(member, state, segment, arrived.watermark, rejected, memo)
        for member, state in zip(members, states, strict=True)
    ]


@dataclass(frozen=True)
class _Joint:
    """What several aggregates compute together."""

    computation: Computation
    partial: tuple[pl.Expr, ...]
    pane: int


_JOINT: dict[tuple[int, ...], tuple[Sequence[TimeWindows], _Joint]] = {}


def _joint(members: Sequence[TimeWindows]) -> _Joint:
    key = tuple(id(member) for member in members)
    found = _JOINT.get(key)
    if found is not None:
        return found[1]
    if len(members) == 1:
        computation = members[0].computation
    else:
        compute = {
            f"{i}.{name}": text for i, each in enumerate(members) for name, text in each.compute.items()
        }
        computation = split_compute(compute, members[0].types)
    partial: dict[str, pl.Expr] = {}
    for call in computation.calls:
        partial.update(keep(call, ordered=True).partial)
    joint = _Joint(
        computation,
        tuple(expression.alias(name) for name, expression in partial.items()),
        min(member.windows.pane for member in members),
    )
    if len(_JOINT) > 4096:
        _JOINT.clear()
    _JOINT[key] = (tuple(members), joint)
    return joint


def _arguments(members: Sequence[TimeWindows], rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series | None]:
    return _joint(members).computation.arguments(rows)


def _may_be_late(members: Sequence[TimeWindows], rows: pl.DataFrame, closed: int) -> bool:
    if closed == BEGINNING:
        return False
    earliest = rows.get_column(members[0].time).to_physical().min()
    assert isinstance(earliest, int)
    return any(m.windows.end_of(m.windows.last_with(earliest)) <= closed for m in members)


def _without_bad(
    member: TimeWindows, rows: pl.DataFrame, arguments: pl.DataFrame, reasons: pl.Series | None, closed: int
) -> tuple[pl.DataFrame, pl.DataFrame, tuple[Rejected, ...]]:
    """Rows without those that fail or whose windows are all put out.

    A row in a gap between windows has none, so that it is not late for it either.
    """
    windows = member.windows
    time = pl.col(member.time).to_physical()
    last_end = time // windows.slide * windows.slide + windows.size
    is_late = (last_end <= closed) & (time < last_end)
    late = rows.select(pl.when(is_late).then(pl.lit(LATE)).alias("late")).to_series()
    if reasons is not None:
        late = late.zip_with(late.is_not_null(), reasons)
    sound = late.is_null()
    good, bad = split_rejected(rows, late)
    return good, arguments.filter(sound), () if bad is None else (bad,)


def _segment(members: Sequence[TimeWindows], rows: pl.DataFrame, arguments: pl.DataFrame) -> Segment | None:
    """The rows' panes: one entry per pane and group."""
    if rows.is_empty():
        return None
    joint = _joint(members)
    first = members[0]
    times = rows.get_column(first.time)
    ranked = ORDER in rows.columns
    ranks = rows.get_column(ORDER) if ranked else pl.Series(np.zeros(rows.height, np.int64))
    columns = [
        ((times.to_physical() // joint.pane) * joint.pane).alias(PANE),
        times.alias(TIME_OF),
        ranks.alias(ORDER),
        *(one_form(rows.get_column(name)) for name in first.by),
        *arguments.get_columns(),
    ]
    grouped = pl.DataFrame(columns).group_by([PANE, *first.by]).agg(joint.partial)
    # In order of panes: windows are then merged without sorting.
    grouped = grouped.sort(PANE)
    return Segment.of(coded(grouped, first.by), PANE)


def _advance(
    member: TimeWindows,
    state: State,
    segment: Segment | None,
    watermark: int,
    rejected: tuple[Rejected, ...],
    memo: dict[object, pl.DataFrame | Table | None],
) -> Stepped:
    """Add a segment, put out the windows that the watermark closes, give up what no window needs."""
    windows = member.windows
    table = state.table(PANES, PANE)
    if segment is not None:
        table = table.extend(segment)
    closed = state.marks.get(CLOSED, BEGINNING)
    outputs = None
    if watermark > closed and table.segments:
        low = min(each.low for each in table.segments)
        high = max(each.high for each in table.segments)
        first = max(windows.first_open(closed), windows.first_with(max(low, table.horizon)))
        last = windows.last_with(high)
        if watermark != END:
            last = min(last, windows.last_ended(watermark))
        if first <= last:
            key = (windows, tuple(map(id, table.segments)), first, last)
            merged = _once(memo, key, lambda: _merged(member, table, first, last))
            if merged is not None and not merged.is_empty():
                outputs, failed = _results(member, merged)
                rejected = (*rejected, *failed)
                if watermark == END:
                    closed = max(closed, windows.end_of(last))
    if watermark != END:
        closed = max(closed, watermark)
        if closed > BEGINNING:
            table = table.evict(windows.first_open(closed) * windows.slide)
        table = _compacted(member, table, memo)
    else:
        table = Table(PANE)
    after = state.with_table(PANES, table).with_mark(CLOSED, closed)
    return Stepped({} if outputs is None else {None: outputs}, after, rejected)


def _once(
    memo: dict[object, pl.DataFrame | Table | None], key: object, make: Callable[[], pl.DataFrame | None]
) -> pl.DataFrame | None:
    if key not in memo:
        memo[key] = make()
    found = memo[key]
    assert not isinstance(found, Table)
    return found


def _merged(member: TimeWindows, table: Table, first: int, last: int) -> pl.DataFrame | None:
    """The windows ``first`` to ``last``: one row per window and group with everything that is kept."""
    windows = member.windows
    low, high = first * windows.slide, windows.end_of(last)
    segments = tuple(s for s in table.segments if s.low < high and s.high >= low)
    if not segments:
        return None
    kept = kept_columns(segments, member.by)
    if is_plain(segments, kept):
        return merge_windows(segments, member.by, kept, windows, first, last)
    entries = Table(PANE, segments, low).read()
    assert entries is not None
    if any(segment.high >= high for segment in segments):
        entries = entries.filter(pl.col(PANE) < high)
    if first == last:
        entries = entries.with_columns(pl.lit(first, pl.Int64).alias(WINDOW))
    elif windows.tumbling:
        entries = entries.with_columns((pl.col(PANE) // windows.slide).alias(WINDOW))
    else:
        lowest = ((pl.col(PANE) - windows.size) // windows.slide + 1).clip(lower_bound=first)
        highest = (pl.col(PANE) // windows.slide).clip(upper_bound=last)
        entries = entries.with_columns(pl.int_ranges(lowest, highest + 1).alias(WINDOW)).explode(
            WINDOW, empty_as_null=False, keep_nulls=False
        )
    return entries.group_by([WINDOW, *member.by]).agg(merges(kept))


def _results(member: TimeWindows, merged: pl.DataFrame) -> tuple[pl.DataFrame, tuple[Rejected, ...]]:
    """The rows that closed windows give."""
    if member.simple is not None:
        return merged.select_seq(member.simple), ()
    if member.parts:
        merged = merged.with_columns(member.parts)
    table = merged.select_seq(member.general)
    if member.decimals:
        table = table.with_columns(
            as_decimal(table.get_column(n), kind) for n, kind in member.decimals.items()
        )
    computed, reasons = member.computation.results(table)
    if member.reasons:
        lost = merged.select(pl.coalesce(member.reasons)).to_series()
        reasons = first_reason((lost, reasons))
    rows = pl.DataFrame(
        [
            *(table.get_column(name) for name in member.by),
            *computed.get_columns(),
            *(table.get_column(name) for name in WINDOW_COLUMNS),
        ]
    )
    good, bad = split_rejected(rows, reasons)
    return good, () if bad is None else (bad,)


def _bounds(windows: Windows) -> list[pl.Expr]:
    """A window's start, end and event time, from its number."""
    start = pl.col(WINDOW) * windows.slide
    instants = (start, start + windows.size, start + (windows.size - 1))
    return [instant.cast(TIME).alias(name) for instant, name in zip(instants, WINDOW_COLUMNS, strict=True)]


def _compacted(member: TimeWindows, table: Table, memo: dict[object, pl.DataFrame | Table | None]) -> Table:
    """With small segments merged, once for all members that hold the same ones."""
    _, run = table.worth_merging()
    if not run:
        return table
    key = ("compact", tuple(map(id, table.segments)), table.horizon)
    found = memo.get(key)
    if found is None:
        found = memo[key] = table.compact(lambda frames: merge_panes(frames, member.by))
    assert isinstance(found, Table)
    return found


def merge_panes(frames: list[pl.DataFrame], by: Sequence[str]) -> pl.DataFrame:
    """One entry per pane and group, in order of panes.

    Batches follow each other in time, so that most panes are in one frame alone: only those that are in
    several are grouped again. O(entries), and a sort if the frames do not follow each other.
    """
    panes = [frame.get_column(PANE).unique().to_numpy() for frame in frames]
    found, counts = np.unique(np.concatenate(panes), return_counts=True)
    whole = one_frame(frames)
    shared = pl.Series(found[counts > 1])
    if len(shared):
        is_shared = whole.get_column(PANE).is_in(shared.implode())
        kept = [name for name in whole.columns if "|" in name and name not in by]
        codes = [pl.col(name).first() for name in (CODE, CHECK) if by]
        again = whole.filter(is_shared).group_by([PANE, *by]).agg(*codes, *merges(kept))
        whole = pl.concat([whole.filter(~is_shared), again.select(whole.columns)])
    return whole if whole.get_column(PANE).is_sorted() else whole.sort(PANE)


def kept_columns(segments: Sequence[Segment], by: Sequence[str]) -> list[str]:
    """What all segments keep: aggregates that once shared their panes have left more in some of them."""
    first, *others = (segment.frame.columns for segment in segments)
    found = [name for name in first if "|" in name and name not in by]
    for columns in others:
        if columns != first:
            found = [name for name in found if name in columns]
    return found
