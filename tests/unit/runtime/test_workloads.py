"""Made-up streams: the same rows whatever the batches, and the rates and shapes that were asked for."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.errors import InputError
from levelwind.model import Column
from levelwind.runtime import sources
from levelwind.runtime.replay import Progress
from levelwind.runtime.shapes import BLOCK, OnOff, Periodic, SelfSimilar, Steady
from levelwind.runtime.workloads import check_generator_options, end_offset, read_generator

SECOND = 1_000_000
TYPES = {
    "ts": "timestamp",
    "src": "string",
    "size": "int",
    "weight": "double",
    "price": "decimal(10,2)",
    "seen": "boolean",
    "day": "date",
    "raw": "binary",
    "number": "bigint",
}
SCHEMA = tuple(Column(name=name, type=kind) for name, kind in TYPES.items())
COLUMNS = {
    "src": {"kind": "zipf", "values": 50, "exponent": 1.1, "prefix": "10.0."},
    "size": {"kind": "uniform", "low": 40, "high": 1500},
    "weight": {"kind": "normal", "mean": 5, "std": 2},
    "number": {"kind": "sequence", "start": 7, "step": 2},
}
SHAPES = {
    "steady": {"shape": "steady", "rate": 333.3},
    "periodic": {"shape": "periodic", "high": 500, "low": 20, "period": "3s", "phase": 0.25},
    "onoff": {"shape": "onoff", "rate": 400, "on": "300ms", "off": "500ms"},
    "selfsimilar": {"shape": "selfsimilar", "rate": 300},
}
SERIES = {"shape": "series", "rates": [300, 0, 450.5, 20]}


def generator(**options):
    return read_generator({"time": "ts", "seed": 5, "columns": COLUMNS, **options}, SCHEMA)


def table(found, start, end):
    return pa.Table.from_batches(found.read(start, end), schema=found.schema).combine_chunks()


@pytest.mark.parametrize("shape", [*SHAPES.values(), SERIES], ids=[*SHAPES, "series"])
@given(cuts=st.lists(st.integers(0, 4 * SECOND), max_size=6))
@settings(max_examples=15)
def test_any_cuts_give_the_same_whole(shape, cuts):
    found = generator(**shape)
    edges = [0, *sorted(cuts), 4 * SECOND]
    pieces = [table(found, low, high) for low, high in itertools.pairwise(edges)]
    assert pa.concat_tables(pieces).combine_chunks().equals(table(found, 0, 4 * SECOND))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_cuts_across_the_edge_of_a_block_lose_nothing(shape):
    found = generator(**shape)
    edge = BLOCK * 100_000
    whole = table(found, edge - SECOND, edge + SECOND)
    parts = [table(found, edge - SECOND, edge - 7), table(found, edge - 7, edge + SECOND)]
    assert pa.concat_tables(parts).combine_chunks().equals(whole)
    numbers = whole["number"].to_numpy()
    assert (np.diff(numbers) == 2).all()


def test_another_seed_gives_other_rows_and_the_same_seed_the_same():
    first, again = generator(**SHAPES["steady"]), generator(**SHAPES["steady"])
    other = generator(**SHAPES["steady"], seed=6)
    assert table(first, 0, SECOND).equals(table(again, 0, SECOND))
    assert not table(first, 0, SECOND)["size"].equals(table(other, 0, SECOND)["size"])


def test_a_column_does_not_depend_on_the_others():
    alone = read_generator({"time": "ts", "seed": 5, **SHAPES["steady"]}, (SCHEMA[0], SCHEMA[4]))
    assert table(alone, 0, SECOND)["price"].equals(table(generator(**SHAPES["steady"]), 0, SECOND)["price"])


def test_options_as_text_mean_the_same_as_in_a_file():
    source = {"format": "generator", "seed": 5, "columns": COLUMNS, "duration": "2s", **SHAPES["onoff"]}
    told = read_generator(sources.reader_options(source, "ts"), SCHEMA)
    assert all(isinstance(value, str) for value in sources.reader_options(source, "ts").values())
    assert table(told, 0, SECOND).equals(table(generator(**SHAPES["onoff"]), 0, SECOND))


def test_a_generator_is_small_when_it_is_sent_to_workers():
    found = generator(**SHAPES["selfsimilar"])
    table(found, 0, SECOND)
    assert len(pickle.dumps(found)) < 3000


def test_values_keep_to_their_kinds():
    rows = table(generator(shape="steady", rate=20_000), 0, SECOND)
    size = rows["size"].to_numpy()
    assert (size.min(), size.max()) == (40, 1500)
    assert abs(rows["weight"].to_numpy().mean() - 5) < 0.1
    assert abs(rows["weight"].to_numpy().std() - 2) < 0.1
    assert rows["number"].to_pylist()[:3] == [7, 9, 11]
    assert 0.45 < np.mean(rows["seen"].to_pylist()) < 0.55
    assert len(set(rows["raw"].to_pylist())) == 20_000
    times = rows["ts"].cast(pa.int64()).to_numpy()
    assert (np.diff(times) == 50).all()


def test_zipf_ranks_fall_as_the_exponent_says():
    rows = table(generator(shape="steady", rate=50_000), 0, SECOND)
    counts = {value["values"]: value["counts"] for value in rows["src"].value_counts().to_pylist()}
    assert len(counts) == 50
    for rank in (2, 4, 8):
        assert counts["10.0.0"] / counts[f"10.0.{rank - 1}"] == pytest.approx(rank**1.1, rel=0.15)


def test_choices_follow_their_weights():
    columns = {
        "src": {"kind": "choice", "values": ["a", "b"], "weights": [3, 1]},
        "day": {"kind": "constant", "value": "2026-02-03"},
        "price": {"kind": "constant", "value": "1.25"},
    }
    rows = table(generator(shape="steady", rate=10_000, columns=columns), 0, SECOND)
    assert np.mean([value == "a" for value in rows["src"].to_pylist()]) == pytest.approx(0.75, abs=0.02)
    assert {str(value) for value in rows["day"].to_pylist()} == {"2026-02-03"}
    assert {str(value) for value in rows["price"].to_pylist()} == {"1.25"}


# Shapes


def test_steady_has_the_very_rate():
    for rate in (0.3, 1, 9.7, 10, 1000, 12_345.6):
        counts = Steady(rate=rate).counts(0, 10_000)
        assert counts.sum() == int(rate * 1000 + 1e-6)
        assert counts.max() - counts.min() <= 1


def test_a_series_has_the_rate_of_each_second_and_then_ends():
    found = generator(**SERIES)
    assert found.shape.counts(0, 50).reshape(5, 10).sum(axis=1).tolist() == [300, 0, 450, 20, 0]
    assert found.end() == 4 * SECOND
    assert generator(**SERIES, duration="6s").end() == 6 * SECOND
    told = {"format": "generator", "columns": COLUMNS, **SERIES}
    assert read_generator(sources.reader_options(told, "ts"), SCHEMA).shape == found.shape


@pytest.mark.parametrize("rates", [None, [], 5, "a", [1, -1], [1, "x"], [float("inf")]])
def test_a_series_needs_rates(rates):
    found = check_generator_options({"shape": "series", "rates": rates, "rows": 3}, SCHEMA, "ts")
    assert [problem.key for problem in found] == ["source.rows", "source.rates"]


def test_periodic_is_high_for_half_of_each_period_and_low_for_the_other():
    counts = Periodic(high=400, low=100, period_s=2.0).counts(0, 60)
    assert counts.reshape(3, 2, 10).tolist() == [[[40] * 10, [10] * 10]] * 3
    shifted = Periodic(high=400, low=100, period_s=2.0, phase_s=0.5).counts(0, 55)
    assert shifted.tolist() == counts[5:].tolist()


@given(first=st.integers(0, 10**6), length=st.integers(1, 400), phase=st.floats(0, 7.7))
def test_periodic_loses_no_row_over_time(first, length, phase):
    shape = Periodic(high=123.4, low=5.6, period_s=7.7, phase_s=phase)
    assert (
        shape.rows_before(first + length) - shape.rows_before(first)
        == shape.counts(first, first + length).sum()
    )
    assert shape.counts(first, first + length).min() >= 0
    assert shape.counts(first, first + length).max() <= 13


def test_onoff_times_are_exponential_with_the_given_means():
    counts = np.concatenate(
        [OnOff(rate=1000, on_s=4, off_s=12, seed=s).counts(0, 4 * BLOCK) for s in range(3)]
    )
    assert counts.mean() * 10 == pytest.approx(250, rel=0.05)
    assert counts.max() == 100  # bursts at the rate, no more
    assert np.mean((counts == 0) | (counts == 100)) > 0.95
    on = counts > 50
    edges = np.flatnonzero(np.diff(on.astype(int)))
    lengths = np.diff(edges) / 10
    begins_on = on[edges[:-1] + 1]
    for mean, times in ((4, lengths[begins_on]), (12, lengths[~begins_on])):
        assert times.mean() == pytest.approx(mean, rel=0.08)
        assert times.std() / times.mean() == pytest.approx(1, abs=0.1)


def test_onoff_far_longer_than_a_block_still_changes():
    shapes = [OnOff(rate=100, on_s=20_000, off_s=20_000, seed=seed) for seed in range(10)]
    shares = [(shape.counts(0, 60 * BLOCK) > 0).mean() for shape in shapes]
    # About ten cycles each: one share has a standard deviation of 0.11, their mean one of 0.036.
    assert np.mean(shares) == pytest.approx(0.5, abs=0.11)
    assert all(0 < share < 1 for share in shares)


def aggregated_variance_hurst(counts):
    sizes = 2 ** np.arange(9)
    means = [counts[: len(counts) // size * size].reshape(-1, size).mean(axis=1) for size in sizes]
    slope = np.polyfit(np.log(sizes), np.log([part.var() for part in means]), 1)[0]
    return 1 + slope / 2


@pytest.mark.parametrize("hurst", [0.5, 0.65, 0.8, 0.9])
def test_selfsimilar_has_its_hurst_parameter_mean_and_burstiness(hurst):
    for seed in range(3):
        counts = SelfSimilar(rate=1000, hurst=hurst, cv=0.6, seed=seed).counts(0, BLOCK)
        assert aggregated_variance_hurst(counts) == pytest.approx(hurst, abs=0.1)
        assert counts.mean() == pytest.approx(100, rel=0.001)
        assert counts.std() / counts.mean() == pytest.approx(0.6, abs=0.1)
        assert counts.min() >= 0


def test_low_rates_with_chance_keep_their_mean():
    counts = SelfSimilar(rate=0.5, hurst=0.7, cv=1.0, seed=1).counts(0, 2 * BLOCK)
    assert counts.mean() * 10 == pytest.approx(0.5, rel=0.05)


# The end


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("rows", [1, 17, 1000])
def test_a_number_of_rows_is_kept_to_the_row(shape, rows):
    found = generator(**shape, rows=rows)
    end = found.end()
    whole = table(generator(**shape), 0, end)
    assert len(table(found, 0, end)) == rows
    assert table(found, 0, end).equals(whole.slice(0, rows).combine_chunks())
    assert len(table(found, 0, end - 1)) == rows - 1
    assert end_offset({"time": "ts", "columns": COLUMNS, "seed": 5, **shape, "rows": rows}, SCHEMA) == {
        "position": end
    }


def test_rows_that_share_a_microsecond_are_counted_one_by_one():
    found = generator(shape="steady", rate=4_000_000, rows=150_001, columns={})
    assert len(table(found, 0, found.end())) == 150_001
    assert max(batch.num_rows for batch in found.read(0, found.end())) <= 65_536


def test_the_end_is_the_duration_or_there_is_none():
    assert end_offset({"time": "ts", "shape": "steady", "rate": 1, "duration": "60s"}, SCHEMA) == {
        "position": 60 * SECOND
    }
    assert end_offset({"time": "ts", "shape": "steady", "rate": 1}, SCHEMA) is None


def test_event_time_begins_at_the_start():
    rows = table(generator(shape="steady", rate=10), 0, SECOND)
    assert rows["ts"][0].as_py() == datetime(2026, 1, 1, 0, 0, 0, 50_000, tzinfo=UTC)
    rows = table(generator(shape="steady", rate=10, start="2020-05-05 01:00:00+01:00"), 0, SECOND)
    assert rows["ts"][0].as_py() == datetime(2020, 5, 5, 0, 0, 0, 50_000, tzinfo=UTC)


# Speed


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def test_a_paced_generator_follows_the_clock_from_where_it_is():
    clock = Clock()
    progress = Progress(generator(shape="steady", rate=100, speed=10, duration="60s"), clock)
    assert progress.latest(0) == 0
    clock.now += 0.5
    assert progress.latest(0) == 5 * SECOND
    clock.now += 100
    assert progress.latest(5 * SECOND) == 60 * SECOND
    assert progress.latest(60 * SECOND) == 60 * SECOND
    restarted = Progress(progress.replay, clock)
    assert restarted.latest(5 * SECOND) == 5 * SECOND
    clock.now += 1
    assert restarted.latest(5 * SECOND) == 15 * SECOND


def test_silence_makes_no_batch_until_the_end():
    clock = Clock()
    silent = generator(shape="periodic", high=100, low=0, period="20s", phase="10s", duration="15s")
    progress = Progress(silent, clock)
    progress.latest(0)
    clock.now += 9
    assert progress.latest(0) == 0
    clock.now += 2
    assert progress.latest(0) == 11 * SECOND
    brief = Progress(replace(silent, duration_us=9 * SECOND), clock)
    brief.latest(0)
    clock.now += 9
    assert brief.latest(0) == 9 * SECOND


def test_as_fast_as_it_can_takes_batches_of_event_time_and_skips_silence():
    found = generator(
        shape="periodic", high=100, low=0, period="10s", speed="max", duration="12s", batch="2s"
    )
    progress, edges = Progress(found), [0]
    while progress.latest(edges[-1]) != edges[-1]:
        edges.append(progress.latest(edges[-1]))
    assert [edge // SECOND for edge in edges] == [0, 2, 4, 6, 12]
    assert progress.latest(0, everything=True) == 12 * SECOND


def test_a_batch_bounds_a_paced_run_that_is_behind_and_hurry_forgets_the_pace():
    clock = Clock()
    found = generator(shape="steady", rate=100, batch="3s", duration="10s")
    progress = Progress(found, clock)
    progress.latest(0)
    clock.now += 100
    assert progress.latest(0) == 3 * SECOND
    assert progress.latest(0, everything=True) == 10 * SECOND
    assert Progress(found, clock, hurried=True).latest(3 * SECOND) == 6 * SECOND


def test_parts_of_a_batch_are_the_batch():
    found = generator(**SHAPES["onoff"], partitions=3)
    parts = [table(found, low, high) for low, high in found.split(0, 2 * SECOND)]
    assert len(parts) == 3
    assert pa.concat_tables(parts).combine_chunks().equals(table(found, 0, 2 * SECOND))
    assert found.split(5, 5) == []


# Problems


def problems(**options):
    found = check_generator_options(options, SCHEMA, "ts", at="streams.s.source")
    return {problem.key.removeprefix("streams.s.source."): problem for problem in found}


def test_every_problem_is_named_at_once():
    found = problems(
        shape="steady",
        rat=5,
        period="1s",
        speed="fast",
        batch=5,
        seed=1.5,
        start="yesterday",
        partitions=0,
        duration="1s",
        rows=5,
    )
    assert set(found) == {
        "rate", "rat", "period", "speed", "batch", "seed", "start", "partitions", "rows",
    }  # fmt: skip
    assert found["rat"].hint == "did you mean 'rate'?"


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({}, "shape"),
        ({"shape": "stedy"}, "shape"),
        ({"shape": "steady", "rate": 0}, "rate"),
        ({"shape": "steady", "rate": "many"}, "rate"),
        ({"shape": "steady", "rate": "nan"}, "rate"),
        ({"shape": "periodic", "high": 1, "low": 2, "period": "1s"}, "low"),
        ({"shape": "periodic", "high": 1, "period": "1s", "phase": 1.5}, "phase"),
        ({"shape": "onoff", "rate": 1, "on": "1ms", "off": "1s"}, "on"),
        ({"shape": "selfsimilar", "rate": 1, "hurst": 1}, "hurst"),
        ({"shape": "selfsimilar", "rate": 1, "hurst": 0.2}, "hurst"),
        ({"shape": "steady", "rate": 1, "columns": "{bad"}, "columns"),
        ({"shape": "steady", "rate": 1, "columns": [1]}, "columns"),
    ],
)
def test_bad_options_are_refused(options, key):
    assert set(problems(**options)) == {key}


@pytest.mark.parametrize(
    ("column", "given", "key"),
    [
        ("ts", {"kind": "constant", "value": 1}, ""),
        ("sise", {"kind": "constant", "value": 1}, ""),
        ("size", {"kind": "uniform"}, ".high"),
        ("size", {"kind": "uniform", "low": 5, "high": 1}, ".high"),
        ("size", {"kind": "uniform", "high": 3_000_000_000}, ".high"),
        ("size", {"kind": "unifrom"}, ".kind"),
        ("size", {"kind": "zipf", "prefix": "x"}, ".prefix"),
        ("size", {"kind": "zipf", "value": 5}, ".value"),
        ("size", {"kind": "constant", "value": "x"}, ".value"),
        ("size", {"kind": "choice", "values": []}, ".values"),
        ("size", {"kind": "choice", "values": [1], "weights": [0]}, ".weights"),
        ("src", {"kind": "normal"}, ".kind"),
        ("seen", {"kind": "sequence"}, ".kind"),
        ("size", 5, ""),
    ],
)
def test_bad_fillings_are_refused(column, given, key):
    assert set(problems(shape="steady", rate=1, columns={column: given})) == {f"columns.{column}{key}"}


def test_a_nested_column_needs_a_filling():
    schema = (*SCHEMA, Column(name="tags", type="array<string>"))
    options = {"shape": "steady", "rate": 10}
    assert [p.key for p in check_generator_options(options, schema, "ts")] == ["source.columns"]
    options["columns"] = {"tags": {"kind": "constant", "value": ["a", "b"]}}
    assert check_generator_options(options, schema, "ts") == []
    rows = table(read_generator(options, schema, "ts"), 0, SECOND)
    assert rows["tags"].to_pylist() == [["a", "b"]] * 10


def test_a_time_column_must_be_there_and_be_a_timestamp():
    options = {"shape": "steady", "rate": 1}
    for time in (None, "tss", "size"):
        assert [p.key for p in check_generator_options(options, SCHEMA, time)] == ["source.time"]
    with pytest.raises(InputError, match="event time"):
        read_generator(options, SCHEMA)
