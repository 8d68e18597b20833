"""`levelwind run` as a process, and the commands that look at it, stop it and move its operators."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from levelwind.frontend import load_network
from levelwind.runtime.sources import reader_options
from levelwind.runtime.workloads import read_generator

# Starts Spark many times: run by make test-all.
pytestmark = [pytest.mark.spark, pytest.mark.slow]

COMMAND = [sys.executable, "-m", "levelwind.cli.main"]
NETWORK = """
name: small
streams:
  p:
    schema: {ts: timestamp, src: string, size: int}
    time: ts
    lateness: 1s
    source: {format: generator, shape: steady, rate: 200, duration: LENGTH, speed: max, batch: 1s, seed: 3,
             columns: {src: {kind: zipf, values: 20, prefix: a}, size: {kind: uniform, low: 0, high: 99}}}
operators:
  - {name: big, kind: filter, input: p, where: "size >= 10", cost: 1us, selectivity: 0.9}
  - {name: share, kind: map, input: big, select: {src: src, part: "1000 / (size - 50)"}, cost: 1us}
  - {name: sum, kind: aggregate, input: big, by: [src], window: {size: 2s}, cost: 1us,
     compute: {n: "count(*)", total: "sum(size)"}, split: {into: 2, by: src}}
outputs:
  sums: {input: sum, sink: {format: parquet, path: ./sums}}
  parts: {input: share}
"""
WAIT_S = 300.0  # a machine may be busy with other things


class Tried:
    """A network in a directory of its own, and commands on it."""

    def __init__(self, folder: Path, length: str) -> None:
        self.folder = folder
        folder.mkdir()
        self.network = folder / "net.yaml"
        self.network.write_text(NETWORK.replace("LENGTH", length))
        self.directory = folder / "run"

    def run_arguments(self, *more: str) -> list[str]:
        where = ["--run-dir", str(self.directory), "--nodes", "2", "--master", "local[2]"]
        return [*COMMAND, "run", str(self.network), *where, *more]

    @contextmanager
    def started(self, *more: str) -> Iterator[subprocess.Popen[str]]:
        # A session of its own, so that a signal to the group reaches what a Ctrl-C would reach.
        with (
            open(self.folder / "stderr", "w") as said,
            subprocess.Popen(
                self.run_arguments(*more),
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                start_new_session=True,
            ) as process,
        ):
            try:
                yield process
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def run(self, *more: str) -> dict[str, Any]:
        ended = subprocess.run(self.run_arguments(*more), capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        found: dict[str, Any] = json.loads(ended.stdout)
        return found

    def ask(self, command: str, *more: str, code: int = 0) -> Any:
        asked = [*COMMAND, command, str(self.directory), *more]
        ended = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert ended.returncode == code, ended.stderr
        return json.loads(ended.stdout)

    def ended(self, process: subprocess.Popen[str]) -> tuple[int, str, str]:
        out, _ = process.communicate(timeout=WAIT_S)
        return process.returncode, out, (self.folder / "stderr").read_text()

    @property
    def status(self) -> Mapping[str, Any]:
        file = self.directory / "status.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def wait_for_steps(self, count: int, process: subprocess.Popen[str]) -> Mapping[str, Any]:
        self.wait_for(lambda: self.status.get("steps", 0) >= count, process)
        return self.status

    def wait_for(self, done: Callable[[], bool], process: subprocess.Popen[str]) -> None:
        until = time.monotonic() + WAIT_S
        while not done():
            assert process.poll() is None, self.ended(process)
            assert time.monotonic() < until
            time.sleep(0.1)

    def sums(self) -> list[tuple[Any, ...]]:
        rows = pl.read_parquet(self.folder / "sums" / "*.parquet")
        return sorted(rows.select("src", "window_start", "n", "total").rows())

    def expected(self) -> tuple[list[tuple[Any, ...]], int]:
        """The rows of ``sums``, and how many rows divide by zero, worked out by DuckDB from all rows."""
        stream = load_network(self.network).network.streams["p"]
        replay = read_generator(reader_options(stream.source or {}, stream.time), stream.schema or ())
        rows = pl.concat([pl.from_arrow(batch) for batch in replay.read(0, replay.end())])  # noqa: F841
        grouped = duckdb.sql(
            "SET TimeZone = 'UTC'; SELECT src, time_bucket(INTERVAL 2 SECOND, ts) AS w, count(*)::BIGINT,"
            " sum(size)::BIGINT FROM rows WHERE size >= 10 GROUP BY src, w"
        ).pl()
        bad = duckdb.sql("SELECT count(*) FROM rows WHERE size = 50").fetchall()
        return sorted(grouped.rows()), bad[0][0]


def test_a_run_to_the_end_gives_the_rows_that_duckdb_gives(tmp_path):
    tried = Tried(tmp_path / "whole", "5s")
    moves = tried.folder / "moves.yaml"
    script = [{"step": 2, "operator": "sum", "to": "n1"}, {"step": 3, "operators": ["sum"], "to": "n2"}]
    moves.write_text(json.dumps(script))
    answer = tried.run("--until-idle", "--moves", str(moves))
    sums, bad = tried.expected()
    assert tried.sums() == sums
    assert answer["state"] == "finished"
    assert answer["rows"] == 1000
    assert answer["outputs"]["sums"] == len(sums)
    assert answer["dead_letters"] == bad > 0
    assert answer["steps"] == 6
    assert answer["moves"] >= 3
    assert answer["batch_seconds"]["p50"] <= answer["batch_seconds"]["p99"]
    assert answer["run"] == str(tried.directory)
    assert tried.ask("status")["state"] == "finished"
    stats = tried.ask("stats", "--network-out", str(tried.folder / "measured.yaml"))
    assert stats["streams"]["p"]["rate"] == pytest.approx(200, rel=0.02)
    assert stats["operators"]["big"]["selectivity"] == pytest.approx(0.9, abs=0.05)
    measured = load_network(tried.folder / "measured.yaml").network
    assert all(operator.cost_s for operator in measured.operators.values())
    # The same again would mix its rows with those that are there.
    again = subprocess.run(
        [*COMMAND, "run", str(tried.network), "--nodes", "2", "--run-dir", str(tried.folder / "other")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert again.returncode == 2
    assert "--checkpoint" in again.stderr
    assert not (tried.folder / "other").exists()


def test_a_run_that_is_interrupted_goes_on_where_it_was(tmp_path):
    tried = Tried(tmp_path / "parted", "6s")
    checkpoint = str(tried.folder / "checkpoint")
    with tried.started("--until-idle", "--checkpoint", checkpoint) as process:
        tried.wait_for_steps(1, process)
        os.killpg(process.pid, signal.SIGINT)
        code, out, err = tried.ended(process)
    assert code == 130, err
    assert "Traceback" not in err
    first = json.loads(out)
    assert first["state"] == "stopped"
    assert 200 <= first["rows"] < 1200
    assert tried.ask("status")["state"] == "stopped"
    second = tried.run("--until-idle", "--checkpoint", checkpoint)
    assert second["state"] == "finished"
    assert first["rows"] + second["rows"] == 1200
    assert tried.sums() == tried.expected()[0]


def test_a_live_run_is_looked_at_moved_and_stopped_from_another_process(tmp_path):
    tried = Tried(tmp_path / "live", "10m")
    with tried.started("--replan-after", "1s") as process:
        tried.wait_for(lambda: "planned anew" in (tried.folder / "stderr").read_text(), process)
        steps = tried.status["steps"]
        before = tried.wait_for_steps(steps + 2, process)["placement"]
        status = tried.ask("status")
        assert status["state"] == "running"
        assert set(status["nodes"]) == {"n1", "n2"}
        target = "n2" if before["sum[0]"] == "n1" else "n1"
        answer = tried.ask("move", "sum[0]", "--to", target)
        assert [record["operator"] for record in answer["moves"]] == ["sum[0]"]
        assert answer["moves"][0]["bytes"] > 0
        assert tried.ask("move", "smu", "--to", "n9", code=2)
        # It is at work: nobody else may have its directory.
        assert subprocess.run(tried.run_arguments(), capture_output=True, check=False).returncode == 2
        assert tried.ask("stop")["state"] == "stopped"
        code, out, err = tried.ended(process)
    assert code == 0, err
    assert json.loads(out)["state"] == "stopped"
    assert tried.ask("stats")["steps"] >= 1


PLANNING = """
streams: {a: {rate: [20, 0, 40]}, b: {rate: 10}}
operators:
  - {name: half, kind: model, input: a, cost: 1ms, selectivity: 0.5}
  - {name: both, kind: model, inputs: [half, b], cost: 1ms}
  - {name: steady, kind: model, series: [0.05, 0.1, 0.05]}
outputs: {o: {input: both}}
"""


def test_a_planning_network_runs_at_its_stated_rates(tmp_path):
    tried = Tried(tmp_path / "it", "1s")
    tried.network.write_text(PLANNING)
    ended = subprocess.run(tried.run_arguments("--until-idle"), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["outputs"] == {"o": 30 + 30}
    assert "made up, since they state no source: a (3 rates, one a second), b (10 rows/s)" in ended.stderr
    burned = {name: told["cpu_s"] for name, told in tried.ask("stats")["operators"].items()}
    assert burned["steady"] > 0


def test_a_row_that_must_not_fail_ends_the_run_by_name(tmp_path):
    tried = Tried(tmp_path / "failing", "3s")
    tried.network.write_text(tried.network.read_text() + "errors: {on_error: fail}\n")
    with tried.started("--until-idle") as process:
        code, out, err = tried.ended(process)
    assert code == 3
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("failed: operator 'share': division by zero; row {")
    assert "failing/run/spark.log" in last  # from here, if that is shorter
    assert tried.ask("status", code=1)["state"] == "failed"
