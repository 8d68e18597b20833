"""A run that was killed, stopped or changed goes on from its checkpoint: no row lost, twice or in part."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import polars as pl
import pytest
import same_rows
from same_rows import ALL, DEAD, Server, assert_same, difference, rows_of

from levelwind.runtime.commits import read_commit, steps_of

# Starts Spark many times: run by make test-all.
pytestmark = [pytest.mark.spark, pytest.mark.slow]
FILES, ROWS, SEED = 10, 40, 11
PATIENCE_S = 600.0  # a machine may be busy with other things
PLAN = {"nodes": 3, "planner": "random"}


class Watch(threading.Thread):
    """Lists and reads the sinks all the time: what it sees must be all of a batch's rows, and must stay."""

    def __init__(self, sinks, checkpoint):
        super().__init__(daemon=True)
        self.sinks, self.checkpoint = sinks, checkpoint
        self.known = {}
        self.wrong = []
        self.looks = 0
        self.counted = 0
        self.over = threading.Event()

    def run(self):
        while not self.over.is_set():
            try:
                self.look()
            except Exception as error:
                self.wrong.append(repr(error))
            time.sleep(0.01)

    def look(self):
        self.looks += 1
        for name in ALL:
            seen = {path.name for path in (self.sinks / name).glob("*") if not path.name.startswith(".")}
            gone = {file for sink, file in self.known if sink == name} - seen
            if gone:
                self.wrong.append(f"{name}: {gone} went away")
            for file in seen:
                path = self.sinks / name / file
                at = path.stat()
                if self.known.get((name, file)) == (at.st_ino, at.st_mtime_ns):
                    continue
                if (name, file) in self.known:
                    self.wrong.append(f"{name}: {file} has changed")
                self.known[name, file] = (at.st_ino, at.st_mtime_ns)
                rows = pl.read_parquet(path).height
                wanted = self.committed(name, int(path.stem.removeprefix("part-")))
                self.counted += wanted is not None
                if wanted not in (None, rows):
                    self.wrong.append(f"{name}: {file} has {rows} rows of {wanted}")

    def committed(self, name, step):
        """How many rows the commit of a step names; None if that is no longer there."""
        try:
            commit = read_commit(str(self.checkpoint), step)
        except FileNotFoundError:
            return None
        return {entry.output or DEAD: entry.rows for entry in commit.outbox}[name]

    def close(self):
        self.over.set()
        self.join()
        self.look()
        assert not self.wrong


class Killed:
    """One run that is killed again and again, and in the end let run to its end."""

    def __init__(self, folder, inputs, seed, *, hops="within"):
        self.folder, self.sinks = folder, folder / "out"
        self.chance = random.Random(seed)
        document = same_rows.network(inputs, self.sinks, hops=hops)
        lines = {"format": "json", "path": str(folder / "lines")}
        document["outputs"]["lines"] = {"input": "cut", "sink": lines}
        self.file = same_rows.write_network(folder / "net.yaml", document)
        self.checkpoint = folder / "checkpoint"
        self.starts = 0
        self.between = 0  # kills after our commit of a batch and before Spark's
        self.amid = 0  # kills after Spark has planned a batch and before our commit of it
        self.noted = 0  # kills after Spark has noted files and before it has planned a batch with them
        self.kills = 0

    def start(self):
        self.starts += 1
        arguments = ["--until-idle", "--nodes", PLAN["nodes"], "--planner", PLAN["planner"]]
        arguments += ["--checkpoint", self.checkpoint]
        with open(self.folder / "stderr", "ab") as said:
            return subprocess.Popen(
                same_rows.command(self.file, *arguments, "--run-dir", self.folder / f"run{self.starts}"),
                env=same_rows.environment(),
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                start_new_session=True,
            )

    def numbers(self, *path):
        """The numbered files of a folder of the checkpoint."""
        try:
            names = os.listdir(self.checkpoint.joinpath(*path))
        except FileNotFoundError:
            return set()
        return {int(name.removesuffix(".json")) for name in names if name.removesuffix(".json").isdigit()}

    def wait_for_new(self, process, *path):
        """Until a file appears that was not there; False if the process has ended before."""
        before = self.numbers(*path)
        until = time.monotonic() + PATIENCE_S
        while process.poll() is None:
            if self.numbers(*path) - before:
                return True
            assert time.monotonic() < until
            time.sleep(0.0005)
        return False

    def kill(self, way):
        """Start, and kill at a moment of this kind. False if the run has ended before."""
        process = self.start()
        try:
            if way == "start":
                time.sleep(self.chance.uniform(0.5, 6))
            elif way == "commit":
                for _ in range(self.chance.randint(1, 2)):
                    self.wait_for_new(process, "commits")
            elif way == "noted":
                self.wait_for_new(process, "commits")
                self.wait_for_new(process, "spark", "sources", "0")
            elif way == "planned":
                self.wait_for_new(process, "spark", "offsets")
                time.sleep(self.chance.uniform(0, 0.2))
            else:
                self.wait_for_new(process, "commits")
                time.sleep(self.chance.uniform(0, 3))
            if process.poll() is not None:
                assert process.returncode == 0, self.said()
                return False
        finally:
            # Sometimes the driver alone: the JVM and the Python workers outlive it for a moment.
            if way == "alone":
                process.kill()
            elif process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        self.kills += 1
        self.note()
        if way == "alone":
            wait_for_end(process.pid)
        return True

    def note(self):
        planned = max(self.numbers("spark", "offsets"), default=-1)
        self.noted += max(self.numbers("spark", "sources", "0"), default=-1) > planned
        steps = steps_of(str(self.checkpoint))
        if not steps:
            return
        ours = read_commit(str(self.checkpoint), steps[-1]).batch
        if ours is not None:
            self.between += ours > max(self.numbers("spark", "commits"), default=-1)
            self.amid += ours < max(self.numbers("spark", "offsets"), default=-1)

    def finish(self):
        process = self.start()
        out, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, self.said()
        return json.loads(out)

    def said(self):
        return (self.folder / "stderr").read_text()[-3000:]


def wait_for_end(session):
    """Until no process of a session is left: a JVM whose driver is gone ends by itself."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if not any(in_session(entry.name, session) for entry in Path("/proc").iterdir()):
            return
        time.sleep(0.1)
    raise AssertionError("the JVM did not end")


def in_session(pid, session):
    try:
        return pid.isdigit() and os.getsid(int(pid)) == session
    except ProcessLookupError:
        return False


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    same_rows.write_files(folder, same_rows.arrivals(SEED, FILES, ROWS))
    return folder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, server, inputs):
    """What comes out if nothing happens."""
    folder = tmp_path_factory.mktemp("undisturbed")
    said = server.run(same_rows.network(inputs, folder / "out"), nodes=1, run_dir=folder / "run")
    assert said.get("state") == "finished", said
    return folder / "out"


def killed_often(folder, inputs, undisturbed, ways, seed, **told):
    run = Killed(folder, inputs, seed, **told)
    watch = Watch(run.sinks, run.checkpoint)
    watch.start()
    try:
        for way in ways:
            if not run.kill(way):
                break
        run.finish()
    finally:
        watch.over.set()
    watch.close()
    assert_same(run.sinks, undisturbed)
    assert_lines(folder / "lines", rows_of(undisturbed / "cut"))
    assert watch.counted > 0
    print(
        f"{run.kills} kills, {run.between} between the commits, {run.amid} amid a batch; {watch.looks} looks,"
        f" {watch.counted} of {len(watch.known)} files compared with their commits"
    )
    return run


def test_kills_while_files_are_noted(inputs, undisturbed, tmp_path):
    """Spark notes new files a moment before it plans a batch with them: some kills hit that moment."""
    run = killed_often(tmp_path, inputs, undisturbed, ["noted"] * 4, 3)
    print(f"{run.noted} kills between the two")
    assert run.kills > 0


def test_three_kills(inputs, undisturbed, tmp_path):
    run = killed_often(tmp_path, inputs, undisturbed, ["planned", "commit", "any"], 1)
    assert run.kills == 3


@pytest.mark.slow
def test_twenty_kills(tmp_path):
    """Moments of all kinds, with rows on their way between nodes at each of them."""
    inputs = tmp_path / "in"
    same_rows.write_files(inputs, same_rows.arrivals(SEED + 1, 60, ROWS))
    server = Server()
    document = same_rows.network(inputs, tmp_path / "once", hops="next")
    said = server.run(document, **PLAN, run_dir=tmp_path / "run")
    server.close()
    assert said.get("state") == "finished", said
    ways = ["commit", "planned", "any", "alone"] * 4 + ["start", "commit", "start", "commit"]
    run = killed_often(tmp_path, inputs, tmp_path / "once", ways, 2, hops="next")
    assert run.kills == 20
    assert run.between > 0
    assert run.amid > 0


# Stopped and gone on: sources and sinks of all kinds, in one session.


def stopped_and_resumed(server, document, folder, *, after=2, **asked):
    """Stop after some batches, then go on to the end in another run directory."""
    first = server.run(
        document, run_dir=folder / "first", checkpoint=folder / "checkpoint", stop_after=after, **asked
    )
    assert first.get("state") == "stopped", first
    asked.setdefault("until_idle", True)
    second = server.run(document, run_dir=folder / "second", checkpoint=folder / "checkpoint", **asked)
    assert second.get("state") == "finished", second
    return first, second


@pytest.mark.parametrize(
    "format", ["parquet", *(pytest.param(f, marks=pytest.mark.slow) for f in ("csv", "json"))]
)
def test_a_stopped_run_goes_on_from_files(server, inputs, undisturbed, tmp_path, format):
    if format != "parquet":
        found = same_rows.arrivals(SEED, FILES, ROWS)
        inputs = tmp_path / "in"
        same_rows.write_files(inputs, found, format=format)
    document = same_rows.network(inputs, tmp_path / "out", hops="next", format=format)
    first, second = stopped_and_resumed(server, document, tmp_path, nodes=2)
    assert 2 <= first["steps"] < FILES
    assert first["status"]["rows"] > 0
    assert second["steps"] + first["steps"] >= FILES + 1
    assert_same(tmp_path / "out", undisturbed)


def made_up(source, folder, sinks):
    return {
        "name": "made_up",
        "streams": {
            "p": {
                "schema": {"ts": "timestamp", "k": "string", "v": "int"},
                "time": "ts",
                "lateness": "1s",
                "source": source,
            }
        },
        "operators": [
            {
                "name": "sums",
                "kind": "aggregate",
                "input": "p",
                "by": "k",
                "window": {"size": "3s"},
                "compute": {"n": "count(*)", "s": "sum(v)"},
            }
        ],
        "outputs": {name: {"input": "sums", **sink} for name, sink in sinks.items()},
        "errors": {"sink": {"format": "parquet", "path": str(folder / "dead")}},
    }


GENERATOR = {
    "format": "generator",
    "shape": "steady",
    "rate": 50,
    "duration": "20s",
    "speed": "max",
    "batch": "1s",
    "seed": 3,
    "columns": {
        "k": {"kind": "zipf", "values": 5, "prefix": "a"},
        "v": {"kind": "uniform", "low": 0, "high": 9},
    },
}


def write_trace(path):
    start = datetime(2024, 1, 1, tzinfo=UTC)
    rows = [(start + timedelta(milliseconds=20 * n), f"k{n % 4}", n % 10) for n in range(1000)]
    schema = {"ts": pl.Datetime("us", "UTC"), "k": pl.String, "v": pl.Int32}
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(path)


@pytest.mark.parametrize("kind", ["generator", "trace"])
def test_a_stopped_run_goes_on_in_every_sink(server, tmp_path, kind):
    source = GENERATOR
    if kind == "trace":
        write_trace(tmp_path / "trace.parquet")
        source = {
            "format": "trace",
            "path": str(tmp_path / "trace.parquet"),
            "speed": "max",
            "batch": "1s",
        }
    once = {"whole": {"sink": {"format": "parquet", "path": str(tmp_path / "whole")}}}
    said = server.run(made_up(source, tmp_path / "once", once), nodes=1, run_dir=tmp_path / "once")
    assert said.get("state") == "finished", said
    wanted = rows_of(tmp_path / "whole")
    sinks = {
        "files": {"sink": {"format": "parquet", "path": str(tmp_path / "files")}},
        "memory": {},
        "console": {"sink": {"format": "console"}},
        "noop": {"sink": {"format": "noop"}},
        "lines": {"sink": {"format": "json", "path": str(tmp_path / "lines")}},
    }
    first, second = stopped_and_resumed(server, made_up(source, tmp_path, sinks), tmp_path, after=5, nodes=2)
    assert any("at least once" in note for note in first["notes"])
    assert difference(rows_of(tmp_path / "files"), wanted) == ""
    folders = [tmp_path / part / "outputs" / "memory" for part in ("first", "second")]
    parts = [rows for rows in map(rows_of, folders) if rows is not None]
    assert difference(pl.concat(parts), wanted) == ""
    assert_lines(tmp_path / "lines", wanted)
    counted = [run["status"]["outputs"].get("noop", 0) for run in (first, second)]
    assert sum(counted) == wanted.height
    assert not list((tmp_path / "checkpoint" / "outbox").rglob("*.parquet"))


def assert_lines(folder, wanted):
    """What a Spark writer wrote as JSON lines, repeats left out."""
    lines = [json.loads(line) for path in folder.glob("*.json") for line in path.read_text().splitlines()]
    once = {json.dumps(line, sort_keys=True) for line in lines}
    assert all("batch_id" in line for line in lines)
    assert len(once) == wanted.height
    found = sorted(
        (line.get("k", ""), line["window_start"][:19], line["n"]) for line in map(json.loads, once)
    )
    stamp = pl.col("window_start").dt.strftime("%Y-%m-%dT%H:%M:%S")
    assert found == sorted(wanted.select(pl.col("k").fill_null(""), stamp, "n").rows())


def test_rows_by_micro_batch_come_once(server, tmp_path):
    """An endless source, stopped twice."""
    source = {"format": "rate-micro-batch", "rowsPerBatch": 10, "startTimestamp": 1_700_000_000_000}
    document = {
        "name": "endless",
        "streams": {
            "p": {
                "schema": {"timestamp": "timestamp", "value": "bigint"},
                "time": "timestamp",
                "source": source,
            }
        },
        "operators": [{"name": "even", "kind": "filter", "input": "p", "where": "value % 2 = 0"}],
        "outputs": {"even": {"input": "even", "sink": {"format": "parquet", "path": str(tmp_path / "even")}}},
    }
    for number in range(2):
        said = server.run(
            document,
            run_dir=tmp_path / f"run{number}",
            checkpoint=tmp_path / "checkpoint",
            until_idle=False,
            stop_after=3,
        )
        assert said.get("state") == "stopped", said
    values = sorted(rows_of(tmp_path / "even").get_column("value"))
    assert len(values) >= 6 * 5
    assert values == list(range(0, 2 * len(values), 2))


# A network that changed since the checkpoint was made.


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, server, inputs):
    """A run that was stopped after a few batches."""
    folder = tmp_path_factory.mktemp("stopped")
    document = same_rows.network(inputs, folder / "out")
    asked = {"nodes": 1, "run_dir": folder / "run", "checkpoint": folder / "checkpoint", "stop_after": 3}
    said = server.run(document, **asked)
    assert said.get("state") == "stopped", said
    return folder


@pytest.fixture
def again(stopped, inputs, tmp_path):
    """A copy of the stopped run, and its network."""
    shutil.copytree(stopped / "out", tmp_path / "out")
    shutil.copytree(stopped / "checkpoint", tmp_path / "checkpoint")
    return same_rows.network(inputs, tmp_path / "out")


def go_on(server, document, folder):
    return server.run(document, nodes=1, run_dir=folder / "run", checkpoint=folder / "checkpoint")


def operator(document, name):
    return next(told for told in document["operators"] if told["name"] == name)


def test_new_operators_start_empty_and_the_others_go_on(server, undisturbed, again, tmp_path):
    again["operators"].append(
        {
            "name": "fresh",
            "kind": "aggregate",
            "input": "both",
            "window": {"size": "2s"},
            "compute": {"n": "count(*)"},
        }
    )
    again["outputs"]["fresh"] = {"input": "fresh", "sink": {"format": "parquet", "path": str(tmp_path / "f")}}
    del again["outputs"]["few"]
    again["operators"].remove(operator(again, "few"))
    said = go_on(server, again, tmp_path)
    assert said.get("state") == "finished", said
    assert "new, start empty: fresh" in said["notes"]
    assert "gone, their state is given up: few" in said["notes"]
    assert_same(tmp_path / "out", undisturbed, [name for name in ALL if name != "few"])
    counted = rows_of(tmp_path / "f").get_column("n").sum()
    assert 0 < counted < rows_of(undisturbed / "cut").get_column("n").sum()


def refused(document, folder, *names):
    """The command line refuses it before it starts anything, and says what is the matter."""
    file = same_rows.write_network(folder / "net.json", document)
    command = same_rows.command(file, "--nodes", 1, "--until-idle", "--checkpoint", folder / "checkpoint")
    ended = subprocess.run(
        [*command, "--run-dir", folder / "refused"],
        env=same_rows.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2, ended.stderr
    for name in names:
        assert name in ended.stdout + ended.stderr
    assert not (folder / "refused").exists()


def test_a_changed_operator_with_state_is_refused(again, tmp_path):
    operator(again, "slide")["window"] = {"size": "5s", "slide": "1s"}
    refused(again, tmp_path, "slide")


def test_a_changed_source_is_refused(again, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    again["streams"]["b"]["source"]["path"] = str(tmp_path / "elsewhere")
    refused(again, tmp_path, "streams.b")


@pytest.mark.parametrize("known", [True, False])
def test_a_checkpoint_of_a_later_version_is_refused(again, tmp_path, known):
    step = steps_of(str(tmp_path / "checkpoint"))[-1]
    path = tmp_path / "checkpoint" / "commits" / f"{step:09d}.json"
    told = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode({**told, "format": 99} if known else {"format": 99, "steps": []}))
    refused(again, tmp_path, "99", "newer version")


def test_an_interrupted_run_goes_on(inputs, undisturbed, tmp_path):
    run = Killed(tmp_path, inputs, 0)
    process = run.start()
    assert run.wait_for_new(process, "commits")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, run.said()
    assert json.loads(out)["state"] == "stopped"
    run.finish()
    assert_same(run.sinks, undisturbed)
