"""What is computed in time windows: NaN, sums that do not fit, decimals, first and last."""

from __future__ import annotations

import math
from decimal import Decimal

import polars as pl
import pytest
from windowing import aggregate, at, rows, run, values

from levelwind.operators.rows import ORDER


@pytest.mark.parametrize("extra", [{}, {"t": "max(k)"}], ids=["numbers", "strings"])
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([1.0, math.nan], (1.0, math.nan)),
        ([math.nan, 1.0, math.inf], (1.0, math.nan)),
        ([math.nan], (math.nan, math.nan)),
        ([None, math.nan, -math.inf], (-math.inf, math.nan)),
        ([None, 2.0, -3.0], (-3.0, 2.0)),
        ([None], (None, None)),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_nan_is_larger_than_any_number(given, wanted, extra, together):
    kernel = aggregate(10, low="min(x)", high="max(x)", **extra)
    each = [rows({"ts": 1, "x": x, "k": "a"}) for x in given]
    found, _ = run(kernel, *((batch, 0) for batch in ([pl.concat(each)] if together else each)))
    assert found.select("low", "high").equals(
        pl.DataFrame([wanted], schema={"low": pl.Float64, "high": pl.Float64}, orient="row")
    )


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([2**62, 2**62], None),
        ([2**62, 2**62 - 1], 2**63 - 1),
        ([2**62, 2**62, -1], 2**63 - 1),
        ([-(2**63)], -(2**63)),
        ([-(2**62), -(2**62), -1], None),
        ([2**63 - 1, 2**63 - 1, -(2**63), -(2**63)], -2),
        ([None, 5], 5),
        ([None], "nothing"),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_a_sum_of_whole_numbers_is_exact_or_rejected(given, wanted, together):
    each = [rows({"ts": 1, "n": n}) for n in given]
    batches = [pl.concat(each)] if together else each
    found, reasons = run(aggregate(10, s="sum(n)"), *((batch, 0) for batch in batches))
    if wanted is None:
        assert found.is_empty()
        assert len(reasons) == 1
        assert "does not fit bigint" in reasons[0]
    else:
        assert found["s"].to_list() == [None if wanted == "nothing" else wanted]
        assert reasons == []


def test_a_sum_that_does_not_fit_takes_no_other_group_with_it():
    given = [{"ts": 1, "k": k, "n": 2**62} for k in ("a", "a", "b")]
    found, reasons = run(aggregate(10, by=("k",), s="sum(n)"), (rows(*given), 0))
    assert values(found, "k", "s") == [("b", 2**62)]
    assert len(reasons) == 1


def test_the_average_of_large_numbers_does_not_overflow():
    found, reasons = run(aggregate(10, m="avg(n)"), (at(1, 2, 3, n=2**62), 0))
    assert found["m"].to_list() == [float(2**62)]
    assert reasons == []


@pytest.mark.parametrize(
    ("given", "total", "mean"),
    [
        (["0.10", "0.20"], "0.30", "0.150000"),
        (["1.00", "0.00", "0.00"], "1.00", "0.333333"),
        (["-1.00", "0.00", "-1.00"], "-2.00", "-0.666667"),
        (["99999999.99"] * 3, "299999999.97", "99999999.990000"),
        (["-99999999.99", "99999999.98"], "-0.01", "-0.005000"),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_sums_and_averages_of_decimals_are_exact(given, total, mean, together):
    each = [rows({"ts": 1, "d": Decimal(d)}) for d in given]
    kernel = aggregate(10, s="sum(d)", m="avg(d)", low="min(d)")
    found, _ = run(kernel, *((batch, 0) for batch in ([pl.concat(each)] if together else each)))
    assert found.select("s", "m", "low").rows() == [
        (Decimal(total), Decimal(mean), min(Decimal(d) for d in given))
    ]
    assert found.schema["s"] == pl.Decimal(20, 2)
    assert found.schema["m"] == pl.Decimal(14, 6)


def test_a_sum_of_the_largest_decimals_is_exact_or_rejected():
    most, least = (Decimal(sign + "9" * 36 + ".99") for sign in ("", "-"))
    kernel = aggregate(10, by=("k",), s="sum(e)")
    given = [("a", most), ("a", most), ("b", most), ("b", least), ("b", Decimal("0.07")), ("c", least)]
    found, reasons = run(kernel, *((rows({"ts": 1, "k": k, "e": e}), 0) for k, e in given))
    assert values(found, "k", "s") == [("b", Decimal("0.07")), ("c", least)]
    assert len(reasons) == 1
    assert "does not fit decimal(38,2)" in reasons[0]


def test_first_and_last_go_by_time_then_rank():
    given = [
        rows({"ts": t, "n": n}).with_columns(pl.lit(r, pl.Int64).alias(ORDER))
        for t, r, n in [(2, 1, 21), (1, 2, 12), (1, 1, 11), (2, 2, 22), (1, 3, None)]
    ]
    kernel = aggregate(10, f="first(n)", l="last(n)")
    assert run(kernel, (pl.concat(given), 0))[0].select("f", "l").rows() == [(11, 22)]
    assert run(kernel, *((each, 0) for each in given))[0].select("f", "l").rows() == [(11, 22)]
