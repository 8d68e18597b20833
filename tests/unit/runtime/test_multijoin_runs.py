"""A multijoin in a network that runs in this process: windows that change on a checkpoint, rows shed."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest

from levelwind.errors import InputError
from levelwind.frontend import parse_network
from levelwind.model import Cluster
from levelwind.operators.rows import TIME
from levelwind.runtime import compatibility
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
    inputs = told.get("inputs", {"a": "p", "b": "q", "c": "p"})
    join = {"inputs": inputs, "windows": dict.fromkeys(inputs, window), **told}
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
            {box.name: "n1" for box in of.boxes},
            directory=str(self.folder / "checkpoint"),
            executor=InProcess(),
            sinks=sinks,
            fingerprints=fingerprints(of),
        )
        last = self.coordinator.recover()
        return [] if last is None else check_commit(last, of, ("n1",))

    def step(self, seconds, others=None):
        """Rows of these seconds of both streams, or of others of the second."""
        rows = [
            pl.DataFrame(
                {
                    "ts": pl.Series([each * SECOND for each in own], dtype=pl.Int64).cast(TIME),
                    "v": pl.Series(own, dtype=pl.Int64),
                }
            )
            for own in (seconds, seconds if others is None else others)
        ]
        return self.coordinator.step([[("p", rows[0]), ("q", rows[1])]])

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


@pytest.mark.parametrize("method", [None, "atr", "ctr", "auto"])
@pytest.mark.parametrize("after", [1, 4])
def test_windows_change_on_a_checkpoint(tmp_path, after, method):
    world = World(tmp_path)
    told = {"diffuse": {"method": method, "instances": 3}} if method else {}
    assert world.start(layout("2s", **told)) == []
    for second in range(8):
        world.step([second])
    before = sorted(group for last in range(8) for group in expected(last, 2, range(8)))
    # Coordinated routing finds a group once the watermark has passed it.
    assert world.groups() == before or method == "ctr"
    (note,) = world.start(layout(f"{after}s", **told))
    assert "m: new windows for a, b, c" in note
    for second in range(8, 14):
        world.step([second])
    world.coordinator.close()
    # When 7 was the last, all from 5 on were held.
    more = [group for last in range(8, 14) for group in expected(last, after, range(5, 14))]
    assert world.groups() == sorted(before + more)


@pytest.mark.parametrize("method", [None, "atr", "ctr", "auto"])
def test_rows_that_come_after_a_change_are_held_by_the_new_windows(tmp_path, method):
    world = World(tmp_path)
    told = {"inputs": {"a": "p", "b": "q"}, "where": "a.v <= b.v"}
    if method:
        told["diffuse"] = {"method": method, "instances": 3}
    world.start(layout("1s", **told))
    world.step([0], [50])
    world.start(layout("20s", **told))
    # Of p there is a row now that the old window would give up at once: its row of q comes a batch later.
    world.step([40], [])
    world.step([], [52])
    world.coordinator.close()
    files = sorted((tmp_path / "out").glob("*.parquet"))
    found = [row for file in files for row in pl.read_parquet(file).select("a_v", "b_v").rows()]
    assert sorted(found) == [(40, 50), (40, 52)]


def test_a_checkpoint_from_before_rows_were_kept_goes_on_with_its_windows(tmp_path):
    told = {"diffuse": {"method": "auto", "instances": 2}}
    world, of = World(tmp_path), layout("2s", **told)
    world.start(of)
    for second in range(4):
        world.step([second])
    once = compatibility._boxes(of, compatibility._lasting_once)
    last = msgspec.structs.replace(
        world.coordinator.last, fingerprints={**world.coordinator.last.fingerprints, **once}
    )
    assert check_commit(last, of, ("n1",)) == []
    with pytest.raises(InputError) as refused:
        check_commit(last, layout("3s", **told), ("n1",))
    assert "m[in]" in [problem.key for problem in refused.value.problems]


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
