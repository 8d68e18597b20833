"""The two patterns of seed 003: counts come out equal, and groups are connected with few connections."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levelwind import plan
from levelwind.model import Cluster, Model, Network, Operator, Port, Stream


def tree(parents):
    """A network of operators of which each, but the first ones, feeds its parent; leaves read a stream."""
    count = len(parents)
    children = {k: [c for c, parent in enumerate(parents) if parent == k] for k in range(count)}
    operators = {
        f"o{k}": Operator(
            name=f"o{k}",
            spec=Model(),
            inputs=tuple(Port(source=f"o{c}") for c in children[k]) or (Port(source="I"),),
        )
        for k in range(count)
    }
    return Network(streams={"I": Stream(name="I", rate=(1.0,))}, operators=operators)


def arcs(network):
    return [
        (port.source, name)
        for name, operator in network.operators.items()
        for port in operator.inputs
        if port.source in network.operators
    ]


def cut(network, placement):
    return sum(placement[a] != placement[b] for a, b in arcs(network))


def counts(placement, nodes):
    return sorted(list(placement.values()).count(node) for node in Cluster.equal(nodes).names)


trees = st.integers(2, 8).flatmap(
    lambda count: st.tuples(
        *(
            st.one_of(st.none(), st.integers(k + 1, count - 1)) if k < count - 1 else st.none()
            for k in range(count)
        )
    )
)


@given(trees, st.integers(1, 4))
def test_round_robin_deals_out_in_written_order(parents, nodes):
    network = tree(parents)
    placement = plan(network, Cluster.equal(nodes), planner="round_robin").placement
    assert placement == {f"o{k}": f"n{k % nodes + 1}" for k in range(len(parents))}


def test_round_robin_counts_what_is_pinned():
    network = tree((1, 2, 3, None))
    operators = dict(network.operators)
    pinned = {
        n: Operator(name=n, spec=Model(), inputs=operators[n].inputs, pinned="n1") for n in ("o2", "o3")
    }
    network = Network(streams=network.streams, operators=operators | pinned)
    placement = plan(network, Cluster.equal(2), planner="round_robin").placement
    assert placement == {"o0": "n2", "o1": "n2", "o2": "n1", "o3": "n1"}


@given(trees, st.integers(2, 4), st.integers(0, 5))
def test_grouping_keeps_tables_whole_whatever_their_size(parents, nodes, on_table):
    """Also where a table is larger than a node's share, and nothing else is left to take."""
    network = tree(parents)
    boxes = {
        name: replace(operator, table="accounts") if k < on_table else operator
        for k, (name, operator) in enumerate(reversed(network.operators.items()))
    }
    loose = {name: replace(operator, inputs=(Port(source="I"),)) for name, operator in boxes.items()}
    for operators in (boxes, loose):
        whole = replace(network, operators=dict(reversed(operators.items())))
        placement = plan(whole, Cluster.equal(nodes), planner="grouping").placement
        assert set(placement) == set(operators)
        assert len({placement[name] for name, operator in operators.items() if operator.table}) <= 1


@given(trees, st.integers(2, 3))
def test_grouping_is_near_the_fewest_connections_that_equal_sizes_allow(parents, nodes):
    network = tree(parents)
    placement = plan(network, Cluster.equal(nodes), planner="grouping").placement
    names, found = list(network.operators), counts(placement, nodes)
    assert max(found) - min(found) <= 1
    fewest = min(
        cut(network, placement)
        for choice in product(range(nodes), repeat=len(names))
        if max(sizes := np.bincount(choice, minlength=nodes)) - min(sizes) <= 1
        for placement in [dict(zip(names, choice, strict=True))]
    )
    assert cut(network, placement) <= fewest + 1


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_grouping_opens_fewer_connections_than_round_robin(nodes):
    """A binary tree of 31 operators, and ten chains of eight."""
    binary = tree(tuple((30 + k + 1) // 2 + (15 - 30 // 2) if k < 30 else None for k in range(31)))
    chains = tree(tuple(None if k % 8 == 7 else k + 1 for k in range(80)))
    for network, most in ((binary, nodes + 2), (chains, nodes - 1)):
        found = {
            name: cut(network, plan(network, Cluster.equal(nodes), planner=name).placement)
            for name in ("grouping", "round_robin")
        }
        assert found["grouping"] <= most
        assert found["grouping"] < found["round_robin"]


def test_grouping_gives_shares_by_cpu():
    from levelwind.model import Node

    cluster = Cluster(nodes=(Node(name="a", cpu=3.0), Node(name="b", cpu=1.0)))
    network = tree((1, 2, 3, 4, 5, 6, 7, None))
    placement = plan(network, cluster, planner="grouping").placement
    assert list(placement.values()).count("a") == 6
    assert cut(network, placement) == 1


def test_grouping_of_a_large_network_is_quick_and_cuts_little():
    network = tree(tuple(None if k % 100 == 99 else k + 1 for k in range(5000)))
    placement = plan(network, Cluster.equal(20), planner="grouping").placement
    assert counts(placement, 20) == [250] * 20
    assert cut(network, placement) <= 20
