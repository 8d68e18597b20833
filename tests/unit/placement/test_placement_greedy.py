"""The greedy heart of ROD where numbers meet the ideal plane exactly."""

from __future__ import annotations

import numpy as np
import pytest

from levelwind.loads import feasible_volume, make_problem, planes
from levelwind.model import Cluster, Model, Network, Node, Operator, Port, Stream
from levelwind.placement import make_planner, make_units
from levelwind.placement.greedy import CLASS_ONE, CLASS_ONE_RULES, place_greedily
from levelwind.testing.worlds import equal_chains


@pytest.mark.parametrize("rule", CLASS_ONE_RULES)
@pytest.mark.parametrize(("nodes", "per_node"), [(2, 1), (3, 2), (7, 3)])
def test_equal_operators_fill_nodes_to_the_ideal_plane_at_no_cost(nodes, per_node, rule):
    # Thirds and sevenths: sums of shares miss 1 by rounding, and must still count as class I.
    example = equal_chains(nodes, per_node=per_node)
    units = make_units(make_problem(example.network, example.cluster))
    found = place_greedily(units, rng=np.random.default_rng(0), class_one=rule)
    assert (found.rule == CLASS_ONE).all()
    counts = np.zeros((nodes, nodes), dtype=int)
    for unit, node in enumerate(found.nodes):
        counts[node] += (units.weight[unit] > 0).astype(int)
    assert (counts == per_node).all()


def box(name, source, cost_s, **traits):
    return Operator(name=name, spec=Model(), inputs=(Port(source=source),), cost_s=cost_s, **traits)


def test_a_sum_that_rounding_lifts_above_the_ideal_plane_is_class_one():
    # 0.7 on one node; 0.3 + 0.2 + 0.2 on the other come to 1.0000000000000002 of its fair share.
    boxes = {name: box(name, "I", cost) for name, cost in (("a", 0.2), ("b", 0.2), ("c", 0.3), ("d", 0.7))}
    network = Network(streams={"I": Stream(name="I")}, operators=boxes)
    units = make_units(make_problem(network, Cluster.equal(2)))
    found = place_greedily(units, rng=np.random.default_rng(0), class_one="first")
    assert (found.rule == CLASS_ONE).all()
    assert found.nodes.tolist() == [1, 1, 1, 0]


def test_optimal_tells_nodes_apart_by_bandwidth():
    # a and b need the two nodes with free links; were n1 taken for their equal, a would only be tried there.
    boxes = {"a": box("a", "I", 1.2, bytes=10.0), "b": box("b", "a", 1.0), "c": box("c", "I", 1.0)}
    nodes = (Node(name="n1", bandwidth_bytes_per_s=1.0), Node(name="n2"), Node(name="n3"))
    problem = make_problem(Network(streams={"I": Stream(name="I")}, operators=boxes), Cluster(nodes=nodes))
    found = make_planner("optimal").plan(problem, rng=np.random.default_rng(0)).assignment
    assert feasible_volume(planes(problem, found).all, np.zeros(1)).ratio == pytest.approx(3.2 / 3 / 1.2)
