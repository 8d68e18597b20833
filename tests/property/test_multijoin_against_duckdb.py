"""Joins of two to six streams over batches of any cut against one cross product over all rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import polars as pl
import pytest
from arrivals import bag, streams
from groups import ALIASES, kernel_of, naive, plain, run
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.operators.join_pairs import CHUNK
from levelwind.operators.multijoin.extending import extended
from levelwind.operators.multijoin.meeting import FAILS, Meeting, Member
from levelwind.operators.multijoin.partials import bound_in_frame, columns_of
from levelwind.operators.rows import BEGINNING, END, Arrived
from levelwind.operators.state import EMPTY

# How many rows an input has at most, by the number of inputs: the cross product must stay small.
MOST = {2: 25, 3: 12, 4: 8, 5: 6, 6: 5}
# Each is about two inputs x and y, or x alone.
PARTS = [
    "x.k = y.k",
    "x.f = y.f",
    "x.k = y.v",
    "upper(x.s) = y.s",
    "x.v + 1 = y.v",
    "abs(x.v - y.v) < 2",
    "x.v between y.v - 1 and y.v + 2",
    "x.f > y.f - 1.5 and x.f < y.f + 1.5",
    "x.v <= y.v",
    "x.v <> y.v",
    "x.k = y.k or x.s = y.s",
    "x.k <=> y.k",
    "x.ts <= y.ts",
    "x.v + y.v > 0",
    "x.k = 1",
    "x.s is not null",
    "x.v * 2 > 1",
    "x.k + 1 > x.v",
    "true",
]


@st.composite
def conditions(draw, inputs):
    """A condition over some inputs; now and then about three of them at once, or always true or false."""
    parts = []
    for _ in range(draw(st.integers(0, inputs + 1))):
        x, y = draw(st.permutations(ALIASES[:inputs]))[:2]
        parts.append(draw(st.sampled_from(PARTS)).replace("x.", f"{x}.").replace("y.", f"{y}."))
    if inputs > 2 and draw(st.booleans()):
        x, y, z = draw(st.permutations(ALIASES[:inputs]))[:3]
        parts.append(f"{x}.v + {y}.v > {z}.v")
    if draw(st.integers(0, 30)) == 7:
        parts.append("1 = 2")
    return " and ".join(f"({part})" for part in parts) or None


@st.composite
def worlds(draw, least=2, most=6):
    """Streams with their batches, windows of each, and a condition."""
    count = draw(st.integers(least, most))
    batches = draw(st.integers(1, 4))
    found = [
        draw(streams(batches=batches, most=draw(st.sampled_from([0, MOST[count], MOST[count]])), span=20))
        for _ in range(count)
    ]
    windows = [draw(st.integers(0, 12)) for _ in range(count)]
    return found, windows, draw(conditions(count))


def nothing_in_vain(windows):
    """Checks that no row is kept that can be in no group any more."""

    def check(state, marks):
        for input, window in enumerate(windows):
            other = min(mark for at, mark in enumerate(marks) if at != input)
            table = state.tables.get(ALIASES[input])
            kept = None if table is None or other == END else table.read()
            if kept is not None and kept.height:
                assert kept[f"{ALIASES[input]}.ts"].to_physical().min() + window >= other

    return check


def batches_of(found):
    return [list(batch) for batch in zip(*(stream.batches() for stream in found), strict=True)]


def check_groups(world, chunk):
    found, windows, where = world
    kernel = replace(kernel_of(where, windows), chunk=chunk)
    rows, rejected = run(kernel, batches_of(found), nothing_in_vain(windows))
    assert not rejected
    assert plain(rows) == naive([stream.rows for stream in found], windows, where)


@settings(max_examples=300)
@given(worlds(), st.sampled_from([8, CHUNK]))
def test_groups_are_those_of_one_cross_product(world, chunk):
    check_groups(world, chunk)


@pytest.mark.slow
@settings(max_examples=2000)
@given(worlds(), st.sampled_from([8, CHUNK]))
def test_groups_of_many_more_worlds(world, chunk):
    check_groups(world, chunk)


@settings(max_examples=40)
@given(st.data(), st.integers(2, 4))
def test_one_stream_under_several_names(data, count):
    stream = data.draw(streams(batches=data.draw(st.integers(1, 4)), most=MOST[count], span=20))
    windows = [data.draw(st.integers(0, 12)) for _ in range(count)]
    where = data.draw(conditions(count))
    batches = [[arrived] * count for arrived in stream.batches()]
    rows, _ = run(kernel_of(where, windows), batches, nothing_in_vain(windows))
    assert plain(rows) == naive([stream.rows] * count, windows, where)


@settings(max_examples=40)
@given(worlds(least=3, most=4), st.data())
def test_inputs_may_be_silent_or_end_long_before_others(world, data):
    found, windows, where = world
    inputs = []
    for stream in found:
        arrived = list(stream.batches())
        kind = data.draw(st.sampled_from(["as it is", "silent", "ended"]))
        if kind == "silent":  # a watermark that says nothing
            arrived = [Arrived(each.rows, BEGINNING) for each in arrived]
        elif kind == "ended":
            rest = [Arrived(stream.rows.clear(), END)] * (len(arrived) - 1)
            arrived = [Arrived(stream.rows, END if rest else BEGINNING), *rest]
        inputs.append(arrived)
    batches = [list(batch) for batch in zip(*inputs, strict=True)]
    rows, _ = run(kernel_of(where, windows), batches)
    assert plain(rows) == naive([stream.rows for stream in found], windows, where)


# Conditions, and what must not be zero in them.
FAILING = [
    ("10 / x.v > 3", "x.v"),
    ("10 / (x.v - y.v) > 1", "x.v - y.v"),
    ("20 / x.v < y.v", "x.v"),
    ("x.k = y.k", "1"),
    ("x.v < 2", "1"),
]


@settings(max_examples=60)
@given(worlds(least=2, most=4), st.data(), st.integers(1, 10))
def test_a_group_is_rejected_if_all_that_can_be_computed_holds(world, data, chunk):
    found, windows, _ = world
    parts = []
    for _ in range(data.draw(st.integers(1, 4))):
        x, y = data.draw(st.permutations(ALIASES[: len(found)]))[:2]
        part = data.draw(st.sampled_from(FAILING))
        parts.append([text.replace("x.", f"{x}.").replace("y.", f"{y}.") for text in part])
    kernel = replace(kernel_of(" and ".join(text for text, _ in parts), windows), chunk=chunk)
    rows, rejected = run(kernel, batches_of(found))
    frames = [stream.rows for stream in found]
    sound = " and ".join(f"({text} and {divisor} <> 0)" for text, divisor in parts)
    assert plain(rows) == naive(frames, windows, sound)
    passed = " and ".join(f"({text} or {divisor} = 0)" for text, divisor in parts)
    failed = " or ".join(f"{divisor} = 0" for _, divisor in parts)
    bad = naive(frames, windows, passed, [f"({failed})"])
    assert sum((plain(each.rows) for each in rejected), start=bag([])) == bad
    assert all("zero" in reason.lower() for each in rejected for reason in each.reasons)


@settings(max_examples=60)
@given(worlds(least=2, most=5), st.data())
def test_rows_of_one_box_are_joined_with_each_other_only(world, data):
    found, windows, where = world
    boxed = []
    for stream in found:
        height = stream.rows.height
        boxes = data.draw(st.lists(st.integers(0, 2), min_size=height, max_size=height))
        boxed.append(replace(stream, rows=stream.rows.with_columns(pl.Series("box", boxes, dtype=pl.Int64))))
    kernel = kernel_of(where, windows, together="box")
    rows, _ = run(kernel, batches_of(boxed), nothing_in_vain(windows))
    same = [f"{ALIASES[at]}.box = {ALIASES[at + 1]}.box" for at in range(len(found) - 1)]
    assert plain(rows) == naive([stream.rows for stream in boxed], windows, where, same)


def hop(kernel, groups, bound, rows, target, start, chunk):
    """Partial groups as frames with a row more, which must have come before the one that they began with."""
    if groups.is_empty() or rows.is_empty():
        return
    members = {input: Member.of(groups, kernel.clocks[input]) for input in bound}
    members[target] = Member.of(rows, kernel.clocks[target])
    meeting = Meeting(kernel.condition, kernel.windows_us, members)
    columns = [(bound[0], name) for name in groups.columns] + [(target, name) for name in rows.columns]
    for wider in extended(meeting, bound_in_frame(meeting, bound), target, chunk=chunk):
        found = columns_of(meeting, wider, columns)
        yield found.filter(pl.col(f"{ALIASES[target]}.number") < pl.col(f"{ALIASES[start]}.number"))


@settings(max_examples=60)
@given(worlds(least=2, most=5), st.data(), st.sampled_from([8, CHUNK]))
def test_groups_grown_as_frames_from_host_to_host(world, data, chunk):
    """Rows are numbered as they arrive; each meets those before it, one input after another, in any order."""
    found, windows, where = world
    kernel, count = kernel_of(where, windows), len(found)
    numbers = iter(data.draw(st.permutations(range(sum(stream.rows.height for stream in found)))))
    frames = []
    for input, stream in enumerate(found):
        order = pl.Series("number", [next(numbers) for _ in range(stream.rows.height)], dtype=pl.Int64)
        frames.append(kernel.wanted(input, stream.rows.with_columns(order)).drop(FAILS, strict=False))
    grown = []
    for start in range(count):
        groups, bound = [frames[start]], [start]
        for target in [each for each in data.draw(st.permutations(range(count))) if each != start]:
            pieces = [hop(kernel, piece, bound, frames[target], target, start, chunk) for piece in groups]
            groups = [wider for piece in pieces for wider in piece]
            bound = [*bound, target]
        grown += groups
    columns = [f"{alias}.{name}" for alias in ALIASES[:count] for name in ("ts", "k", "v", "f", "s")]
    latest = pl.max_horizontal(f"{alias}.ts" for alias in ALIASES[:count]).alias("join_time")
    got = sum((plain(each.select(*columns, latest)) for each in grown), start=bag([]))
    assert got == naive([stream.rows for stream in found], windows, where)


@pytest.mark.parametrize("windows", [[0, 0, 0], [2, 9, 1]])
def test_state_stays_bounded_on_a_long_stream(windows):
    kernel, state, most = kernel_of("a.k = b.k and b.k = c.k", windows), EMPTY, 0
    rows = pl.DataFrame({"ts": range(10_000), "k": 0, "v": 0, "f": 0.0, "s": "a"}).with_columns(
        pl.col("ts").cast(pl.Datetime("us", "UTC")), pl.col("k").cast(pl.Int32)
    )
    for low, high in pairwise(range(0, 10_001, 50)):
        part = Arrived(rows[low:high], high - 1)
        state = kernel.step(state, [part, part, part]).state
        most = max(most, sum(table.rows for table in state.tables.values()))
    assert most < 3 * 50 * 20
