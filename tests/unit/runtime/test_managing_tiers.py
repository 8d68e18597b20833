"""Groups, statistics and what managing costs, in a run in this process: data flows while queries move."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from test_managing import ALONE, CLUSTER, NETWORK, Priced, World, drive, world_in

from levelwind.balance import make_policy
from levelwind.balance.costs.registry import COST_MODELS, cost_model_names
from levelwind.control import TopManager
from levelwind.frontend import parse_network
from levelwind.model import Cluster, Node
from levelwind.rewrite.removal import without
from levelwind.runtime.coordinator import Coordinator
from levelwind.runtime.managing import Balancing, Steward
from levelwind.runtime.program import Layout
from levelwind.runtime.sinks import Discard, ParquetSink
from levelwind.runtime.staging import DEAD_LETTERS

RACKS = Cluster(
    nodes=tuple(
        Node(name=name, properties={"rack": rack}) for name, rack in (("x1", "x"), ("x2", "x"), ("y1", "y"))
    )
)
# Two queries: a windowed aggregate behind a filter, and a windowed join of both streams behind a map.
QUERIES = parse_network(
    {
        "streams": {
            name: {"schema": {"ts": "timestamp", "v": "bigint"}, "time": "ts"} for name in ("left", "right")
        },
        "operators": [
            {"name": "half", "kind": "filter", "input": "left", "where": "v % 2 = 0"},
            {"name": "sums", "kind": "aggregate", "input": "half", "window": {"size": "3s"},
             "compute": {"n": "count(*)", "s": "sum(v)"}},
            {"name": "after", "kind": "map", "input": "right", "select": {"v": "v"}},
            {"name": "pairs", "kind": "join", "inputs": ["left", "after"], "within": "1500ms",
             "where": "left.v = after.v"},
        ],
        "outputs": {"one": {"input": "sums"}, "two": {"input": "pairs"}},
    }
).network  # fmt: skip
TOGETHER = {"half": "x1", "sums": "x2", "after": "x1", "pairs": "x2"}


def world_of(folder, network, placement=TOGETHER):
    sinks = {name: ParquetSink(str(Path(folder, name))) for name in network.outputs}
    sinks[DEAD_LETTERS] = Discard()
    return World(
        Coordinator(
            Layout(network), RACKS.names, placement, directory=str(folder), executor=Priced(), sinks=sinks
        )
    )


def rows_of(folder, name):
    frames = [pl.read_parquet(path) for path in sorted(Path(folder, name).glob("*.parquet"))]
    return sorted(pl.concat(frames).rows()) if frames else []


def run_with(folder, network, balancing, lost_at=None):
    """Twenty steps; at one of them, if asked, a node is found missing (twice: then it is lost)."""
    world = world_of(folder, network)
    steward = None if balancing is None else Steward(network, RACKS, TOGETHER, balancing)
    steps = []
    for number in range(20):
        if steward is None:
            steps.append(world.step(1.0, left=60, right=60))
            continue
        if lost_at is not None and number >= lost_at:
            steward.watch({"y1"})
        steps += drive(world, steward, 1, left=60, right=60)
    for _ in range(8):
        # Event time goes on, and so do rows that are still on their way.
        steps.append(world.step(1.0, left=1, right=1))
    return steward, steps


@pytest.mark.parametrize("hops", ["within", "next"])
@pytest.mark.parametrize("lost_at", [None, 9, 12])
def test_a_query_moves_between_groups_while_data_flows_and_nothing_is_lost(tmp_path, hops, lost_at):
    network = replace(QUERIES, hops=hops)
    run_with(tmp_path / "still", network, None)
    steward, steps = run_with(tmp_path / "moved", network, Balancing(samples=2, groups="rack"), lost_at)
    assert isinstance(steward.manager, TopManager)
    moves = [move for step in steps for move in step.commit.moves]
    crossed = {move.operator for move in moves if move.target == "y1"}
    assert crossed in ({"half", "sums"}, {"after", "pairs"})
    if lost_at is not None:
        assert "y1" not in steps[-1].program.placement.values()
    for name in network.outputs:
        still, moved = (rows_of(tmp_path / which, name) for which in ("still", "moved"))
        assert still
        # With a hop that takes a batch, what has not come out at the end differs; nothing else does.
        if hops == "within":
            assert moved == still
        else:
            short, long = sorted((moved, still), key=len)
            assert len(set(map(repr, moved))) == len(moved)
            assert set(map(repr, short)) <= set(map(repr, long))
            assert len(short) > 0.8 * len(long)


def test_a_query_that_stood_in_two_groups_comes_together_while_data_flows(tmp_path):
    run_with(tmp_path / "still", QUERIES, None)
    torn = {**TOGETHER, "half": "y1", "pairs": "y1"}
    world = world_of(tmp_path / "moved", QUERIES, torn)
    steward = Steward(QUERIES, RACKS, torn, Balancing(groups="rack"))
    first, *steps = drive(world, steward, 20, left=60, right=60)
    steps += [world.step(1.0, left=1, right=1) for _ in range(8)]
    # In the first step, as moves with a cause; then nothing is under way, and nobody moves again.
    moves = {move.operator: move for move in first.commit.moves}
    assert len(moves) == 2
    assert {move.cause for move in moves.values()} == {"its query stood in several groups"}
    group = {name: node[0] for name, node in first.program.placement.items()}
    assert group["half"] == group["sums"]
    assert group["after"] == group["pairs"]
    assert not any(step.commit.moves for step in steps[:5])
    assert steward.manager.under_way == {}
    assert not steward.alarms
    assert {record.operator for record in steward.manager.journal.take() if record.what == "done"} >= set(
        moves
    )
    for name in QUERIES.outputs:
        assert rows_of(tmp_path / "moved", name) == rows_of(tmp_path / "still", name) != []


class Told:
    """Stands before a manager and keeps what it is told."""

    def __init__(self, manager):
        self.events, self._handle = [], manager.handle
        manager.handle = self

    def __call__(self, event):
        self.events.append(event)
        return self._handle(event)

    @property
    def brought(self):
        """Names of the statistics in reports, beside the load."""
        reports = [event for event in self.events if hasattr(event, "series")]
        assert reports
        return {
            frozenset({*event.seen, *(["state_bytes"] if event.state_bytes else [])}) for event in reports
        }


@pytest.fixture
def world(tmp_path):
    return world_in(tmp_path)


@pytest.mark.parametrize("cost", cost_model_names())
@pytest.mark.parametrize("limit", [{}, {"most_state": 1e9}])
def test_only_the_statistics_that_a_cost_model_names_are_reported(world, cost, limit):
    policy = make_policy("balance", {"cost": cost, **limit})
    steward = Steward(NETWORK, CLUSTER, ALONE, Balancing(policy=policy, samples=2))
    told = Told(steward.manager)
    drive(world, steward, 7, left=100, right=50)
    named = COST_MODELS.make(cost, None).statistics - {"load"}
    assert told.brought == {named | {"state_bytes"} if limit else named}


def test_a_policy_by_load_alone_has_nothing_else_counted(world):
    steward = Steward(NETWORK, CLUSTER, ALONE, Balancing(policy=make_policy("cor_bal"), samples=2))
    told = Told(steward.manager)
    drive(world, steward, 7, left=100, right=50)
    assert told.brought == {frozenset()}


def test_a_run_says_what_its_manager_spends(world):
    """CPU by the clock that is handed in, per node and second.

    A tenth of a second for every event, and one more for making each report.
    """
    ticks = iter(np.arange(0.0, 100.0, 0.1))
    steward = Steward(
        NETWORK,
        CLUSTER,
        ALONE,
        Balancing(policy=make_policy("balance"), samples=2),
        cpu_clock=lambda: next(ticks),
    )
    told = Told(steward.manager)
    while not told.events:
        drive(world, steward, 1, left=100, right=50)
    # All that was spent was spent at one time: there are no rates yet.
    assert {told.events[0].at_s} == {event.at_s for event in told.events}
    assert [steward.footprint[key] for key in ("cpu_s", "bytes_in", "bytes_out")] == [None] * 3
    drive(world, steward, 11, left=100, right=50)
    spent = steward.footprint
    seconds = told.events[-1].at_s - told.events[0].at_s
    reports = sum(hasattr(event, "series") for event in told.events)
    assert spent["cpu_s"] == pytest.approx(0.1 * (len(told.events) + reports) / (2 * seconds))
    # Three operators, two samples, 8 bytes each, a report a second and node.
    assert 20 < spent["bytes_in"] < 100
    assert spent["memory_bytes"] > 1000


class Asked:
    """Gives plans one after the other, and keeps what it was asked with."""

    def __init__(self, *plans):
        self.plans, self.asked = plans, []

    def __call__(self, nodes, attempt):
        self.asked.append((nodes, attempt))
        return self.plans[min(attempt, len(self.plans)) - 1]


def test_a_plan_for_a_run_is_asked_for_again_until_it_is_valid_and_only_differences_move(world):
    steward = Steward(NETWORK, CLUSTER, ALONE, Balancing())
    drive(world, steward, 1, left=10, right=10)
    steward.watch({"n2"})  # for the first time: not lost, but not ready
    plans = ({"half": "n1"}, {**ALONE, "other": "n2"}, ALONE | {"nobody": "n1"})
    asked = Asked(*plans)
    assert steward.plan(asked, "try") == {}
    # Three times in all; never put into force, and somebody is told.
    assert asked.asked == [(("n1", "n2"), 1), (("n1",), 2), (("n1",), 3)]
    assert steward.moves() == []
    assert any("is not valid" in text for text in steward.alarms)
    steward.watch(set())
    asked = Asked(plans[0], {**ALONE, "other": "n2"})
    assert steward.plan(asked, "try") == {"other": "n2"}
    assert asked.asked == [(("n1", "n2"), 1), (("n1", "n2"), 2)]
    (step,) = drive(world, steward, 1, left=10, right=10)
    assert [(move.operator, move.target, move.cause) for move in step.commit.moves] == [
        ("other", "n2", "try")
    ]
    assert steward.plan(asked, "try") == {}


def test_with_groups_a_plan_is_asked_for_again_on_the_nodes_of_all(tmp_path):
    world = world_of(tmp_path, QUERIES)
    steward = Steward(QUERIES, RACKS, TOGETHER, Balancing(groups="rack"))
    drive(world, steward, 1, left=10, right=10)
    wrong = {**TOGETHER, "half": "x2", "pairs": "x9"}
    right = {**TOGETHER, "half": "x2"}
    asked = Asked(wrong, {**right, "half": "y1"}, right)
    assert steward.plan(asked, "try") == {"half": "x2"}
    assert asked.asked == [(("x1", "x2", "y1"), attempt) for attempt in (1, 2, 3)]
    assert [move.operator for move in steward.moves()] == ["half"]


class Held:
    """A lock that knows whether it is held."""

    held = False

    def __enter__(self):
        self.held = True

    def __exit__(self, *_):
        self.held = False


@pytest.mark.parametrize("changed", ["network", "nodes"])
def test_steps_go_on_while_a_plan_is_made_and_one_that_is_stale_by_then_is_made_again(world, changed):
    steward = Steward(NETWORK, CLUSTER, ALONE, Balancing())
    drive(world, steward, 1, left=10, right=10)
    lock, asked = Held(), []

    def ask(nodes, attempt):
        asked.append((nodes, attempt, lock.held))
        if attempt == 1 and changed == "network":
            steward.change(without(NETWORK, ["two"]), world.coordinator.program.placement)
        elif attempt == 1:
            steward.watch({"n2"})
            steward.watch({"n2"})
        return {name: nodes[-1] for name in steward.manager.network.operators}

    left = {"half": "n2", "after": "n2"} if changed == "network" else {}
    assert steward.plan(ask, "try", lock=lock) == left
    there = ("n1", "n2") if changed == "network" else ("n1",)
    assert asked == [(("n1", "n2"), 1, False), (there, 2, False)]
    # Made again, which is no fault of anybody's.
    assert not steward.alarms
    assert all(told["what"] != "rejected" for told in steward.decisions())


def test_a_plan_that_is_stale_every_time_is_left_to_the_manager(world):
    steward = Steward(NETWORK, CLUSTER, ALONE, Balancing())
    asked = []

    def ask(nodes, attempt):
        asked.append(nodes)
        for _ in range(2):
            steward.watch({"n2"} if "n2" in nodes else set())
        return dict.fromkeys(ALONE, nodes[-1])

    assert steward.plan(ask, "try") == {}
    assert asked == [("n1", "n2"), ("n1",), ("n1", "n2")]
    assert any("must name a node that is there" in text for text in steward.alarms)
