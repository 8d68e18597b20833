"""Queries that become one, or stand in several groups: what cannot be moved binds them, the rest follows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_control_tiers import Doing, chains, cluster, managed, pinned, report, whole

from levelwind.control.events import MoveDone, NodeJoined, NodeLost, QueryAdded
from levelwind.control.gathering import gathered
from levelwind.control.instructions import Move
from levelwind.control.queries import queries_of
from levelwind.errors import InputError
from levelwind.model import Model, Operator, Port, Split

# Two queries, each in a rack of its own; the second is the heavier one.
APART = {"q0a": "x0", "q0b": "x1", "q1a": "y0", "q1b": "y1"}


def immovable(network, *names):
    operators = {n: replace(o, movable=o.movable and n not in names) for n, o in network.operators.items()}
    return replace(network, operators=operators)


def joined(network, *sources, name="q9j", **traits):
    """The network with an operator more, which reads these."""
    inputs = tuple(Port(source=source) for source in sources)
    more = Operator(name=name, spec=Model(series=(0.01, 0.01)), inputs=inputs, **traits)
    return replace(network, operators={**network.operators, more.name: more})


def test_a_query_that_joins_two_goes_where_most_of_the_load_is():
    manager = managed(chains([0.1, 0.3]), cluster(2, 2), APART)
    moves = manager.handle(QueryAdded(at_s=0.0, network=joined(manager.network, "q0b", "q1b")))
    assert {each.operator for each in moves if isinstance(each, Move)} == {"q0a", "q0b"}
    whole(manager)
    # As stated; what was measured goes before it.
    manager = managed(chains([0.1, 0.3]), cluster(2, 2), APART, difference=10.0)
    report(manager, [0.5, 0.2])
    moves = manager.handle(QueryAdded(at_s=0.0, network=joined(manager.network, "q0b", "q1b")))
    assert {each.operator for each in moves if isinstance(each, Move)} == {"q1a", "q1b"}
    whole(manager)


def test_a_query_that_joins_two_goes_where_an_operator_is_that_cannot_be_moved():
    manager = managed(immovable(chains([0.1, 0.3]), "q0b"), cluster(2, 2), APART)
    added = joined(manager.network, "q0b", "q1b")
    manager.check(added)
    moves = manager.handle(QueryAdded(at_s=0.0, network=added))
    assert {each.operator for each in moves if isinstance(each, Move)} == {"q1a", "q1b"}
    assert manager.placement["q0b"] == "x1"
    whole(manager)


@pytest.mark.parametrize(
    ("network", "why"),
    [
        (immovable(chains([0.1, 0.3]), "q0b", "q1a"), "q1a is immovable, in group y"),
        (pinned(immovable(chains([0.1, 0.3]), "q0b"), q1a="y0"), "q1a is pinned to y0, in group y"),
    ],
)
def test_what_cannot_be_brought_together_is_refused_and_nothing_has_changed(network, why):
    manager = managed(network, cluster(2, 2), APART)
    added = joined(network, "q0b", "q1b")
    for refuse in (manager.check, lambda more: manager.handle(QueryAdded(at_s=0.0, network=more))):
        with pytest.raises(InputError, match="brought together") as caught:
            refuse(added)
        assert f"q0b is immovable, in group x, {why}" in str(caught.value)
        assert manager.network is network
        assert manager.placement == APART
    assert report(manager, [0.1, 0.1]) == ()
    # So is a new operator that is pinned into another group than one that cannot be moved.
    with pytest.raises(InputError, match="q9j is pinned to y1"):
        manager.check(joined(network, "q0b", pinned="y1"))
    manager.handle(QueryAdded(at_s=1.0, network=joined(network, "q0b", pinned="x0")))
    whole(manager)


def test_pins_into_two_groups_are_found_by_looking():
    network = pinned(chains([0.1, 0.3]), q0a="x0", q1a="y0")
    manager = managed(network, cluster(2, 2), APART)
    with pytest.raises(InputError, match="pinned into several"):
        manager.check(joined(network, "q0b", "q1b"))
    manager.check(joined(network, "q0b"))
    assert manager.network is network


def test_who_could_not_follow_a_pin_stays_when_another_query_comes():
    """Its group was lost, and is back; an operator of it is immovable and stands elsewhere."""
    network = immovable(pinned(chains([0.4, 0.3]), q0a="x0"), "q0b")
    manager = managed(network, cluster(1, 1))
    manager.handle(NodeLost(at_s=0.0, node="x0"))
    manager.handle(NodeJoined(at_s=1.0, node=cluster(1).nodes[0]))
    stood = manager.placement
    assert stood["q0b"] == "y0"
    more = immovable(pinned(chains([0.4, 0.3, 0.2]), q0a="x0"), "q0b")
    placed = manager.handle(QueryAdded(at_s=2.0, network=more))
    assert {each.operator for each in placed} == {"q2a", "q2b"}
    assert {name: manager.placement[name] for name in stood} == stood


def test_a_torn_query_is_gathered_where_most_of_its_load_is():
    network, nodes = chains([0.4, 0.3, 0.2]), cluster(2, 2)
    heavy = replace(network.operators["q0b"], spec=Model(series=(0.3, 0.3)))
    network = replace(network, operators={**network.operators, "q0b": heavy})
    torn = {"q0a": "x0", "q0b": "y0", "q1a": "y0", "q1b": "y1", "q2a": "x1", "q2b": "x1"}
    # On the emptier node of the group; all others stay.
    assert gathered(network, nodes, "rack", torn) == {**torn, "q0a": "y1"}
    assert gathered(immovable(network, "q0a"), nodes, "rack", torn)["q0b"] == "x0"
    assert gathered(pinned(network, q0a="x0"), nodes, "rack", torn)["q0b"] == "x0"
    for wrong in (immovable(network, "q0a", "q0b"), pinned(immovable(network, "q0a"), q0b="y0")):
        with pytest.raises(InputError, match="brought together"):
            gathered(wrong, nodes, "rack", torn)
    with pytest.raises(InputError, match="pinned into several"):
        gathered(pinned(network, q0a="x0", q0b="y0"), nodes, "rack", torn)


def test_what_is_new_goes_to_the_group_that_its_query_stood_in():
    """Planned by load into one rack, but its query was moved to the other before the restart."""
    network, nodes = joined(chains([0.1, 0.3]), "q0b"), cluster(2, 2)
    planned = {"q0a": "y0", "q0b": "y0", "q1a": "y1", "q1b": "y1", "q9j": "x1"}
    stood = {name: node for name, node in planned.items() if name != "q9j"}
    found = gathered(network, nodes, "rack", planned, stood=stood)
    assert found == {**planned, "q9j": found["q9j"]}
    assert found["q9j"][0] == "y"
    # A pin that was not kept binds where nothing is immovable; then it stays unkept.
    lost = pinned(network, q0a="x0")
    found = gathered(lost, nodes, "rack", {**planned, "q0a": "x0"}, stood=stood)
    assert {name: node[0] for name, node in found.items() if name != "q1a"} == {
        "q0a": "x", "q0b": "x", "q1b": "y", "q9j": "x"
    }  # fmt: skip
    found = gathered(immovable(lost, "q0b"), nodes, "rack", {**planned, "q0a": "x0"}, stood=stood)
    assert {node[0] for node in found.values()} == {"y"}
    # Of what is all new, somebody has said where it is to be.
    with pytest.raises(InputError, match="in one group"):
        gathered(network, nodes, "rack", {**planned, "q1b": "x1"}, stood={"q0a": "y0"})


def test_instances_and_tables_are_gathered():
    network, nodes = chains([0.4, 0.1]), cluster(2, 2)
    operators = {n: replace(o, table="t" if n[1] == "1" else None) for n, o in network.operators.items()}
    operators["q0a"] = replace(operators["q0a"], split=Split(into=3))
    network = replace(network, operators=operators)
    torn = {"q0a[0]": "x0", "q0a[1]": "y0", "q0a[2]": "x1", "q0b": "x0", "q1a": "y1", "q1b": "y1"}
    found = gathered(network, nodes, "rack", torn)
    assert {name for name, node in found.items() if node != torn[name]} == {"q0a[1]"}
    assert found["q0a[1]"][0] == "x"
    more = joined(network, "q0b", "q1b")
    found = gathered(more, nodes, "rack", {**torn, "q9j": "x0"})
    assert found["q1a"] == found["q1b"]
    assert {node[0] for node in found.values()} == {"x"}


@settings(max_examples=100)
@given(st.data())
def test_whatever_stood_is_brought_together_by_moves(data):
    """Any placement, any pins into one group, anything immovable; unless it is refused, it comes together."""
    nodes, network = cluster(2, 2, 1), chains([0.4, 0.3, 0.2, 0.1, 0.1])
    for name in ("q8j", "q9j")[: data.draw(st.integers(0, 2))]:
        sources = data.draw(st.lists(st.sampled_from(sorted(network.operators)), min_size=2, max_size=2))
        network = joined(network, *sources, name=name)
    stuck = data.draw(st.sets(st.sampled_from(sorted(network.operators)), max_size=3))
    pins = data.draw(
        st.dictionaries(st.sampled_from(sorted(network.operators)), st.sampled_from(nodes.names))
    )
    network = pinned(immovable(network, *stuck), **pins)
    stood = {name: pins.get(name) or data.draw(st.sampled_from(nodes.names)) for name in network.operators}
    must = {name: stood[name] for name in {*stuck, *pins}}
    clash = any(len({must[name][0] for name in query if name in must}) > 1 for query in queries_of(network))
    try:
        found = gathered(network, nodes, "rack", stood)
    except InputError:
        assert clash
        return
    assert not clash
    assert {name: found[name] for name in must} == must
    manager = managed(network, nodes, found)
    whole(manager)
    moves = manager.gather(stood)
    assert {move.operator for move in moves} == {name for name in found if found[name] != stood[name]}
    for query in queries_of(network):
        groups = {stood[name][0] for name in query}
        if len(groups) == 1:
            assert not {move.operator for move in moves} & set(query)
    world = Doing(manager, False)
    world.where = dict(stood)
    for move in moves:
        assert manager.under_way[move.operator].target == move.target
        for event in world.obey(move, 0.0):
            assert manager.handle(event) == ()
    assert world.where == manager.placement
    assert manager.under_way == {}


def test_a_node_lost_before_a_query_has_come_together():
    network, nodes = chains([0.4, 0.3]), cluster(2, 1)
    torn = {"q0a": "x0", "q0b": "y0", "q1a": "x1", "q1b": "x1"}
    manager = managed(network, nodes, gathered(network, nodes, "rack", torn))
    (move,) = manager.gather(torn)
    manager.handle(NodeLost(at_s=0.0, node=move.source))
    assert manager.under_way == {}
    whole(manager)
    manager.handle(MoveDone(at_s=1.0, operator=move.operator))
    whole(manager)
