"""Kernels by kind: every kind that runs is there, the others are refused by name."""

from importlib import import_module

import polars as pl
import pytest

from levelwind.errors import InputError, LevelwindError
from levelwind.model import Column, Operator, Port
from levelwind.model.operator import KINDS, Custom, Filter, Map, Model, SqlRead, SqlWrite, Union
from levelwind.operators.registry import MAKERS, make_kernel
from levelwind.operators.rows import BEGINNING, ORDER, Arrived, RowType
from levelwind.operators.state import EMPTY

ROWS = RowType((Column(name="ts", type="timestamp"), Column(name="n", type="bigint")), "ts")
RUN = {
    "filter": (Filter(where="n > 0"), 1),
    "map": (Map(select={"m": "n"}), 1),
    "union": (Union(), 2),
    "custom": (Custom(function="user_functions:double", schema=(Column(name="twice", type="bigint"),)), 1),
    "model": (Model(), 1),
}


def operator(spec, inputs=1):
    return Operator(name="o", spec=spec, inputs=tuple(Port(source=f"s{i}") for i in range(inputs)))


def frame():
    return pl.DataFrame({"ts": pl.Series([1], dtype=pl.Datetime("us", "UTC")), "n": [4]})


@pytest.mark.parametrize("kind", RUN)
def test_each_kind_has_its_kernel(kind):
    spec, inputs = RUN[kind]
    kernel = make_kernel(operator(spec, inputs), [ROWS] * inputs)
    assert type(kernel).__module__ == f"levelwind.operators.{kind}"
    stepped = kernel.step(EMPTY, [Arrived(frame(), BEGINNING)] * inputs)
    assert stepped.outputs[None].height == inputs


@pytest.mark.parametrize("spec", [SqlRead(), SqlWrite()], ids=["sql_read", "sql_write"])
def test_a_kind_that_does_not_run_is_refused_by_name(spec):
    with pytest.raises(LevelwindError, match=f"'o'.*{spec.kind}.*is not run yet"):
        make_kernel(operator(spec), [ROWS])


def test_only_kinds_that_exist_are_named():
    # What a spread join is made of is never written in a file.
    assert set(MAKERS) - set(KINDS) == {"diffusion", "join_part", "fusion"}
    assert set(KINDS) - set(MAKERS) == {"sql_read", "sql_write"}


@pytest.mark.parametrize("kind", MAKERS)
def test_every_named_function_is_there(kind):
    module, _, name = MAKERS[kind].partition(":")
    assert callable(getattr(import_module(module), name))


def test_a_bad_expression_names_its_operator():
    with pytest.raises(InputError) as caught:
        make_kernel(operator(Filter(where="n + ")), [ROWS])
    assert [problem.key for problem in caught.value.problems] == ["operators.o"]


def test_a_union_is_told_its_sources():
    kernel = make_kernel(operator(Union(), 2), [ROWS] * 2, leaves=[3, 1])
    rows = frame().with_columns(pl.Series(ORDER, [0], dtype=pl.Int64))
    order = kernel.step(EMPTY, [Arrived(rows, BEGINNING)] * 2).outputs[None][ORDER]
    assert order.to_list() == [0, 3 << 48]
