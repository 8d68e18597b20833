"""Windows of rows over batches of any cut against one SQL query over all rows."""

from __future__ import annotations

from itertools import groupby

import polars as pl
from arrivals import TYPES, bag, query, run, streams
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.model import Column, Operator
from levelwind.model.operator import Aggregate, RowWindow
from levelwind.operators.row_windows import RowWindows
from levelwind.operators.rows import END, ORDER, Arrived, RowType

READ = RowType(tuple(Column(name=name, type=kind) for name, kind in TYPES.items()), "ts")
COMPUTE = {
    "n": "count(*)",
    "some": "count(v)",
    "kinds": "count(distinct f)",
    "both": "count(distinct v, s)",
    "total": "sum(v)",
    "mean": "avg(v) + 1",
    "low": "min(f)",
    "high": "max(f)",
    "text": "max(s)",
    "head": "first(v)",
    "tail": "last(s)",
    "spread": "stddev(v)",
    "around": "var_pop(k)",
    "share": "sum(v) / count(*)",
}
# How SQL says the same where it differs.
ORACLE = {
    **COMPUTE,
    "kinds": "count(distinct case when isnan(f) then 99 when f = 0 then 0 else f end)",
    "both": "count(distinct case when v is not null and s is not null then (v, s) end)",
    "head": "first(v order by i)",
    "tail": "last(s order by i)",
    "share": "sum(v)::double / count(*)",
}
ORDER_OF_ROWS = "ts, k NULLS FIRST, v NULLS FIRST, f NULLS FIRST, s NULLS FIRST"


def kernel_of(rows, slide, by, compute=COMPUTE, timeout_s=None):
    window = RowWindow(rows=rows, slide=slide)
    spec = Aggregate(window=window, compute=compute, by=tuple(by), timeout_s=timeout_s)
    return RowWindows(Operator(name="w", spec=spec), READ)


def expected(rows, size, slide, by, order=ORDER_OF_ROWS):
    groups = ", ".join(by)
    keys = f"{groups}, " if by else ""
    window = f"PARTITION BY {groups} ORDER BY {order}" if by else f"ORDER BY {order}"
    aggregates = ", ".join(f"{text} AS {name}" for name, text in ORACLE.items())
    found = query(
        f"""
        WITH numbered AS (SELECT *, row_number() OVER ({window}) - 1 AS i FROM t),
        member AS (
            SELECT *, unnest(range(greatest(0, (i - {size}) // {slide}), i // {slide} + 1)) AS w FROM numbered
        )
        SELECT {keys}{aggregates}, epoch_us(min(ts)), epoch_us(max(ts)) + 1, epoch_us(max(ts))
        FROM member WHERE i BETWEEN w * {slide} AND w * {slide} + {size} - 1 GROUP BY {keys}w
        """,
        t=rows,
    )
    return bag(found)


def plain(rows):
    return bag(rows.with_columns(pl.selectors.datetime().to_physical()).rows())


BY = st.sampled_from([(), ("k",), ("s",), ("f",), ("k", "s")])


def waiting_rows_are_not_settled(state, marks):
    kept = state.tables["pending"].read() if "pending" in state.tables else None
    if kept is not None and kept.height:
        assert kept["ts"].to_physical().min() >= marks[0]


@settings(max_examples=150)
@given(st.data(), BY, st.integers(1, 5))
def test_windows_are_those_of_one_query_over_all_rows(data, by, size):
    slide = data.draw(st.integers(1, size))
    stream = data.draw(streams(batches=data.draw(st.integers(1, 6))))
    batches = [[arrived] for arrived in stream.batches()]
    # A window that never fills ends with its last row, however long ago that was.
    rows, rejected = run(
        kernel_of(size, slide, by), batches, "window_time", waiting_rows_are_not_settled, old_at_the_end=True
    )
    assert not rejected
    assert plain(rows) == expected(stream.rows, size, slide, by)


@settings(max_examples=40)
@given(st.data(), st.integers(1, 4))
def test_the_hidden_order_comes_right_after_the_time(data, size):
    stream = data.draw(streams(batches=1))
    ranks = data.draw(st.permutations(range(stream.rows.height)))
    rows = stream.rows.with_columns(pl.Series(ORDER, ranks, pl.Int64))
    batches = [[Arrived(rows, END)]]
    found, _ = run(kernel_of(size, size, ("k",)), batches, "window_time")
    assert plain(found) == expected(rows, size, size, ("k",), f"ts, {ORDER}")


def timed_windows(rows, size, timeout):
    """The windows of one group by a walk over its rows in order."""
    window = []
    for row in rows:
        if window and (len(window) == size or row[0] >= window[0][0] + timeout):
            yield window
            window = []
        window.append(row)
    if window:
        yield window


def walked(rows, size, timeout):
    found = []
    plain_rows = rows.with_columns(pl.col("ts").to_physical()).sort("k", "ts", "v", "f", "s").rows()
    for key, group in groupby(plain_rows, key=lambda row: row[1]):
        for window in timed_windows(group, size, timeout):
            values = [row[2] for row in window if row[2] is not None]
            first, last = window[0], window[-1]
            end = last[0] + 1 if len(window) == size else first[0] + timeout
            total = sum(values) if values else None
            found.append((key, len(window), total, first[2], last[4], first[0], end, end - 1))
    return bag(found)


@settings(max_examples=150)
@given(st.data(), st.integers(1, 5), st.integers(1, 15))
def test_a_timeout_ends_a_window_whatever_the_batches(data, size, timeout):
    stream = data.draw(streams(batches=data.draw(st.integers(1, 6))))
    compute = {"n": "count(*)", "total": "sum(v)", "head": "first(v)", "tail": "last(s)"}
    kernel = kernel_of(size, size, ("k",), compute, timeout / 1e6)

    def no_window_is_kept_beyond_its_timeout(state, marks):
        groups = state.tables["groups"].read() if "groups" in state.tables else None
        if groups is not None and groups.height:
            assert groups["__first"].min() + timeout > marks[0]

    batches = [[arrived] for arrived in stream.batches()]
    rows, _ = run(kernel, batches, "window_time", no_window_is_kept_beyond_its_timeout)
    assert plain(rows) == walked(stream.rows, size, timeout)
