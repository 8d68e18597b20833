"""Rows of outputs are on the disk before the commit that names them; what no commit names is cleared."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from levelwind.frontend import parse_network
from levelwind.operators.rows import TIME
from levelwind.runtime.commits import COMMITS, read_commit
from levelwind.runtime.coordinator import Coordinator
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.program import Layout
from levelwind.runtime.sinks import Discard, ParquetSink
from levelwind.runtime.storage import STATE

LAYOUT = Layout(
    parse_network(
        {
            "streams": {"s": {"schema": {"ts": "timestamp", "v": "int"}, "time": "ts"}},
            "operators": [
                {"name": "keep", "kind": "filter", "input": "s", "where": "v > 0"},
                {
                    "name": "sums",
                    "kind": "aggregate",
                    "input": "s",
                    "window": {"size": "1s"},
                    "compute": {"n": "sum(v)"},
                },
            ],
            "outputs": {"kept": {"input": "keep"}, "all": {"input": "s"}, "sums": {"input": "sums"}},
        }
    ).network
)


def coordinator(folder, sinks=None):
    made = {name: ParquetSink(str(folder / name)) for name in LAYOUT.network.outputs}
    return Coordinator(
        LAYOUT,
        ("n1",),
        {box.name: "n1" for box in LAYOUT.boxes},
        directory=str(folder / "checkpoint"),
        executor=InProcess(),
        sinks={**made, **(sinks or {})},
    )


def rows(second):
    times = pl.Series([second * 1_000_000, second * 1_000_000 + 1]).cast(TIME)
    return [("s", pl.DataFrame({"ts": times, "v": pl.Series([1, 2], dtype=pl.Int32)}))]


@pytest.fixture
def events(monkeypatch):
    """What reached the disk, and what was renamed, in order."""
    found: list[tuple[str, Path]] = []
    fsync, replace = os.fsync, os.replace

    def forced(descriptor):
        found.append(("forced", Path(os.readlink(f"/proc/self/fd/{descriptor}"))))
        fsync(descriptor)

    def renamed(source, target):
        found.append(("renamed", Path(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", forced)
    monkeypatch.setattr(os, "replace", renamed)
    return found


def test_what_a_commit_names_is_on_the_disk_before_it(tmp_path, events):
    run = coordinator(tmp_path)
    run.step([rows(0)])
    events.clear()
    commit = run.step([rows(5), rows(6)]).commit
    at = events.index(("renamed", tmp_path / "checkpoint" / COMMITS / "000000001.json"))
    forced = [path for what, path in events[:at] if what == "forced"]
    staged = [Path(path) for entry in commit.outbox for path in entry.staged]
    assert len(staged) > len(commit.outbox) == 3  # of the stream itself, two readers' rows are made one
    state = {path for path in forced if path.suffix == ".arrow"}
    assert len(state) == 1
    for path in (*staged, *state):
        assert path.parent in forced[forced.index(path) :]
    assert {path.parent for path in state} == {tmp_path / "checkpoint" / STATE}


def test_published_rows_are_on_the_disk_before_the_step_ends(tmp_path, events):
    coordinator(tmp_path).step([rows(5), rows(6)])
    last = {event: place for place, event in enumerate(events)}
    for name in ("kept", "all"):
        final = tmp_path / name / "part-000000000.parquet"
        assert last["renamed", final] < last["forced", tmp_path / name]
    joined = [path for what, path in events if what == "forced" and path.suffix == ".joined"]
    assert [path.parent.name for path in joined] == [".all.staging"]


def test_nothing_is_written_or_forced_for_outputs_that_nobody_reads(tmp_path, events):
    run = coordinator(tmp_path, dict.fromkeys(LAYOUT.network.outputs, Discard()))
    run.step([rows(5)])
    assert {path.parent.name for what, path in events if what == "forced" and path.is_file()} <= {
        COMMITS,
        STATE,
    }


class Broken(ParquetSink):
    """Dies before it publishes."""

    def publish(self, step, published):
        raise OSError("no more")


def test_a_new_start_clears_what_killed_attempts_have_staged(tmp_path):
    run = coordinator(tmp_path, {"kept": Broken(str(tmp_path / "kept"))})
    with pytest.raises(OSError, match="no more"):
        run.step([rows(5)])
    named = {
        path
        for entry in read_commit(str(tmp_path / "checkpoint"), 0).outbox
        for path in entry.staged
        if os.path.exists(path)
    }
    assert len(named) == 1
    left = tmp_path / ".kept.staging" / "000000001-0-0-0123456789ab-0.parquet"
    left.write_bytes(b"half a file")
    (tmp_path / ".sums.staging").mkdir(exist_ok=True)
    half_joined = tmp_path / ".sums.staging" / "000000000-0-0-0123456789ab-0.joined"
    half_joined.touch()

    class Late(Broken):
        """Would see the rows that are to be published, were they still there."""

        def publish(self, step, published):
            assert all(os.path.exists(path) for path in published.staged)

    coordinator(tmp_path, {"kept": Late(str(tmp_path / "kept"))}).recover()
    assert not left.exists()
    assert not half_joined.exists()
    assert all(os.path.exists(path) for path in named)
    coordinator(tmp_path).recover()
    assert pl.read_parquet(tmp_path / "kept" / "part-000000000.parquet").height == 2
    assert not any(os.path.exists(path) for path in named)
