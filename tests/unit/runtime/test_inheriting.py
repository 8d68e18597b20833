"""Operators go on from the state of the one that computed for them, when that one goes."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from levelwind.errors import InputError, RunError
from levelwind.frontend import parse_network
from levelwind.frontend.addition import extended
from levelwind.operators.rows import TIME
from levelwind.rewrite import Shared, share
from levelwind.rewrite.removal import without
from levelwind.rewrite.reuse import inherited, shared_anew
from levelwind.runtime.batch import Batch
from levelwind.runtime.commits import Version, read_commit, steps_of
from levelwind.runtime.compatibility import check_commit, fingerprints
from levelwind.runtime.coordinator import Coordinator
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.memory import forget, recall
from levelwind.runtime.program import Layout
from levelwind.runtime.sinks import ParquetSink
from levelwind.runtime.staging import DEAD_LETTERS

NODES = ("n1", "n2")
TOTAL = {"kind": "aggregate", "window": {"size": "10s"}, "compute": {"total": "sum(v)"}}


def total(name, **more):
    return {"name": name, "input": "p", **TOTAL, **more}


def made(*operators):
    told = {
        "streams": {"p": {"schema": {"ts": "timestamp", "v": "bigint"}, "time": "ts"}},
        "operators": list(operators),
        "outputs": {told["name"]: {"input": told["name"]} for told in operators},
    }
    return parse_network(told).network


class World:
    """A run in a folder: one row a second, of the value 1, so that each full window has a total of 10."""

    def __init__(self, folder, network, *, reuse=True):
        self.folder, self.second = folder, 0
        self.start(network, reuse=reuse)

    def start(self, network, *, reuse=True):
        """As a process begins that knows the checkpoint alone; returns what it says of it."""
        forget()
        directory = str(self.folder / "checkpoint")
        steps = steps_of(directory)
        last = read_commit(directory, steps[-1]) if steps else None
        running = () if last is None else {name.partition("[")[0] for name in last.boxes}
        self.network, self.reuse = network, reuse
        self.shared = share(network, prefer=running) if reuse else Shared.alone(network)
        layout = Layout(self.shared.network)
        notes = [] if last is None else check_commit(last, layout, NODES, Layout(network))
        placement = {box.name: NODES[box.index % 2] for box in layout.boxes}
        self.coordinator = Coordinator(
            layout, NODES, placement, directory=directory, executor=InProcess(), **self.told()
        )
        self.coordinator.recover()
        return notes

    def told(self):
        names = (*self.network.outputs, DEAD_LETTERS)
        return {
            "sinks": {name: ParquetSink(str(self.folder / (name or "dead"))) for name in names},
            "fingerprints": fingerprints(Layout(self.network)),
            "version": Version(network="", origin=""),
            "served_by": self.shared.served_by,
        }

    def change(self, network):
        before, self.network = self.shared, network
        self.shared = shared_anew(network, before) if self.reuse else Shared.alone(network)
        layout = Layout(self.shared.network)
        placement = {box.name: NODES[box.index % 2] for box in layout.boxes}
        self.coordinator.change(layout, placement, inherited=inherited(before, self.shared), **self.told())

    def read(self, seconds):
        times = [(self.second + each) * 1_000_000 for each in range(seconds)]
        self.second += seconds
        frame = pl.DataFrame({"ts": pl.Series(times, dtype=pl.Int64).cast(TIME), "v": [1] * seconds})
        return self.coordinator.step([[("p", frame)]], batch=self.coordinator.step_number)

    def totals(self, output):
        """The total of each window by the second in which it begins."""
        rows = pl.read_parquet(self.folder / output / "*.parquet").select("window_start", "total").rows()
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        return {int((start.replace(tzinfo=UTC) - epoch).total_seconds()): value for start, value in rows}


@pytest.fixture(params=["remembered", "forgotten"])
def memory(request):
    """Whether worker processes have the state at hand, or have to read it."""
    return forget if request.param == "forgotten" else lambda: None


def test_an_open_window_passes_to_the_one_that_stays(tmp_path, memory):
    world = World(tmp_path, made(total("a"), total("b")))
    world.read(15)
    memory()
    world.change(without(world.network, ["a"]))
    world.read(10)
    assert world.totals("a") == {0: 10}
    assert world.totals("b") == {0: 10, 10: 10}


def test_state_passes_on_twice_between_two_batches(tmp_path, memory):
    world = World(tmp_path, made(total("a"), total("b"), total("c")))
    world.read(15)
    memory()
    for gone in ("a", "b"):
        world.change(without(world.network, [gone]))
    world.read(10)
    assert world.totals("c") == {0: 10, 10: 10}


def test_instances_pass_on_each_its_own(tmp_path, memory):
    split = {"split": {"into": 2, "by": "v"}, "by": "v"}
    world = World(tmp_path, made(total("a", **split), total("b", **split)))
    world.read(15)
    memory()
    world.change(without(world.network, ["a"]))
    world.read(10)
    assert world.totals("b") == {0: 10, 10: 10}


def test_a_name_that_comes_back_with_another_meaning_starts_empty(tmp_path, memory):
    world = World(tmp_path, made(total("a"), total("b")))
    world.read(15)
    memory()
    world.change(without(world.network, ["a"]))
    other = {"operators": [total("a", compute={"total": "sum(v * 2)"})], "outputs": {"a": {"input": "a"}}}
    world.change(extended(world.network, other))
    world.read(10)
    assert world.totals("b") == {0: 10, 10: 10}
    assert world.totals("a") == {0: 10, 10: 2 * 5}  # of what came since, twice


def test_one_that_is_no_longer_served_goes_on_beside_the_one_that_computed_for_it(tmp_path, memory):
    world = World(tmp_path, made(total("a"), total("b")))
    world.read(15)
    memory()
    world.reuse = False
    world.change(world.network)
    assert set(world.shared.network.operators) == {"a", "b"}
    world.read(10)
    assert world.totals("a") == world.totals("b") == {0: 10, 10: 10}
    # What computes goes on computing, though it need not.
    world.reuse = True
    world.change(world.network)
    assert not world.shared.served_by
    world.read(10)
    assert world.totals("a") == world.totals("b") == {0: 10, 10: 10, 20: 10}


def test_a_run_goes_on_from_a_file_without_the_one_that_computed(tmp_path):
    world = World(tmp_path, made(total("a"), total("b")))
    world.read(15)
    assert world.start(made(total("b"))) == []
    world.read(10)
    assert world.totals("b") == {0: 10, 10: 10}


def test_a_run_goes_on_with_and_without_sharing(tmp_path):
    network = made(total("a"), total("b"))
    world = World(tmp_path, network)
    for reuse in (False, True):
        world.read(15)
        assert world.start(network, reuse=reuse) == []
        # State that two have is not given up.
        assert not world.shared.served_by
    world.read(10)
    assert world.totals("a") == world.totals("b") == {0: 10, 10: 10, 20: 10}


def test_one_that_has_changed_since_does_not_take_state_for_its_own(tmp_path):
    world = World(tmp_path, made(total("a"), total("b")))
    world.read(15)
    with pytest.raises(InputError) as raised:
        world.start(made(total("b", compute={"total": "sum(v * 2)"})))
    assert [problem.key for problem in raised.value.problems] == ["b"]


def test_what_reads_one_that_is_served_may_be_read_from_another_after_a_restart(tmp_path):
    """What an operator means goes by the network as written, not by who computes."""
    some = {"kind": "filter", "input": "p", "where": "v > 0"}
    network = made({"name": "a", **some}, {"name": "b", **some}, total("of_b", input="b"))
    world = World(tmp_path, network)
    world.read(15)
    assert world.start(network, reuse=False) == []
    world.read(10)
    assert world.totals("of_b") == {0: 10, 10: 10}


def test_state_that_is_not_where_it_should_be_is_no_empty_state(tmp_path):
    world = World(tmp_path, made(total("a")))
    token = world.read(5).commit.boxes["a"].token
    forget()
    batch = Batch(step=1, directory=str(tmp_path / "checkpoint"), previous=0)
    assert recall(batch, "a", token)[0].tables
    with pytest.raises(RunError, match="does not have the state of operator b"):
        recall(batch, "b", token)
