"""Joins over batches of any cut against one SQL join over all rows."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest
from arrivals import TYPES, bag, query, run, streams
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.model import Column, Operator
from levelwind.model.operator import Join
from levelwind.operators.join import make_join
from levelwind.operators.rows import END, Arrived, RowType
from levelwind.operators.state import EMPTY

READ = RowType(tuple(Column(name=name, type=kind) for name, kind in TYPES.items()), "ts")
CONDITIONS = [
    None,
    "true",
    "a.k = b.k",
    "b.k = a.k and a.v < b.v",
    "a.f = b.f",
    "a.f = b.k and a.s is not null",
    "a.v = b.k and b.f = a.f and a.s = b.s",
    "upper(a.s) = b.s",
    "a.v + 1 = b.v",
    "a.k + b.k = 2",
    "abs(a.v - b.v) < 2",
    "a.k = b.k or a.s = b.s",
    "a.f < b.f and not (b.k in (1, 2))",
    "a.v <> b.v and b.v between 0 and 2 and a.f is null",
    "a.k <=> b.k and a.s > 'A'",
    "a.ts <= b.ts and (a.k = b.k and (a.v > 0 or b.v > 0))",
    "a.k = 1",
]


def expected(left, right, within, where):
    condition = (where or "true").replace("<=>", "IS NOT DISTINCT FROM")
    found = query(
        "SELECT epoch_us(a.ts), a.k, a.v, a.f, a.s, epoch_us(b.ts), b.k, b.v, b.f, b.s,"
        " greatest(epoch_us(a.ts), epoch_us(b.ts)) FROM l a JOIN r b"
        f" ON abs(epoch_us(a.ts) - epoch_us(b.ts)) <= {within} AND ({condition})",
        l=left,
        r=right,
    )
    return bag(found)


def plain(rows):
    times = [pl.col(name).to_physical() for name in ("a.ts", "b.ts", "join_time")]
    return bag(rows.with_columns(times).rows())


def kernel_of(where, within):
    spec = Join(aliases=("a", "b"), within_s=within / 1e6, where=where)
    return make_join(Operator(name="j", spec=spec), (READ, READ))


def no_row_in_vain(within):
    """Checks that no row is kept for which no partner can come any more."""

    def check(state, marks):
        for name, other in (("left", marks[1]), ("right", marks[0])):
            if other == END:
                continue  # nothing is given up at the end: a later run may go on
            kept = state.tables[name].read() if name in state.tables else None
            if kept is not None and kept.height:
                assert kept.to_series(0).to_physical().min() + within >= other

    return check


@pytest.mark.parametrize("where", CONDITIONS)
@settings(max_examples=15)
@given(data=st.data(), within=st.integers(0, 12))
def test_pairs_are_those_of_one_join_over_all_rows(where, data, within):
    count = data.draw(st.integers(1, 5))
    left, right = (data.draw(streams(batches=count)) for _ in "ab")
    batches = [list(pair) for pair in zip(left.batches(), right.batches(), strict=True)]
    rows, rejected = run(kernel_of(where, within), batches, "join_time", no_row_in_vain(within))
    assert not rejected
    assert plain(rows) == expected(left.rows, right.rows, within, where)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(CONDITIONS), st.integers(0, 12))
def test_a_stream_joined_with_itself(data, where, within):
    stream = data.draw(streams(batches=data.draw(st.integers(1, 5))))
    batches = [[arrived, arrived] for arrived in stream.batches()]
    rows, _ = run(kernel_of(where, within), batches, "join_time", no_row_in_vain(within))
    assert plain(rows) == expected(stream.rows, stream.rows, within, where)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(CONDITIONS), st.integers(0, 12))
def test_one_input_may_end_long_before_the_other(data, where, within):
    left = data.draw(streams(batches=1))
    right = data.draw(streams(batches=data.draw(st.integers(1, 5))))
    ended = Arrived(left.rows.clear(), END)
    first = [[*left.batches(), Arrived(right.rows.clear(), -(2**63))]]
    batches = first + [[ended, arrived] for arrived in right.batches()]
    rows, _ = run(kernel_of(where, within), batches, "join_time", no_row_in_vain(within))
    assert plain(rows) == expected(left.rows, right.rows, within, where)


FAILING = "10 / a.v > 3 and a.k = b.k and b.v > 0"


@settings(max_examples=60)
@given(st.data(), st.integers(0, 12))
def test_failing_pairs_do_not_depend_on_how_rows_are_cut(data, within):
    left, right = (data.draw(streams(batches=3)) for _ in "ab")
    batches = [list(pair) for pair in zip(left.batches(), right.batches(), strict=True)]
    whole = [[Arrived(stream.rows, END) for stream in (left, right)]]
    (rows, bad), (rows_whole, bad_whole) = (
        run(kernel_of(FAILING, within), cut, "join_time") for cut in (batches, whole)
    )
    assert plain(rows) == plain(rows_whole)
    assert sum((plain(each.rows) for each in bad), start=bag([])) == sum(
        (plain(each.rows) for each in bad_whole), start=bag([])
    )
    # Only a pair whose keys are equal and whose right row is wanted is ever evaluated.
    asked = expected(left.rows, right.rows, within, "a.v = 0 and a.k = b.k and b.v > 0")
    assert sum((plain(each.rows) for each in bad), start=bag([])) == asked


@pytest.mark.parametrize("within", [0, 5])
def test_state_stays_bounded_on_a_long_stream(within):
    kernel, state, most = kernel_of("a.k = b.k", within), EMPTY, 0
    rows = pl.DataFrame({"ts": range(20_000), "k": 0, "v": 0, "f": 0.0, "s": "a"}).with_columns(
        pl.col("ts").cast(pl.Datetime("us", "UTC")), pl.col("k").cast(pl.Int32)
    )
    for low, high in pairwise(range(0, 20_001, 50)):
        part = Arrived(rows[low:high], high - 1)
        state = kernel.step(state, [part, part]).state
        most = max(most, sum(table.rows for table in state.tables.values()))
    assert most < 2 * 50 * 20
