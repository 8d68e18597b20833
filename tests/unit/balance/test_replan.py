"""A whole new plan: its costs against the cost model's, its answer against all placements there are."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from cost_situations import situation, situations
from hypothesis import given
from hypothesis import strategies as st

from levelwind.balance import make_policy
from levelwind.balance.costs import cost_table, make_cost_model
from levelwind.balance.replan import SEARCHES, _cuts, _renamed, _work
from levelwind.balance.standing import standing
from levelwind.balance.whole_plan import Found, costs, descend
from levelwind.model import Node
from levelwind.testing.policy_checks import after


def proposed(seen, **options):
    return make_policy("replan", options).propose(seen, rng=np.random.default_rng(3))


def largest(seen, node):
    return cost_table(make_cost_model("work"), replace(seen, node=np.asarray(node))).node.max()


def placements(seen):
    """All of them, units kept together."""
    leaders = np.unique(seen.unit)
    for choice in product(range(len(seen.cpu)), repeat=len(leaders)):
        yield np.array(choice)[np.searchsorted(leaders, seen.unit)]


@given(seen=situations(most=12), seed=st.integers(0, 1000))
def test_costs_are_those_of_the_cost_model(seen, seed):
    """Also after many steps, each of which counts only what it touches."""
    before = standing(seen)
    work, node = _work(seen, before), before.node.copy()
    rng = np.random.default_rng(seed)
    node[:] = rng.integers(0, len(seen.cpu), len(node))
    cost = costs(work, node)
    assert cost == pytest.approx(
        cost_table(make_cost_model("work"), replace(seen, node=node[before.of])).node
    )
    descend(work, node, cost, before.free, np.full(len(seen.node), -1), np.array([10_000, 0]))
    assert cost == pytest.approx(costs(work, node))


@given(seen=situations(most=7))
def test_it_finds_nearly_the_best_of_all_placements(seen):
    best = min(largest(seen, node) for node in placements(seen))
    then = largest(seen, after(seen, proposed(seen, gain=0)))
    assert best * (1 - 1e-9) <= then <= best * 1.15


def test_nearly_always_it_finds_the_best_itself():
    """By chance: within a percent in at least 95 of 100."""
    rng, found = np.random.default_rng(1), 0
    for _ in range(100):
        arcs = [(k, int(rng.integers(k + 1, 6))) for k in range(5) for _ in range(int(rng.integers(0, 3)))]
        load = rng.uniform(0.1, 2.0, 6)
        seen = situation(
            arcs,
            rng.integers(0, 3, 6).tolist(),
            load=load.tolist(),
            sending=(rng.uniform(0.0, 1.0, (3, 6)) * load).tolist(),
            nodes=tuple(Node(name=f"n{i}") for i in range(3)),
        )
        best = min(largest(seen, node) for node in placements(seen))
        found += largest(seen, after(seen, proposed(seen, gain=0))) <= best * 1.01
    assert found >= 95


@given(seen=situations(most=12), gain=st.sampled_from([0.0, 5.0, 30.0]))
def test_what_moves_lowers_the_largest_cost_by_the_gain(seen, gain):
    made = proposed(seen, gain=gain)
    if made:
        now, then = largest(seen, seen.node), largest(seen, after(seen, made))
        assert then < now
        assert then <= now * (1.0 - gain / 100.0) * (1.0 + 1e-9)
        assert {proposal.group for proposal in made} == {0}


def test_some_of_these_move():
    """The tests before look at something."""
    chain = [(k, k + 1) for k in range(8)]
    seen = situation(chain, [k % 3 for k in range(9)], sending=[[0.5] * 9, [0.5] * 9, [0.5] * 9])
    made = proposed(seen)
    assert made
    # Three connected parts: two arcs are left between nodes.
    node = after(seen, made)
    assert sum(node[a] != node[b] for a, b in chain) == 2
    assert largest(seen, node) == 2.5


def test_chains_dealt_out_in_turn_are_gathered_and_even():
    """Eight chains of ten on five nodes: within a tenth of what all work spread evenly would be."""
    arcs = [(k, k + 1) for k in range(80) if k % 10 < 9]
    load = np.random.default_rng(0).uniform(0.5, 1.5, 80)
    seen = situation(
        arcs, [k % 5 for k in range(80)], load=load.tolist(), sending=[(0.3 * load).tolist()] * 3
    )
    assert largest(seen, after(seen, proposed(seen))) < 1.1 * 0.7 * load.sum() / 5


def test_dear_arcs_are_not_cut_and_free_ones_are():
    """Two heavy pairs: the arcs inside cost more to cut than an uneven load does."""
    seen = situation(
        [(0, 1), (2, 3)], [0, 1, 0, 1], load=[1.0, 1.1, 1.0, 0.9], sending=[[0.4] * 4, [0.4] * 4, [0.4] * 4]
    )
    node = after(seen, proposed(seen))
    assert node[0] == node[1] != node[2] == node[3]
    free = replace(seen, seen={name: np.zeros(4) for name in seen.seen})
    assert not proposed(free)


@given(seen=situations(most=12), seed=st.integers(0, 1000))
def test_nodes_change_names_only_among_equals(seen, seed):
    """Costs stay what they are, and no more load moves than before."""
    cpu = np.where(np.arange(len(seen.cpu)) % 2 > 0, 1.0, 2.0)
    nodes = tuple(Node(name=f"n{i}", cpu=float(one)) for i, one in enumerate(cpu))
    seen = replace(seen, cpu=cpu, nodes=nodes)
    before = standing(seen)
    rng = np.random.default_rng(seed)
    before = replace(before, free=before.free & (rng.random(len(before.node)) < 0.8))
    node = np.where(before.free, rng.integers(0, len(cpu), len(before.node)), before.node)
    work = _work(seen, before)
    renamed = _renamed(before, Found(node, costs(work, node)))
    assert renamed.cost == pytest.approx(costs(work, renamed.node))
    assert (renamed.node[~before.free] == before.node[~before.free]).all()
    assert np.sort(renamed.cost) == pytest.approx(np.sort(costs(work, node)))


def test_a_plan_is_named_as_the_one_before_where_that_moves_less():
    """Everything on one of four equal nodes: its largest part stays there."""
    seen = situation([], [2] * 8, nodes=tuple(Node(name=f"n{i}") for i in range(4)))
    node = after(seen, proposed(seen))
    assert np.bincount(node, minlength=4).tolist() == [2, 2, 2, 2]
    assert (node == 2).sum() == 2


def test_important_operators_move_only_where_the_others_gain_nothing():
    priority = [5.0, 5.0, 0.0, 0.0]
    both = situation([], [0, 0, 0, 0], priority=priority, nodes=(Node(name="a"), Node(name="b")))
    assert {proposal.operator for proposal in proposed(both)} == {2, 3}
    stuck = replace(both, movable=np.array([True, True, False, False]))
    assert {proposal.operator for proposal in proposed(stuck)} == {0, 1}


def test_important_operators_stay_although_equal_nodes_could_change_names():
    """Two that may move change places, where moving only the third would do the same to the costs."""
    seen = situation([], [0, 0, 1], load=[0.3, 0.8, 0.5], priority=[5.0, 0.0, 0.0])
    assert {proposal.operator for proposal in proposed(seen)} == {1, 2}
    equal = situation([], [0, 0, 1], load=[0.3, 0.8, 0.5])
    assert {proposal.operator for proposal in proposed(equal)} == {0}


@given(seen=situations(most=10), data=st.data())
def test_nodes_that_are_not_ready_keep_what_they_have_and_get_nothing(seen, data):
    flags = st.lists(st.booleans(), min_size=len(seen.cpu), max_size=len(seen.cpu))
    ready = np.array(data.draw(flags))
    node = after(seen, proposed(replace(seen, ready=ready), gain=0))
    moved = node != seen.node
    assert ready[node[moved]].all()
    assert ready[seen.node[moved]].all()
    assert largest(seen, node) <= largest(seen, seen.node) * (1 + 1e-9)


def test_it_waits_until_the_window_holds_nothing_from_before_a_move():
    seen = situation([], [0, 0, 0], nodes=(Node(name="a"), Node(name="b")))
    seen = replace(seen, series=np.ones((3, 5)))
    assert proposed(seen)
    assert not proposed(replace(seen, still=0.8))
    assert proposed(replace(seen, still=1.0))


def test_nothing_is_searched_where_nothing_can_be_gained(monkeypatch):
    """An even load, and an operator that fills its node by itself."""
    monkeypatch.setattr("levelwind.balance.replan.search", None)
    assert not proposed(situation([(0, 1)], [0, 1]))
    assert not proposed(situation([(0, 1), (1, 2)], [0, 1, 1], load=[9.0, 1.0, 1.0]))


@given(priority=st.lists(st.integers(0, 30), min_size=1, max_size=60))
def test_searches_are_few_and_the_last_has_all(priority):
    cuts = _cuts(np.array(priority, dtype=float))
    ranks = sorted(set(priority))
    assert cuts == sorted(set(cuts))
    assert cuts[-1] == ranks[-1]
    assert len(cuts) == min(SEARCHES, len(ranks))
    if len(ranks) <= SEARCHES:
        assert cuts == ranks
    joining = np.diff([0, *np.searchsorted(ranks, cuts, side="right")])
    assert joining.max() - joining.min() <= 1


@pytest.mark.parametrize("priorities", [1, 4, 200])
def test_many_priorities_leave_each_search_its_steps(priorities):
    """Chains dealt out in turn, where nearly all must take part for the largest cost to fall by a third."""
    arcs = [(k, k + 1) for k in range(200) if k % 10 < 9]
    load = np.random.default_rng(0).uniform(0.5, 1.5, 200)
    seen = situation(
        arcs,
        [k % 5 for k in range(200)],
        load=load.tolist(),
        sending=[(0.3 * load).tolist()] * 3,
        priority=[float(k % priorities) for k in range(200)],
    )
    then = largest(seen, after(seen, proposed(seen, gain=33)))
    assert then <= 0.67 * largest(seen, seen.node)
