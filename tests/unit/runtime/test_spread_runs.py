"""Spread joins in a network that runs in this process: what they are told, what they choose, and why."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import polars as pl
import pytest

from levelwind.diffusion.auto import advise
from levelwind.frontend import parse_network
from levelwind.frontend.writing import network_document
from levelwind.model import Cluster, Node
from levelwind.operators.rows import TIME
from levelwind.runtime.coordinator import Coordinator, Move
from levelwind.runtime.hearsay import Heard, diffusions, told_to
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.memory import forget
from levelwind.runtime.program import Layout, Program
from levelwind.runtime.progress import Progress, status_of
from levelwind.runtime.sinks import ParquetSink
from levelwind.runtime.staging import DEAD_LETTERS

SECOND = 1_000_000


def network(diffuse, *, windows="1s", aliases="ab", where="a.v = b.v"):
    stream = {"schema": {"ts": "timestamp", "v": "bigint"}, "time": "ts"}
    join = {
        "name": "m",
        "kind": "multijoin",
        "inputs": {alias: "pqr"[i] for i, alias in enumerate(aliases)},
        "windows": dict.fromkeys(aliases, windows),
        "where": where,
        "diffuse": diffuse,
    }
    return parse_network(
        {
            "streams": {name: stream for name in "pqr"[: len(aliases)]},
            "operators": [join],
            "outputs": {"out": {"input": "m"}},
        }
    ).network


class Paced(InProcess):
    """As if a row cost a part a tenth of a millisecond, times the node's slowness; no more.

    With ``by_finds`` a row costs next to nothing, and what it finds a tenth of a millisecond.
    """

    def __init__(self, slowness, by_finds=False):
        self.slowness, self.by_finds = slowness, by_finds
        self.told = []
        self.work = np.zeros(len(slowness))
        self.steps = []

    def run(self, program, batch, rows):
        self.told.append(batch.told)
        found, before = [], self.work.copy()
        for report in super().run(program, batch, rows):
            boxes = []
            for box in report.boxes:
                cost = 1e-4 * self.slowness[report.node]
                is_part = program.layout.boxes[box.box].operator.kind == "join_part"
                counted = box.rows_out + 0.01 * box.rows_in if self.by_finds else box.rows_in
                boxes.append(msgspec.structs.replace(box, cpu_s=counted * cost if is_part else 0.0))
                self.work[report.node] += boxes[-1].cpu_s
            found.append(msgspec.structs.replace(report, boxes=tuple(boxes)))
        self.steps.append(self.work - before)
        return found


class World:
    def __init__(self, folder, of, cluster, slowness=None, *, parts_on=None, by_finds=False):
        self.folder, self.layout, self.cluster = folder, Layout(of), cluster
        self.executor = Paced(slowness or [1.0] * len(cluster.nodes), by_finds)
        names = cluster.names
        self.placement = {}
        for box in self.layout.boxes:
            spec = box.operator.spec
            at = (
                (parts_on or (lambda i: i % len(names)))(spec.instance)
                if box.operator.kind == "join_part"
                else 0
            )
            self.placement[box.name] = names[at]
        self.progress = Progress()
        self.decided = []
        self.start()

    def start(self):
        forget()
        sinks = {name: ParquetSink(str(self.folder / (name or "dead"))) for name in ("out", DEAD_LETTERS)}
        self.coordinator = Coordinator(
            self.layout,
            self.cluster.names,
            self.placement,
            directory=str(self.folder / "checkpoint"),
            executor=self.executor,
            sinks=sinks,
            cluster=self.cluster,
        )
        self.coordinator.recover()

    def step(self, rng, begin_s, seconds, rates, values):
        rows = []
        for name, rate in zip("pqr", rates, strict=False):
            count = int(rate * seconds)
            times = np.sort(rng.integers(0, int(seconds * SECOND), count)) + int(begin_s * SECOND)
            own = {"ts": pl.Series(times).cast(TIME), "v": rng.integers(0, values, count)}
            rows.append((name, pl.DataFrame(own)))
        step = self.coordinator.step([rows])
        self.progress.add(step)
        self.decided += self.progress.decided
        return step


@pytest.mark.parametrize("method", ["atr", "ctr"])
def test_unequal_nodes_are_loaded_in_proportion(tmp_path, method):
    # Of the last node, the file says that it is as fast as the second last, but its rows cost twice as much.
    cpu, slowness = [1.0, 1.0, 2.0, 3.0, 3.0, 3.0], [1.0, 1.0, 1.0, 1.0, 1.0, 2.0]
    cluster = Cluster(nodes=tuple(Node(name=f"n{i}", cpu=each) for i, each in enumerate(cpu)))
    diffuse = {"method": method, "instances": 6, "segment": "2s"}
    world = World(tmp_path, network(diffuse, windows="200ms"), cluster, slowness)
    rng = np.random.default_rng(1)
    for number in range(120):
        if number == 60:  # once it is known how fast they are
            world.executor.work[:] = 0.0
        world.step(rng, number * 4, 4, [40, 40], 1000)
    load = world.executor.work / cpu
    print(f"\nload over its mean {np.round(load / load.mean(), 3)}")
    assert np.abs(load / load.mean() - 1).max() <= 0.1


def test_coordinated_work_is_even_once_a_selectivity_is_known_that_nobody_stated(tmp_path):
    # Until something is measured all rows count as partners of all: what that plans must not weigh forever.
    three = network(
        {"method": "ctr", "instances": 12}, windows="5s", aliases="abc", where="a.v = b.v and b.v = c.v"
    )
    world = World(tmp_path, three, Cluster.equal(12))
    rng = np.random.default_rng(5)
    for number in range(8):
        world.step(rng, number * 5, 5, [100, 100, 100], 200)
    later = np.array(world.executor.steps)[2:]
    shares = later.sum(axis=0) / later.sum() * 12
    print(f"\nwork over its mean {shares.round(2)}")
    assert np.abs(shares - 1).max() <= 0.1


@pytest.mark.parametrize("instances", [2, 4])
def test_work_stays_even_where_windows_are_much_longer_than_segments(tmp_path, instances):
    # All hosts get nearly all copies; who has the rows of the master has the work, for a window to come.
    slowness = [1.0] * (instances - 1) + [1.5]
    three = network(
        {"method": "atr", "instances": instances, "segment": "100ms"},
        windows="5s",
        aliases="abc",
        where="a.v = b.v and b.v = c.v",
    )
    world = World(tmp_path, three, Cluster.equal(instances), slowness, by_finds=True)
    rng = np.random.default_rng(4)
    for number in range(100):
        world.step(rng, number, 1, [100, 100, 100], 150)
    steps = np.array(world.executor.steps)
    shares = steps / steps.sum(axis=1, keepdims=True) * instances
    print(f"\nbusiest over mean: at first {shares[4:12].max(axis=1).round(2)}")
    print(f"later {shares[50:].max(axis=1).mean():.3f} in the mean, {shares[50:].max():.3f} at most")
    print(f"over all of them {shares[50:].mean(axis=0).round(3)}")
    assert np.abs(shares[50:].mean(axis=0) - 1).max() <= 0.1
    assert shares[50:].max(axis=1).mean() <= 1.2


def test_segment_lengths_are_tried_and_the_one_that_costs_least_stays(tmp_path, monkeypatch):
    """A reckoning that is off by five is mended by what lengths are found to cost the busiest host."""

    def off(*given, **more):
        found = advise(*given, **more)
        return replace(found, segment_s=found.segment_s / 5) if more["segment_s"] is None else found

    monkeypatch.setattr("levelwind.operators.spreading.diffusion.advise", off)

    def run(folder, **stated):
        of = network({"method": "atr", "instances": 4, **stated}, windows="200ms")
        world, rng = World(folder, of, Cluster.equal(4)), np.random.default_rng(5)
        for number in range(120):
            world.step(rng, number * 4, 4, [50, 50], 1000)
        return world, np.array(world.executor.steps[-20:]).max(axis=1).mean()

    world, tried = run(tmp_path / "tried")
    last = world.progress.spread["m"]
    assert last["tried"] == "found by trying"
    assert "(found by trying)" in last["reason"]
    assert 0.4 < last["segment_s"] < 1.6
    other, fixed = run(tmp_path / "fixed", segment="200ms")
    assert "tried" not in other.progress.spread["m"]
    print(f"\nbusiest, tried {tried:.4f}, as reckoned {fixed:.4f}")
    assert tried < 0.85 * fixed
    world.start()  # what was found is part of the commit
    world.step(np.random.default_rng(6), 480, 4, [50, 50], 1000)
    assert world.progress.spread["m"]["segment_s"] == last["segment_s"]


def test_what_was_told_is_told_again_after_a_restart(tmp_path):
    cluster = Cluster(nodes=(Node(name="n1"), Node(name="n2", cpu=2.0)))
    world = World(tmp_path, network({"method": "atr", "instances": 2}), cluster, [1.0, 1.5])
    rng = np.random.default_rng(2)
    for number in range(5):
        world.step(rng, number, 1, [100, 100], 10)
    world.start()  # as after a crash in the next step
    before = world.coordinator._order(closing=False).told
    world.step(rng, 5, 1, [100, 100], 10)
    assert world.executor.told[-1] == before
    assert before["m[in]"].speed[1] > before["m[in]"].speed[0]


def test_auto_says_which_and_why_and_changes_its_mind(tmp_path):
    cluster = Cluster.equal(6)
    three = network({"method": "auto", "instances": 6}, aliases="abc", where="a.v = b.v and b.v = c.v")
    world = World(tmp_path, three, cluster)
    rng = np.random.default_rng(3)
    for number in range(40):
        # At first one row in a hundred finds a partner in a window, later each finds ten.
        world.step(rng, number, 1, [50, 50, 50], 5_000 if number < 20 else 5)
        if number == 19:
            first = world.progress.spread["m"]
    last = world.progress.spread["m"]
    assert (first["method"], last["method"]) == ("ctr", "atr")
    changes = [(each["before"]["method"], each["method"]) for each in world.decided if each["before"]]
    assert ("ctr", "atr") in changes
    assert first["selectivities"]["a, b"] < 1e-3
    assert first["rates"] == pytest.approx(dict.fromkeys("abc", 50.0), rel=0.15)
    assert 0.2 / 1.5 < last["selectivities"]["a, b"] < 0.2 * 1.5
    assert last["busiest"]["atr"] < last["busiest"]["ctr"]
    for word in ("aligned routing", "rates a ", "windows a 1 s", "selectivities a, b", "overheads"):
        assert word in last["reason"]
    told = status_of(
        world.progress, "running", network=world.layout.network, cluster=cluster, placement=world.placement
    )
    assert told["spread"]["m"]["reason"] == last["reason"]
    # What is known goes into the log once, and not again with every batch.
    assert len(world.decided) < 12


@pytest.mark.parametrize(("before", "after", "ways"), [(500, 5, ("ctr", "atr")), (5, 500, ("atr", "ctr"))])
def test_selectivities_are_those_of_late_also_after_a_switch(tmp_path, before, after, ways):
    """Whose parts get no rows any more, after a change of method, has no say."""
    three = network({"method": "auto", "instances": 6}, aliases="abc", where="a.v = b.v and b.v = c.v")
    world = World(tmp_path, three, Cluster.equal(6))
    rng = np.random.default_rng(5)
    told, methods = [], []
    for number in range(70):
        world.step(rng, number, 1, [50, 50, 50], before if number < 30 else after)
        told.append(world.coordinator._order(closing=False).told["m[in]"].selectivity)
        methods.append(world.progress.spread.get("m", {}).get("method"))
    assert (methods[29], methods[-1]) == ways
    for number, truth in ((29, 1 / before), (-1, 1 / after)):
        print(f"\n{truth}: {told[number]}")
        assert set(told[number]) == {(0, 1), (0, 2), (1, 2)}
        for chance in told[number].values():
            assert truth / 1.5 < chance < 1.5 * truth


def test_what_an_instance_did_before_it_moved_is_not_the_work_of_others(tmp_path):
    world = World(tmp_path, network({"method": "atr", "instances": 3}), Cluster.equal(2))
    rng = np.random.default_rng(6)
    for number in range(12):
        if number == 8:
            world.coordinator.move([Move(operator="m[2]", target="n2", cause="test")])
        world.step(rng, number, 1, [200, 200], 10)
        told = world.coordinator._order(closing=False).told["m[in]"]
        # Nothing but parts of this join costs anything here.
        assert [cpu for cpu, _, _ in told.usage] == pytest.approx([0.0] * 3, abs=1e-9)
    assert world.coordinator.program.placement["m[2]"] == "n2"


def test_nodes_that_are_busy_with_other_things_get_less():
    layout = Layout(network({"method": "atr", "instances": 2}))
    placement = {box.name: "n2" if box.name == "m[1]" else "n1" for box in layout.boxes}
    program = Program.of(layout, ("n1", "n2"), placement)
    (box,) = diffusions(layout)
    heard = Heard(
        10.0,
        {"n1": (8.0, 0.0, 0.0), "n2": (2.0, 0.0, 0.0)},
        {"m[0]": 2.0, "m[1]": 2.0},
    )
    # As an older commit has it: the parts' work counts where they stand.
    heard = msgspec.convert(msgspec.to_builtins(heard), Heard)
    told = told_to(box, program, heard, Cluster.equal(2))
    assert told.speed == pytest.approx((1.0, 1.0))
    assert told.usage[0] == pytest.approx((0.6, 0.0, 0.0))
    assert told.usage[1] == pytest.approx((0.0, 0.0, 0.0))


def test_memory_and_bandwidth_count_as_they_are_weighted():
    of = network({"method": "atr", "instances": 2, "weights": {"cpu": 2, "memory": 1, "bandwidth": 1}})
    assert of.operators["m"].spec.diffuse.weights == (0.5, 0.25, 0.25)
    assert parse_network(network_document(of)).network == of
    layout = Layout(of)
    placement = {box.name: "n1" for box in layout.boxes}
    node = Node(name="n1", memory_bytes=100.0, bandwidth_bytes_per_s=10.0)
    heard = msgspec.convert({"wall_s": 2.0, "nodes": {"n1": [1.0, 5.0, 20.0]}}, Heard)
    (box,) = diffusions(layout)
    program = Program.of(layout, ("n1",), placement)
    told = told_to(box, program, heard, Cluster(nodes=(node,)))
    assert told.usage == ((0.5, 0.2, 0.25),) * 2


def late(seconds, value):
    times = pl.Series([round(each * SECOND) for each in seconds], dtype=pl.Int64)
    return pl.DataFrame({"ts": times.cast(TIME), "v": pl.Series([value] * len(seconds), dtype=pl.Int64)})


@pytest.mark.parametrize("method", ["atr", "ctr"])
def test_a_run_that_was_closed_and_goes_on_misses_no_straggler(tmp_path, method):
    stream = {"schema": {"ts": "timestamp", "v": "bigint"}, "time": "ts", "lateness": "10s"}
    of = parse_network(
        {
            "streams": {"p": stream, "q": stream, "r": stream},
            "operators": [
                {
                    "name": "m",
                    "kind": "multijoin",
                    "inputs": {"a": "p", "b": "q", "c": "r"},
                    "windows": {"a": "5s", "b": "5s", "c": "5s"},
                    "where": "a.v = b.v and b.v = c.v",
                    "diffuse": {"method": method, "instances": 3},
                }
            ],
            "outputs": {"out": {"input": "m"}},
        }
    ).network
    world = World(tmp_path, of, Cluster.equal(2))
    world.coordinator.step([[("p", late([20, 21], 1)), ("q", late([22], 1)), ("r", late([23], 1))]], batch=0)
    world.coordinator.close()  # finds (20, 22, 23) and (21, 22, 23)
    world.start()
    # Older than rows that have looked, newer than those, and between them.
    world.coordinator.step([[("p", late([19, 22.5], 1)), ("q", late([18, 19.5, 24], 1))]], batch=1)
    world.coordinator.close()
    world.start()
    world.coordinator.close()
    files = sorted((tmp_path / "out").glob("*.parquet"))
    found = pl.concat([pl.read_parquet(file).select("a_ts", "b_ts", "c_ts") for file in files])
    groups = sorted(tuple(each.timestamp() for each in row) for row in found.rows())
    expected = [
        (a, b, 23.0)
        for a in (19.0, 20.0, 21.0, 22.5)
        for b in (18.0, 19.5, 22.0, 24.0)
        if max(a, b, 23.0) - min(a, b, 23.0) <= 5
    ]
    assert groups == sorted(expected)
