from __future__ import annotations

import math

import polars as pl
import pytest

from levelwind.errors import InputError
from levelwind.model import Column, Operator
from levelwind.model.operator import Aggregate, RowWindow
from levelwind.operators import row_windows
from levelwind.operators.row_windows import LATE, RowWindows
from levelwind.operators.rows import BEGINNING, END, ORDER, TIME, Arrived, RowType
from levelwind.operators.state import EMPTY

TYPES = {"ts": "timestamp", "g": "string", "x": "bigint", "y": "double"}
READ = RowType(tuple(Column(name=name, type=kind) for name, kind in TYPES.items()), "ts")
UNTIMED = RowType(READ.schema[1:], None)
XS = {"xs": "sum(x)", "n": "count(*)"}


def windows(size, slide=None, *, by=("g",), compute=XS, timeout=None, read=READ):
    window = RowWindow(rows=size, slide=slide or size)
    spec = Aggregate(
        window=window, compute=compute, by=by, timeout_s=None if timeout is None else timeout / 1e6
    )
    return RowWindows(Operator(name="w", spec=spec), read)


def rows(*given):
    """Rows from (time, group, x) or (time, group, x, y)."""
    full = [row if len(row) == 4 else (*row, 0.0) for row in given]
    schema = {"ts": pl.Int64, "g": pl.String, "x": pl.Int64, "y": pl.Float64}
    return pl.DataFrame(full, schema=schema, orient="row").with_columns(pl.col("ts").cast(TIME))


def step(kernel, given, watermark, state=EMPTY):
    return kernel.step(state, [Arrived(given, watermark)])


def out(stepped, *names):
    frame = stepped.outputs[None].with_columns(pl.selectors.datetime().to_physical())
    return sorted(frame.select(names or frame.columns).rows(), key=str)


def test_a_window_is_put_out_once_its_last_row_is_settled():
    kernel = windows(2)
    first = step(kernel, rows((1, "a", 1), (3, "a", 2)), 3)
    assert out(first) == []
    second = step(kernel, rows(), 4, first.state)
    assert out(second) == [("a", 3, 2, 1, 4, 3)]
    assert out(step(kernel, rows(), 9, second.state)) == []


def test_columns_and_their_types_are_the_same_with_and_without_rows():
    kernel = windows(1, by=("g", "y"))
    full = step(kernel, rows((1, "a", 1)), 9).outputs[None]
    assert full.columns == ["g", "y", "xs", "n", "window_start", "window_end", "window_time"]
    assert step(kernel, rows(), 9).outputs[None].schema == full.schema


def test_sliding_windows_overlap():
    stepped = step(windows(3, 2), rows(*((i, "a", 10**i) for i in range(6))), 6)
    assert out(stepped, "xs") == [(111,), (11100,)]
    rest = step(windows(3, 2), rows(), END, stepped.state)
    assert out(rest, "xs", "n") == [(110000, 2)]


def test_the_end_puts_out_every_window_that_has_a_row():
    stepped = step(windows(3, 1), rows((1, "a", 1), (2, "a", 10), (9, "b", 5)), END)
    assert out(stepped) == [("a", 10, 1, 2, 3, 2), ("a", 11, 2, 1, 3, 2), ("b", 5, 1, 9, 10, 9)]
    assert stepped.state.tables == {}


def test_without_groups_all_rows_are_one():
    stepped = step(windows(2, by=()), rows((1, "a", 1), (2, "b", 2)), 9)
    assert out(stepped, "xs") == [(3,)]
    assert "g" not in stepped.outputs[None].columns


def test_null_nan_and_zero_are_groups():
    kernel = windows(2, by=("g", "y"))
    state = step(kernel, rows((1, None, 1, math.nan), (2, None, 2, -0.0)), 3).state
    stepped = step(kernel, rows((4, None, 3, math.nan), (5, None, 4, 0.0)), 9, state)
    assert stepped.outputs[None]["xs"].to_list() == [4, 6]
    first, second = stepped.outputs[None]["y"]
    assert math.isnan(first)
    assert math.copysign(1, second) == 1


def test_order_is_by_time_then_source_then_values():
    kernel = windows(2, by=(), compute={"first": "first(x)", "last": "last(x)"})
    late = rows((5, "b", 1), (5, "a", 3), (5, "a", 2), (4, "z", 9))
    assert out(step(kernel, late, 9), "first", "last") == [(3, 1), (9, 2)]
    ranked = late.with_columns(pl.Series(ORDER, [2, 0, 1, 9]))
    assert out(step(kernel, ranked, 9), "first", "last") == [(2, 1), (9, 3)]


def test_without_event_time_rows_are_settled_as_they_arrive():
    kernel = windows(2, read=UNTIMED, compute={"head": "first(x)", "n": "count(*)"})
    first = step(kernel, rows((0, "a", 7)).drop("ts"), BEGINNING)
    second = step(kernel, rows((0, "a", 1), (0, "a", 2)).drop("ts"), BEGINNING, first.state)
    assert out(second, "head", "n", "window_time") == [(7, 2, None)]
    assert out(step(kernel, rows().drop("ts"), END, second.state), "head", "n") == [(2, 1)]


def test_a_timeout_ends_a_window_that_is_not_full():
    kernel = windows(3, timeout=10)
    first = step(kernel, rows((1, "a", 1), (5, "a", 2)), 10)
    assert out(first) == []
    second = step(kernel, rows(), 11, first.state)
    assert out(second) == [("a", 3, 2, 1, 11, 10)]
    third = step(kernel, rows((11, "a", 4), (12, "a", 5), (13, "a", 6)), 20, second.state)
    assert out(third) == [("a", 15, 3, 11, 14, 13)]


def test_a_row_at_the_timeout_begins_the_next_window():
    stepped = step(windows(3, timeout=10), rows((1, "a", 1), (11, "a", 2), (20, "a", 4), (21, "a", 8)), 30)
    assert out(stepped, "xs", "window_start", "window_end") == [(1, 1, 11), (6, 11, 21)]


@pytest.mark.parametrize(("slide", "read"), [(2, READ), (3, UNTIMED)])
def test_a_timeout_must_go_with_event_time_and_windows_that_do_not_overlap(slide, read):
    with pytest.raises(InputError) as caught:
        windows(3, slide, timeout=5, read=read)
    assert caught.value.problems[0].hint
    assert caught.value.problems[0].key == "operators.w.timeout"


def test_a_row_that_fails_is_rejected_and_not_counted():
    kernel = windows(2, compute={"r": "sum(6 / x)", "n": "count(*)"})
    stepped = step(kernel, rows((1, "a", 1), (2, "a", 0), (3, "a", 2)), 9)
    assert out(stepped, "r", "n", "window_end") == [(9.0, 2, 4)]
    (bad,) = stepped.rejected
    assert bad.rows["x"].to_list() == [0]


def test_a_row_without_a_time_is_rejected():
    stepped = step(windows(1), rows((None, "a", 1), (1, "a", 2)), 9)
    assert out(stepped, "xs") == [(2,)]
    assert stepped.rejected[0].rows["x"].to_list() == [1]


def test_a_result_that_fails_is_rejected_with_its_group_and_window():
    kernel = windows(2, compute={"r": "sum(x) / (count(*) - 2)"})
    stepped = step(kernel, rows((1, "a", 1), (2, "a", 2), (3, "b", 3)), END)
    assert out(stepped, "g", "r") == [("b", -3.0)]
    (bad,) = stepped.rejected
    assert bad.rows.select("g").item() == "a"
    assert bad.rows["window_end"].to_physical().item() == 3
    over = step(windows(2), rows((1, "a", 2**63 - 1), (2, "a", 1)), 9)
    assert out(over) == []
    assert "sum(x)" in over.rejected[0].reasons.item()


def test_a_later_run_counts_rows_of_windows_already_put_out_as_late():
    kernel = windows(2)
    ended = step(kernel, rows((5, "a", 1)), END)
    later = step(kernel, rows((5, "a", 2), (6, "a", 3), (7, "a", 4)), 9, ended.state)
    assert out(later, "xs") == [(7,)]
    assert later.rejected[0].reasons.to_list() == [LATE]


def test_a_group_that_comes_back_does_not_meet_its_old_rows():
    """Groups without open rows are forgotten; their rows may still be in the table."""
    kernel = windows(2)
    state = step(kernel, rows((0, "b", 100), (1, "a", 1)), 2).state
    state = step(kernel, rows((2, "a", 2)), 3, state).state
    assert state.tables["groups"].read()["g"].to_list() == ["b"]
    state = step(kernel, rows((3, "a", 4)), 4, state).state
    assert out(step(kernel, rows((4, "a", 8), (5, "b", 50)), 9, state), "xs") == [(12,), (150,)]


def test_state_stays_bounded_while_a_group_sleeps(monkeypatch):
    monkeypatch.setattr(row_windows, "SLACK", 20)
    kernel, state = windows(3, 1), EMPTY
    state = step(kernel, rows((0, "sleeper", 1)), 1, state).state
    for start in range(1, 10_000, 100):
        given = rows(*((start + i, f"g{i % 5}", 1) for i in range(100)))
        state = step(kernel, given, start + 100, state).state
        # Two rows of each group are needed, and one of the sleeper's.
        assert state.tables["open"].rows <= 2 * (5 * 2 + 1) + 20
        assert not state.tables["pending"].rows
    assert state.tables["groups"].read()["g"].to_list()[0] == "sleeper"


def test_groups_that_time_out_are_forgotten():
    kernel, state = windows(100, timeout=50), EMPTY
    for start in range(0, 20_000, 200):
        given = rows(*((start + i, f"g{start + i}", 1) for i in range(200)))
        state = step(kernel, given, start + 200, state).state
        assert state.tables["groups"].rows <= 50
        assert state.tables["open"].rows <= 2 * 50 + row_windows.SLACK


def test_windows_are_the_same_in_chunks(monkeypatch):
    given = rows(*((i, f"g{i % 3}", i) for i in range(100)))
    whole = out(step(windows(7, 2), given, END))
    monkeypatch.setattr(row_windows, "CHUNK", 10)
    assert out(step(windows(7, 2), given, END)) == whole
    monkeypatch.setattr(row_windows, "CHUNK", 1)
    assert out(step(windows(7, 2), given, END)) == whole


def test_nothing_settled_leaves_the_tables_of_open_windows_alone():
    kernel = windows(3)
    state = step(kernel, rows((1, "a", 1), (2, "a", 1)), 2).state
    after = step(kernel, rows((5, "a", 1)), 2, state).state
    for name in ("open", "groups"):
        assert after.tables[name] is state.tables[name]
