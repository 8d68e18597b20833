"""Expressions give what real Spark gives in ANSI mode: types, values, and which rows fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl
import pytest
from expression_cases import CASES, FUNCTIONS
from expression_table import TYPES, table
from expression_trees import expressions
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from spark_oracle import Answer, Oracle, plain, same

from levelwind.errors import InputError
from levelwind.frontend.expressions import parse_expression
from levelwind.frontend.functions import SCALARS
from levelwind.frontend.inference import infer_type
from levelwind.operators.expressions import compile_scalar


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    found = Oracle()
    yield found
    found.stop()


def differences(text: str, rows: pl.DataFrame, answer: Answer) -> list[str]:
    """How our result differs from Spark's, in words."""
    scalar = compile_scalar(text, TYPES)
    values, reasons = scalar(rows)
    assert len(values) == rows.height
    found = []
    kind = "interval" if answer.type.startswith("interval") else answer.type
    if scalar.type != kind:
        found.append(f"{text}: type {scalar.type}, Spark {answer.type}")
    tree = parse_expression(text).tree
    if tree is not None and infer_type(tree, TYPES) not in ("unknown", kind):
        found.append(f"{text}: inferred as {infer_type(tree, TYPES)}, Spark {answer.type}")
    ours = plain(values)
    failed = [None] * rows.height if reasons is None else reasons.to_list()
    for at, (mine, reason, theirs, bad) in enumerate(
        zip(ours, failed, answer.values, answer.failed, strict=True)
    ):
        if reason is not None and mine is not None:
            found.append(f"{text}: row {at} failed and has a value")
        if (reason is not None) != bad or (not bad and not same(mine, theirs)):
            row = {name: rows.get_column(name).to_physical()[at] for name in scalar.columns}
            found.append(
                f"{text}: {reason or repr(mine)}, Spark {'fails' if bad else repr(theirs)} for {row}"
            )
            break
    return found


def check(texts: Sequence[str], rows: pl.DataFrame, oracle: Oracle) -> None:
    answers = oracle.evaluate(rows, texts)
    found = [
        line for text, answer in zip(texts, answers, strict=True) for line in differences(text, rows, answer)
    ]
    assert not found, "\n".join(found[:20])


def test_every_function_has_a_case():
    assert set(SCALARS) - set(FUNCTIONS) == set()
    for name, texts in FUNCTIONS.items():
        assert texts, name


def test_compiled_types_are_the_ones_found_from_the_frame():
    rows = table(rows=40)
    for text in CASES[::7]:
        known, found = compile_scalar(text, TYPES), compile_scalar(text, {})
        ours, others = known(rows), found(rows)
        assert found.type == ("unknown" if known.columns else known.type)
        assert ours[0].dtype == others[0].dtype, text
        assert [same(a, b) for a, b in zip(plain(ours[0]), plain(others[0]), strict=True)].count(False) == 0
        assert (ours[1] is None) == (others[1] is None)


def test_rows_do_not_depend_on_their_company():
    """Rows one by one, or without those that fail, give what they give all together."""
    rows = table(rows=40)
    for text in CASES[::11]:
        scalar = compile_scalar(text, TYPES)
        values, reasons = scalar(rows)
        whole = plain(values)
        failed = [None] * rows.height if reasons is None else reasons.to_list()
        for at in range(0, rows.height, 3):
            value, reason = scalar(rows[at : at + 1])
            assert value.dtype == values.dtype
            assert same(plain(value)[0], whole[at]), text
            assert (None if reason is None else reason[0]) == failed[at], text
        empty, nothing = scalar(rows.clear())
        assert (len(empty), empty.dtype, nothing) == (0, values.dtype, None), text


@pytest.mark.spark
def test_cases(oracle):
    check(CASES, table(), oracle)


@pytest.mark.spark
# Not shrunk: each try is a query of its own.
@settings(max_examples=4, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(texts=st.lists(expressions(), min_size=60, max_size=60), seed=st.integers(0, 10**6))
def test_random_trees(oracle, texts, seed):
    rows, accepted = table(rows=60, seed=seed), []
    for text in texts:
        try:
            compile_scalar(text, TYPES)
            accepted.append(text)
        except InputError:
            assert oracle.refuses(rows, text), text
    check(accepted, rows, oracle)
