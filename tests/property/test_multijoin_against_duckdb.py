"""Joins of two to six streams over batches of any cut against one cross product over all rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from arrivals import streams
from groups import MOST, batches_of, conditions, kernel_of, naive, nothing_in_vain, plain, run, worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.operators.join_pairs import CHUNK
from levelwind.operators.rows import BEGINNING, END, Arrived


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
