"""Our sources in a real streaming query: every row once over restarts, the same rows for the same offsets."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from levelwind.model import Column
from levelwind.runtime.sources import reader_options, source_end
from levelwind.runtime.traces import read_trace
from levelwind.runtime.workloads import read_generator

pytestmark = pytest.mark.spark

TYPES = {
    "ts": "timestamp",
    "n": "bigint",
    "name": "string",
    "price": "decimal(10,2)",
    "tags": "array<string>",
}
SCHEMA = tuple(Column(name=name, type=kind) for name, kind in TYPES.items())
DDL = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
BROKEN_OFF = "broken off here"
TAGS = {"tags": {"kind": "constant", "value": ["a", "b"]}}


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    from levelwind.spark.sources import register

    shared = SparkSession.getActiveSession()
    patch = pytest.MonkeyPatch()
    patch.setenv("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.unix.domain.socket.enabled": "true",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    register(session)
    yield session
    if shared is None:
        session.stop()
    patch.undo()


class Run:
    """A query that writes down the rows of every batch, to the source's end or for a number of batches.

    The batch after the last one breaks off: it has been planned, but never was committed.
    """

    def __init__(self, spark, source, checkpoint, *, batches=None, **trigger):
        self.rows = {}
        options = reader_options(source, "ts")
        frame = spark.readStream.format(source["format"]).schema(DDL).options(**options).load()

        def take(batch, number):
            if len(self.rows) == batches:
                raise RuntimeError(BROKEN_OFF)
            self.rows[number] = batch.toArrow()

        writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
        query = writer.trigger(**trigger).start() if trigger else writer.start()
        end = source_end(source, SCHEMA, "ts")
        deadline = time.monotonic() + 90
        while query.isActive and time.monotonic() < deadline:
            progress = query.lastProgress
            if progress is not None and json.loads(progress.sources[0].endOffset) == end:
                break
            time.sleep(0.02)
        query.stop()
        failure = query.exception()
        assert (batches is not None) == (failure is not None), failure
        assert failure is None or BROKEN_OFF in str(failure)

    @property
    def whole(self):
        return pa.concat_tables([self.rows[number] for number in sorted(self.rows)]).combine_chunks()


def offsets(checkpoint):
    """(start, end) of every batch that was planned, as the checkpoint has them."""
    files = sorted((Path(checkpoint) / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    ends = [json.loads(path.read_text().splitlines()[-1])["position"] for path in files]
    return dict(enumerate(zip([0, *ends], ends, strict=False)))


def run_twice(spark, source, replay, checkpoint):
    """The rows of a run that breaks off in its fourth batch and of one that goes on, put together."""
    first = Run(spark, source, checkpoint, batches=3)
    planned = offsets(checkpoint)
    second = Run(spark, source, checkpoint)
    assert list(first.rows) == [0, 1, 2]
    assert min(second.rows) == 3
    assert offsets(checkpoint)[3] == planned[3]  # planned by the first run, replayed by the second
    rows = {**first.rows, **second.rows}
    for number, (low, high) in offsets(checkpoint).items():
        assert rows[number].equals(pa.Table.from_batches(replay.read(low, high), schema=replay.schema))
    return pa.concat_tables([rows[number] for number in sorted(rows)]).combine_chunks()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "rows.parquet"
    count = 5000
    times = pa.array(
        [1_772_323_200_000_000 + i * 2_000 for i in range(count)], type=pa.timestamp("us", tz="UTC")
    )
    table = {
        "ts": times,
        "n": pa.array(range(count), type=pa.int32()),
        "name": pa.array([f"0{i}" for i in range(count)]).dictionary_encode(),
        "price": pa.array([i / 4 for i in range(count)]),
        "tags": pa.array([[str(i), "x"] for i in range(count)]),
    }
    pq.write_table(pa.table(table), path)
    return str(path)


def test_a_trace_gives_every_row_once_over_restarts(spark, recorded, tmp_path):
    source = {"format": "trace", "path": recorded, "speed": "max", "rows": 1700, "repeat": 2, "partitions": 2}
    replay = read_trace(reader_options(source, "ts"), SCHEMA)
    rows = run_twice(spark, source, replay, tmp_path)
    assert rows["n"].to_pylist() == [*range(5000), *range(5000)]
    assert rows.equals(pa.Table.from_batches(replay.read(0, 10_000)).combine_chunks())


def test_a_generator_gives_every_row_once_over_restarts(spark, tmp_path):
    source = {
        "format": "generator",
        "shape": "onoff",
        "rate": 800,
        "on": "500ms",
        "off": "500ms",
        "seed": 4,
        "rows": 5000,
        "speed": "max",
        "batch": "2s",
        "columns": {"n": {"kind": "sequence"}, "name": {"kind": "zipf", "prefix": "10.0."}, **TAGS},
    }
    replay = read_generator(reader_options(source, "ts"), SCHEMA)
    rows = run_twice(spark, source, replay, tmp_path)
    assert rows["n"].to_pylist() == list(range(5000))
    assert rows.equals(pa.Table.from_batches(replay.read(0, replay.end())).combine_chunks())


def test_available_now_reads_to_the_end_in_batches_whatever_the_speed(spark, recorded, tmp_path):
    source = {"format": "trace", "path": recorded, "speed": 1, "batch": "4s"}
    run = Run(spark, source, tmp_path, availableNow=True)
    assert [len(rows) for _, rows in sorted(run.rows.items())] == [2000, 2000, 1000]
    assert run.whole["n"].to_pylist() == list(range(5000))


def test_a_paced_source_follows_the_clock(spark, tmp_path):
    source = {
        "format": "generator",
        "shape": "steady",
        "rate": 100,
        "speed": 20,
        "duration": "30s",
        "columns": {"n": {"kind": "sequence"}, **TAGS},
    }
    began = time.monotonic()
    run = Run(spark, source, tmp_path)
    assert time.monotonic() - began > 1.5
    assert run.whole["n"].to_pylist() == list(range(3000))


def test_what_is_wrong_is_said_by_the_query(spark, tmp_path):
    from pyspark.errors import PySparkException

    frame = spark.readStream.format("trace").schema(DDL).options(path="nowhere", time="ts", sped="1").load()
    query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(PySparkException) as raised:
        query.awaitTermination(60)
    assert "did you mean 'speed'?" in str(raised.value)
    assert "there is no such file" in str(raised.value)
