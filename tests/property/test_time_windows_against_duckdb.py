"""Aggregates over time windows against DuckDB, over random rows, windows, groups, batches and arrival."""

from __future__ import annotations

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levelwind.model import Aggregate, Column, Operator, Port, TimeWindow
from levelwind.operators.aggregate import make_aggregate
from levelwind.operators.aggregate.kernels import TimeWindows, may_join, step_together
from levelwind.operators.rows import BEGINNING, END, TIME, Arrived, RowType
from levelwind.operators.state import EMPTY

SECOND = 1_000_000
ROWS = RowType(
    (
        Column(name="ts", type="timestamp"),
        Column(name="k", type="string"),
        Column(name="g", type="int"),
        Column(name="n", type="bigint"),
        Column(name="x", type="double"),
    ),
    "ts",
)
SCHEMA = {"ts": TIME, "k": pl.String, "g": pl.Int32, "n": pl.Int64, "x": pl.Float64}
# Ours, and DuckDB's way to say it.
CALLS = {
    "count(*)": "count(*)",
    "count(x)": "count(x)",
    "sum(n)": "sum(n)",
    "sum(x)": "sum(x)",
    "avg(n)": "avg(n)",
    "avg(x)": "avg(x)",
    "min(n)": "min(n)",
    "max(x)": "max(x)",
    "min(k)": "min(k)",
    "max(k)": "max(k)",
    "stddev(x)": "stddev_samp(x)",
    "stddev_pop(n)": "stddev_pop(n)",
    "variance(x)": "var_samp(x)",
    "count(distinct g)": "count(distinct g)",
    "count(distinct k)": "count(distinct k)",
    "sum(n) + count(*)": "sum(n) + count(*)",
    "max(n) - min(n)": "max(n) - min(n)",
    "first(n)": "arg_min_null(n, ts)",
    "last(x)": "arg_max_null(x, ts)",
}


@st.composite
def rows(draw, *, distinct_times):
    count = draw(st.integers(0, 40))
    start = draw(st.sampled_from([0, 1_700_000_000 * SECOND, -50 * SECOND]))
    times = draw(
        st.lists(
            st.integers(0, 60 * SECOND).map(lambda t: t - t % 250_000 if not distinct_times else t),
            min_size=count,
            max_size=count,
            unique=distinct_times,
        )
    )
    table = {
        "ts": [start + t for t in times],
        "k": draw(st.lists(st.sampled_from(["a", "b", "", "ü", None]), min_size=count, max_size=count)),
        "g": draw(st.lists(st.sampled_from([1, 2, None]), min_size=count, max_size=count)),
        "n": draw(
            st.lists(st.one_of(st.none(), st.integers(-(10**6), 10**6)), min_size=count, max_size=count)
        ),
        "x": draw(
            st.lists(
                st.one_of(st.none(), st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 3))),
                min_size=count,
                max_size=count,
            )
        ),
    }
    return pl.DataFrame(table, schema={**SCHEMA, "ts": pl.Int64}).with_columns(pl.col("ts").cast(TIME))


@st.composite
def windows(draw):
    slide = draw(st.sampled_from([0.5, 1.0, 2.0, 3.0, 7.0]))
    factor = draw(st.sampled_from([1, 1, 2, 3, 10]))
    extra = draw(st.sampled_from([0.0, 0.0, 0.25]))
    return TimeWindow(size_s=slide * factor + extra, slide_s=slide)


def batches(data, frame):
    """The rows in an order of arrival within some lateness, cut at random; with the watermark after each."""
    lateness = data.draw(st.sampled_from([0, SECOND, 20 * SECOND]), label="lateness")
    frame = frame.sort("ts", maintain_order=True)
    left = frame.with_row_index("__i")
    watermark = BEGINNING
    largest = None
    while left.height:
        size = data.draw(st.integers(1, max(1, left.height)), label="batch size")
        # What may come now: any row, as long as none that is left behind becomes late by it.
        times = left["ts"].to_physical()
        reach = times.min() + lateness
        allowed = left.filter(times <= max(reach, times.min()))
        picked = data.draw(st.permutations(list(range(allowed.height))), label="arrival")[:size]
        batch = allowed[picked]
        left = left.filter(~pl.col("__i").is_in(batch["__i"].implode()))
        top = int(batch["ts"].to_physical().max())
        largest = top if largest is None else max(largest, top)
        watermark = max(watermark, largest - lateness)
        yield batch.drop("__i"), watermark


def run(kernels, arrivals):
    """All rows that kernels put out, stepping together."""
    states = [EMPTY] * len(kernels)
    found = [[] for _ in kernels]
    before = BEGINNING
    for frame, watermark in [*arrivals, (pl.DataFrame(schema=SCHEMA), END)]:
        results = step_together(kernels, states, Arrived(frame, watermark))
        states = [result.state for result in results]
        for out, result in zip(found, results, strict=True):
            assert not result.rejected
            rows = result.outputs.get(None)
            if rows is not None and rows.height:
                assert int(rows["window_time"].to_physical().min()) >= before
                out.append(rows)
        before = watermark
    assert all(state.tables["panes"].segments == () for state in states)
    return [pl.concat(out) if out else None for out in found]


def kernel(window, by, compute):
    operator = Operator(
        name="o", inputs=(Port(source="s"),), spec=Aggregate(window=window, compute=compute, by=by)
    )
    made = make_aggregate(operator, (ROWS,))
    assert isinstance(made, TimeWindows)
    return made


def expected(frame, window, by, compute):
    size, slide = round(window.size_s * SECOND), round(window.slide_s * SECOND)
    groups = ", ".join(by)
    computed = ", ".join(f"{CALLS[text]} AS {name}" for name, text in compute.items())
    # Integer division of DuckDB rounds toward zero: floor it by hand for times before the epoch.
    source = frame.with_columns(
        us=pl.col("ts").to_physical(),
        low=(pl.col("ts").to_physical() - size).floordiv(slide) + 1,
        high=pl.col("ts").to_physical().floordiv(slide),
    )
    source = source.filter(pl.col("low") <= pl.col("high"))
    connection = duckdb.connect()
    connection.execute("SET timezone = 'UTC'")
    connection.register("source", source.to_arrow())
    return connection.sql(
        f"SELECT {groups + ',' if by else ''} {computed}, w * {slide} AS start "
        f"FROM (SELECT *, unnest(range(low, high + 1)) AS w FROM source) "
        f"GROUP BY {groups + ',' if by else ''} w"
    ).pl()


def compare(found, wanted, by, compute, window):
    assert (0 if found is None else found.height) == wanted.height
    if found is None:
        return
    size = round(window.size_s * SECOND)
    start = found["window_start"].to_physical()
    assert (found["window_end"].to_physical() - start == size).all()
    assert (found["window_end"].to_physical() - found["window_time"].to_physical() == 1).all()
    both = found.with_columns(start=start).join(
        wanted, on=[*by, "start"], how="full", nulls_equal=True, suffix="_wanted"
    )
    assert both.height == found.height
    for name in compute:
        for ours, theirs in both.select(name, f"{name}_wanted").iter_rows():
            same = (
                ours == pytest.approx(theirs, rel=1e-9, abs=1e-6)
                if isinstance(ours, float)
                else ours == theirs
            )
            assert same, (name, compute[name], ours, theirs)


choice = st.lists(st.sampled_from(sorted(CALLS)), min_size=1, max_size=4, unique=True)
groups = st.sampled_from([(), ("k",), ("k", "g")])


@given(data=st.data(), window=windows(), by=groups, calls=choice)
def test_equal_to_duckdb(data, window, by, calls):
    ordered = any("first" in call or "last" in call for call in calls)
    frame = data.draw(rows(distinct_times=ordered))
    compute = {f"v{i}": call for i, call in enumerate(calls)}
    made = kernel(window, by, compute)
    (found,) = run([made], list(batches(data, frame)))
    compare(found, expected(frame, window, by, compute), by, compute, window)


@given(data=st.data(), by=groups, chosen=st.lists(st.tuples(windows(), choice), min_size=2, max_size=4))
def test_those_that_step_together_are_as_each_alone(data, by, chosen):
    frame = data.draw(rows(distinct_times=True))
    several, kernels = [], []
    for window, calls in chosen:
        compute = {f"v{i}": call for i, call in enumerate(calls)}
        made = kernel(window, by, compute)
        if all(may_join(other, made) for other in kernels):
            several.append((window, compute))
            kernels.append(made)
    found = run(kernels, list(batches(data, frame)))
    for out, (window, compute) in zip(found, several, strict=True):
        compare(out, expected(frame, window, by, compute), by, compute, window)


@pytest.mark.parametrize("before", [1, 20, 300])
def test_values_that_come_after_many_batches_of_nulls(before):
    """Panes are merged in the meantime, and what is merged has no values at all."""
    frame = pl.DataFrame(
        {
            "ts": range(before + 2),
            "k": "a",
            "g": 1,
            "n": [None] * before + [3, 5],
            "x": [None] * before + [1.5, 2.5],
        },
        schema={**SCHEMA, "ts": pl.Int64},
    ).with_columns(pl.col("ts").cast(TIME))
    window, compute = TimeWindow(size_s=0.5, slide_s=0.5), {f"v{i}": call for i, call in enumerate(CALLS)}
    arrivals = [(frame[i : i + 1], i) for i in range(frame.height)]
    for by in ((), ("k",)):
        (found,) = run([kernel(window, by, compute)], arrivals)
        compare(found, expected(frame, window, by, compute), by, compute, window)
