from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations
from math import inf

import numpy as np
import polars as pl
import pytest

from levelwind.errors import InputError, LevelwindError
from levelwind.loads.rates import pairs_per_s
from levelwind.model import Column, Operator
from levelwind.model.operator import Multijoin, PairFunction
from levelwind.operators.multijoin import make_multijoin
from levelwind.operators.multijoin.condition import make_condition
from levelwind.operators.multijoin.order import best_order, measured_now, selectivities
from levelwind.operators.rows import BEGINNING, END, ORDER, TIME, Arrived, RowType
from levelwind.operators.shedding import at_most
from levelwind.operators.state import EMPTY

DTYPES = {"bigint": pl.Int64(), "double": pl.Float64(), "tinyint": pl.Int8(), "string": pl.String()}


def read(**types):
    columns = {"ts": "timestamp", **types}
    return RowType(tuple(Column(name=name, type=kind) for name, kind in columns.items()), "ts")


def joiner(where=None, *, windows_us=(1, 1, 1), rows=None, **told):
    aliases = tuple("abcdef"[: len(windows_us)])
    sizes = {alias: window / 1e6 for alias, window in zip(aliases, windows_us, strict=True)}
    spec = Multijoin(aliases=aliases, windows_s=sizes, where=where, **told)
    return make_multijoin(Operator(name="m", spec=spec), [rows or read(x="bigint")] * len(aliases))


def rows(times, dtype=pl.Int64, **columns):
    columns = columns or {"x": list(times)}
    data = {name: pl.Series(values, dtype=dtype) for name, values in columns.items()}
    return pl.DataFrame({"ts": pl.Series(times, dtype=pl.Int64).cast(TIME), **data})


NONE = rows([])


def step(kernel, *frames, state=EMPTY, marks=None):
    marks = marks or [BEGINNING] * len(frames)
    return kernel.step(state, [Arrived(frame, mark) for frame, mark in zip(frames, marks, strict=True)])


def found(stepped, column="x"):
    names = [name for name in stepped.outputs[None].columns if name.endswith(f".{column}")]
    return sorted(stepped.outputs[None].select(names).rows())


def test_columns_are_those_of_all_inputs_and_the_latest_time():
    stepped = step(joiner(windows_us=(5, 5, 5)), rows([5], x=[1]), rows([7], x=[2]), rows([6], x=[3]))
    out = stepped.outputs[None]
    assert out.columns == ["a.ts", "a.x", "b.ts", "b.x", "c.ts", "c.x", "join_time"]
    assert out.schema["join_time"] == TIME
    assert out["join_time"].to_physical().to_list() == [7]
    empty = step(joiner(), NONE, NONE, NONE).outputs[None]
    assert (empty.height, empty.schema) == (0, out.schema)


@pytest.mark.parametrize(
    ("times", "is_group"),
    [
        ((10, 10, 10), True),
        ((7, 10, 10), True),  # exactly as old as its window
        ((6, 10, 10), False),
        ((10, 9, 10), True),
        ((10, 8, 10), False),
        ((10, 10, 4), True),
        ((7, 9, 3), True),
        ((7, 9, 2), False),
    ],
)
def test_each_member_is_at_most_its_window_older_than_the_latest(times, is_group):
    stepped = step(joiner(windows_us=(3, 1, 6)), *(rows([time]) for time in times))
    assert (stepped.outputs[None].height == 1) == is_group


def test_a_group_comes_with_its_last_member_and_only_then():
    kernel = joiner(windows_us=(9, 9, 9))
    first = step(kernel, rows([3]), NONE, NONE)
    second = step(kernel, NONE, NONE, rows([2]), state=first.state)
    third = step(kernel, rows([4]), rows([1]), NONE, state=second.state)
    assert (found(first), found(second)) == ([], [])
    assert found(third) == [(3, 1, 2), (4, 1, 2)]
    assert found(step(kernel, NONE, NONE, rows([5]), state=third.state)) == [(3, 1, 5), (4, 1, 5)]


def test_rows_are_given_up_by_the_smallest_watermark_of_the_other_inputs():
    kernel = joiner(windows_us=(10, 4, 0))
    state = step(kernel, rows([9, 10]), rows([15, 16]), rows([19, 20]), marks=(20, 20, 20)).state
    assert state.tables["a"].read()["a.x"].to_list() == [10]  # 20 may still come, and 10 is just in reach
    assert state.tables["b"].read()["b.x"].to_list() == [16]
    assert state.tables["c"].read()["c.x"].to_list() == [20]
    held = step(kernel, rows([9]), rows([15]), rows([19]), marks=(20, 20, 5)).state
    assert {name: table.rows for name, table in held.tables.items()} == {"a": 1, "b": 1, "c": 0}


def test_a_later_run_finds_groups_for_what_was_there_at_the_end():
    kernel = joiner(windows_us=(9, 9, 9))
    ended = step(kernel, rows([5]), rows([5]), rows([5]), marks=(END, END, END))
    assert found(ended) == [(5, 5, 5)]
    later = step(kernel, rows([7]), NONE, NONE, state=ended.state, marks=(7, BEGINNING, BEGINNING))
    assert found(later) == [(7, 5, 5)]


def test_times_near_the_ends_of_their_range():
    edges = [BEGINNING + 1, 0, END - 1]
    for window, count in ((0, 3), (1e300, 15)):
        kernel = joiner(windows_us=(window, window, window))
        stepped = step(kernel, rows(edges), rows(edges), rows(edges), marks=[END - 1] * 3)
        # The first and the last time are further apart than any span there is.
        assert stepped.outputs[None].height == count


def test_the_hidden_order_is_left_behind_and_a_row_without_a_time_is_in_no_group():
    ordered = rows([1, None], x=[1, 2]).with_columns(pl.lit(0, pl.Int64).alias(ORDER))
    stepped = step(joiner(), ordered, ordered, ordered)
    assert found(stepped) == [(1, 1, 1)]
    frames = [stepped.outputs[None], *(table.read() for table in stepped.state.tables.values())]
    assert not [name for frame in frames for name in frame.columns if ORDER in name]


def test_what_drops_and_what_rejects_does_not_depend_on_the_order_of_writing():
    parts = ["10 div a.x = 5", "10 div (b.x - c.x) = 2", "a.x <> b.x"]
    for text in (" and ".join(order) for order in permutations(parts)):
        stepped = step(joiner(text, windows_us=(9, 9, 9)), rows([0, 2]), rows([2, 7]), rows([2]))
        # a = 0 fails, and so does b = c; (2, 2, 2) is dropped, since a = b.
        assert found(stepped) == [(2, 7, 2)]
        bad = pl.concat([each.rows for each in stepped.rejected])
        assert sorted(bad.select("a.x", "b.x", "c.x").rows()) == [(0, 2, 2), (0, 7, 2)]


def test_windows_that_change_hold_for_groups_whose_last_member_comes_after():
    small, large = joiner(windows_us=(2, 2, 2)), joiner(windows_us=(9, 9, 9))
    state = step(small, rows([1, 5]), rows([9]), rows([9]), marks=(1, 6, 6)).state
    assert state.tables["a"].read()["a.x"].to_list() == [5]
    grown = step(large, NONE, rows([10]), NONE, state=state, marks=(1, 6, 6))
    assert found(grown) == [(5, 10, 9)]  # 1 was given up
    shrunk = step(small, NONE, rows([11]), NONE, state=grown.state, marks=(1, 6, 6))
    assert found(shrunk) == []


# Python conditions on pairs.


def near(left, right):
    assert left.columns == ["ts", "x"] == right.columns
    return (left["x"] - right["x"]).abs() <= 1


def picky(left, right):
    if (left["x"] == 3).any():
        message = "no threes"
        raise ValueError(message)
    return [None if value == 4 else True for value in left["x"]]


def wrong(left, right):
    return left["x"]


def pairs(*functions):
    return tuple(
        PairFunction(inputs=inputs, function=f"{__name__}:{function.__name__}")
        for inputs, function in functions
    )


def test_a_python_condition_on_pairs():
    kernel = joiner(windows_us=(99, 99, 99), pairs=pairs((("b", "a"), near)))
    stepped = step(kernel, rows([1, 5]), rows([2, 9]), rows([7]))
    assert found(stepped) == [(1, 2, 7)]


def test_pairs_on_which_a_function_raises_are_rejected():
    kernel = joiner(windows_us=(99, 99), pairs=pairs((("a", "b"), picky)), where="a.x < 5")
    stepped = step(kernel, rows([1, 2, 3, 4, 5]), rows([7, 8]))
    assert found(stepped) == [(1, 7), (1, 8), (2, 7), (2, 8)]
    bad = stepped.rejected[0]
    assert sorted(bad.rows.select("a.x", "b.x").rows()) == [(3, 7), (3, 8)]
    assert set(bad.reasons) == {"ValueError: no threes"}


def broken(left, right):
    message = "never"
    raise ValueError(message)


def test_a_function_that_always_raises_ends_the_run():
    kernel = joiner(windows_us=(99, 99), pairs=pairs((("a", "b"), broken)))
    with pytest.raises(LevelwindError, match=r"raised on more than 4096 pairs at once, .* never"):
        step(kernel, rows(range(99)), rows(range(99)))


def test_a_function_that_returns_something_else_is_a_fault_of_nobodys_rows():
    with pytest.raises(LevelwindError, match="must return a boolean for each of 1 pairs"):
        step(joiner(windows_us=(9, 9), pairs=pairs((("a", "b"), wrong))), rows([1]), rows([1]))


def test_a_function_that_does_not_exist_is_refused():
    missing = (PairFunction(inputs=("a", "b"), function=f"{__name__}:nearr"),)
    with pytest.raises(InputError) as error:
        joiner(windows_us=(1, 1), pairs=missing)
    assert error.value.problems[0].key == "operators.m.pairs.0.function"
    assert "near" in error.value.problems[0].hint


# Shedding.


def test_at_most_so_many_rows_of_each_input_are_taken_and_the_others_counted():
    kernel = joiner(windows_us=(99, 99, 99), shed_rows=3)
    stepped = step(kernel, rows(range(10)), rows(range(4)), rows(range(2)))
    assert stepped.shed == 7 + 1
    assert stepped.outputs[None].height == 3 * 3 * 2
    assert {name: table.rows for name, table in stepped.state.tables.items()} == {"a": 3, "b": 3, "c": 2}
    assert step(replace(kernel, shed_rows=None), rows([1]), rows([1]), rows([1])).shed == 0


def test_which_rows_are_shed_depends_on_the_rows_alone():
    every = rows(range(100))
    kept = at_most(every, 30)
    shuffled = at_most(every[np.random.default_rng(1).permutation(100)], 30)
    assert kept.height == 30
    assert kept.equals(shuffled.sort("ts"))
    assert kept["ts"].is_sorted()


# The condition taken apart.

TYPES = [
    {f"{alias}.{name}": kind for name, kind in (("ts", "timestamp"), ("x", "bigint"), ("f", "double"))}
    for alias in "abcd"
]


def test_equalities_in_a_chain_are_one():
    condition = make_condition("a.x = b.x and c.x = d.x and b.x = c.x and a.f = b.f", TYPES)
    assert sorted(tuple(same.values) for same in condition.same) == [(0, 1), (0, 1, 2, 3)]
    assert [number for number, _ in condition.equal((0,), 3)] == [
        number for number, same in enumerate(condition.same) if len(same.values) == 4
    ]
    assert condition.equal((), 3) == ()


def test_equalities_that_tie_two_values_of_one_input_stay_apart():
    condition = make_condition("a.x = b.x and a.f = b.x", TYPES)
    assert len(condition.same) == 2
    condition = make_condition("a.x = b.x and b.x = a.x", TYPES)
    assert len(condition.same) == 1


def test_each_condition_is_due_once_whatever_the_order():
    where = "a.x < b.x and b.x < c.x and a.x + c.x < d.x and d.x > 3 and a.x + b.x + c.x + d.x > 0"
    condition = make_condition(where, TYPES)
    assert [len(each) for each in condition.alone] == [0, 0, 0, 1]
    for order in permutations(range(4)):
        due = [each for at, target in enumerate(order) for each in condition.due(order[:at], target)]
        assert sorted(map(id, due)) == sorted(map(id, condition.conjuncts))
    assert condition.linked == ((0, 1), (1, 2))


@pytest.mark.parametrize(
    ("where", "low", "high"),
    [
        ("abs(a.x - b.x) < 10", -10, 10),
        ("10 >= abs(b.x - a.x)", -10, 10),
        ("a.x - b.x <= 3", -inf, 3),
        ("a.x < b.x", -inf, 0),
        ("b.x + 2 < a.x", 2, inf),
        ("a.x between b.x - 1 and b.x + 4", -1, 4),
        ("a.x > b.x - 5 and a.x < b.x + 6", -5, 6),
        ("(a.x + 1) - (b.x - 2) < -7", -inf, -10),
        ("a.x = b.x + 1 and a.f < b.f", 1, 1),
    ],
)
def test_bands(where, low, high):
    band = make_condition(where, TYPES).bands[0]
    assert (band.inputs, band.low, band.high) == ((0, 1), low, high)


@pytest.mark.parametrize(
    "where",
    ["a.x <> b.x", "a.x * 2 < b.x", "a.x < 5", "a.x + a.x < b.x", "a.x + b.x < 3", "a.x - b.x < c.x",
     "a.ts < b.ts", "abs(a.x - b.x) > 3", "a.x - a.x + a.f < b.f", "not (a.x < b.x)"],
)  # fmt: skip
def test_what_is_no_band(where):
    assert make_condition(where, TYPES).bands == ()


def test_a_band_leaves_no_group_out_that_would_be_rejected():
    """A difference that does not fit its type is an error of the group, and bands look at few groups."""
    kernel = joiner("abs(a.x - b.x) < 5", windows_us=(99, 99), rows=read(x="tinyint"))
    many = rows(range(12), dtype=pl.Int8, x=[-120, *range(11)])
    stepped = step(kernel, many, rows([0, 0], dtype=pl.Int8, x=[100, 3]))
    assert len(found(stepped)) == 8
    assert stepped.rejected[0].rows.select("a.x", "b.x").rows() == [(-120, 100)]


def test_bands_of_floats_are_not_cut_by_rounding_nor_by_what_is_no_number():
    values = [0.1 * n for n in range(40)]
    kernel = joiner("a.x - b.x <= 0.3 and a.x - b.x >= 0.1", windows_us=(99, 99), rows=read(x="double"))
    for more in ([], [float("nan"), float("inf"), None]):
        mine = rows(range(40 + len(more)), dtype=pl.Float64, x=values + more)
        expected = sum(0.1 <= a - b <= 0.3 for a in values for b in values)
        assert (
            step(kernel, mine, rows(range(40), dtype=pl.Float64, x=values)).outputs[None].height == expected
        )


# The order of inputs.


def cost(start, order, counts, chances):
    total, made, bound = 0.0, 1.0, [start]
    for each in order:
        made *= max(counts[each], 1)
        for other in bound:
            made *= chances.get((min(each, other), max(each, other)), 1.0)
        bound.append(each)
        total += made
    return total


@pytest.mark.parametrize("seed", range(20))
def test_the_best_order_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    inputs = int(rng.integers(2, 7))
    counts = [int(n) for n in rng.integers(0, 50, inputs)]
    linked = [pair for pair in combinations(range(inputs), 2) if rng.random() < 0.7]
    chances = {pair: float(rng.random()) for pair in linked}
    for start in range(inputs):
        rest = [input for input in range(inputs) if input != start]
        least = min(cost(start, order, counts, chances) for order in permutations(rest))
        chosen = best_order(start, counts, chances)
        assert sorted(chosen) == rest
        assert cost(start, chosen, counts, chances) == pytest.approx(least)


def test_many_inputs_are_ordered_too():
    assert sorted(best_order(0, [3] * 12, {(0, 11): 0.01})) == list(range(1, 12))
    assert best_order(0, [3] * 12, {(0, 11): 0.01})[0] == 11


def test_orders_adapt_to_what_is_measured():
    """First a and b agree often and b and c never, then the other way round."""
    kernel = joiner("abs(a.x - b.x) < 1 and abs(b.x - c.x) < 1", windows_us=(9, 9, 9))
    state, chances = EMPTY, []
    for first, second, begin in ((0, 50, 0), (50, 0, 80)):
        for number in range(begin, begin + 80):
            times = [number] * 4
            frames = [rows(times, x=[value] * 4) for value in (first, 0, second)]
            state = step(kernel, *frames, state=state, marks=[number] * 3).state
        seen = {pair: tuple(state.marks[name] for name in kernel._names(pair)) for pair in ((0, 1), (1, 2))}
        chances.append(selectivities(kernel.condition, seen))
    assert chances[0][0, 1] > chances[0][1, 2]
    assert chances[1][0, 1] < chances[1][1, 2]


def test_every_pair_is_measured_at_first_and_then_in_turn():
    condition = make_condition("a.x = b.x and b.x < c.x", TYPES[:3])
    pairs_measured = [measured_now(step, condition) for step in range(64)]
    assert pairs_measured[:4] == [((0, 1), (1, 2)), ((1, 2),), ((0, 1),), ((1, 2),)]
    assert {(0, 1), (1, 2)} == {pair for pairs in pairs_measured[16:] for pair in pairs}
    assert measured_now(0, make_condition("a.x = b.x", TYPES[:2])) == ((0, 1),)
    assert not measured_now(0, make_condition(None, TYPES[:2]))


def test_an_input_without_a_time_is_refused():
    timeless = RowType((Column(name="x", type="bigint"),), None)
    with pytest.raises(InputError):
        joiner(rows=timeless)


def test_as_many_groups_are_near_in_time_as_the_load_model_expects():
    """Every row is the latest of a group with what lies in the windows of the others (`pairs_per_s`)."""
    rng = np.random.default_rng(5)
    rates, windows_s, seconds = (40.0, 20.0, 10.0), (0.5, 1.0, 2.0), 400
    frames = []
    for rate in rates:
        times = np.sort(rng.integers(0, seconds * 1_000_000, rng.poisson(rate * seconds)))
        frames.append(rows(times, x=np.zeros(len(times), dtype=np.int64)))
    kernel = joiner(windows_us=[window * 1e6 for window in windows_s])
    spec = Multijoin(aliases=tuple("abc"), windows_s=dict(zip("abc", windows_s, strict=True)))
    expected = pairs_per_s(Operator(name="m", spec=spec), [np.array([rate]) for rate in rates])
    count = step(kernel, *frames).outputs[None].height
    assert count == pytest.approx(float(expected[0]) * seconds, rel=0.05)
