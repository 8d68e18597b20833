from __future__ import annotations

import math
from decimal import Decimal

import polars as pl
import pytest

from levelwind.errors import InputError
from levelwind.frontend.expressions import parse_expression
from levelwind.operators.aggregate_calls import split_compute
from levelwind.operators.aggregate_rows import aggregate_rows

TYPES = {
    "g": "int",
    "b": "boolean",
    "small": "int",
    "x": "bigint",
    "f": "float",
    "y": "double",
    "s": "string",
    "d": "decimal(10,2)",
    "wide": "decimal(38,2)",
    "list": "array<int>",
}


def split(**compute):
    return split_compute(compute, TYPES)


def computed(text, types=TYPES, **columns):
    """The value of one aggregate over one group, or the reason why it has none."""
    rows = pl.DataFrame(columns)
    computation = split_compute({"out": text}, types)
    arguments, reasons = computation.arguments(rows)
    assert reasons is None
    members = arguments.insert_column(0, pl.zeros(rows.height, pl.Int64, eager=True).alias("w"))
    found, failed = aggregate_rows(computation.calls, members, "w")
    results, late = computation.results(found)
    for reason in (failed, late):
        if reason is not None:
            return reason.item()
    return results["out"].item()


def integers(*values):
    return pl.Series(values, dtype=pl.Int64)


def decimals(*values, kind=(10, 2)):
    return pl.Series([None if value is None else Decimal(value) for value in values], dtype=pl.Decimal(*kind))


def test_equal_calls_are_made_once():
    found = split(a="sum(x) / count(*)", b="SUM(x) + 1", c="sum(x + 1)", d="mean(x) - avg(x)")
    assert [call.text for call in found.calls] == ["sum(x)", "count(*)", "sum(x + 1)", "avg(x)"]


def test_calls_that_differ_in_letters_alone_are_different():
    found = split(a="count(if(s = 'A', 1, null))", b="count(if(s = 'a', 1, null))")
    assert len({call.text for call in found.calls}) == len(found.calls) == 2


def test_arguments_are_computed_once_for_all_functions():
    found = split(a="sum(x)", b="max(x)", c="count(x)", d="count(distinct x)")
    assert len({call.column for call in found.calls}) == 1
    several = split(a="count(x, y)", b="count(distinct x, y)")
    assert len({call.column for call in several.calls}) == 2


def test_the_parsed_tree_stays_as_it_was():
    before = parse_expression("sum(x) + min(x)").tree.sql()
    split(a="sum(x) + min(x)")
    assert parse_expression("sum(x) + min(x)").tree.sql() == before


@pytest.mark.parametrize(
    ("text", "function", "kind"),
    [
        ("count(*)", "count", "bigint"),
        ("count(distinct s)", "count", "bigint"),
        ("sum(small)", "sum", "bigint"),
        ("sum(x)", "sum", "bigint"),
        ("sum(f)", "sum", "double"),
        ("sum(d)", "sum", "decimal(20,2)"),
        ("sum(wide)", "sum", "decimal(38,2)"),
        ("avg(small)", "avg", "double"),
        ("mean(f)", "avg", "double"),
        ("avg(d)", "avg", "decimal(14,6)"),
        ("avg(wide)", "avg", "decimal(38,6)"),
        ("min(s)", "min", "string"),
        ("max(b)", "max", "boolean"),
        ("first(list)", "first", "array<int>"),
        ("last(d)", "last", "decimal(10,2)"),
        ("stddev(x)", "stddev_samp", "double"),
        ("stddev_samp(x)", "stddev_samp", "double"),
        ("stddev_pop(x)", "stddev_pop", "double"),
        ("variance(d)", "var_samp", "double"),
        ("var_samp(x)", "var_samp", "double"),
        ("var_pop(x)", "var_pop", "double"),
    ],
)
def test_functions_and_the_types_of_their_results(text, function, kind):
    (call,) = split(a=text).calls
    assert (call.function, call.type) == (function, kind)
    assert call.distinct == ("distinct" in text)
    assert (call.argument is None) == ("*" in text)


@pytest.mark.parametrize("text", ["sum(s)", "avg(b)", "stddev(s)", "min(list)"])
def test_what_a_function_is_not_defined_on_is_refused(text):
    with pytest.raises(InputError) as caught:
        split(a=text)
    assert caught.value.problems[0].hint


def test_arguments_name_the_row_that_fails():
    computation = split(a="sum(1 / x)", b="count(*)")
    arguments, reasons = computation.arguments(pl.DataFrame({"x": integers(1, 0, None)}))
    assert reasons.is_not_null().to_list() == [False, True, False]
    assert arguments.height == 3


def test_a_computation_without_arguments_keeps_the_number_of_rows():
    arguments, reasons = split(a="count(*)").arguments(pl.DataFrame({"x": integers(1, 2)}))
    assert (arguments.shape, reasons) == ((2, 0), None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sum(x) / count(*) + 1", 3 / 3 + 1),
        ("sum(x) - min(x)", 2),
        ("count(x)", 2),
        ("count(*)", 3),
        ("count(1)", 3),
        ("count(distinct x)", 2),
        ("count(x, y)", 1),
        ("first(x)", 1),
        ("last(x)", None),
        ("max(x) - avg(x)", 0.5),
        ("var_samp(x)", 0.5),
        ("var_pop(x)", 0.25),
        ("stddev(x)", math.sqrt(0.5)),
        ("stddev_pop(x)", 0.5),
    ],
)
def test_values(text, value):
    found = computed(text, x=integers(1, 2, None), y=[None, 1.0, 2.0])
    assert found == value if value is None else found == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("text", ["sum(x)", "avg(x)", "min(x)", "max(x)", "stddev(x)", "var_pop(x)"])
def test_of_nothing_but_nulls_there_is_no_result(text):
    assert computed(text, x=integers(None, None)) is None


def test_one_value_has_a_spread_as_a_whole_but_none_as_a_sample():
    assert computed("var_samp(x)", x=integers(5, None)) is None
    assert computed("stddev(x)", x=integers(5, None)) is None
    assert computed("var_pop(x)", x=integers(5, None)) == 0.0


def test_nan_is_larger_than_any_number():
    assert math.isnan(computed("max(y)", y=[1.0, math.nan, math.inf, None]))
    assert computed("min(y)", y=[1.0, math.nan, None]) == 1.0
    assert math.isnan(computed("min(y)", y=[math.nan, None]))


def test_zeros_and_nans_count_once_each():
    assert computed("count(distinct y)", y=[0.0, -0.0, math.nan, -math.nan, None, 1.0]) == 3
    assert computed("count(distinct y, x)", y=[0.0, -0.0, math.nan, None], x=integers(1, 1, 1, 1)) == 2


def test_a_sum_of_small_integers_goes_beyond_them():
    assert computed("sum(small)", small=pl.Series([2**31 - 1, 2**31 - 1], dtype=pl.Int32)) == 2**32 - 2


def test_a_sum_is_an_error_only_if_the_total_does_not_fit():
    top = 2**63 - 1
    assert computed("sum(x)", x=integers(top, 1, -1)) == top
    assert computed("sum(x)", x=integers(-top, -1)) == -(2**63)
    assert "sum(x)" in computed("sum(x)", x=integers(top, 1))
    assert "bigint" in computed("sum(x)", x=integers(-top, -2))


def test_decimals_are_summed_exactly():
    assert computed("sum(d)", d=decimals("99999999.99", "0.01", "-0.01", None)) == Decimal("99999999.99")
    top = "9" * 36 + ".99"
    wide = {"wide": decimals(top, top, "-" + top, kind=(38, 2))}
    assert computed("sum(wide)", **wide) == Decimal(top)
    assert "decimal(38,2)" in computed("sum(wide)", wide=decimals(top, "0.01", kind=(38, 2)))
    # Seven times that is 0.2 · 10^38 once more than 128 bits.
    assert "decimal(38,2)" in computed("sum(wide)", wide=decimals(*[top] * 7, kind=(38, 2)))
    assert "decimal(38,2)" in computed("sum(wide)", wide=decimals(*["-" + top] * 7, kind=(38, 2)))


def test_the_average_of_decimals_has_four_more_digits_the_last_rounded_half_up():
    assert computed("avg(d)", d=decimals("0.01", "0.00", "0.00")) == Decimal("0.003333")
    assert computed("avg(d)", d=decimals("0.02", "0.00", "0.00")) == Decimal("0.006667")
    assert computed("avg(d)", d=decimals("-0.02", "0.00", "0.00")) == Decimal("-0.006667")
    sixteenth = decimals("-0.01", *["0.00"] * 31)  # 0.0003125
    assert computed("avg(d)", d=sixteenth) == Decimal("-0.000313")
    assert computed("avg(d)", d=decimals(None)) is None


def test_a_failing_result_is_the_row_s_own():
    assert computed("sum(x) / count(y)", x=integers(1), y=pl.Series([None], dtype=pl.Float64)) is not None
    computation = split(a="sum(x) / (count(x) - 1)")
    rows = pl.DataFrame({"w": [0, 1, 1], "x": integers(5, 6, 7)})
    arguments, _ = computation.arguments(rows)
    found, _ = aggregate_rows(computation.calls, arguments.insert_column(0, rows["w"]), "w")
    results, reasons = computation.results(found)
    assert reasons.is_not_null().to_list() == [True, False]
    assert results["a"].to_list() == [None, 13.0]
