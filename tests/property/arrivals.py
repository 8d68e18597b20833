"""Streams as they arrive: out of order within their lateness, cut into batches, with their watermarks."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cache

import duckdb
import polars as pl
from hypothesis import strategies as st

from levelwind.operators.rows import BEGINNING, END, TIME, Arrived
from levelwind.operators.state import EMPTY

TEXTS = st.sampled_from([None, "a", "b", "A"])
SMALL = st.one_of(st.none(), st.integers(-2, 3))
FLOATS = st.sampled_from([None, 0.0, -0.0, 1.0, 2.0, 2.5, math.nan, -math.inf])
COLUMNS = {"k": pl.Int32(), "v": pl.Int64(), "f": pl.Float64(), "s": pl.String()}
TYPES = {"ts": "timestamp", "k": "int", "v": "bigint", "f": "double", "s": "string"}
ROWS = st.tuples(SMALL, SMALL, FLOATS, TEXTS)


@dataclass(frozen=True)
class Stream:
    """All rows of a stream in order of arrival, where batches end, and how late a row may be."""

    rows: pl.DataFrame
    cuts: list[int]
    lateness: int

    def batches(self):
        """The rows and the watermark after them, batch by batch."""
        latest, before = BEGINNING, 0
        for cut in (*self.cuts, self.rows.height):
            part = self.rows[before:cut]
            before = cut
            if part.height:
                latest = max(latest, part["ts"].to_physical().max())
            yield Arrived(part, BEGINNING if latest == BEGINNING else latest - self.lateness)


@st.composite
def streams(draw, *, batches, most=30, span=40):
    """A stream of small values, so that ties and equal keys are common."""
    lateness = draw(st.integers(0, 8))
    drawn = draw(st.lists(st.tuples(st.integers(0, span), st.integers(0, lateness), ROWS), max_size=most))
    # A row that is delayed by at most the lateness is never below the watermark.
    drawn.sort(key=lambda row: row[0] + row[1])
    times = pl.Series("ts", [row[0] for row in drawn], pl.Int64).cast(TIME)
    values = [
        pl.Series(name, [row[2][at] for row in drawn], dtype)
        for at, (name, dtype) in enumerate(COLUMNS.items())
    ]
    cuts = sorted(draw(st.lists(st.integers(0, len(drawn)), min_size=batches - 1, max_size=batches - 1)))
    return Stream(pl.DataFrame([times, *values]), cuts, lateness)


def run(kernel, inputs, time, check=lambda state, marks: None, *, old_at_the_end=False):
    """What a kernel puts out and rejects over batches of arrivals, each input's watermark END at the end.

    On the way: no row may be older than the smallest watermark was before the step, except, where it must
    be so, in the step that puts out all that is open.
    """
    state, outputs, rejected = EMPTY, [], []
    before = BEGINNING
    last = [Arrived(batch.rows.clear(), END) for batch in inputs[-1]]
    for batch in (*inputs, last):
        stepped = kernel.step(state, batch)
        again = kernel.step(state, batch)
        for route, rows in stepped.outputs.items():
            assert rows.equals(again.outputs[route])
            if batch is not last or not old_at_the_end:
                assert all(at >= before for at in rows[time].to_physical())
            outputs.append(rows)
        rejected += stepped.rejected
        state = stepped.state
        before = min(arrived.watermark for arrived in batch)
        check(state, [arrived.watermark for arrived in batch])
    # A join has nothing open at the end; what it holds is for a later run.
    assert not any(table.rows for name, table in state.tables.items() if name not in ("left", "right"))
    return pl.concat(outputs), rejected


@cache
def database():
    """One database for all queries, which costs more to open than to ask."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET threads = 1")
    return connection


def query(sql, **frames):
    """The rows of a query over some frames."""
    for name, frame in frames.items():
        database().register(name, frame.to_arrow())
    return database().execute(sql).fetchall()


def bag(rows):
    """Rows as a multiset, whose floats are equal if they are within 1e-9 or so of each other."""
    return Counter(tuple(_plain(value) for value in row) for row in rows)


def _plain(value):
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.9e}") + 0.0
    return value
