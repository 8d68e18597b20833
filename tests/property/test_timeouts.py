"""Time windows with a timeout against plain loops, over random rows, windows, groups, batches and arrival."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import polars as pl
import pytest
from arrivals import TYPES, bag, streams
from hypothesis import given
from hypothesis import strategies as st

from levelwind.model import Aggregate, Column, Operator, Port, TimeWindow
from levelwind.operators.aggregate import make_aggregate, timeouts
from levelwind.operators.aggregate.kernels import LATE
from levelwind.operators.aggregate.timeouts import TIMED_OUT, TimedOutWindows
from levelwind.operators.rows import BEGINNING, END, ORDER, TIME, Arrived, RowType
from levelwind.operators.state import EMPTY

READ = RowType(tuple(Column(name=name, type=kind) for name, kind in TYPES.items()), "ts")
COMPUTE = {"n": "count(*)", "vs": "sum(v)", "fs": "max(f)", "head": "first(k)", "tail": "last(s)"}
FAILED = "failed"


@dataclass(frozen=True)
class Case:
    """An aggregate: all in microseconds. With ``risky``, a row with v = 0 fails.

    With ``apart``, rows come in one step and the watermark after them in the next.
    """

    size: int
    slide: int
    timeout: int
    by: tuple[str, ...]
    risky: bool
    apart: bool

    def kernel(self):
        compute = {**COMPUTE, "r": "sum(6 div v)"} if self.risky else COMPUTE
        window = TimeWindow(size_s=self.size / 1e6, slide_s=self.slide / 1e6)
        spec = Aggregate(window=window, compute=compute, by=self.by, timeout_s=self.timeout / 1e6)
        made = make_aggregate(Operator(name="o", inputs=(Port(source="s"),), spec=spec), (READ,))
        assert isinstance(made, TimedOutWindows)
        return made


@st.composite
def cases(draw):
    slide = draw(st.integers(1, 12))
    size = draw(st.sampled_from([slide, slide, 2 * slide, 3 * slide + 1, max(1, slide // 2)]))
    by = draw(st.sampled_from([(), ("k",), ("s", "k"), ("f",)]))
    return Case(size, slide, draw(st.integers(1, 15)), by, draw(st.booleans()), draw(st.booleans()))


@st.composite
def ranked(draw, *, later=0):
    """A stream whose rows have a rank that is not their order of arrival."""
    stream = draw(streams(batches=draw(st.integers(1, 5))))
    ranks = draw(st.permutations(range(stream.rows.height)))
    stream.rows.insert_column(stream.rows.width, pl.Series(ORDER, ranks, pl.Int64))
    moved = stream.rows.with_columns((pl.col("ts").to_physical() + later).cast(TIME))
    return type(stream)(moved, stream.cuts, stream.lateness)


def group_of(row, by):
    found = tuple(row[name] for name in by)
    return tuple("NaN" if isinstance(key, float) and math.isnan(key) else key for key in found)


def expected(case, rows, closed=BEGINNING):
    """Windows by (group, start) as (when it closes, its rows in order), and the reason by rejected row."""
    windows, holding, reasons = {}, [], []
    rows = sorted(rows, key=lambda row: (row["ts"], row[ORDER]))
    for row in rows:
        starts = [
            start
            for start in range(-100 * case.slide, 200 * case.slide, case.slide)
            if start <= row["ts"] < start + case.size
        ]
        held = [start for start in starts if start + case.size > closed]
        if starts and not held:
            reasons.append((row, LATE))
        elif case.risky and row["v"] == 0:
            reasons.append((row, FAILED))
        elif held:
            holding.append((row, held))
            for start in held:
                windows.setdefault((group_of(row, case.by), start), []).append(row)
    closes = {
        (group, start): min(members[0]["ts"] + case.timeout, start + case.size)
        for (group, start), members in windows.items()
    }
    for row, held in holding:
        if all(row["ts"] >= closes[group_of(row, case.by), start] for start in held):
            reasons.append((row, TIMED_OUT))
    return {
        key: (closes[key], [row for row in members if row["ts"] < closes[key]])
        for key, members in windows.items()
    }, reasons


def result(case, start, members):
    """The row that a window gives."""
    numbers = [row["v"] for row in members if row["v"] is not None]
    floats = [row["f"] for row in members if row["f"] is not None]
    largest = max(floats, key=lambda x: math.inf if math.isnan(x) else x, default=None)
    parts = [int(6 / v) for v in numbers] if case.risky else []
    return (
        *(members[0][name] for name in case.by),
        len(members),
        sum(numbers) if numbers else None,
        largest,
        members[0]["k"],
        members[-1]["s"],
        *([sum(parts) if parts else None] if case.risky else []),
        start,
        start + case.size,
        start + case.size - 1,
    )


def letters(rejected):
    """Rejected rows as a multiset, with the reason if it is about time."""
    return Counter(
        (*(str(row[name]) for name in [*TYPES, ORDER]), reason if reason in (LATE, TIMED_OUT) else FAILED)
        for row, reason in rejected
    )


def physical(rows):
    return rows.with_columns(pl.selectors.datetime().to_physical())


def steps(case, stream):
    """What arrives step by step, the end included."""
    before = BEGINNING
    for arrived in (*stream.batches(), Arrived(stream.rows.clear(), END)):
        if case.apart:
            yield Arrived(arrived.rows, before)
            yield Arrived(stream.rows.clear(), arrived.watermark)
        else:
            yield arrived
        before = arrived.watermark


def check(case, stream, state=EMPTY, closed=BEGINNING):
    """One run to its end, step by step against what is expected; the state it leaves."""
    kernel = case.kernel()
    windows, reasons = expected(case, physical(stream.rows).to_dicts(), closed)
    before, rejected = BEGINNING, []
    for arrived in steps(case, stream):
        stepped = kernel.step(state, [arrived])
        again = kernel.step(state, [arrived])
        found = [row for rows in stepped.outputs.values() for row in physical(rows).rows()]
        assert bag(found) == bag(row for rows in again.outputs.values() for row in physical(rows).rows())
        assert bag(found) == bag(
            result(case, start, members)
            for (_, start), (closes, members) in windows.items()
            if before < closes <= arrived.watermark
        )
        for bad in stepped.rejected:
            rejected += zip(physical(bad.rows).to_dicts(), bad.reasons, strict=True)
        state, before = stepped.state, arrived.watermark
        is_bounded(case, state, before)
    assert letters(rejected) == letters(reasons)
    assert not state.tables
    return state


def is_bounded(case, state, watermark):
    """Nothing is kept of windows that have ended, nor of rows that wait for nothing."""
    for name, bound in (("pending", watermark), ("windows", (watermark - case.size) // case.slide + 1)):
        table = state.tables.get(name)
        kept = None if table is None else table.read()
        if kept is not None and kept.height:
            assert physical(kept)[table.clock].min() >= bound


@given(case=cases(), stream=ranked())
def test_equal_to_plain_loops(case, stream):
    check(case, stream)


@given(case=cases(), stream=ranked())
def test_equal_to_plain_loops_in_small_pieces(case, stream):
    """The table of open rows is written anew whenever it may be, and windows are computed few at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timeouts, "SLACK", 0)
        patch.setattr(timeouts, "CHUNK", 3)
        check(case, stream)


@given(case=cases(), stream=ranked(), later=ranked(later=25))
def test_a_later_run_does_not_open_what_the_end_has_put_out(case, stream, later):
    state = check(case, stream)
    windows, _ = expected(case, physical(stream.rows).to_dicts())
    # A stream that came further than its windows' ends has closed all up to there.
    watermarks = [arrived.watermark for arrived in stream.batches()]
    closed = max([start + case.size for _, start in windows] + watermarks)
    assert state.marks.get("closed", BEGINNING) == closed
    check(case, later, state, closed)
