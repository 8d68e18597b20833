"""Filters: against DuckDB, with nulls, routes in written order, and conditions that fail on a row."""

import duckdb
import polars as pl
import pytest
from cutting import cut_places, run
from hypothesis import given
from hypothesis import strategies as st

from levelwind.model import Column, Operator, Port
from levelwind.model.operator import Filter
from levelwind.operators.filter import Keeper, Router, make_filter
from levelwind.operators.rows import BEGINNING, ORDER, Arrived, RowType
from levelwind.operators.state import EMPTY

TYPES = {"ts": "timestamp", "id": "bigint", "a": "bigint", "b": "bigint", "text": "string"}
ROWS = RowType(tuple(Column(name=name, type=kind) for name, kind in TYPES.items()), "ts")
# The same words mean the same in both languages.
CONDITIONS = [
    "a > 2",
    "a > b",
    "a = b or text = 'x'",
    "not (a < b)",
    "a is null",
    "text is not null and a + b >= 3",
    "a in (1, 2)",
    "text in ('x', 'y') and a <> 1",
    "a between 1 and 3",
    "case when a > 2 then b < 2 else text = 'x' end",
    "coalesce(a, b) = 1",
    "true",
    "false",
]
VALUES = st.none() | st.integers(0, 4)
TABLE = st.lists(st.tuples(VALUES, VALUES, st.none() | st.sampled_from(["x", "y", "", "ä"])), max_size=12)


def make(where=None, **routes):
    spec = Filter(routes=routes) if routes else Filter(where=where)
    return make_filter(Operator(name="f", spec=spec, inputs=(Port(source="s"),)), [ROWS])


def frame(values):
    a, b, text = zip(*values, strict=True) if values else ((), (), ())
    ids = range(len(values))
    return pl.DataFrame(
        {
            "ts": pl.Series(ids, dtype=pl.Datetime("us", "UTC")),
            "id": pl.Series(ids, dtype=pl.Int64),
            "a": pl.Series(a, dtype=pl.Int64),
            "b": pl.Series(b, dtype=pl.Int64),
            "text": pl.Series(text, dtype=pl.String),
        }
    )


@pytest.fixture(scope="module")
def database():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE rows (id BIGINT, a BIGINT, b BIGINT, text VARCHAR)")
        yield connection


def filled(database, values):
    database.execute("DELETE FROM rows")
    if values:
        database.executemany(
            "INSERT INTO rows VALUES (?, ?, ?, ?)", [(i, *row) for i, row in enumerate(values)]
        )


def asked(database, question):
    return [row[0] for row in database.execute(f"{question} ORDER BY id").fetchall()]


@given(st.data(), TABLE, st.sampled_from(CONDITIONS))
def test_where_keeps_what_duckdb_keeps_however_batches_are_cut(database, data, values, where):
    filled(database, values)
    rows = frame(values)
    outputs, rejected, state = run(make(where), [rows], data.draw(cut_places([rows.height])))
    assert outputs[None]["id"].to_list() == asked(database, f"SELECT id FROM rows WHERE {where}")
    assert outputs[None].schema == rows.schema
    assert rejected == []
    assert state is EMPTY


@given(st.data(), TABLE, st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=4))
def test_a_row_takes_the_first_route_that_holds(database, data, values, conditions):
    filled(database, values)
    rows = frame(values)
    routes = {f"r{i}": text for i, text in enumerate(conditions)}
    outputs, rejected, _ = run(make(**routes), [rows], data.draw(cut_places([rows.height])))
    branches = " ".join(f"WHEN {text} THEN '{route}'" for route, text in routes.items())
    assert list(outputs) == list(routes)
    for route in routes:
        wanted = asked(database, f"SELECT id FROM rows WHERE CASE {branches} END = '{route}'")
        assert outputs[route]["id"].to_list() == wanted
        assert outputs[route].schema == rows.schema
    assert rejected == []


FAILING = [(6, 2, "x"), (1, 0, "x"), (None, 0, "y"), (4, None, "z"), (8, 0, "y"), (2, 2, "x")]


def test_a_condition_that_fails_rejects_the_row():
    outputs, rejected, _ = run(make("a / b > 2"), [frame(FAILING)])
    assert outputs[None]["id"].to_list() == [0]
    assert [row[1] for row, _ in rejected] == [1, 4]
    assert all("zero" in reason.lower() for _, reason in rejected)


def test_a_row_cannot_fail_on_a_route_it_never_reaches():
    kernel = make(easy="text = 'x'", hard="a / b > 2", rest="true")
    outputs, rejected, _ = run(kernel, [frame(FAILING)])
    assert outputs["easy"]["id"].to_list() == [0, 1, 5]
    assert outputs["hard"]["id"].to_list() == []
    assert [row[1] for row, _ in rejected] == [4]
    assert outputs["rest"]["id"].to_list() == [2, 3]  # and a row that failed does not go on to the next


@given(st.data())
def test_rejections_do_not_depend_on_batches(data):
    rows = frame(FAILING)
    for kernel in (make("a / b > 2"), make(easy="text = 'x'", hard="a / b > 2")):
        whole, bad, _ = run(kernel, [rows])
        cut, cut_bad, _ = run(kernel, [rows], data.draw(cut_places([rows.height])))
        assert cut.keys() == whole.keys()
        assert all(cut[route].equals(whole[route]) for route in whole)
        assert sorted(cut_bad) == sorted(bad)


def test_hidden_columns_go_along():
    rows = frame(FAILING).with_columns(pl.Series(ORDER, range(6), dtype=pl.Int64))
    outputs, _, _ = run(make("a > 1"), [rows])
    assert outputs[None][ORDER].to_list() == [0, 3, 4, 5]


def test_without_rows_nothing_is_computed():
    empty = frame([])
    never = None  # not a condition: asking it would fail
    assert Keeper(never).step(EMPTY, [Arrived(empty, BEGINNING)]).outputs[None] is empty
    outputs = Router({"x": never, "y": never}).step(EMPTY, [Arrived(empty, BEGINNING)]).outputs
    assert outputs["x"] is empty
    assert outputs["y"] is empty


def test_a_filter_without_a_condition_passes_all():
    rows = frame(FAILING)
    assert run(make(None), [rows])[0][None].equals(rows)
