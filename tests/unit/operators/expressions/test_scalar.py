"""The interface of compiled expressions: values, reasons, types, columns, laziness."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import polars as pl
import pytest

from levelwind.errors import InputError
from levelwind.frontend.expressions import parse_expression
from levelwind.operators.expressions import compile_scalar, compile_tree, passing

ROWS = pl.DataFrame(
    {
        "i": pl.Series([1, 0, None, 2**31 - 1], dtype=pl.Int32),
        "l": pl.Series([2**63 - 1, 5, 7, None], dtype=pl.Int64),
        "x": [0.5, float("nan"), -0.0, None],
        "d": pl.Series([Decimal("1.25"), None, Decimal("0.00"), Decimal("-3.50")], dtype=pl.Decimal(10, 2)),
        "s": ["12", "abc", None, " 7 "],
        "b": [True, False, None, True],
        "a.size": pl.Series([10, 20, 30, 40], dtype=pl.Int64),
        "r": pl.Series(
            [{"n": 1, "in": {"m": "a"}}, {"n": 0, "in": {"m": "b"}}, None, {"n": None, "in": None}]
        ),
    }
)
TYPES = {
    "i": "int",
    "l": "bigint",
    "x": "double",
    "d": "decimal(10,2)",
    "s": "string",
    "b": "boolean",
    "a.size": "bigint",
    "r": "struct<n:bigint,in:struct<m:string>>",
}


def values(text, types=TYPES, rows=ROWS):
    found, reasons = compile_scalar(text, types)(rows)
    assert reasons is None, reasons.to_list()
    return found.to_list()


def reasons(text, types=TYPES, rows=ROWS):
    found, why = compile_scalar(text, types)(rows)
    assert why is not None
    assert why.dtype == pl.String
    assert [v is None for v in found.to_list()] == [
        v is None or w is not None for v, w in zip(found.to_list(), why.to_list(), strict=True)
    ]
    return why.to_list()


def test_values_have_the_height_of_the_frame_and_reasons_are_none_if_all_is_well():
    found, why = compile_scalar("i + 1L", TYPES)(ROWS)
    assert why is None
    assert found.dtype == pl.Int64
    assert found.to_list() == [2, 1, None, 2**31]


def test_failed_rows_are_null_and_say_why():
    found, why = compile_scalar("l + 1", TYPES)(ROWS)
    assert found.to_list() == [None, 6, 8, None]
    assert why is not None
    assert why.to_list() == ["bigint overflow", None, None, None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 / i", [None, "division by zero", None, None]),
        ("l % i", [None, "remainder by zero", None, None]),
        ("i + 1", [None, None, None, "int overflow"]),
        ("cast(s as int)", [None, "cannot cast 'abc' to int", None, None]),
        ("cast(x as bigint)", [None, "bigint overflow", None, None]),
        ("cast(d as decimal(2,2))", ["decimal(2,2) overflow", None, None, "decimal(2,2) overflow"]),
        ("s + 1 / i", [None, "cannot cast 'abc' to double", None, None]),
        ("1 / i + cast(s as int)", [None, "division by zero", None, None]),
        ("s like 'a\\\\'", ["invalid pattern of like"] * 2 + [None, "invalid pattern of like"]),
        ("to_timestamp(s, 'yyyy')", [f"cannot read '{s}' as a timestamp" if s else None for s in ROWS["s"]]),
        ("1 / 0", ["division by zero"] * 4),
    ],
)
def test_reasons(text, expected):
    assert reasons(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if(i = 0, 0, 1 / i)", [1.0, 0.0, None, 1 / (2**31 - 1)]),
        ("i <> 0 and 1 / i > 0.6", [True, False, None, False]),
        ("i = 0 or 1 / i > 0.6", [True, True, None, False]),
        ("case when i = 0 then -1 else 10 div i end", [10, -1, None, 0]),
        ("case i when 0 then 0 else 10 % i end", [0, 0, None, 10]),
        ("coalesce(b, 1 / i > 0)", [True, False, None, True]),
        ("coalesce(l, cast(s as bigint))", [2**63 - 1, 5, 7, 7]),
        ("i in (0, 1, 5 / i)", [True, True, None, False]),
        ("null + 1 / i", [None] * 4),
        ("try_cast(s as int)", [12, None, None, 7]),
        ("coalesce(try_cast(s as int), 0)", [12, 0, 0, 7]),
    ],
)
def test_what_spark_would_not_evaluate_does_not_fail(text, expected):
    assert values(text) == expected


def test_the_other_order_fails():
    assert reasons("1 / i > 0.6 and i <> 0")[1] == "division by zero"
    assert reasons("coalesce(1 / i, 2)")[1] == "division by zero"
    assert reasons("isnull(1 / i)")[1] == "division by zero"


def test_columns_with_dots_and_fields():
    assert values("a.size * 2") == [20, 40, 60, 80]
    assert values("`a.size` + 1") == [11, 21, 31, 41]
    assert values("r.n + 1") == [2, 1, None, None]
    assert values("upper(r.in.m)") == ["A", "B", None, None]
    scalar = compile_scalar("a.size + i", TYPES)
    assert (scalar.type, scalar.columns) == ("bigint", ("a.size", "i"))
    assert compile_scalar("r.n", TYPES).columns == ("r",)


def test_types_that_are_not_known_are_those_of_the_frame():
    some = {**TYPES, "l": "unknown", "r": "unknown"}
    scalar = compile_scalar("l + r.n", some)
    assert (scalar.type, scalar.columns) == ("unknown", ("l", "r"))
    assert scalar(ROWS)[1].to_list() == ["bigint overflow", None, None, None]
    narrow = ROWS.with_columns(pl.Series("l", [1, 2, 3, 4], dtype=pl.Int16))
    assert compile_scalar("l * 2", some)(narrow)[0].dtype == pl.Int32
    assert compile_scalar("a.size", {})(ROWS)[0].to_list() == [10, 20, 30, 40]
    assert compile_scalar("i > 0", {"i": "int"}).type == "boolean"


def test_constants_fill_the_frame():
    assert values("5") == [5] * 4
    assert values("null") == [None] * 4
    assert values("concat('a', 'b')") == ["ab"] * 4
    found, why = compile_scalar("1 + 1", {})(ROWS.clear())
    assert (len(found), found.dtype, why) == (0, pl.Int32, None)


@pytest.mark.parametrize(
    "text", ["i", "i + 1", "1 / i", "cast(s as timestamp)", "round(x, 2)", "s like 'a%'", "i > 0"]
)
def test_empty_frames(text):
    scalar = compile_scalar(text, TYPES)
    found, why = scalar(ROWS.clear())
    assert (len(found), why) == (0, None)
    assert found.dtype == scalar(ROWS)[0].dtype


def test_passing_counts_null_as_false():
    found, why = passing(compile_scalar("b", TYPES), ROWS)
    assert (found.to_list(), why) == ([True, False, False, True], None)
    found, why = passing(compile_scalar("1 / i > 0", TYPES), ROWS)
    assert found.to_list() == [True, False, False, True]
    assert why is not None
    assert why[1] == "division by zero"
    assert passing(compile_scalar("null", TYPES), ROWS)[0].to_list() == [False] * 4
    with pytest.raises(InputError):
        passing(compile_scalar("i + 1L", TYPES), ROWS)


def test_trees_are_not_changed():
    text = "coalesce(try_cast(s as int), i + 1, 7) > 3 and s like 'a%'"
    tree = parse_expression(text).tree
    assert tree is not None
    before = repr(tree)
    compile_tree(tree, TYPES)(ROWS)
    assert repr(tree) == before


def test_long_chains_and_deep_nesting():
    chain = " or ".join(f"i = {n}" for n in range(2000))
    assert values(chain) == [True, True, None, False]
    nested = "x"
    for _ in range(12):
        nested = f"round({nested}, 2)"
    assert values(nested)[0] == 0.5
    total = " + ".join(["l"] * 60)
    found, why = compile_scalar(total, TYPES)(ROWS)
    assert found.to_list() == [None, 300, 420, None]
    assert why is not None


def test_long_expressions_do_not_take_exponential_time():
    text = "i"
    for _ in range(30):
        text = f"pmod({text}, 1000) + case when i > 0 then 1 else 2 end"
    assert values(text)[0] == 31


@pytest.mark.parametrize(
    "text",
    [
        "s + true",
        "b + 1",
        "'a' + 'b'",
        "if(i, 1, 2)",
        "i and b",
        "greatest(i, s)",
        "cast(b as timestamp)",
        "cast(i as date)",
        "sqrt(b)",
        "md5(i)",
        "not i",
        "x div 2",
        "x & 1",
        "case when b then 1 else true end",
        "s rlike '(?=a)'",
        "s rlike 'a++'",
        "to_timestamp(s, 'QQQ')",
        "to_timestamp(s, s)",
        "round(x, i)",
        "date_trunc('eon', s)",
        "missing + 1",
        "r.missing",
        "i in (true)",
        "'it''s'",
        "interval 1 month + interval 1 day",
        "1 + interval 1 day",
        "cast(s as array<int>)",
        "year(i)",
        "123456789012345678901234567890123456789 + 1",
        "nosuch(i)",
        "i +",
    ],
)
def test_what_spark_or_we_refuse(text):
    rows, types = ROWS, TYPES
    with pytest.raises(InputError) as error:
        compile_scalar(text, types)(rows)
    assert error.value.problems[0].rule


def test_times():
    rows = pl.DataFrame(
        {"t": [dt.datetime(2020, 2, 29, 13, 14, 15, 500_000, tzinfo=dt.UTC), None]},
        schema={"t": pl.Datetime("us", "UTC")},
    )
    types = {"t": "timestamp"}
    assert values("date_trunc('month', t)", types, rows)[0] == dt.datetime(2020, 2, 1, tzinfo=dt.UTC)
    assert values("t + interval 1 year", types, rows)[0].isoformat() == "2021-02-28T13:14:15.500000+00:00"
    assert values("cast(t as string)", types, rows) == ["2020-02-29 13:14:15.5", None]
    assert values("dayofweek(t)", types, rows) == [7, None]
    assert values("t - timestamp '2020-02-29 13:14:15' < interval 1 second", types, rows) == [True, None]
