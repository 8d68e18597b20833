"""Time windows: their bounds, gaps between them, and their groups."""

from __future__ import annotations

import math
import time

import polars as pl
import pytest
from windowing import SECOND, aggregate, at, out, rows, run, step, values

from levelwind.operators.rows import END


@pytest.mark.parametrize(
    ("size", "slide", "times", "watermark", "wanted"),
    [
        (10, 10, [-1, -10, -11, 0], 0, [(-10.0, 2), (-20.0, 1)]),
        (10, 10, [-1, 0], 10, [(-10.0, 1), (0.0, 1)]),
        (4, 2, [-1], 10, [(-2.0, 1), (-4.0, 1)]),
        (4, 2, [-2, -1.5], 1.999999, [(-4.0, 2)]),
        (4, 2, [-2, -1.5], 2, [(-2.0, 2), (-4.0, 2)]),
        (5, 2, [-1], 10, [(-2.0, 1), (-4.0, 1)]),
    ],
)
def test_windows_before_1970_are_aligned_as_those_after_it(size, slide, times, watermark, wanted):
    assert out(step(aggregate(size, slide), at(*times), watermark), "c") == wanted


def test_bounds_and_time_of_a_window():
    found = step(aggregate(10, 5), at(3), 10).outputs[None].select(pl.selectors.datetime().to_physical())
    assert sorted(found.rows()) == [(-5 * SECOND, 5 * SECOND, 5 * SECOND - 1), (0, 10 * SECOND, 10**7 - 1)]


GAPPED = [{"c": "count(*)"}, {"c": "count(*)", "m": "max(k)"}]


@pytest.mark.parametrize("compute", GAPPED, ids=["numbers", "strings"])
@pytest.mark.parametrize("by", [(), ("k",)])
def test_rows_between_windows_that_leave_gaps_are_nobodys(compute, by):
    kernel = aggregate(5, 10, by=by, **compute)
    # 5 to 10 and 15 to 20 are gaps; 4.999999 and 10 are not.
    together, reasons = run(kernel, (at(0, 4.999999, 5, 9.5, 10, 17, 25, k="a"), 4))
    start = together["window_start"].to_physical()
    assert sorted(zip(start, together["c"], strict=True)) == [(0, 2), (10 * SECOND, 1)]
    assert reasons == []


@pytest.mark.parametrize("cut", [3, 5, 5.5, 7, 8])
def test_rows_in_gaps_are_no_dead_letters_whatever_the_watermark(cut):
    found, reasons = run(aggregate(5, 10), (at(1, 2), cut), (at(8, 8.5), 9), (at(19), 12), (at(21), 21))
    assert reasons == []
    assert values(found, "c") == [(1,), (2,)]


def test_only_rows_in_gaps_give_nothing():
    found, reasons = run(aggregate(5, 10, by=("k",)), (at(7, 17, 27, k="a"), 7), (at(8, k="b"), 8))
    assert found is None or found.is_empty()
    assert reasons == []


@pytest.mark.parametrize("compute", [{"c": "count(*)"}, {"c": "count(*)", "m": "max(g)"}])
def test_a_group_is_the_same_with_nulls_in_its_batch_or_without(compute):
    kernel = aggregate(10, by=("k", "g"), **compute)
    first = rows({"ts": 1, "k": "a", "g": "b"}, {"ts": 1, "k": "a"}, {"ts": 1, "g": "a"}, {"ts": 1})
    second = rows({"ts": 2, "k": "a", "g": "b"}, {"ts": 2, "k": "b", "g": "a"})
    third = rows({"ts": 3, "k": "a"}, {"ts": 3, "g": "a"}, {"ts": 3})
    found, _ = run(kernel, (first, 0), (second, 0), (third, 0))
    wanted = [("a", "b", 2), ("a", None, 2), (None, "a", 2), (None, None, 2), ("b", "a", 1)]
    assert values(found, "k", "g", "c") == sorted(wanted, key=str)


def test_zero_is_one_group_and_so_is_nan():
    kernel = aggregate(10, by=("x",))
    batches = [
        rows(*({"ts": 1, "x": x} for x in some)) for some in ([-0.0, math.nan], [0.0, -0.0], [-math.nan])
    ]
    found, _ = run(kernel, *((batch, 0) for batch in batches))
    counts = {str(x): c for x, c in found.select("x", "c").rows()}
    # As Spark writes it: a zero has no sign.
    assert counts == {"0.0": 3, "nan": 2}


@pytest.mark.parametrize("extra", [{}, {"t": "max(k)"}], ids=["numbers", "strings"])
def test_a_gap_of_half_a_century_costs_nothing(extra):
    kernel = aggregate(10, 1, by=("k",), c="count(*)", **extra)
    now = 1_780_000_000
    step(kernel, at(0, k="a"), END)  # compiled beforehand
    begin = time.process_time()
    stepped = step(kernel, at(0, now, k="a"), now + 100)
    took = time.process_time() - begin
    assert len(out(stepped)) == 20
    # Half a century has 10^9 windows and more: to visit each takes seconds, to keep each gigabytes.
    assert took < 1
    assert stepped.state.bytes < 10_000
