"""Expressions: what is let through, what type comes out."""

from __future__ import annotations

import subprocess
import sys

import pytest

from levelwind.frontend.expressions import parse_expression
from levelwind.frontend.functions import AGGREGATES, SUPPORTED
from levelwind.frontend.inference import infer_type

TYPES = {
    "i": "int",
    "size": "bigint",
    "d": "double",
    "s": "string",
    "ts": "timestamp",
    "b": "boolean",
    "dec": "decimal(10,2)",
    "busy.src": "string",
}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("i + 1", "int"),
        ("i + size", "bigint"),
        ("i / 2", "double"),
        ("i * d", "double"),
        ("i % 2", "int"),
        ("i div 2", "bigint"),
        ("-i", "int"),
        ("(i)", "int"),
        ("size / 1024.0", "decimal(27,6)"),
        ("dec * 2", "decimal(12,2)"),
        ("dec + dec", "decimal(11,2)"),
        ("dec / 3", "decimal(14,6)"),
        ("dec / dec", "decimal(23,13)"),
        ("dec * dec * dec * dec * dec", "decimal(38,6)"),
        ("dec * d", "double"),
        ("1.5", "decimal(2,1)"),
        ("1e3", "double"),
        ("3000000000", "bigint"),
        ("s || 'x'", "string"),
        ("s like 'a%'", "boolean"),
        ("s rlike 'a'", "boolean"),
        ("i between 1 and 2", "boolean"),
        ("i in (1, 2)", "boolean"),
        ("i is not null", "boolean"),
        ("i <=> 2", "boolean"),
        ("not b", "boolean"),
        ("i is distinct from 2", "boolean"),
        ("case when b then 1 else 2.5e0 end", "double"),
        ("if(b, i, size)", "bigint"),
        ("coalesce(i, null)", "int"),
        ("nvl(s, 'x')", "string"),
        ("cast(s as int)", "int"),
        ("try_cast(s as decimal(10, 2))", "decimal(10,2)"),
        ("int(s)", "int"),
        ("ts + interval 1 hour", "timestamp"),
        ("ts - interval '10' seconds", "timestamp"),
        ("ts - ts", "unknown"),
        ("date_trunc('hour', ts)", "timestamp"),
        ("hour(ts)", "int"),
        ("unix_timestamp(ts)", "bigint"),
        ("abs(i)", "int"),
        ("sqrt(i)", "double"),
        ("floor(d)", "bigint"),
        ("round(d, 2)", "double"),
        ("length(s)", "int"),
        ("upper(s)", "string"),
        ("greatest(i, size)", "bigint"),
        ("hash(i, s)", "int"),
        ("busy.src", "string"),
        ("`busy.src`", "string"),
        ("nothing", "unknown"),
        ("null", "void"),
        ("count(*)", "bigint"),
        ("count(distinct s)", "bigint"),
        ("sum(i)", "bigint"),
        ("sum(d)", "double"),
        ("sum(dec)", "decimal(20,2)"),
        ("avg(i)", "double"),
        ("avg(dec)", "decimal(14,6)"),
        ("mean(i)", "double"),
        ("max(ts)", "timestamp"),
        ("min(s)", "string"),
        ("stddev(i)", "double"),
        ("first(s)", "string"),
        ("sum(i) / count(*)", "double"),
        ("10L", "bigint"),
        ("i & 3", "int"),
    ],
)
def test_types(text: str, kind: str) -> None:
    parsed = parse_expression(text)
    assert parsed.faults == ()
    assert parsed.tree is not None
    assert infer_type(parsed.tree, TYPES) == kind


@pytest.mark.parametrize(
    "text",
    [
        "",
        "i +",
        "(",
        "'open",
        "a b",
        "a as b",
        "1; 2",
        "select 1",
        "(select 1)",
        "exists (select 1)",
        "i in (select 1)",
        "i in ()",
        "sum(i) over ()",
        "x -> x + 1",
        "transform(a, x -> x)",
        "*",
        "a.*",
        "rand()",
        "current_timestamp()",
        "current_date",
        "uuid()",
        "s[0]",
        "@x",
        ":x",
        "?",
        "sum(*)",
        "sum(distinct i)",
        "sum(i) filter (where b)",
        "abs()",
        "abs(1, 2)",
        "pmod(1)",
        "`rand`()",
        "drop table x",
        "explode(a)",
        "named_struct('a', 1)",
        "cast(i as nonsense)",
        "monotonically_increasing_id()",
        "a = = b",
    ],
)
def test_refused(text: str) -> None:
    faults = parse_expression(text).faults
    assert faults
    assert all(fault.rule for fault in faults)


@pytest.mark.parametrize("name", sorted(SUPPORTED))
def test_every_supported_function_is_let_through(name: str) -> None:
    function = SUPPORTED[name]
    arguments = "a as int" if function.result == "cast" else ", ".join("abcd"[: function.least])
    parsed = parse_expression(f"{name}({arguments})")
    assert parsed.faults == ()
    assert parsed.tree is not None
    assert parsed.aggregates == (name in AGGREGATES)
    assert infer_type(parsed.tree, {})


def test_names_are_told_as_written() -> None:
    (fault,) = parse_expression("medain(i)").faults
    assert fault.value == "medain"
    assert "mean" in (fault.hint or "")


def test_columns_inside_and_outside_aggregates() -> None:
    parsed = parse_expression("sum(a + b) / first(a.x) + c")
    assert parsed.inside == ("a", "b", "a.x")
    assert parsed.outside == ("c",)


@pytest.mark.parametrize("text", ["(" * 3000 + "1" + ")" * 3000, "+".join(["i"] * 20_000)])
def test_deep_expressions_do_not_crash(text: str) -> None:
    parse_expression(text)


def test_sqlglot_is_imported_only_for_expressions() -> None:
    code = (
        "import sys, levelwind.frontend as f\n"
        "f.parse_network({'operators': [{'name': 'o', 'kind': 'model', 'series': [1]}]})\n"
        "assert 'sqlglot' not in sys.modules and 'numpy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
