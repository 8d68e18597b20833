"""A multijoin in a network that runs in this process: windows that change on a checkpoint, rows shed."""

from __future__ import annotations

import polars as pl
import pytest

from levelwind.frontend import parse_network
from levelwind.model import Cluster
from levelwind.operators.rows import TIME
from levelwind.runtime.compatibility import check_commit, fingerprints
from levelwind.runtime.coordinator import Coordinator
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.memory import forget
from levelwind.runtime.program import Layout
from levelwind.runtime.progress import Progress, status_of
from levelwind.runtime.recording import OPERATORS, Recorder, read_statistics
from levelwind.runtime.sinks import ParquetSink
from levelwind.runtime.staging import DEAD_LETTERS

SECOND = 1_000_000


def layout(window, **told):
    stream = {"schema": {"ts": "timestamp", "v": "bigint"}, "time": "ts"}
    join = {"inputs": {"a": "p", "b": "q", "c": "p"}, "windows": dict.fromkeys("abc", window), **told}
    document = {
        "streams": {"p": stream, "q": stream},
        "operators": [{"name": "m", "kind": "multijoin", "where": "a.v <= b.v and b.v <= c.v", **join}],
        "outputs": {"out": {"input": "m"}},
    }
    return Layout(parse_network(document).network)


class World:
    """Runs on one checkpoint, each with a layout of its own."""

    def __init__(self, folder):
        self.folder = folder

    def start(self, of):
        forget()
        sinks = {name: ParquetSink(str(self.folder / (name or "dead"))) for name in ("out", DEAD_LETTERS)}
        self.coordinator = Coordinator(
            of,
            ("n1",),
            {"m": "n1"},
            directory=str(self.folder / "checkpoint"),
            executor=InProcess(),
            sinks=sinks,
            fingerprints=fingerprints(of),
        )
        last = self.coordinator.recover()
        return [] if last is None else check_commit(last, of, ("n1",))

    def step(self, seconds):
        rows = pl.DataFrame(
            {
                "ts": pl.Series([each * SECOND for each in seconds], dtype=pl.Int64).cast(TIME),
                "v": pl.Series(seconds, dtype=pl.Int64),
            }
        )
        return self.coordinator.step([[("p", rows), ("q", rows)]])

    def groups(self):
        files = sorted((self.folder / "out").glob("*.parquet"))
        frames = [pl.read_parquet(file).select("a_v", "b_v", "c_v") for file in files]
        return sorted(row for frame in frames for row in frame.rows())


def expected(last, window, kept):
    """Groups of rows a second apart whose latest is of the second ``last``."""
    times = [second for second in kept if second >= last - window]
    return sorted(
        (a, b, c) for a in times for b in times for c in times if a <= b <= c and max(a, b, c) == last
    )


@pytest.mark.parametrize("after", [1, 4])
def test_windows_change_on_a_checkpoint(tmp_path, after):
    world = World(tmp_path)
    assert world.start(layout("2s")) == []
    for second in range(8):
        world.step([second])
    before = world.groups()
    assert before == sorted(group for last in range(8) for group in expected(last, 2, range(8)))
    (note,) = world.start(layout(f"{after}s"))
    assert "m: new windows for a, b, c" in note
    for second in range(8, 14):
        world.step([second])
    # When 7 was the last, all from 5 on were held.
    more = [group for last in range(8, 14) for group in expected(last, after, range(5, 14))]
    assert world.groups() == sorted(before + more)


def test_rows_that_were_shed_are_counted(tmp_path):
    world, progress = World(tmp_path), Progress()
    of = layout("9s", shed={"rows": 3})
    world.start(of)
    recorder = Recorder(tmp_path / "statistics")
    for first in (0, 10):
        step = world.step(list(range(first, first + 5)))
        progress.add(step)
        recorder.add(step)
    recorder.flush()
    # Two of five rows of each of three inputs, twice.
    assert progress.shed == 3 * 2 * 2
    assert read_statistics(tmp_path / "statistics", OPERATORS)["shed"].to_list() == [6, 6]
    status = status_of(
        progress, "running", network=of.network, cluster=Cluster.equal(1), placement={"m": "n1"}
    )
    assert status["shed"] == 12
