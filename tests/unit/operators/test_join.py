from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from levelwind.errors import InputError
from levelwind.model import Column, Operator
from levelwind.model.operator import Join
from levelwind.operators import join_pairs
from levelwind.operators.join import make_join
from levelwind.operators.join_pairs import Side, pairs
from levelwind.operators.join_predicate import split_condition
from levelwind.operators.rows import BEGINNING, END, ORDER, TIME, Arrived, RowType
from levelwind.operators.state import EMPTY

DTYPES = {
    "int": pl.Int32(),
    "bigint": pl.Int64(),
    "float": pl.Float32(),
    "double": pl.Float64(),
    "string": pl.String(),
    "decimal(10,2)": pl.Decimal(10, 2),
}


def read(**types):
    columns = {"ts": "timestamp", **types}
    return RowType(tuple(Column(name=name, type=kind) for name, kind in columns.items()), "ts")


def joiner(where=None, *, within_s=1e-6, left=None, right=None, aliases=("a", "b")):
    spec = Join(aliases=aliases, within_s=within_s, where=where)
    left = read(x="bigint") if left is None else left
    return make_join(Operator(name="j", spec=spec), (left, left if right is None else right))


def rows(times, dtype=pl.Int64, **columns):
    columns = columns or {"x": list(times)}
    data = {name: pl.Series(values, dtype=dtype) for name, values in columns.items()}
    return pl.DataFrame({"ts": pl.Series(times, dtype=pl.Int64).cast(TIME), **data})


def step(kernel, left, right, state=EMPTY, marks=(BEGINNING, BEGINNING)):
    return kernel.step(state, [Arrived(left, marks[0]), Arrived(right, marks[1])])


def found(stepped, left="a.x", right="b.x"):
    return sorted(stepped.outputs[None].select(left, right).rows())


NONE = rows([])


def test_columns_are_those_of_both_inputs_and_the_later_time():
    out = step(joiner(), rows([5], x=[1]), rows([6], x=[2])).outputs[None]
    assert out.columns == ["a.ts", "a.x", "b.ts", "b.x", "join_time"]
    assert out.schema["join_time"] == TIME
    assert out["join_time"].to_physical().to_list() == [6]
    empty = step(joiner(), NONE, NONE).outputs[None]
    assert (empty.height, empty.schema) == (0, out.schema)


def test_the_band_is_closed_and_exact_to_the_microsecond():
    kernel = joiner(within_s=0.3)
    base = 1_700_000_000_000_000
    left = rows([base])
    right = rows([base - 300_001, base - 300_000, base + 300_000, base + 300_001], x=[1, 2, 3, 4])
    assert [pair[1] for pair in found(step(kernel, left, right))] == [2, 3]


def test_a_pair_comes_with_its_later_member_and_only_then():
    kernel = joiner(within_s=1)
    first = step(kernel, rows([1]), NONE)
    second = step(kernel, NONE, rows([2]), first.state)
    third = step(kernel, rows([3]), rows([4]), second.state)
    assert found(first) == []
    assert found(second) == [(1, 2)]
    assert found(third) == [(1, 4), (3, 2), (3, 4)]


def test_rows_are_given_up_once_no_partner_can_come():
    kernel = joiner(within_s=10e-6)
    state = step(kernel, rows([5, 10]), rows([20]), marks=(10, 20)).state
    left, right = (state.tables[name].read() for name in ("left", "right"))
    assert left["a.x"].to_list() == [10]  # 20 - 10 = 10 may still come
    assert right["b.x"].to_list() == [20]


def test_a_later_run_finds_partners_for_what_was_there_at_the_end():
    kernel = joiner(within_s=1)
    ended = step(kernel, rows([5]), rows([5]), marks=(END, END))
    assert found(ended) == [(5, 5)]
    later = step(kernel, rows([7]), NONE, ended.state, marks=(7, BEGINNING))
    assert found(later) == [(7, 5)]
    assert found(step(kernel, NONE, rows([8]), later.state, marks=(7, 8))) == [(5, 8), (7, 8)]


@pytest.mark.parametrize("within_s", [0.0, 1e300])
def test_times_near_the_ends_of_their_range(within_s):
    kernel = joiner(within_s=within_s)
    edges = [BEGINNING + 1, 0, END - 1]
    out = found(step(kernel, rows(edges), rows(edges), marks=(END - 1, END - 1)))
    # The first and the last time are further apart than any span there is.
    assert len(out) == (7 if within_s else 3)


def test_the_hidden_order_is_left_behind():
    ordered = rows([1]).with_columns(pl.lit(0, pl.Int64).alias(ORDER))
    stepped = step(joiner(), ordered, ordered)
    assert not [name for name in stepped.outputs[None].columns if ORDER in name]
    assert not [name for name in stepped.state.tables["left"].read().columns if ORDER in name]


def test_a_row_without_a_time_is_in_no_pair():
    assert found(step(joiner(), rows([None, 1], x=[1, 2]), rows([1], x=[3]))) == [(2, 3)]


@pytest.mark.parametrize(
    ("left", "right", "values", "pairs_of"),
    [
        ("double", "double", ([0.0, math.nan, None], [-0.0, math.nan, None]), [(0, 0), (1, 1)]),
        ("double", "double", ([math.nan], [math.nan]), [(0, 0)]),
        ("float", "double", ([0.1, 0.5], [0.1, 0.5]), [(1, 1)]),
        ("int", "bigint", ([1, None], [2**40, 1]), [(0, 1)]),
        ("bigint", "double", ([2**53 + 1], [float(2**53)]), [(0, 0)]),
        ("int", "double", ([1, 2], [2.0, 1.5]), [(1, 0)]),
        ("string", "string", (["a", "", None], ["", "A", None]), [(1, 0)]),
        ("decimal(10,2)", "decimal(10,2)", ([Decimal("1.10")], [Decimal("1.10")]), [(0, 0)]),
    ],
)
def test_keys_are_equal_where_spark_says_so(left, right, values, pairs_of):
    sides = [
        pl.DataFrame(
            {
                "ts": pl.Series([0] * len(side), dtype=pl.Int64).cast(TIME),
                "k": pl.Series(side, dtype=DTYPES[kind], strict=False),
                "at": range(len(side)),
            }
        )
        for side, kind in zip(values, (left, right), strict=True)
    ]
    types = [read(k=kind, at="bigint") for kind in (left, right)]
    kernel = joiner("a.k = b.k", left=types[0], right=types[1])
    assert len(kernel.condition.keys) == 1
    assert found(step(kernel, *sides), "a.at", "b.at") == pairs_of


TYPES = (
    {"a.ts": "timestamp", "a.x": "bigint", "a.y": "double", "a.s": "string", "a.u": "unknown"},
    {"b.ts": "timestamp", "b.x": "int", "b.y": "double", "b.s": "string", "b.d": "decimal(38,20)"},
)


@pytest.mark.parametrize(
    ("where", "left", "right", "keys", "rest"),
    [
        ("a.x = b.x", 0, 0, 1, False),
        ("b.x = a.x and a.x > 3 and b.s is not null", 1, 1, 1, False),
        ("a.x > 3 or a.s = 'k'", 1, 0, 0, False),
        ("a.x > 3 or b.x > 3", 0, 0, 0, True),
        ("true and (a.x = b.x and (a.y = b.y))", 0, 0, 2, False),
        ("a.y + 1 = b.y * 2 and upper(a.s) = b.s", 0, 0, 2, False),
        ("a.x in (1, 2) and b.y between -1 and 1.5 and not (a.s < 'k')", 2, 1, 0, False),
        # These may fail, so they are left to the pairs.
        ("a.x + 1 = b.x", 0, 0, 0, True),
        ("10 / a.x > 1", 0, 0, 0, True),
        ("a.x / 2 = 1", 0, 0, 0, True),
        ("cast(a.s as int) = b.x", 0, 0, 0, True),
        ("a.s = b.x", 0, 0, 0, True),
        ("a.s > 3", 0, 0, 0, True),
        ("b.d > 3", 0, 0, 0, True),
        ("a.u = b.x", 0, 0, 0, True),
        ("-a.x = b.x", 0, 0, 0, True),
        ("a.x + b.x = 3", 0, 0, 0, True),
        ("a.x <=> b.x", 0, 0, 0, True),
    ],
)
def test_what_is_asked_before_rows_are_paired(where, left, right, keys, rest):
    condition = split_condition(where, TYPES)
    assert (*map(len, condition.alone), len(condition.keys)) == (left, right, keys)
    assert (condition.rest is not None) == rest


def test_rows_that_no_pair_can_have_are_not_kept():
    kernel = joiner("a.x > 3 and a.x = b.x", within_s=1)
    state = step(kernel, rows([1, 2, 5]), rows([1, 2])).state
    assert state.tables["left"].read()["a.x"].to_list() == [5]


def test_a_pair_on_which_the_condition_fails_is_rejected_with_its_columns():
    kernel = joiner("10 / b.x > 1", within_s=1)
    stepped = step(kernel, rows([1, 2]), rows([1, 2], x=[0, 5]))
    assert found(stepped) == [(1, 5), (2, 5)]
    (bad,) = stepped.rejected
    assert bad.rows.columns == ["a.ts", "a.x", "b.ts", "b.x", "join_time"]
    assert sorted(bad.rows["a.x"]) == [1, 2]
    assert set(bad.rows["b.x"]) == {0}
    assert len(bad.reasons) == 2
    assert bad.reasons.null_count() == 0


def test_a_row_is_not_rejected_for_a_pair_that_never_comes_about():
    kernel = joiner("10 / b.x > 1 and a.x = b.x", within_s=1)
    assert step(kernel, rows([1]), rows([1], x=[0])).rejected == ()


def test_a_condition_without_columns():
    assert found(step(joiner("1 = 2", within_s=1), rows([1]), rows([1]))) == []
    (bad,) = step(joiner("1 / 0 = 2", within_s=1), rows([1]), rows([1])).rejected
    assert bad.rows.height == 1


def test_aliases_may_have_dots():
    kernel = joiner("n.small.x = n.rest.x", aliases=("n.small", "n.rest"))
    assert len(kernel.condition.keys) == 1
    assert found(step(kernel, rows([1]), rows([1])), "n.small.x", "n.rest.x") == [(1, 1)]


def test_an_input_without_event_time_is_refused():
    with pytest.raises(InputError):
        joiner(right=RowType(read(x="bigint").schema, None))


def test_pairs_come_in_chunks_of_bounded_size():
    left = Side(np.zeros(50, np.int64))
    sizes = [len(a) for a, _ in pairs(left, Side(np.zeros(70, np.int64)), 0, chunk=333)]
    assert sum(sizes) == 50 * 70
    assert max(sizes) == 333


def test_only_pairs_that_agree_in_key_and_time_are_ever_made():
    """A common key over a long time, and a rare key in a crowded time: both would be too much alone."""
    n = 20_000
    long = Side(np.arange(n), pl.DataFrame({"k": np.zeros(n, np.int64)}))
    assert sum(len(a) for a, _ in pairs(long, long, 1)) == 3 * n - 2
    crowded = Side(np.zeros(n, np.int64), pl.DataFrame({"k": np.arange(n)}))
    assert sum(len(a) for a, _ in pairs(crowded, crowded, 1)) == n


def test_a_large_step_is_the_same_in_chunks(monkeypatch):
    rng = np.random.default_rng(1)
    times = np.sort(rng.integers(0, 2000, 1500))
    data = rows(times, x=rng.integers(0, 50, 1500))
    kernel = joiner("abs(a.x - b.x) < 3", within_s=20e-6)
    whole = step(kernel, data, data).outputs[None]
    monkeypatch.setattr(join_pairs.pairs, "__kwdefaults__", {"chunk": 1000})
    cut = step(kernel, data, data).outputs[None]
    assert whole.height > 5000
    assert whole.equals(cut)


def test_a_step_without_rows_changes_nothing_but_what_is_given_up():
    kernel = joiner(within_s=10e-6)
    state = step(kernel, rows([5]), NONE, marks=(5, BEGINNING)).state
    same = step(kernel, NONE, NONE, state, marks=(6, BEGINNING)).state
    assert same.tables["left"] is state.tables["left"]
    gone = step(kernel, NONE, NONE, state, marks=(6, 16)).state
    assert gone.tables["left"].rows == 0


def test_the_end_gives_nothing_up():
    kernel = joiner(within_s=1)
    state = step(kernel, rows([5]), NONE, marks=(5, BEGINNING)).state
    assert step(kernel, NONE, NONE, state, marks=(END, END)).state.tables["left"].rows == 1
