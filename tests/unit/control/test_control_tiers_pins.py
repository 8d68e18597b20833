"""Pins and new queries under a manager of managers: kept where they can be, told where they cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_control_tiers import Doing, beat, chains, cluster, managed, pinned, report, whole

from levelwind.control.events import MoveDone, NodeJoined, NodeLost, OperatorMoved, QueryAdded
from levelwind.control.instructions import Alarm
from levelwind.control.queries import part_of
from levelwind.errors import InputError


def test_pinned_and_immovable_queries_stay():
    """All stand on the first rack; whoever may, leaves it."""
    network = chains([0.4, 0.3, 0.2, 0.1])
    stands = dict.fromkeys(network.operators, "x0")
    loads = [0.4, 0.3, 0.2, 0.9]
    assert report(managed(network, cluster(2, 2), stands), loads)
    assert report(managed(chains([0.4, 0.3, 0.2, 0.1], movable=False), cluster(2, 2), stands), loads) == ()
    bound = pinned(network, q0a="x0", q1b="x0", q2a="x0", q3b="x0")
    assert report(managed(bound, cluster(2, 2), stands), loads) == ()
    all_but_one = pinned(network, q0a="x0", q1b="x0", q3b="x0")
    moves = report(managed(all_but_one, cluster(2, 2), stands), loads)
    assert {move.operator for move in moves} == {"q2a", "q2b"}


def test_a_query_pinned_into_a_group_without_nodes_runs_elsewhere_until_its_node_is_back():
    network, nodes = pinned(chains([0.4, 0.3, 0.2]), q0a="x0"), cluster(2, 2)
    manager = managed(network, nodes)
    manager.handle(NodeLost(at_s=0.0, node="x0"))
    asked = manager.handle(NodeLost(at_s=1.0, node="x1"))
    assert [each.text for each in asked if isinstance(each, Alarm) and "group" in each.text] == [
        "q0a is pinned to x0, which is not there: it runs in group y"
    ]
    whole(manager)
    assert {node[0] for node in manager.placement.values()} == {"y"}
    # Another node of its group is not what it is pinned to, nor is there anything to be said again.
    assert manager.handle(NodeJoined(at_s=2.0, node=nodes.nodes[1])) == ()
    assert manager.group_of("q0a") == "y"
    moves = manager.handle(NodeJoined(at_s=3.0, node=nodes.nodes[0]))
    assert {(move.operator, move.target[0]) for move in moves} == {("q0a", "x"), ("q0b", "x")}
    assert manager.placement["q0a"] == "x0"
    whole(manager)
    for move in moves:
        manager.handle(MoveDone(at_s=3.5, operator=move.operator))
    assert not any(isinstance(each, Alarm) for each in report(manager, [0.4, 0.3, 0.2], at_s=4.0))
    assert manager.placement["q0a"] == "x0"


def test_a_query_that_is_on_its_way_comes_back_when_it_has_arrived():
    """Its node is back by a heartbeat while the query still moves between the other groups."""
    network = pinned(chains([0.4, 0.3]), q0a="x0")
    manager = managed(network, cluster(1, 1, 1), silent_after_s=100.0)
    manager.handle(NodeLost(at_s=0.0, node="x0"))
    stands = manager.placement["q0a"]
    other = ({"y0", "z0"} - {stands}).pop()
    _, back = manager.handle(OperatorMoved(at_s=0.5, operator="q0b", node=other))
    assert beat(manager, 1.0, "x0") == []
    assert manager.placement["q0a"] == stands
    manager.handle(MoveDone(at_s=1.5, operator=back.operator))
    report(manager, [0.4, 0.3], at_s=2.0)
    assert manager.placement["q0a"] == "x0"
    whole(manager)


def test_an_immovable_operator_does_not_follow_a_pin():
    network = pinned(chains([0.4, 0.3]), q0a="x0")
    operators = {**network.operators, "q0b": replace(network.operators["q0b"], movable=False)}
    manager = managed(replace(network, operators=operators), cluster(1, 1))
    manager.handle(NodeLost(at_s=0.0, node="x0"))
    assert manager.handle(NodeJoined(at_s=1.0, node=cluster(1).nodes[0])) == ()
    assert manager.group_of("q0a") == manager.group_of("q0b") == "y"


def test_a_network_that_is_refused_changes_nothing():
    """Pins to a node that nobody knows, into two groups, and to two nodes for one table."""
    network = chains([0.4, 0.3])
    manager = managed(network, cluster(2, 2))
    stood = manager.placement
    more = chains([0.4, 0.3, 0.2, 0.1])
    torn = {n: replace(o, table="t" if n[1] == "2" else None) for n, o in more.operators.items()}
    torn = pinned(replace(more, operators=torn), q2a="y0", q2b="y1")
    wrong = [pinned(more, q2a="n9"), pinned(more, q2a="x0", q2b="y0"), torn]
    for refused in wrong:
        with pytest.raises(InputError):
            manager.handle(QueryAdded(at_s=0.0, network=refused))
        assert manager.network is network
        assert manager.placement == stood
        assert report(manager, [0.4, 0.3]) == ()
    manager.handle(QueryAdded(at_s=1.0, network=more))
    whole(manager)


def test_a_new_query_pinned_to_a_lost_node_goes_to_the_group_of_that_node():
    manager = managed(chains([0.6, 0.3]), cluster(2, 2), {"q0a": "x1", "q0b": "x1", "q1a": "y0", "q1b": "y0"})
    manager.handle(NodeLost(at_s=0.0, node="x0"))
    added = pinned(chains([0.6, 0.3, 0.2]), q2a="x0")
    asked = manager.handle(QueryAdded(at_s=1.0, network=added))
    assert [each.text for each in asked if isinstance(each, Alarm)] == [
        "q2a is pinned to x0, which is not there: it runs on x1"
    ]
    assert manager.group_of("q2a") == "x"
    manager.handle(NodeJoined(at_s=2.0, node=cluster(1).nodes[0]))
    assert manager.placement["q2a"] == "x0"


def test_a_new_query_pinned_into_a_group_without_nodes_runs_elsewhere():
    manager = managed(chains([0.6, 0.3]), cluster(1, 1))
    manager.handle(NodeLost(at_s=0.0, node="x0"))
    added = pinned(chains([0.6, 0.3, 0.2]), q2a="x0")
    asked = manager.handle(QueryAdded(at_s=1.0, network=added))
    assert [each.text for each in asked if isinstance(each, Alarm)] == [
        "q2a is pinned to x0, which is not there: it runs in group y"
    ]
    manager.handle(NodeJoined(at_s=2.0, node=cluster(1).nodes[0]))
    assert manager.placement["q2a"] == "x0"
    whole(manager)


def test_new_queries_are_placed_by_the_loads_that_come_with_them():
    """Stated alike; the first of the new ones is told to be as heavy as five of the others."""
    manager = managed(chains([0.1, 0.1]), cluster(1, 1), {"q0a": "x0", "q0b": "x0", "q1a": "y0", "q1b": "y0"})
    loads = {"q2a": 0.25, "q2b": 0.25, "q3a": 0.05, "q3b": 0.05, "q4a": 0.05, "q4b": 0.05}
    manager.handle(QueryAdded(at_s=0.0, network=chains([0.1] * 5), loads=loads))
    group = {number: manager.group_of(f"q{number}a") for number in range(5)}
    assert group[3] == group[4] != group[2]
    told = {name: load for lower in manager.lower.values() for name, load in lower.operator_loads.items()}
    assert {name: told[name] for name in loads} == loads


@settings(max_examples=60)
@given(st.data())
def test_pins_are_kept_whenever_their_nodes_are_there(data):
    """Nodes go and come back, moves fail, queries come and go; in the end every pin is kept again."""
    every = cluster(3, 2, 1).names
    pins = {}
    for query in range(5):
        group = data.draw(st.sampled_from("xyz"))
        of_group = st.sampled_from([name for name in every if name[0] == group])
        pins |= {f"q{query}{end}": data.draw(of_group) for end in data.draw(st.sets(st.sampled_from("ab")))}
    network = pinned(chains([0.4, 0.3, 0.2, 0.1, 0.1]), **pins)
    manager = managed(network, cluster(3, 2, 1))
    world, at_s = Doing(manager, False), 0.0
    for _ in range(data.draw(st.integers(1, 10))):
        at_s += 1.0
        world.fails = data.draw(st.booleans())
        kind = data.draw(st.sampled_from(["lose", "revive", "change", "report"]))
        if kind == "lose" and len(world.dead) < 6:
            world.lose(data.draw(st.sampled_from(sorted(set(every) - world.dead))), at_s)
        elif kind == "revive" and world.dead:
            world.revive(data.draw(st.sampled_from(sorted(world.dead))), at_s)
        elif kind == "change":
            there = data.draw(st.sets(st.sampled_from(range(5)), min_size=1))
            part = part_of(network, {name for name in network.operators if int(name[1]) in there})
            world.where = {name: at for name, at in world.where.items() if name in part.operators}
            world.tell(QueryAdded(at_s=at_s, network=part))
        if len(world.dead) < 6:
            world.second(at_s, data.draw(st.lists(st.floats(0.0, 2.0), min_size=5, max_size=5)))
            whole(manager)
    world.fails = False
    for node in sorted(world.dead):
        world.revive(node, at_s)
    for _ in range(8):
        at_s += 1.0
        world.second(at_s, [0.2] * 5)
    whole(manager)
    assert world.where == manager.placement
    assert manager.under_way == {}
    assert {name: manager.placement[name] for name in pins if name in manager.placement} == {
        name: node for name, node in pins.items() if name in manager.placement
    }
