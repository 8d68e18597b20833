"""Kafka in and out against a real broker: every row counts once, through kills; bad ones stay out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import levelwind
from levelwind.errors import InputError
from levelwind.spark.checks import check_network
from levelwind.testing import kafka

ROOT = Path(__file__).parents[2]
START = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW_S = 10
SOURCES = ("a", "b", "c", "d", "e")

NETWORK = """\
name: through kafka
streams:
  packets:
    schema: {{ts: timestamp, src: string, size: long}}
    time: ts
    lateness: 60s
    source: {{format: kafka, kafka.bootstrap.servers: "{servers}", subscribe: packets,
             startingOffsets: earliest, maxOffsetsPerTrigger: 500}}
operators:
  - {{name: busy, kind: aggregate, input: packets, by: [src], window: {{size: 10s}},
     compute: {{n: "count(*)", total: "sum(size)"}}, split: {{into: 2, by: src}},
     cost: 0.001, selectivity: 0.1}}
outputs:
  plain: {{input: busy, sink: {{format: kafka, kafka.bootstrap.servers: "{servers}", topic: plain,
         key: src}}}}
  sure: {{input: busy, sink: {{format: kafka, kafka.bootstrap.servers: "{servers}", topic: sure, key: src,
        transactional: true}}}}
  table: {{input: busy, sink: {{format: parquet, path: ./table}}}}
errors: {{sink: {{format: parquet, path: ./dead}}}}
"""
# Runs to the sources' end. With an output and a step, it kills itself at the worst moment: what this output
# puts out in that step (or the next that has any) is in Kafka, and nothing on disk says so yet.
RUN = """\
import os, signal, sys
import levelwind
from levelwind.spark import kafka
from levelwind.testing.kafka import connector_jars

file, output, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
whole = kafka.write_whole

def write(path, data):
    if path.name == output and int(data) >= step:
        os.killpg(0, signal.SIGKILL)
    whole(path, data)

kafka.write_whole = write
run = levelwind.run(levelwind.load(file), 2, checkpoint="checkpoint", run_dir="run", master="local[2]",
                    settings={"spark.jars": connector_jars()}, until_idle=True)
print(run.notes)
run.close()
"""
# A producer and consumer that takes orders line by line, so that Spark starts once for all of them.
CLIENT = """\
import json, sys
from levelwind.spark.session import start_session
from levelwind.testing.kafka import connector_jars

servers = sys.argv[1]
spark = start_session("local[1]", {"spark.jars": connector_jars()})
for line in sys.stdin:
    order = json.loads(line)
    if "messages" in order:
        rows = spark.createDataFrame(order["messages"], "key string, value string").selectExpr(
            "key", "unhex(value) AS value").coalesce(1)
        rows.write.format("kafka").option("kafka.bootstrap.servers", servers).option(
            "topic", order["topic"]).save()
        print("written", flush=True)
    else:
        read = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option(
            "subscribe", order["topic"]).option("kafka.isolation.level", "read_committed").load()
        found = read.selectExpr("cast(key AS string) AS key", "cast(value AS string) AS value").collect()
        print(json.dumps([[row.key, json.loads(row.value)] for row in found]), flush=True)
"""
BAD = (b"not JSON", b'{"ts": "2026-01-01T00:00:00Z", "src": "a", "size": "many"}', b"[]", b'{"src": "\xff"}')


class Client:
    """The other side of the topics."""

    def __init__(self, servers: str, errors: Path) -> None:
        with errors.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", CLIENT, servers],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self.errors = errors

    def produce(self, topic: str, messages: list[tuple[str | None, bytes | None]]) -> None:
        written = [(key, None if value is None else value.hex()) for key, value in messages]
        assert self._order({"topic": topic, "messages": written}) == b"written\n"

    def read(self, topic: str) -> list[tuple[str, dict[str, Any]]]:
        return [(key, value) for key, value in json.loads(self._order({"topic": topic}))]

    def _order(self, order: dict[str, Any]) -> bytes:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, self.errors.read_text()[-3000:]
        return answer

    def close(self) -> None:
        with self.process:
            os.killpg(self.process.pid, signal.SIGKILL)


@pytest.fixture
def broker() -> Iterator[kafka.KafkaBroker]:
    if kafka.jars() is None:
        subprocess.run([ROOT / "scripts" / "kafka"], check=True)
    with kafka.KafkaBroker() as running:
        yield running


@pytest.fixture
def client(broker: kafka.KafkaBroker, tmp_path: Path) -> Iterator[Client]:
    made = Client(broker.servers, tmp_path / "client.log")
    yield made
    made.close()


def _packets(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {
            "ts": (START + timedelta(milliseconds=250 * number)).isoformat(),
            "src": SOURCES[number * number % 7 % len(SOURCES)],
            "size": number % 1000,
        }
        for number in range(first, first + count)
    ]


def _windows(packets: list[dict[str, Any]]) -> Counter[tuple[str, str, int, int]]:
    groups: dict[tuple[str, int], list[int]] = {}
    for packet in packets:
        second = int((datetime.fromisoformat(packet["ts"]) - START).total_seconds())
        groups.setdefault((packet["src"], second // WINDOW_S), []).append(packet["size"])
    return Counter(
        (src, _ends(START + timedelta(seconds=(window + 1) * WINDOW_S)), len(sizes), sum(sizes))
        for (src, window), sizes in groups.items()
    )


def _ends(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _messages(packets: list[dict[str, Any]]) -> list[tuple[str | None, bytes | None]]:
    return [(packet["src"], json.dumps(packet).encode()) for packet in packets]


def _run(folder: Path, output: str = "-", step: int = 0) -> str:
    """Run to the end, or until it kills itself."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, "network.yaml", output, str(step)],
        cwd=folder,
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    log = folder / "run" / "spark.log"
    said = done.stderr[-3000:] + (log.read_text()[-3000:] if log.exists() else "")
    assert done.returncode == (0 if output == "-" else -signal.SIGKILL), said
    return done.stdout


def _as_windows(rows: list[dict[str, Any]]) -> Counter[tuple[str, str, int, int]]:
    return Counter((row["src"], row["window_end"], row["n"], row["total"]) for row in rows)


@pytest.mark.spark
@pytest.mark.slow
def test_every_row_counts_once_through_kills_and_restarts(
    broker: kafka.KafkaBroker, client: Client, tmp_path: Path
) -> None:
    for topic, partitions in (("packets", 2), ("plain", 2), ("sure", 2)):
        broker.create_topic(topic, partitions)
    (tmp_path / "network.yaml").write_text(NETWORK.format(servers=broker.servers))
    packets = _packets(0, 2400)
    half = len(packets) // 2
    bad = [("a", value) for value in (*BAD, None)]
    client.produce("packets", [*_messages(packets[:half]), *bad, *_messages(packets[half:])])

    _run(tmp_path, "plain", 1)
    _run(tmp_path, "sure", 2)
    notes = _run(tmp_path)
    assert "at least once, told apart by batch_id: plain" in notes
    # What comes later goes on from the same checkpoint.
    later = _packets(4000, 300)
    client.produce("packets", _messages(later))
    _run(tmp_path)

    expected = _windows(packets + later)
    table = pl.read_parquet(tmp_path / "table" / "*.parquet")
    assert table.height == len(expected)
    rows = table.with_columns(pl.col("window_end").map_elements(_ends, pl.String)).to_dicts()
    assert _as_windows(rows) == expected
    sure = client.read("sure")
    assert _as_windows([row for _, row in sure]) == expected
    plain = client.read("plain")
    # The kill made one step come twice; its rows carry the same numbers, and the first of each will do.
    assert len(plain) > len(expected)
    first = {(row["batch_id"], row["batch_row"]): row for _, row in plain}
    assert _as_windows(list(first.values())) == expected
    assert all(key == row["src"] for key, row in (*sure, *plain))
    assert all(row["window_time"].endswith(".999999Z") for _, row in sure)

    dead = pl.read_parquet(tmp_path / "dead" / "*.parquet")
    assert dead.get_column("reason").str.starts_with("malformed: ").all()
    kept = sorted(json.loads(row)["record"] for row in dead.get_column("row"))
    assert kept == sorted([*(value.decode(errors="replace") for value in BAD), "null"])


FILES = """\
name: from files
streams:
  lines: {{schema: {{ts: timestamp, n: int}}, time: ts, source: {{format: csv, path: ./lines}}}}
  objects: {{schema: {{ts: timestamp, n: int}}, time: ts, source: {{format: json, path: ./objects}}}}
operators:
  - {{name: both, kind: union, inputs: [lines, objects], cost: 0.001, selectivity: 1}}
outputs:
  all: {{input: both, sink: {{format: parquet, path: ./{policy}}}}}
errors: {{on_error: {policy}, sink: {{format: parquet, path: ./dead}}}}
"""
RUN_FILES = """\
import levelwind
from levelwind.errors import RunError
from levelwind.spark.session import start_session

spark = start_session("local[2]")
levelwind.run(levelwind.load("dead_letter.yaml"), 2, run_dir="run", spark=spark, until_idle=True)
try:
    levelwind.run(levelwind.load("fail.yaml"), 2, run_dir="failed", spark=spark, until_idle=True)
except RunError as error:
    print(error)
"""


@pytest.mark.spark
def test_bad_lines_of_files_become_dead_letters_or_end_the_run(tmp_path: Path) -> None:
    for policy in ("dead_letter", "fail"):
        (tmp_path / f"{policy}.yaml").write_text(FILES.format(policy=policy))
    for name, text in {
        "lines": "2026-01-01 00:00:01,1\n2026-01-01 00:00:02,two\n2026-01-01 00:00:03\n"
        "2026-01-01 00:00:04,4\n",
        "objects": '{"ts": "2026-01-01 00:00:05", "n": 5}\n{"ts": "soon", "n": 6}\nseven\n',
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "part").write_text(text)
    done = subprocess.run([sys.executable, "-c", RUN_FILES], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = pl.read_parquet(tmp_path / "dead_letter" / "*.parquet")
    assert sorted(rows.get_column("n")) == [1, 4, 5]
    dead = pl.read_parquet(tmp_path / "dead" / "*.parquet").sort("operator")
    assert dead.get_column("operator").to_list() == ["lines", "lines", "objects", "objects"]
    assert dead.get_column("reason").str.starts_with("malformed: ").all()
    assert {json.loads(row)["record"] for row in dead.get_column("row")} == {
        "2026-01-01 00:00:02,two",
        "2026-01-01 00:00:03",
        '{"ts": "soon", "n": 6}',
        "seven",
    }
    assert "malformed: its record cannot be read as a row of stream" in done.stdout
    assert not (tmp_path / "fail").exists()


def test_what_cannot_be_decoded_or_keyed_is_refused_before_the_start(tmp_path: Path) -> None:
    text = NETWORK.format(servers="127.0.0.1:1").replace("key: src", "key: size")
    text = text.replace("topic: plain,", "").replace("transactional: true", "transactional: maybe")
    text = text.replace("subscribe: packets", "subscribe: packets, value: avro")
    (tmp_path / "network.yaml").write_text(text)
    with pytest.raises(InputError) as refused:
        check_network(levelwind.load(tmp_path / "network.yaml"), {}, until_idle=True)
    assert [problem.key for problem in refused.value.problems] == [
        "streams.packets.source.value",
        "outputs.plain.sink.topic",
        "outputs.plain.sink.key",
        "outputs.sure.sink.key",
        "outputs.sure.sink.transactional",
    ]


@pytest.mark.parametrize(
    ("options", "columns", "wrong"),
    [
        ("value: raw", "timestamp: timestamp, value: string", None),
        ("value: raw", "timestamp: timestamp, size: long", "value"),
        ("record: [timestamp]", "timestamp: timestamp, size: long", None),
        ("record: [timestamp, offset]", "timestamp: timestamp, size: long", "record"),
        ("record: size", "timestamp: timestamp, size: long", "record"),
    ],
)
def test_columns_of_the_message_itself(options: str, columns: str, wrong: str | None, tmp_path: Path) -> None:
    source = f"{{format: kafka, kafka.bootstrap.servers: x, subscribe: t, {options}}}"
    stream = f"{{schema: {{{columns}}}, time: timestamp, source: {source}}}"
    operator = "{name: f, kind: filter, input: s, where: 'true', cost: 0.001, selectivity: 1}"
    text = f"name: n\nstreams: {{s: {stream}}}\noperators: [{operator}]\noutputs: {{o: {{input: f}}}}\n"
    (tmp_path / "network.yaml").write_text(text)
    network = levelwind.load(tmp_path / "network.yaml")
    if wrong is None:
        check_network(network, {}, until_idle=True)
    else:
        with pytest.raises(InputError, match=f"streams.s.source.{wrong}"):
            check_network(network, {}, until_idle=True)
