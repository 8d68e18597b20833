"""Recorded streams: every row once, by its own time, at the speed that was asked for."""

from __future__ import annotations

import itertools
import json
import os
import pickle
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.errors import InputError
from levelwind.model import Column
from levelwind.runtime import sources, trace_files
from levelwind.runtime.replay import Progress
from levelwind.runtime.source_options import arrow_type
from levelwind.runtime.traces import check_trace_options, end_offset, read_trace

SECOND = 1_000_000
SCHEMA = tuple(
    Column(name=name, type=kind)
    for name, kind in {"ts": "timestamp", "n": "bigint", "name": "string"}.items()
)
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
# Seconds after the beginning, by row: two ties, one gap, and rows 3 and 6 out of order.
SECONDS = [0.0, 0.5, 0.5, 0.25, 1.5, 7.0, 6.5, 7.0]


def moments(seconds):
    return [BEGIN + timedelta(seconds=value) for value in seconds]


def columns(seconds):
    count = len(seconds)
    return {
        "ts": pa.array(moments(seconds), type=pa.timestamp("us", tz="UTC")),
        "n": pa.array(range(count), type=pa.int32()),
        "name": pa.array([f"0{i}" for i in range(count)]),
        "kind": pa.array([i % 2 for i in range(count)], type=pa.int16()),
    }


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "rows.parquet"
    pq.write_table(pa.table(columns(SECONDS)), path)
    return str(path)


def trace(path, **options):
    return read_trace({"time": "ts", "path": path, **options}, SCHEMA)


def rows(found, start=0, end=None):
    """(seconds since the beginning, n) of rows."""
    end = found.end() if end is None else end
    read = pa.Table.from_batches(found.read(start, end), schema=found.schema)
    return [((row["ts"] - BEGIN).total_seconds(), row["n"]) for row in read.to_pylist()]


IN_TIME = [(0.0, 0), (0.25, 3), (0.5, 1), (0.5, 2), (1.5, 4), (6.5, 6), (7.0, 5), (7.0, 7)]


def test_rows_come_in_the_order_of_time_ties_in_the_order_of_the_file(recorded):
    assert rows(trace(recorded)) == IN_TIME
    assert end_offset({"time": "ts", "path": recorded}, SCHEMA) == {"position": 8}


def test_the_order_of_the_file_keeps_rows_that_come_late(recorded):
    found = trace(recorded, order="file")
    assert rows(found) == list(zip(SECONDS, range(8), strict=True))
    # A row comes when the latest time so far has come.
    begin = found.moment(0)
    due = [found.reached(0, begin + int(second * SECOND)) for second in (0, 0.25, 0.5, 1.5, 6.5, 7)]
    assert due == [1, 1, 4, 5, 5, 8]


def write_csv(path, table):
    pcsv.write_csv(table, path)


def write_json(path, table):
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist()))


@pytest.mark.parametrize("zone", ["", "Z", "+00:00"])
@pytest.mark.parametrize("end", ["csv", "jsonl"])
def test_text_files_are_read_as_the_declared_types(tmp_path, end, zone):
    table = pa.table(columns(SECONDS))
    text = pa.array([f"{moment:%Y-%m-%dT%H:%M:%S.%f}{zone}" for moment in moments(SECONDS)])
    table = table.set_column(0, "ts", text)
    path = tmp_path / f"rows.{end}"
    (write_csv if end == "csv" else write_json)(path, table)
    found = trace(str(path))
    assert check_trace_options({"path": str(path)}, SCHEMA, "ts") == []
    assert rows(found) == IN_TIME
    names = pa.Table.from_batches(found.read(0, 8))["name"].to_pylist()
    assert names == [f"0{n}" for _, n in IN_TIME]  # no zero was lost on the way


@pytest.mark.parametrize("end", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize(("unit", "per_s"), [("s", 1), ("ms", 1000), ("us", SECOND)])
def test_times_may_be_numbers_with_a_unit(tmp_path, end, unit, per_s):
    numbers = [moment.timestamp() * per_s for moment in moments(SECONDS)]
    kind = pa.float64() if unit == "s" else pa.int64()
    table = pa.table({**columns(SECONDS), "ts": pa.array(numbers, type=pa.float64()).cast(kind)})
    path = tmp_path / f"rows.{end}"
    if end == "parquet":
        pq.write_table(table, path)
    else:
        (write_csv if end == "csv" else write_json)(path, table)
    assert rows(trace(str(path), unit=unit)) == IN_TIME
    assert [p.key for p in check_trace_options({"path": str(path)}, SCHEMA, "ts")] == ["source.unit"]


def test_no_word_in_a_csv_file_is_null(tmp_path):
    (tmp_path / "rows.csv").write_text('ts,n,name\n2026-03-01,1,NA\n2026-03-02,,\n2026-03-03,3,""\n')
    read = pa.Table.from_batches(trace(str(tmp_path / "rows.csv")).read(0, 3))
    assert read["name"].to_pylist() == ["NA", None, ""]
    assert read["n"].to_pylist() == [1, None, 3]


def test_a_directory_is_its_files_in_the_order_of_their_names(tmp_path):
    table = pa.table(columns(SECONDS))
    pq.write_table(table.slice(0, 3), tmp_path / "a.parquet")
    pq.write_table(table.slice(3, 2), tmp_path / "b.parquet")
    write_csv(tmp_path / "c.csv", table.slice(5))
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "README.md").write_text("")
    assert rows(trace(str(tmp_path))) == IN_TIME
    assert [n for _, n in rows(trace(str(tmp_path), order="file"))] == list(range(8))


def test_where_takes_a_part_and_streams_of_one_file_stay_in_step(recorded):
    odd, even = (trace(recorded, where=f"kind = {kind}", start="2026-03-02T00:00:00Z") for kind in (1, 0))
    day = 86_400
    assert rows(odd) == [(second + day, n) for second, n in IN_TIME if n % 2 == 1]
    assert rows(even) == [(second + day, n) for second, n in IN_TIME if n % 2 == 0]
    # The odd rows begin 0.25 s after the file does.
    assert odd.moment(0) == even.moment(0)
    assert [odd.reached(0, odd.moment(0) + int(s * SECOND)) for s in (0, 0.25)] == [0, 1]
    named = trace(recorded, where="name = '03'")
    assert rows(named) == [(0.25, 3)]


def test_a_repeated_trace_moves_on_in_time(recorded):
    found = trace(recorded, repeat=3)
    span = 7.0 + 1.0  # its length and the mean distance of rows
    assert rows(found) == [(second + turn * span, n) for turn in range(3) for second, n in IN_TIME]
    assert found.end() == 24
    assert trace(recorded, repeat="forever").end() is None
    assert rows(trace(recorded, repeat="forever"), 800, 801) == [(100 * span, 0)]


@pytest.mark.parametrize("scale", [0.1, 0.5, 1, 1.5, 2, 3.25])
def test_scale_repeats_rows_as_evenly_as_can_be(recorded, scale):
    found = trace(recorded, scale=scale)
    numbers = [n for _, n in rows(found)]
    assert len(numbers) == int(8 * scale)
    times = [numbers.count(n) for _, n in IN_TIME]
    assert set(times) <= {int(scale), int(scale) + (scale % 1 > 0)}
    assert numbers == [n for (_, n), count in zip(IN_TIME, times, strict=True) for _ in range(count)]


@given(
    seconds=st.lists(st.integers(0, 50), min_size=1, max_size=40),
    cuts=st.lists(st.integers(0, 1000), max_size=5),
    scale=st.sampled_from([1, 0.4, 2, 2.5]),
    repeat=st.integers(1, 3),
    order=st.sampled_from(["time", "file"]),
)
@settings(max_examples=60)
def test_any_cuts_give_the_same_whole(tmp_path_factory, seconds, cuts, scale, repeat, order):
    path = tmp_path_factory.mktemp("cut") / "rows.parquet"
    pq.write_table(pa.table(columns(seconds)), path)
    found = trace(str(path), scale=scale, repeat=repeat, order=order)
    end, origin = found.end(), seconds[0] if order == "file" else min(seconds)
    edges = [0, *sorted(cut % (end + 1) for cut in cuts), end]
    pieces = [row for low, high in itertools.pairwise(edges) for row in rows(found, low, high)]
    assert pieces == rows(found)
    assert len(pieces) == end
    # By the clock: at any moment those rows have come that are not after it, nor after one that is before.
    expected = seconds if order == "time" else np.maximum.accumulate(seconds)
    round_length = (max(seconds) - origin) + max(1e-6, (max(seconds) - origin) / max(1, len(seconds) - 1))
    turns = np.arange(end) // (end // repeat) if end else np.zeros(0)
    arrivals = np.asarray([expected[n] for _, n in pieces]) + turns * round_length
    for moment in np.arange(0, 170, 7.01) + origin:
        due = found.reached(0, round((BEGIN.timestamp() + moment) * SECOND))
        assert due == (arrivals <= moment).sum()


class Clock:
    def __init__(self):
        self.now = 50.0

    def __call__(self):
        return self.now


def test_speed_is_event_time_per_time(recorded):
    clock = Clock()
    progress = Progress(trace(recorded, speed=10), clock)
    assert progress.latest(0) == 1
    clock.now += 0.049
    assert progress.latest(1) == 2
    clock.now += 0.001
    assert progress.latest(2) == 4
    clock.now += 0.1
    assert progress.latest(4) == 5
    clock.now += 10
    assert progress.latest(5) == 8
    assert progress.latest(8) == 8


def test_a_restart_goes_on_from_the_stored_offset(recorded):
    clock = Clock()
    restarted = Progress(trace(recorded), clock)
    assert restarted.latest(5) == 6  # the next row, 5 s after the last, has waited long enough
    clock.now += 0.5
    assert restarted.latest(6) == 8


@pytest.mark.parametrize(
    ("options", "edges"),
    [
        ({}, [0, 4, 5, 6, 8]),  # seconds 0, 1, 6 and 7: those without rows are no batches
        ({"batch": "500ms"}, [0, 2, 4, 5, 6, 8]),
        ({"batch": "1h"}, [0, 8]),
        ({"rows": 3}, [0, 3, 6, 8]),
        ({"rows": 3, "scale": 2}, [0, 3, 6, 9, 12, 15, 16]),
        ({"where": "kind = 1"}, [0, 2, 4]),
        ({"order": "file"}, [0, 4, 5, 8]),
        ({"repeat": 2, "batch": "10s"}, [0, 13, 16]),
        ({"repeat": 2, "order": "file", "where": "kind = 1"}, [0, 2, 4, 6, 8]),
    ],
)
def test_as_fast_as_it_can_takes_a_batch_at_a_time(recorded, options, edges):
    found, seen = trace(recorded, speed="max", **options), [0]
    progress = Progress(found)
    while progress.latest(seen[-1]) != seen[-1]:
        seen.append(progress.latest(seen[-1]))
    assert seen == edges
    assert progress.latest(0, everything=True) == edges[-1]


def test_rows_bound_a_paced_run_that_is_behind(recorded):
    clock = Clock()
    progress = Progress(trace(recorded, rows=3), clock)
    progress.latest(0)
    clock.now += 100
    assert progress.latest(1) == 4
    assert progress.latest(1, everything=True) == 8


def test_an_empty_trace_ends_at_once(tmp_path):
    path = str(tmp_path / "rows.parquet")
    pq.write_table(pa.table(columns([])), path)
    for options in ({}, {"speed": "max"}, {"repeat": "forever"}, {"where": "kind = 1"}):
        found = trace(path, **options)
        assert found.end() == 0
        assert Progress(found).latest(0) == 0
        assert rows(found) == []


def test_a_file_is_read_once_and_again_when_it_changes(recorded, tmp_path, monkeypatch):
    path = str(tmp_path / "rows.parquet")
    pq.write_table(pa.table(columns(SECONDS)), path)
    reads = []
    read_parquet = trace_files._READERS["parquet"]
    monkeypatch.setitem(
        trace_files._READERS, "parquet", lambda *args: reads.append(list(args[1])) or read_parquet(*args)
    )
    for _ in range(3):
        found = trace(path)
        assert rows(found) == IN_TIME
    assert reads == [["ts"], ["ts", "n", "name"]]  # the times alone say how far it has come
    pq.write_table(pa.table(columns(SECONDS[:2])), path)
    os.utime(path, ns=(1, 1))
    assert rows(trace(path)) == [(0.0, 0), (0.5, 1)]


def test_a_trace_is_small_when_it_is_sent_to_workers(recorded):
    found = trace(recorded)
    rows(found)
    assert len(pickle.dumps(found)) < 1500


def test_parts_of_a_batch_are_the_batch(recorded):
    found = trace(recorded, partitions=3)
    parts = found.split(1, 8)
    assert len(parts) == 3
    assert [row for low, high in parts for row in rows(found, low, high)] == IN_TIME[1:]


def test_options_as_text_mean_the_same_as_in_a_file(recorded):
    source = {"format": "trace", "path": recorded, "scale": 1.5, "repeat": 2, "speed": 3, "start": BEGIN}
    told = read_trace(sources.reader_options(source, "ts"), SCHEMA)
    assert told == trace(recorded, scale=1.5, repeat=2, speed=3, start=BEGIN)
    assert sources.source_end(source, SCHEMA, "ts") == {"position": 24}
    assert sources.source_end({"format": "kafka"}, SCHEMA, "ts") is None
    assert sources.check_source({"format": "kafka", "topic": "x"}, SCHEMA, "ts") == []
    assert sources.reader_options({"format": "kafka", "topic": "x"}, "ts") == {"topic": "x"}


# Problems


def problems(**options):
    return [problem.key for problem in check_trace_options(options, SCHEMA, "ts", at="")]


def test_every_problem_is_named_at_once(recorded):
    found = check_trace_options(
        {
            "path": recorded,
            "sped": 1,
            "speed": 0,
            "batch": "1s",
            "rows": 5,
            "repeat": 0,
            "scale": -1,
            "start": "soon",
            "where": "kind > 3",
            "order": "name",
            "unit": "h",
            "partitions": "two",
        },
        SCHEMA,
        "ts",
        at="streams.s.source",
    )
    keys = [problem.key.removeprefix("streams.s.source.") for problem in found]
    assert sorted(keys) == sorted(
        ["sped", "speed", "rows", "repeat", "scale", "start", "where", "order", "unit", "partitions"]
    )
    assert next(problem.hint for problem in found if "sped" in problem.key) == "did you mean 'speed'?"


def test_bad_files_and_columns_are_refused(recorded, tmp_path):
    assert problems() == ["path"]
    assert problems(path=str(tmp_path / "none.parquet")) == ["path"]
    assert problems(path=str(tmp_path)) == ["path"]
    (tmp_path / "rows.txt").write_text("x")
    assert problems(path=str(tmp_path / "rows.txt")) == ["path"]
    (tmp_path / "rows.parquet").write_text("no parquet")
    assert problems(path=str(tmp_path / "rows.parquet")) == ["path"]
    missing = (*SCHEMA, Column(name="nme", type="string"), Column(name="port", type="int"))
    found = check_trace_options({"path": recorded}, missing, "ts")
    assert [problem.rule for problem in found] == [
        "the file has no column nme",
        "the file has no column port",
    ]
    assert found[0].hint == "did you mean 'name'?"
    with pytest.raises(InputError, match="no column nme"):
        read_trace({"path": recorded, "time": "ts"}, missing)


@pytest.mark.parametrize("where", ["kind", "knd = 1", "kind = x", "kind = 77"])
def test_a_bad_where_is_refused(recorded, where):
    assert problems(path=recorded, where=where) == ["where"]


def test_bad_times_are_found_before_the_start(recorded, tmp_path):
    assert problems(path=recorded, unit="s") == ["unit"]
    gap = columns(SECONDS)
    gap["ts"] = pa.array([None, *gap["ts"].to_pylist()[1:]], type=gap["ts"].type)
    pq.write_table(pa.table(gap), tmp_path / "null.parquet")
    assert problems(path=str(tmp_path / "null.parquet")) == ["path"]
    (tmp_path / "bad.csv").write_text("ts,n,name\n2026-01-01T00:00:00Z,1,a\nsoon,2,b\n")
    assert problems(path=str(tmp_path / "bad.csv")) == ["path"]


def test_a_value_that_does_not_fit_its_type_is_refused_when_it_is_read(tmp_path):
    (tmp_path / "bad.csv").write_text("ts,n,name\n2026-01-01T00:00:00Z,x,a\n")
    with pytest.raises(InputError, match=r"bad\.csv"):
        rows(trace(str(tmp_path / "bad.csv")))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("decimal(10,2)", pa.decimal128(10, 2)),
        ("array<bigint>", pa.list_(pa.field("element", pa.int64()))),
        ("map<string,decimal(5,1)>", pa.map_(pa.string(), pa.decimal128(5, 1))),
        (
            "struct<a:int,b:array<string>>",
            pa.struct([("a", pa.int32()), ("b", pa.list_(pa.field("element", pa.string())))]),
        ),
    ],
)
def test_types_of_spark_have_their_arrow_types(text, kind):
    assert arrow_type(text) == kind
