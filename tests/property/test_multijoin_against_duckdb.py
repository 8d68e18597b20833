"""Joins of two to six streams over batches of any cut against one cross product over all rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from arrivals import COLUMNS, Stream, streams
from groups import (
    ALIASES,
    MOST,
    batches_of,
    conditions,
    kernel_of,
    naive,
    nothing_in_vain,
    plain,
    run,
    worlds,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.operators.join_pairs import CHUNK
from levelwind.operators.multijoin import extending, sieve
from levelwind.operators.rows import BEGINNING, END, TIME, Arrived


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


def dense(rng, rows):
    """A stream whose rows have many candidates by any one value, and few partners by all."""
    times = np.sort(rng.integers(0, 30, rows))
    numbers = {name: rng.integers(-9, 10, rows) for name in ("k", "v")}
    columns = {name: pl.Series(name, values, COLUMNS[name]) for name, values in numbers.items()}
    absent = pl.Series(rng.random(rows) < 0.05)
    frame = pl.DataFrame(
        {
            "ts": pl.Series(times).cast(TIME),
            **columns,
            "f": pl.Series(rng.integers(-9, 10, rows) / 2.0),
            "s": pl.Series(["a"] * rows),
        }
    )
    return Stream(frame.with_columns(v=pl.when(absent).then(None).otherwise(pl.col("v"))), [rows // 2], 0)


@pytest.mark.parametrize("chunk", [7, CHUNK])
@pytest.mark.parametrize("seed", range(8))
def test_thinning_candidates_out_leaves_all_groups(monkeypatch, seed, chunk):
    used = []

    def counted(*arguments):
        used.append(arguments)
        return sieved(*arguments)

    sieved = sieve.sieved
    monkeypatch.setattr(sieve, "sieved", counted)
    monkeypatch.setattr(extending, "_SIEVED", 0)
    rng = np.random.default_rng(seed)
    count = 2 + seed % 2
    found = [dense(rng, 90) for _ in range(count)]
    near = "abs(x.v - y.v) <= 3 and x.f - y.f between -2 and 1 and x.v >= y.f - 4"
    where = [near.replace("x.", f"{x}.").replace("y.", f"{y}.") for x, y in pairwise(ALIASES[:count])]
    check_groups((found, rng.integers(3, 12, count).tolist(), " and ".join(where)), chunk)
    assert used


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
