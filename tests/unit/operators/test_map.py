"""Maps: against DuckDB, the time column and the hidden order carried along, failing rows rejected."""

import duckdb
import polars as pl
import pytest
from cutting import cut_places, run
from hypothesis import given
from hypothesis import strategies as st

from levelwind.model import Column, Operator, Port
from levelwind.model.operator import Map
from levelwind.operators.map import make_map
from levelwind.operators.rows import BEGINNING, ORDER, Arrived, RowType
from levelwind.operators.state import EMPTY

TYPES = {"ts": "timestamp", "a": "bigint", "b": "bigint", "text": "string"}
ROWS = RowType(tuple(Column(name=name, type=kind) for name, kind in TYPES.items()), "ts")
EXPRESSIONS = [
    "a",
    "a + b",
    "a * 2 - b",
    "-a",
    "upper(text)",
    "coalesce(a, b, 0)",
    "a > b",
    "case when a > 2 then 'big' when a > 0 then 'small' else text end",
    "length(text)",
    "a is null",
    "abs(a - b)",
    "7",
    "'word'",
]
VALUES = st.none() | st.integers(-4, 4)
TABLE = st.lists(st.tuples(VALUES, VALUES, st.none() | st.sampled_from(["x", "yz", "", "ä"])), max_size=12)


def make(rows=ROWS, **select):
    return make_map(Operator(name="m", spec=Map(select=select), inputs=(Port(source="s"),)), [rows])


def frame(values):
    a, b, text = zip(*values, strict=True) if values else ((), (), ())
    return pl.DataFrame(
        {
            "ts": pl.Series(range(len(values)), dtype=pl.Datetime("us", "UTC")),
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


def asked(database, values, expressions):
    database.execute("DELETE FROM rows")
    if values:
        database.executemany(
            "INSERT INTO rows VALUES (?, ?, ?, ?)", [(i, *row) for i, row in enumerate(values)]
        )
    return database.execute(f"SELECT {', '.join(expressions)} FROM rows ORDER BY id").fetchall()


@given(st.data(), TABLE, st.lists(st.sampled_from(EXPRESSIONS), min_size=1, max_size=4))
def test_columns_are_those_of_duckdb_however_batches_are_cut(database, data, values, expressions):
    rows = frame(values)
    select = {f"c{i}": text for i, text in enumerate(expressions)}
    outputs, rejected, state = run(make(**select), [rows], data.draw(cut_places([rows.height])))
    assert outputs[None].columns == [*select, "ts"]
    assert outputs[None].drop("ts").rows() == asked(database, values, expressions)
    assert outputs[None]["ts"].equals(rows["ts"])
    assert rejected == []
    assert state is EMPTY


FAILING = [(6, 2, "1"), (1, 0, "2"), (None, 0, "x"), (4, None, "4"), (8, 0, "y")]


def test_a_row_on_which_an_expression_fails_is_rejected_with_the_first_reason():
    kernel = make(ratio="a / b", number="cast(text as int)")
    outputs, rejected, _ = run(kernel, [frame(FAILING)])
    assert outputs[None].select("ratio", "number").rows() == [(3.0, 1), (None, 4)]
    assert outputs[None]["ts"].to_physical().to_list() == [0, 3]
    assert [row[1:] for row, _ in rejected] == [FAILING[1], FAILING[2], FAILING[4]]
    first, second, third = [reason.lower() for _, reason in rejected]
    assert "zero" in first
    assert "zero" not in second
    assert "zero" in third  # both fail: the first in written order is told


@given(st.data())
def test_rejections_do_not_depend_on_batches(data):
    kernel, rows = make(ratio="a / b", number="cast(text as int)"), frame(FAILING)
    whole, bad, _ = run(kernel, [rows])
    cut, cut_bad, _ = run(kernel, [rows], data.draw(cut_places([rows.height])))
    assert cut[None].equals(whole[None])
    assert cut_bad == bad


def test_a_time_column_that_is_selected_stands_where_it_is_written():
    outputs, _, _ = run(make(x="a", ts="ts", y="b"), [frame(FAILING)])
    assert outputs[None].columns == ["x", "ts", "y"]


def test_rows_without_a_time_column():
    bare = RowType(ROWS.schema[1:], None)
    outputs, _, _ = run(make(bare, x="a + 1"), [frame(FAILING).drop("ts")])
    assert outputs[None].columns == ["x"]
    assert outputs[None]["x"].to_list() == [7, 2, None, 5, 9]


def test_columns_may_swap_names():
    outputs, _, _ = run(make(a="b", b="a"), [frame(FAILING)])
    assert outputs[None]["a"].to_list() == [2, 0, 0, None, 0]
    assert outputs[None]["b"].to_list() == [6, 1, None, 4, 8]


def test_the_hidden_order_goes_along():
    rows = frame(FAILING).with_columns(pl.Series(ORDER, [9, 8, 7, 6, 5], dtype=pl.Int64))
    kernel = make(ratio="a / b")
    outputs, rejected, _ = run(kernel, [rows], [[0], [2]])
    assert outputs[None].columns == ["ratio", "ts", ORDER]
    assert outputs[None][ORDER].to_list() == [9, 7, 6]
    assert [row[-1] for row, _ in rejected] == [8, 5]
    # frames with and without it may meet the same kernel
    assert run(kernel, [frame(FAILING)], [[0]])[0][None].columns == ["ratio", "ts"]


def test_what_comes_of_no_rows_is_computed_once():
    kernel = make(ratio="a / b", word="'w'")
    nothing = kernel.step(EMPTY, [Arrived(frame([]), BEGINNING)]).outputs[None]
    some = kernel.step(EMPTY, [Arrived(frame(FAILING[:1]), BEGINNING)]).outputs[None]
    assert nothing.schema == some.schema
    assert kernel.step(EMPTY, [Arrived(frame([]), BEGINNING)]).outputs[None] is nothing
