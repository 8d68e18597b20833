"""A run with groups that is changed, or goes on from a checkpoint: its batches in this process, no Spark."""

from __future__ import annotations

import copy

import numpy as np
import polars as pl
import pytest

from levelwind.errors import InputError
from levelwind.frontend import parse_network
from levelwind.model import Cluster, Node
from levelwind.operators.rows import TIME
from levelwind.runtime.compatibility import fingerprints
from levelwind.runtime.coordinator import Coordinator
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.rundir import Command
from levelwind.spark.api import prepare

SECOND = 1_000_000
NODES = (("n1", "x"), ("n2", "x"), ("n3", "y"), ("n4", "y"))
RACKS = Cluster(nodes=tuple(Node(name=name, properties={"rack": rack}) for name, rack in NODES))
RACK = dict(NODES)
SOURCE = {"format": "generator", "shape": "steady", "rate": 10, "duration": "60s", "speed": "max"}


def counts(name, source, **traits):
    return {"name": name, "kind": "aggregate", "input": source, "window": {"size": "2s"},
            "compute": {"n": "count(*)", "s": "sum(v)"}, **traits}  # fmt: skip


def document(*more, outputs=None, **traits):
    """Two queries of a filter and a count each; ``traits`` are those of operators by name."""
    operators = [
        {"name": "a", "kind": "filter", "input": "p", "where": "v % 2 = 0"},
        counts("a2", "a"),
        {"name": "b", "kind": "filter", "input": "p", "where": "v % 3 = 0"},
        counts("b2", "b"),
        *copy.deepcopy(list(more)),
    ]
    stated = {"cost": 1e-3, "selectivity": 1}
    return {
        "name": "racks",
        "streams": {
            "p": {"schema": {"ts": "timestamp", "v": "bigint"}, "time": "ts", "rate": 10, "source": SOURCE}
        },
        "operators": [{**stated, **told, **traits.get(told["name"], {})} for told in operators],
        "outputs": {"one": {"input": "a2"}, "two": {"input": "b2"}, **(outputs or {})},
    }


class Begun:
    """A run as `prepare` makes it, whose batches are carried out one by one as Spark would have it."""

    def __init__(self, folder, told, placement, *, run="run", groups="rack", **options):
        self.run = prepare(
            parse_network(told).network, RACKS, placement=placement, checkpoint=folder / "checkpoint",
            run_dir=folder / run, groups=groups, reuse=groups is None, **options,
        )  # fmt: skip
        spark = self.run.spark_run
        self.run.directory.create({"name": "racks"}, {})
        spark.executor, spark.missing_nodes = InProcess(), frozenset
        spark.coordinator = Coordinator(
            spark.layout, RACKS.names, spark.options.placement, directory=str(spark.options.checkpoint),
            executor=spark.executor, sinks=spark.sinks, fingerprints=fingerprints(spark.written),
            version=spark.options.version, served_by=spark.served_by, cluster=RACKS,
        )  # fmt: skip
        spark.coordinator.recover()

    def batch(self):
        """One batch: what it moved."""
        coordinator = self.run.spark_run.coordinator
        number = coordinator.step_number
        coordinator.move(self.run._before(number))
        times = number * SECOND + np.arange(1, 31) * SECOND // 30
        rows = pl.DataFrame({"ts": pl.Series(times).cast(TIME), "v": range(30)})
        step = coordinator.step([[("p", rows)]])
        self.run._after(step)
        return {move.operator: move for move in step.commit.moves}

    @property
    def racks(self):
        return {name: RACK[node] for name, node in self.run.placement.items()}

    def windows(self, output):
        """What an output has put out, by time."""
        files = sorted(self.run.spark_run.sinks[output].path.glob("*.parquet"))
        return pl.concat(map(pl.read_parquet, files)).sort("window_start").select("n", "s").rows()


APART = {"a": "n1", "a2": "n2", "b": "n3", "b2": "n4"}
JOIN = {
    "operators": [
        {"name": "j", "kind": "join", "inputs": ["a2", "b2"], "within": "1s", "where": "a2.n = b2.n",
         "cost": 1e-3, "selectivity": 1}
    ],
    "outputs": {"three": {"input": "j"}},
}  # fmt: skip
COUNT = {"operators": [counts("c", "p", cost=1e-3, selectivity=1)], "outputs": {"four": {"input": "c"}}}


@pytest.mark.parametrize(
    ("traits", "why"),
    [
        ({"a": {"pinned": "n1"}, "b": {"pinned": "n3"}}, "pinned into several"),
        ({"a": {"movable": False}, "b": {"movable": False}}, "b is immovable, in group y"),
        ({"a": {"movable": False}, "b": {"pinned": "n3"}}, "b is pinned to n3, in group y"),
    ],
)
def test_what_no_group_can_take_is_refused_and_the_run_goes_on(tmp_path, traits, why):
    begun = Begun(tmp_path, document(**traits), APART)
    begun.batch()
    network = begun.run.network
    with pytest.raises(InputError, match=why):
        begun.run.add(JOIN)
    begun.run.directory.ask(Command(command="add", id="7", added=JOIN, base=str(tmp_path)))
    for _ in range(2):
        assert begun.batch() == {}
    assert begun.run.network is network
    assert begun.run.placement == APART
    (told,) = begun.run.directory.changes()
    assert (told.command, told.id) == ("add", "7")
    assert why in told.refused
    begun.run.add(COUNT)
    begun.batch()
    assert [change.outputs for change in begun.run.directory.changes()] == [(), ("four",)]


def test_what_changes_before_it_leave_no_room_for_is_refused_when_its_turn_comes(tmp_path):
    """The new operator is immovable, and nobody knows yet where it will stand: then it stands elsewhere."""
    begun = Begun(tmp_path, document(a={"movable": False}), APART)
    begun.batch()
    begun.run.add({**COUNT, "operators": [{**COUNT["operators"][0], "movable": False}]})
    manager = begun.run._managed().manager
    busy = dict.fromkeys(("a", "a2"), 0.4) | dict.fromkeys(("b", "b2"), 0.01)
    for lower in manager.lower.values():
        lower._standing.load = np.array([busy[name] for name in lower._standing.roster.names])
    both = {"operators": [{**JOIN["operators"][0], "inputs": ["a2", "c"], "where": "a2.n = c.n"}]}
    begun.run.add({**both, "outputs": JOIN["outputs"]})
    assert begun.batch() == {}
    assert begun.racks == {"a": "x", "a2": "x", "b": "y", "b2": "y", "c": "y"}
    assert list(begun.run.network.outputs) == ["one", "two", "four"]
    made, refused = sorted(begun.run.directory.changes(), key=lambda change: bool(change.refused))
    assert made.outputs == ("four",)
    assert "c is immovable, in group y" in refused.refused
    assert begun.batch() == {}


def test_a_new_operator_begins_in_the_group_that_its_query_was_moved_to(tmp_path):
    """Levelling had moved the query; stated loads, by which the plan goes, would have it elsewhere."""
    told = document(a={"cost": 1e-5}, a2={"cost": 1e-5})
    first = Begun(tmp_path, told, {"a": "n3", "a2": "n3", "b": "n4", "b2": "n4"})
    first.batch()
    more = document(counts("last", "a2"), outputs={"three": {"input": "last"}}, a={"cost": 1e-5},
                    a2={"cost": 1e-5})  # fmt: skip
    more["operators"][-1].update({"input": "a2", "compute": {"m": "sum(n)"}})
    planned = {"a": "n1", "a2": "n1", "last": "n2", "b": "n4", "b2": "n4"}
    for number, placement in enumerate((planned, None)):
        again = Begun(tmp_path, more, placement, run=f"again{number}")
        assert again.batch() == {}
        assert set(again.racks.values()) == {"y"}


def test_a_query_goes_back_to_its_pin_after_a_restart(tmp_path):
    """Its node was lost, and all of the query was brought to the other group before the run ended."""
    away = {"a": "n3", "a2": "n3", "b": "n4", "b2": "n4"}
    first = Begun(tmp_path, document(), away)
    for _ in range(3):
        first.batch()
    again = Begun(tmp_path, document(a={"pinned": "n1"}), None, run="again")
    moves = again.batch()
    assert {name: (move.source, RACK[move.target]) for name, move in moves.items()} == {"a2": ("n3", "x")}
    assert again.racks == {"a": "x", "a2": "x", "b": "y", "b2": "y"}
    assert again.run.placement["a"] == "n1"
    assert again.batch() == {}
    # Where an operator cannot be moved, the pin is not kept, as while the run went on.
    stuck = document(a={"pinned": "n3"}, a2={"movable": False})
    last = Begun(tmp_path, stuck, None, run="last")
    assert last.batch() == {}
    assert last.racks == {"a": "x", "a2": "x", "b": "y", "b2": "y"}


def test_a_run_without_groups_goes_on_with_groups(tmp_path):
    """What stood anywhere is brought together with its state; no row is lost or counted twice."""
    alone = Begun(tmp_path / "alone", document(), None, groups=None)
    for _ in range(9):
        alone.batch()
    first = Begun(tmp_path, document(), {"a": "n1", "a2": "n3", "b": "n2", "b2": "n4"}, groups=None)
    for _ in range(4):
        first.batch()
    again = Begun(tmp_path, document(), None, run="run2")
    moves = again.batch()
    assert {move.cause for move in moves.values()} == {"its query stood in several groups"}
    assert len(moves) == 2
    racks = again.racks
    assert racks["a"] == racks["a2"]
    assert racks["b"] == racks["b2"]
    for _ in range(4):
        again.batch()
    for output in ("one", "two"):
        assert first.windows(output) + again.windows(output) == alone.windows(output)
    # What cannot be brought together is bad input before anything is started.
    other = next(name for name, rack in NODES if rack != racks["a"])
    told = {"a": {"movable": False}, "j": {"pinned": other}}
    torn = document(*JOIN["operators"], outputs=JOIN["outputs"], **told)
    with pytest.raises(InputError, match=f"j is pinned to {other}"):
        Begun(tmp_path, torn, None, run="run3")


def test_a_placement_that_tears_a_query_is_bad_input(tmp_path):
    with pytest.raises(InputError, match="in one group"):
        Begun(tmp_path, document(), {**APART, "a2": "n3"})
    Begun(tmp_path, document(), APART).batch()
    new = document(counts("c", "p"), counts("c2", "c"), outputs={"three": {"input": "c2"}})
    new["operators"][-1]["compute"] = {"m": "sum(n)"}
    with pytest.raises(InputError, match="in one group"):
        Begun(tmp_path, new, {**APART, "c": "n1", "c2": "n3"}, run="again")
