"""Our sources in a real streaming query: every row once, over restarts, and the same rows for the same offsets."""

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
TAGS = {"tags": {"kind": "constant", "value": ["a", "b"]}}


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    from levelwind.spark.sources import register

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
    session.stop()
    patch.undo()


class Run:
    """A query that writes down the rows of every batch; it is stopped between two batches."""

    def __init__(self, spark, source, checkpoint, *, batches=None, **trigger):
        self.rows = {}
        options = reader_options(source, "ts")
        frame = spark.readStream.format(source["format"]).schema(DDL).options(**options).load()
        held = []

        def take(batch, number):
            if batches is not None and len(self.rows) >= batches:
                held.append(number)
                time.sleep(0.2)  # so that the stop comes before the end of this batch
            self.rows[number] = batch.toArrow()

        writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
        query = writer.trigger(**trigger).start() if trigger else writer.start()
        deadline = time.monotonic() + 60
        try:
            while query.isActive and time.monotonic() < deadline:
                if batches is not None and len(self.rows) >= batches:
                    break
                if batches is None and not trigger and query.lastProgress is not None:
                    end = source_end(source, SCHEMA, "ts")
                    if json.loads(query.lastProgress.sources[0].endOffset) == end:
                        break
                time.sleep(0.02)
        finally:
            query.stop()
            query.awaitTermination(30)
        self.failure = query.exception()

    @property
    def whole(self):
        return pa.concat_tables([self.rows[number] for number in sorted(self.rows)]).combine_chunks()


def offsets(checkpoint):
    """(start, end) of every batch that was planned, as the checkpoint has them."""
    files = sorted((Path(checkpoint) / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    ends = [json.loads(path.read_text().splitlines()[-1])["position"] for path in files]
    return dict(enumerate(zip([0, *ends], ends, strict=False)))


def check_against(replay, run, checkpoint):
    """Every batch holds just the rows between its offsets."""
    planned = offsets(checkpoint)
    for number, rows in run.rows.items():
        low, high = planned[number]
        assert rows.equals(pa.Table.from_batches(replay.read(low, high), schema=replay.schema))


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
    source = {"format": "trace", "path": recorded, "speed": "max", "rows": 600, "repeat": 2, "partitions": 2}
    replay = read_trace(reader_options(source, "ts"), SCHEMA)
    first = Run(spark, source, tmp_path, batches=3)
    second = Run(spark, source, tmp_path)
    assert first.failure is None
    assert second.failure is None
    assert len(first.rows) >= 3
    check_against(replay, first, tmp_path)
    check_against(replay, second, tmp_path)
    for number in first.rows.keys() & second.rows.keys():
        assert first.rows[number].equals(second.rows[number])  # planned, not committed: replayed
    both = pa.concat_tables(list({**first.rows, **second.rows}.values())).combine_chunks()
    assert both["n"].to_pylist() == [*range(5000), *range(5000)]
    assert both.equals(pa.Table.from_batches(replay.read(0, 10_000)).combine_chunks())


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
        "columns": {"n": {"kind": "sequence"}, "name": {"kind": "zipf", "prefix": "10.0."}, **TAGS},
    }
    replay = read_generator(reader_options(source, "ts"), SCHEMA)
    first = Run(spark, source, tmp_path, batches=3)
    second = Run(spark, source, tmp_path)
    assert first.failure is None
    assert second.failure is None
    check_against(replay, first, tmp_path)
    check_against(replay, second, tmp_path)
    both = pa.concat_tables(list({**first.rows, **second.rows}.values())).combine_chunks()
    assert both["n"].to_pylist() == list(range(5000))
    assert both.equals(pa.Table.from_batches(replay.read(0, replay.end())).combine_chunks())


def test_available_now_reads_to_the_end_in_batches_whatever_the_speed(spark, recorded, tmp_path):
    source = {"format": "trace", "path": recorded, "speed": 1, "batch": "4s"}
    run = Run(spark, source, tmp_path, availableNow=True)
    assert run.failure is None
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
    assert run.failure is None
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
