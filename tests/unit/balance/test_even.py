"""`balance` where the fullest node has nothing to give, or the emptiest can take nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cost_situations import situation, situations
from hypothesis import given
from hypothesis import strategies as st

from levelwind.balance import make_policy
from levelwind.balance.costs import cost_table, make_cost_model
from levelwind.balance.costs.protocol import percent_difference
from levelwind.model import Node
from levelwind.testing.policy_checks import after

MODELS = ("cpu", "memory", "output_rate", "connections", "work")


def proposed(seen, **options):
    return make_policy("balance", options).propose(seen, rng=np.random.default_rng(0))


def costs(seen, node, model="cpu"):
    return cost_table(make_cost_model(model), replace(seen, node=np.asarray(node))).node


def three_nodes(first, *, movable=True, **more):
    """What stands on n0 is given; four operators of 0.2 stand on n1; n2 is empty."""
    nodes = tuple(Node(name=f"n{i}", memory_bytes=10.0) for i in range(3))
    load = [*first, *[0.2] * 4]
    seen = situation([], [0] * len(first) + [1] * 4, load=load, nodes=nodes, **more)
    may = np.ones(len(load), dtype=bool)
    may[: len(first)] = movable
    return replace(seen, movable=may)


@pytest.mark.parametrize("movable", [False, True])
def test_where_the_fullest_node_can_give_nothing_the_next_gives(movable):
    """0.9 in one piece: it may not move, or nothing is gained if it does."""
    seen = three_nodes([0.9], movable=movable)
    assert costs(seen, after(seen, proposed(seen))).tolist() == pytest.approx([0.9, 0.4, 0.4])


@pytest.mark.parametrize("policy", ["balance", "degradation"])
def test_only_chosen_operators_move_also_where_the_fullest_node_has_none(policy):
    seen = three_nodes([0.5, 0.5])
    made = make_policy(policy, {"operators": "o2,o3"}).propose(seen, rng=np.random.default_rng(0))
    assert made
    assert {each.operator for each in made} <= {2, 3}


def test_nodes_that_give_and_take_must_differ_by_what_is_asked():
    """A node that nobody can relieve is no reason to move things between others that are about even."""
    seen = three_nodes([0.9], movable=False)
    uneven = replace(seen, node=np.array([0, 1, 1, 2, 2]), series=np.array([[0.9, 0.4, 0.04, 0.2, 0.16]]).T)
    assert not proposed(uneven)
    assert proposed(uneven, percent_difference=5)


def test_where_the_emptiest_node_has_no_cpu_left_the_next_takes():
    """By memory: n0 is full, n1 nearly empty and busy, n2 a little fuller and idle."""
    nodes = tuple(Node(name=f"n{i}", memory_bytes=10.0) for i in range(3))
    load, state = [0.3, 0.3, 0.9, 0.1], [4.0, 4.0, 0.5, 1.0]
    seen = situation([], [0, 0, 1, 2], load=load, state=state, nodes=nodes)
    assert [each.to for each in proposed(seen, cost="memory")] == [2]


def test_where_an_operator_is_too_much_for_the_emptiest_node_a_larger_one_takes():
    nodes = (Node(name="n0"), Node(name="n1", cpu=0.5), Node(name="n2", cpu=4.0))
    seen = situation([], [0, 0, 2], load=[0.45, 0.45, 0.4], nodes=nodes)
    assert [each.to for each in proposed(seen)] == [2, 2]


@pytest.mark.parametrize("name", MODELS)
@given(seen=situations(), stuck=st.integers(0, 255), percent=st.sampled_from([0.0, 10.0, 40.0]))
def test_whatever_is_stuck_costs_fall_and_do_not_drift_apart(name, seen, stuck, percent):
    movable = np.array([not stuck >> k & 1 for k in range(len(seen.node))])
    seen = replace(seen, movable=movable)
    made = proposed(seen, cost=name, percent_difference=percent)
    before, then = costs(seen, seen.node, name), costs(seen, after(seen, made), name)
    assert all(movable[each.operator] for each in made)
    assert percent_difference(then) <= percent_difference(before) + 1e-6
    assert then.max() <= before.max() + 1e-9
    if made:
        assert sorted(then, reverse=True) < sorted(before, reverse=True)


@given(seen=situations(), stuck=st.integers(0, 255))
def test_it_ends_where_no_single_move_helps_whoever_gives_and_takes(seen, stuck):
    """Brute force over the last step, by CPU; what has moved does not move again."""
    seen = replace(seen, movable=np.array([not stuck >> k & 1 for k in range(len(seen.node))]))
    node = after(seen, proposed(seen, percent_difference=0))
    cost, fixed = costs(seen, node), ~seen.movable | (node != seen.node)
    for unit in set(seen.unit.tolist()) - set(seen.unit[fixed].tolist()):
        members = np.flatnonzero(seen.unit == unit)
        heavy = int(node[members[0]])
        for light in set(range(len(seen.cpu))) - {heavy}:
            tried = node.copy()
            tried[members] = light
            new = costs(seen, tried)
            worse = percent_difference(new) > percent_difference(cost)
            assert worse or max(new[heavy], new[light]) >= cost[heavy] - 1e-6
