"""Managers of managers: no query in two groups, no group sees another's operators, nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.control import TopManager
from levelwind.control.allotment import tiered_plan
from levelwind.control.events import (
    MoveDone,
    MoveFailed,
    NodeJoined,
    NodeLost,
    OperatorMoved,
    PlanProposed,
    QueryAdded,
    QueryRemoved,
    StatisticsReported,
)
from levelwind.control.instructions import Alarm, AskAgain, Move, Place
from levelwind.control.queries import allotted, part_of, queries_of
from levelwind.errors import InputError
from levelwind.model import Cluster, Model, Network, Node, Operator, Port, Stream


def chains(loads, **traits):
    """One query of two operators for each load."""
    operators = []
    for number, load in enumerate(loads):
        spec = Model(series=(load / 2, load / 2))
        operators += [
            Operator(name=f"q{number}a", spec=spec, **traits),
            Operator(name=f"q{number}b", spec=spec, inputs=(Port(source=f"q{number}a"),), **traits),
        ]
    return Network(streams={"I": Stream(name="I", rate=(1.0,))}, operators={o.name: o for o in operators})


def cluster(*sizes):
    nodes = [
        Node(name=f"{group}{k}", properties={"rack": group})
        for group, size in zip("xyz", sizes, strict=False)
        for k in range(size)
    ]
    return Cluster(nodes=tuple(nodes))


def managed(network, nodes, placement=None, **options):
    placement = placement or tiered_plan(network, nodes, "rack", "llf")
    rng = np.random.default_rng(0)
    return TopManager(network, nodes, placement, groups="rack", policy=None, rng=rng, **options)


def report(manager, loads, at_s=0.0):
    names = tuple(manager.network.operators)
    series = np.array([[loads[int(name[1:-1])] / 2] * 2 for name in names])
    return manager.handle(StatisticsReported(at_s=at_s, operators=names, series=series))


def whole(manager):
    """Every operator stands once, on a node of its query's group."""
    placement = manager.placement
    assert set(placement) == set(manager.network.operators)
    for query in queries_of(manager.network):
        assert len({placement[name][0] for name in query}) == 1
    for group, lower in manager.lower.items():
        assert all(node.startswith(group) for node in lower.nodes)
        assert all(placement[name][0] == group for name in lower.network.operators)
    seen = [set(lower.network.operators) for lower in manager.lower.values()]
    assert sum(map(len, seen)) == len(set().union(*seen))


def test_queries_are_what_feeds_each_other():
    network = chains([1.0, 1.0, 1.0])
    assert queries_of(network) == [("q0a", "q0b"), ("q1a", "q1b"), ("q2a", "q2b")]
    part = part_of(network, {"q1a", "q1b"})
    assert list(part.operators) == ["q1a", "q1b"]
    assert part.streams == {}


@given(st.lists(st.floats(0.1, 5.0), max_size=12), st.integers(1, 3))
def test_allotment_is_largest_first(loads, groups):
    cpu = {f"g{k}": 1.0 + k for k in range(groups)}
    found = allotted(loads, cpu)
    level = {g: sum(x for x, own in zip(loads, found, strict=True) if own == g) / cpu[g] for g in cpu}
    if loads:
        assert max(level.values()) <= sum(loads) / sum(cpu.values()) + max(loads) / min(cpu.values()) + 1e-9
    assert allotted([1.0], cpu, bound={0: "g0"}) == ["g0"]


def test_the_first_plan_keeps_queries_in_groups():
    network, nodes = chains([0.4, 0.3, 0.2, 0.1]), cluster(2, 2)
    manager = managed(network, nodes)
    whole(manager)
    assert report(manager, [0.4, 0.3, 0.2, 0.1]) == ()
    assert manager.group_loads == pytest.approx({"x": 0.25, "y": 0.25})
    with pytest.raises(InputError, match="in one group"):
        managed(network, nodes, {name: f"{'xy'[k % 2]}0" for k, name in enumerate(network.operators)})


def test_a_query_moves_between_groups_and_each_operator_moves_once():
    network, nodes = chains([0.4, 0.3, 0.2, 0.1]), cluster(2, 2)
    manager = managed(network, nodes)
    asked = report(manager, [0.4, 0.3, 0.2, 0.9])
    moves = [each for each in asked if isinstance(each, Move)]
    whole(manager)
    assert len(moves) == 2
    assert len({move.operator[:-1] for move in moves}) == 1
    assert {move.source[0] for move in moves} != {move.target[0] for move in moves}
    assert set(manager.under_way) == {move.operator for move in moves}
    # Until it has arrived, it does not go anywhere else.
    assert not [m for m in report(manager, [0.4, 0.3, 0.2, 0.9]) if m.operator in manager.under_way]
    for move in moves:
        assert manager.handle(MoveDone(at_s=1.0, operator=move.operator)) == ()
    assert manager.under_way == {}


def test_a_move_between_groups_that_fails_is_tried_once_more():
    manager = managed(chains([0.4, 0.3, 0.2, 0.1]), cluster(2, 2))
    move = next(each for each in report(manager, [0.4, 0.3, 0.2, 0.9]) if isinstance(each, Move))
    failed = MoveFailed(at_s=1.0, operator=move.operator, reason="no")
    (again,) = manager.handle(failed)
    assert (again.operator, again.source, again.target) == (move.operator, move.source, move.target)
    (alarm,) = manager.handle(failed)
    assert isinstance(alarm, Alarm)


def test_pinned_and_immovable_queries_stay():
    network = chains([0.4, 0.3, 0.2, 0.1], movable=False)
    manager = managed(network, cluster(2, 2))
    assert report(manager, [0.4, 0.3, 0.2, 0.9]) == ()


def test_low_priority_queries_move_first():
    network = chains([0.2] * 6)
    operators = {
        name: Operator(name=name, spec=o.spec, inputs=o.inputs, priority=0.0 if name[1] == "4" else 1.0)
        for name, o in network.operators.items()
    }
    network = Network(streams=network.streams, operators=operators)
    placement = {name: f"x{k % 2}" if int(name[1]) else "y0" for k, name in enumerate(operators)}
    manager = managed(network, cluster(2, 1), placement)
    moves = report(manager, [0.1, 0.2, 0.2, 0.2, 0.2, 0.2])
    assert {move.operator for move in moves} == {"q4a", "q4b"}


def test_a_lost_node_is_the_matter_of_its_group_and_an_empty_group_is_cleared():
    manager = managed(chains([0.4, 0.3, 0.2, 0.1]), cluster(2, 1))
    before = dict(manager.lower["y"].network.operators)
    manager.handle(NodeLost(at_s=0.0, node="x0"))
    whole(manager)
    assert manager.lower["y"].network.operators == before
    asked = manager.handle(NodeLost(at_s=1.0, node="y0"))
    whole(manager)
    assert {each.operator for each in asked if isinstance(each, Move | Place)} >= set(before)
    assert set(manager.placement.values()) == {"x1"}
    manager.handle(NodeJoined(at_s=2.0, node=Node(name="y9", properties={"rack": "y"})))
    assert "y9" in manager.nodes
    with pytest.raises(InputError, match="one of the groups"):
        manager.handle(NodeJoined(at_s=2.0, node=Node(name="z9", properties={"rack": "z"})))


def test_networks_that_change():
    manager = managed(chains([0.4, 0.3]), cluster(1, 1))
    stood = manager.placement
    placed = manager.handle(QueryAdded(at_s=0.0, network=chains([0.4, 0.3, 0.2])))
    assert {each.operator for each in placed} == {"q2a", "q2b"}
    assert {name: manager.placement[name] for name in stood} == stood
    whole(manager)
    manager.handle(QueryRemoved(at_s=1.0, network=chains([0.4, 0.3])))
    assert manager.placement == stood


def test_somebody_who_tears_a_query_apart_is_undone():
    manager = managed(chains([0.4, 0.3]), cluster(1, 1))
    group = manager.placement["q0a"]
    other = ({"x0", "y0"} - {group}).pop()
    alarm, back = manager.handle(OperatorMoved(at_s=0.0, operator="q0a", node=other))
    assert isinstance(alarm, Alarm)
    assert (back.source, back.target) == (other, group)
    torn = {**manager.placement, "q0a": other}
    (again,) = manager.handle(PlanProposed(at_s=0.0, placement=torn))
    assert isinstance(again, AskAgain)


@settings(max_examples=40)
@given(st.data())
def test_whatever_happens_queries_stay_whole(data):
    manager = managed(chains([0.4, 0.3, 0.2, 0.1, 0.1]), cluster(3, 2, 1))
    for step in range(data.draw(st.integers(1, 8))):
        kind = data.draw(st.sampled_from(["report", "lost", "back", "done"]))
        if kind == "report":
            loads = data.draw(st.lists(st.floats(0.0, 2.0), min_size=5, max_size=5))
            report(manager, loads, at_s=float(step))
        elif kind == "lost" and len(manager.nodes) > 1:
            manager.handle(NodeLost(at_s=float(step), node=data.draw(st.sampled_from(manager.nodes))))
        elif kind == "back":
            gone = sorted({node.name for node in cluster(3, 2, 1).nodes} - set(manager.nodes))
            if gone:
                node = next(n for n in cluster(3, 2, 1).nodes if n.name == gone[0])
                manager.handle(NodeJoined(at_s=float(step), node=node))
        else:
            for operator in manager.under_way:
                manager.handle(MoveDone(at_s=float(step), operator=operator))
        whole(manager)
