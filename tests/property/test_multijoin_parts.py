"""Joins of several streams: groups that are rejected, boxes, partial groups as frames, state."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import polars as pl
import pytest
from arrivals import bag
from groups import ALIASES, batches_of, kernel_of, naive, nothing_in_vain, plain, run, worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.operators.join_pairs import CHUNK
from levelwind.operators.multijoin.extending import extended
from levelwind.operators.multijoin.meeting import FAILS, Meeting, Member
from levelwind.operators.multijoin.partials import bound_in_frame, columns_of
from levelwind.operators.rows import Arrived
from levelwind.operators.state import EMPTY

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
