"""The priority that counts: what an operator feeds raises it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levelwind.balance.facts import make_facts
from levelwind.balance.importance import importance
from levelwind.control import Manager
from levelwind.control.events import NodeLost, QueryRemoved, StatisticsReported
from levelwind.control.instructions import Place, Shed
from levelwind.control.roster import make_roster
from levelwind.frontend import parse_network
from levelwind.model import Cluster, Model, Network, Operator, Port, Stream
from levelwind.model.operator import Split
from levelwind.rewrite import split
from levelwind.rewrite.removal import without

JOIN = {
    "kind": "multijoin",
    "inputs": {"a": "s", "b": "s"},
    "windows": {"a": "2s", "b": "2s"},
    "where": "a.x = b.x",
    "shed": {"rows": 10},
}
FILE = {
    "streams": {"s": {"schema": {"ts": "timestamp", "x": "int"}, "time": "ts"}},
    "operators": [{"name": "trio", **JOIN}, {"name": "other", "priority": 1, **JOIN}],
    "queries": {"hi": {"sql": "SELECT `a.x` FROM trio", "priority": 9}},
    "outputs": {"hi": {"input": "hi"}, "trio": {"input": "trio"}, "other": {"input": "other"}},
}


def reached(network, name):
    """An operator and all that its rows reach, by walking."""
    found = {name}
    for reader, operator in network.operators.items():
        if any(port.source == name for port in operator.inputs):
            found |= reached(network, reader)
    return found


@st.composite
def networks(draw):
    """Operators in any order of the file that read each other and are split as they like."""
    count = draw(st.integers(1, 8))
    boxes = []
    for k in range(count):
        sources = draw(st.lists(st.sampled_from(["I", *(f"o{j}" for j in range(k))]), min_size=1, max_size=3))
        boxes.append(
            Operator(
                name=f"o{k}",
                spec=Model(),
                inputs=tuple(Port(source=source) for source in sources),
                priority=float(draw(st.integers(-2, 3))),
                split=Split(into=2) if draw(st.booleans()) else None,
            )
        )
    operators = {box.name: box for box in draw(st.permutations(boxes))}
    return Network(streams={"I": Stream(name="I")}, operators=operators)


@given(networks())
def test_it_is_the_highest_of_all_that_rows_reach(network):
    physical = split(network)
    expected = [
        max(network.operators[name].priority for name in reached(network, operator.logical.name))
        for operator in physical.operators
    ]
    assert importance(physical).tolist() == expected
    assert make_facts(network).priority.tolist() == expected
    assert make_roster(network, Cluster.equal(1)).priority.tolist() == expected


def test_a_spread_join_is_as_important_as_what_reads_it():
    spread = {"name": "trio", **JOIN, "diffuse": {"instances": 2}}
    network = parse_network({**FILE, "operators": [spread, FILE["operators"][1]]}).network
    physical = split(network)
    found = dict(zip(physical.names, importance(physical).tolist(), strict=True))
    assert {found[name] for name in found if name.startswith("trio")} == {9.0}
    assert len(found) > 4
    assert found["other"] == 1.0
    assert network.operators["trio"].priority == 0.0  # as the file has it


def managed(network):
    home = dict.fromkeys(split(network).names, "n1")
    return Manager(network, Cluster.equal(2), home, policy=None, rng=np.random.default_rng(0))


def told(manager, *loads):
    names = split(manager.network).names
    series = np.repeat(np.array(loads)[:, None], 4, axis=1)
    return manager.handle(StatisticsReported(at_s=0.0, operators=names, series=series))


def test_what_an_important_query_reads_sheds_last():
    network = parse_network(FILE).network
    assert tuple(network.operators) == ("trio", "other", "hi")
    asked = told(managed(network), 1.0, 1.5, 0.1)
    assert [each.operator for each in asked if isinstance(each, Shed)] == ["other"]
    # Without that query it is the least important.
    manager = managed(network)
    manager.handle(QueryRemoved(at_s=0.0, network=without(network, ["hi"])))
    asked = told(manager, 1.0, 1.5)
    assert [each.operator for each in asked if isinstance(each, Shed)] == ["trio"]


def test_what_an_important_query_reads_is_placed_first():
    network = parse_network(FILE).network
    manager = managed(network)
    told(manager, 0.1, 0.3, 0.2)
    asked = manager.handle(NodeLost(at_s=1.0, node="n1"))
    assert [each.operator for each in asked if isinstance(each, Place)] == ["hi", "trio", "other"]
