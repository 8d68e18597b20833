"""Custom operators: forms of functions, state, failing rows, and what is said of wrong results."""

import datetime as dt
import sys
import types

import polars as pl
import pytest
import user_functions
from cutting import cut_places, run
from hypothesis import given
from hypothesis import strategies as st

from levelwind.errors import InputError, LevelwindError
from levelwind.model import Column, Operator, Port
from levelwind.model.operator import Custom
from levelwind.operators.custom import make_custom
from levelwind.operators.rows import BEGINNING, END, ORDER, Arrived, RowType
from levelwind.operators.state import EMPTY
from levelwind.operators.types import dtype_of

ROWS = RowType((Column(name="ts", type="timestamp"), Column(name="n", type="bigint")), "ts")
MODULE = "user_functions"


@pytest.fixture(autouse=True)
def no_calls():
    user_functions.calls.clear()


def custom(name, *, module=MODULE, **schema):
    columns = tuple(Column(name=n, type=t) for n, t in (schema or {"twice": "bigint"}).items())
    spec = Custom(function=f"{module}:{name}", schema=columns)
    return make_custom(Operator(name="score", spec=spec, inputs=(Port(source="s"),)), [ROWS])


def frame(numbers, *, ordered=False, first=0):
    places = range(first, first + len(numbers))
    more = {ORDER: pl.Series([10 * i for i in places], dtype=pl.Int64)} if ordered else {}
    ts = pl.Series(places, dtype=pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts": ts, "n": pl.Series(numbers, dtype=pl.Int64), **more})


def out(name, numbers, cuts=(), **schema):
    outputs, rejected, state = run(custom(name, **schema), [frame(numbers)], cuts)
    return outputs[None], rejected, state


@pytest.mark.parametrize("name", ["double", "as_arrow", "as_batch", "as_dict", "Scores.double"])
def test_what_a_function_may_return(name):
    rows, rejected, state = out(name, [1, None, 3])
    assert rows.columns == ["twice", "ts"]
    assert rows["twice"].to_list() == [2, None, 6]
    assert rows["ts"].to_physical().to_list() == [0, 1, 2]
    assert rejected == []
    assert state is EMPTY


def test_a_function_that_returns_the_time_may_change_the_number_of_rows():
    rows, _, _ = out("per_row", [1, 0, None, 4])
    assert rows["ts"].to_physical().to_list() == [0, 3]


def test_a_time_column_that_is_declared_stands_where_it_is_declared():
    rows, _, _ = out("double", [1], ts="timestamp", twice="bigint")
    assert rows.columns == ["ts", "twice"]


def test_the_function_is_not_called_without_rows():
    kernel = custom("noting")
    stepped = kernel.step(EMPTY, [Arrived(frame([]), END)])
    assert user_functions.calls == []
    assert stepped.outputs[None].schema == {"twice": pl.Int64, "ts": pl.Datetime("us", "UTC")}
    assert kernel.step(EMPTY, [Arrived(frame([]), END)]).outputs[None] is stepped.outputs[None]


def test_the_order_is_hidden_from_the_function_and_carried_along():
    kernel = custom("noting")
    outputs, _, _ = run(kernel, [frame([5, 6, 7], ordered=True)], [[0], [1]])
    assert user_functions.calls == [["ts", "n"]] * 2
    assert outputs[None][ORDER].to_list() == [0, 10, 20]
    fewer, _, _ = run(custom("per_row"), [frame([5, 0, 7], ordered=True)])
    assert fewer[None][ORDER].to_list() == [20, 20]


NUMBERS = st.lists(st.none() | st.integers(-1, 5), max_size=12)


@given(st.data(), NUMBERS, st.sampled_from(["double", "per_row", "running", "at_the_end", "first_only"]))
def test_batches_do_not_matter(data, numbers, name):
    whole, bad, _ = out(name, numbers)
    cut, cut_bad, _ = out(name, numbers, data.draw(cut_places([len(numbers)])))
    assert cut.equals(whole)
    assert [row for row, _ in cut_bad] == [row for row, _ in bad]


@given(NUMBERS)
def test_failing_rows_are_rejected_and_no_others(numbers):
    rows, rejected, _ = out("double", numbers)
    assert rows["twice"].to_list() == [n and n * 2 for n in numbers if n is None or n >= 0]
    assert [row[1] for row, _ in rejected] == [n for n in numbers if n is not None and n < 0]
    assert {reason for _, reason in rejected} <= {"ValueError: negative: -1"}


@given(NUMBERS)
def test_failing_rows_leave_no_trace_in_the_state(numbers):
    rows, rejected, _ = out("running", numbers)
    sound = [n or 0 for n in numbers if n is None or n >= 0]
    assert rows["twice"].to_list() == [sum(sound[: i + 1]) for i in range(len(sound))]
    assert len(rejected) == len(numbers) - len(sound)
    assert all(reason == "ValueError: negative" for _, reason in rejected)


def test_rejected_rows_keep_what_was_hidden():
    kernel = custom("double")
    [bad] = kernel.step(EMPTY, [Arrived(frame([-1], ordered=True), BEGINNING)]).rejected
    assert bad.rows.columns == ["ts", "n", ORDER]


def test_a_function_that_fails_on_every_row():
    rows, rejected, state = out("double", [-1] * 9)
    assert rows.schema == {"twice": pl.Int64, "ts": pl.Datetime("us", "UTC")}
    assert rows.height == 0
    assert len(rejected) == 9
    assert state is EMPTY


def test_no_row_is_to_blame_for_a_full_memory():
    with pytest.raises(MemoryError):
        out("too_much", [1, 2])


def test_state_is_one_segment_and_an_unchanged_one_stays():
    _, _, state = out("running", [1, 2, 3], [[1], [2]])
    [segment] = state.segments()
    assert segment.frame.rows() == [(6,)]
    kernel = custom("first_only")
    one = kernel.step(EMPTY, [Arrived(frame([4]), BEGINNING)]).state
    assert [s.frame["n"].to_list() for s in one.segments()] == [[4]]
    two = kernel.step(one, [Arrived(frame([5]), BEGINNING)]).state
    assert two is one


def test_a_step_does_not_change_the_state_it_was_given():
    kernel = custom("grows_in_place")
    one = kernel.step(EMPTY, [Arrived(frame([4]), BEGINNING)]).state
    two = kernel.step(one, [Arrived(frame([5]), BEGINNING)]).state
    assert [s.frame["n"].to_list() for s in one.segments()] == [[4]]
    assert [s.frame["n"].to_list() for s in two.segments()] == [[4, 5]]


def test_a_state_may_be_given_up():
    _, _, state = out("forgets", [1, 2], [[1]])
    assert list(state.segments()) == []
    _, _, state = out("forgets", [1, 2, 3], [[1], [2]])
    assert [segment.frame["n"].to_list() for segment in state.segments()] == [[3]]


def test_closing_comes_once_after_the_last_row():
    kernel = custom("at_the_end")
    outputs, _, state = run(kernel, [frame([3, 1, 2])], [[2]])
    assert outputs[None]["twice"].to_list() == [1, 2, 3]
    assert user_functions.calls == [(2, False), (1, False), (0, True)]
    again = kernel.step(state, [Arrived(frame([]), END)])
    assert user_functions.calls[3:] == []
    assert again.state is state
    assert again.outputs[None].height == 0


def test_closing_comes_again_after_a_run_is_taken_up_again():
    kernel = custom("at_the_end")
    _, _, state = run(kernel, [frame([3])])
    state = kernel.step(state, [Arrived(frame([]), 5)]).state
    assert list(state.segments()) == []
    outputs, _, _ = run(kernel, [frame([7])], state=state)
    assert outputs[None]["twice"].to_list() == [7]


def test_closing_without_any_rows():
    outputs, _, _ = run(custom("at_the_end"), [frame([])])
    assert user_functions.calls == [(0, True)]
    assert outputs[None].height == 0


def test_a_failure_when_closing_is_an_error():
    with pytest.raises(LevelwindError, match=r"'score'.*user_functions:closing_fails.*RuntimeError.*no end"):
        out("closing_fails", [1])


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("nowhere_at_all:f", "there is no module 'nowhere_at_all'"),
        (f"{MODULE}:doubel", "did you mean 'double'?"),
        (f"{MODULE}:NOT_A_FUNCTION", "it is a int"),
        (f"{MODULE}:three", "(rows, state, more)"),
        (f"{MODULE}:needs_option", "(rows, *, option)"),
        (MODULE, None),
        ("broken_at_import:f", "ZeroDivisionError"),
    ],
)
def test_a_function_that_cannot_be_called_is_an_input_error(path, hint, tmp_path, monkeypatch):
    (tmp_path / "broken_at_import.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    spec = Custom(function=path, schema=(Column(name="twice", type="bigint"),))
    with pytest.raises(InputError) as caught:
        make_custom(Operator(name="score", spec=spec, inputs=(Port(source="s"),)), [ROWS])
    [problem] = caught.value.problems
    assert problem.key == "operators.score.function"
    assert problem.value == path
    assert (hint is None and problem.hint is None) or hint in problem.hint


@pytest.fixture
def returning(monkeypatch):
    """Makes a kernel of a function that returns a fixed thing."""

    def make(thing, **schema):
        module = types.ModuleType("made_for_test")
        module.function = lambda rows: thing
        monkeypatch.setitem(sys.modules, "made_for_test", module)
        return custom("function", module="made_for_test", **schema)

    return make


WRONG = [
    ({"once": [1, 2]}, "'once'", "no such column"),
    ({"twice": [1, 2], "more": [1, 2]}, "'more'", "declared: twice, ts"),
    ({"twice": ["1", "2"]}, "'twice'", "expected Int64, found String"),
    ({"twice": [1.5, 2.0]}, "'twice'", "expected Int64, found Float64, with values that do not fit"),
    ({"twice": [2.0**63, 1.0]}, "'twice'", "expected Int64, found Float64, with values that do not fit"),
    ({"twice": [True, False]}, "'twice'", "expected Int64, found Boolean"),
    ({"twice": [1]}, "'ts'", "1 rows for 2"),
    ({"twice": [1, 2], "ts": [dt.datetime(2024, 1, 1), None]}, "'ts'", "found null"),
    ({"twice": [1, 2], "ts": [1, 2]}, "'ts'", "found Int64"),
]


@pytest.mark.parametrize(("thing", "column", "found"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_result_names_operator_column_and_types(returning, thing, column, found):
    with pytest.raises(LevelwindError) as caught:
        run(returning(thing), [frame([1, 2])])
    message = str(caught.value)
    assert "operator 'score'" in message
    assert "made_for_test:function" in message
    assert column in message
    assert found in message


@pytest.mark.parametrize("thing", [None, 3, [1, 2], pl.Series([1, 2]), {"twice": [1, 2], "ts": [1]}])
def test_what_is_no_table_is_refused(returning, thing):
    with pytest.raises(LevelwindError, match="operator 'score': made_for_test:function must return a frame"):
        run(returning(thing), [frame([1, 2])])


def test_a_function_with_state_must_return_a_pair():
    with pytest.raises(LevelwindError, match="must return a pair"):
        out("pair_missing", [1, 2])


@pytest.mark.parametrize(
    ("values", "declared", "wanted"),
    [
        (pl.Series([1, None], dtype=pl.Int8), "bigint", [1, None]),
        (pl.Series([1, None], dtype=pl.Int64), "tinyint", [1, None]),
        (pl.Series([1.0, None]), "int", [1, None]),
        (pl.Series([1, None]), "double", [1.0, None]),
        (pl.Series([0.5, float("nan")]), "float", [0.5, float("nan")]),
        (pl.Series([None, None]), "string", [None, None]),
        (pl.Series(["a", None], dtype=pl.Categorical), "string", ["a", None]),
        (pl.Series([dt.date(2024, 1, 2), None]), "timestamp", [dt.datetime(2024, 1, 2, tzinfo=dt.UTC), None]),
        (pl.Series([[1], None]), "array<bigint>", [[1], None]),
    ],
    ids=range(9),
)
def test_types_are_cast_where_nothing_is_lost(returning, values, declared, wanted):
    outputs, _, _ = run(returning({"twice": values}, twice=declared), [frame([1, 2])])
    assert outputs[None]["twice"].equals(
        pl.Series("twice", wanted, dtype=dtype_of(declared)), check_dtypes=True
    )
    stepped = returning({}, twice=declared).step(EMPTY, [Arrived(frame([]), BEGINNING)])
    assert declared.startswith("array") or stepped.outputs[None].schema == outputs[None].schema


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_are_utc_whatever_zone_or_unit_the_function_returns(returning, zone, unit):
    moment = pl.Series([dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)] * 2, dtype=pl.Datetime(unit, "UTC"))
    given = moment.dt.replace_time_zone(None) if zone is None else moment.dt.convert_time_zone(zone)
    outputs, _, _ = run(returning({"twice": [1, 2], "ts": given}), [frame([1, 2])])
    assert outputs[None]["ts"].dtype == pl.Datetime("us", "UTC")
    assert outputs[None]["ts"].to_list() == moment.to_list()
