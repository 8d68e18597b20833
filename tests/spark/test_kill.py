"""A run that is killed, stopped or changed goes on from its checkpoint: no row lost, none twice, none in part."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import polars as pl
import pyarrow as pa
import pytest
import same_rows
from same_rows import ALL, Server, assert_same, difference, rows_of, written

from levelwind.runtime.commits import read_commit, steps_of

pytestmark = pytest.mark.spark
FILES, ROWS, SEED = 14, 40, 11
PATIENCE_S = 600.0  # a machine may be busy with other things
NODES = 3


class Watch(threading.Thread):
    """Lists and reads the sinks all the time: whatever it sees must be whole, and must stay."""

    def __init__(self, sinks, reference):
        super().__init__(daemon=True)
        self.sinks = sinks
        self.wanted = {name: written(reference / name) for name in ALL}
        self.known = {}
        self.wrong = []
        self.looks = 0
        self.over = threading.Event()

    def run(self):
        while not self.over.is_set():
            try:
                self.look()
            except Exception as error:
                self.wrong.append(repr(error))
            time.sleep(0.002)

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
                why = difference(pl.read_parquet(path), self.wanted[name].get(file))
                if why:
                    self.wrong.append(f"{name}: {file}: {why}")

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
        self.file = same_rows.write_network(folder / "net.yaml", document)
        self.checkpoint = folder / "checkpoint"
        self.starts = 0
        self.between = 0  # kills after our commit of a batch and before Spark's
        self.amid = 0  # kills after Spark has planned a batch and before our commit of it
        self.kills = 0

    def start(self):
        self.starts += 1
        arguments = ["--until-idle", "--nodes", NODES, "--planner", "random", "--checkpoint", self.checkpoint]
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
def server(tmp_path_factory):
    server = Server(log=tmp_path_factory.mktemp("server") / "log")
    yield server
    server.close()


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


def killed_often(folder, inputs, undisturbed, ways, seed):
    run = Killed(folder, inputs, seed)
    watch = Watch(run.sinks, undisturbed)
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
    for name in ALL:  # nothing is left of attempts that came to nothing, beside what the last one wrote
        assert set(written(run.sinks / name)) == set(written(undisturbed / name))
    return run, watch


def test_three_kills(inputs, undisturbed, tmp_path):
    run, watch = killed_often(tmp_path, inputs, undisturbed, ["planned", "commit", "any"], 1)
    print(
        f"{run.kills} kills, {run.between} between the commits, {run.amid} amid a batch, {watch.looks} looks"
    )
    assert run.kills == 3


@pytest.mark.slow
def test_twenty_kills(tmp_path):
    """Moments of all kinds; the run has batches enough for all of them."""
    inputs = tmp_path / "in"
    same_rows.write_files(inputs, same_rows.arrivals(SEED + 1, 60, ROWS))
    server = Server()
    said = server.run(same_rows.network(inputs, tmp_path / "once"), nodes=1, run_dir=tmp_path / "run")
    server.close()
    assert said.get("state") == "finished", said
    ways = ["commit", "planned", "any", "alone"] * 4 + ["start", "commit", "start", "commit"]
    run, watch = killed_often(tmp_path, inputs, tmp_path / "once", ways, 2)
    print(
        f"{run.kills} kills, {run.between} between the commits, {run.amid} amid a batch, {watch.looks} looks"
    )
    assert run.kills == 20
    assert run.between > 0
    assert run.amid > 0
