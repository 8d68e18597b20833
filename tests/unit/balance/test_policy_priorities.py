"""Priorities in the policies that go by load: the less important move first, the others only if they must."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levelwind.balance import make_policy
from levelwind.balance.facts import Facts, make_wiring
from levelwind.control.events import StatisticsReported
from levelwind.control.manager import Manager
from levelwind.frontend import parse_network
from levelwind.model import Cluster
from levelwind.testing import check_policy
from levelwind.testing.policy_checks import after, random_situation, relative_loads

BY_LOAD = ("cor_bal", "cor_re", "cor_se", "llf_bal", "rand_bal", "steady_pairs")
IMPROVING = ("cor_re_imp", "cor_se_imp")
EPSILON = 0.1


def facts(priority):
    count = len(priority)
    return Facts(
        operators=tuple(f"o{j}" for j in range(count)),
        properties=({},) * count,
        priority=np.asarray(priority, dtype=np.float64),
        bytes=np.full(count, np.nan),
        wiring=make_wiring([], np.zeros(count, dtype=np.int64)),
    )


def proposed(name, situation):
    return make_policy(name).propose(situation, rng=np.random.default_rng(5))


def relieved(name, situation, node):
    """Even within the threshold; by worth also without a node that is likely to be overloaded."""
    loads = relative_loads(situation, node)
    even = loads.max() - loads.min() <= EPSILON + 1e-9
    if name != "steady_pairs":
        return even
    own = [situation.series[node == i].sum(axis=0) / situation.cpu[i] for i in range(len(situation.cpu))]
    return even and all(each.mean() + each.std() <= 1 + 1e-12 for each in own)


@st.composite
def two_nodes(draw):
    seed, operators = draw(st.integers(0, 10_000)), draw(st.integers(4, 24))
    situation = random_situation(seed, nodes=2, operators=operators, load=draw(st.sampled_from([0.4, 0.7])))
    return situation, draw(st.lists(st.integers(0, 2), min_size=operators, max_size=operators))


@pytest.mark.parametrize("name", [*BY_LOAD, *IMPROVING])
@given(seed=st.integers(0, 10_000), common=st.sampled_from([-3.0, 0.0, 7.0]))
def test_equal_priorities_change_nothing(name, seed, common):
    situation = random_situation(seed)
    ranked = replace(situation, facts=facts([common] * len(situation.node)))
    assert proposed(name, ranked) == proposed(name, situation)


@pytest.mark.parametrize("name", BY_LOAD)
@given(case=two_nodes())
def test_the_least_important_alone_are_tried_first(name, case):
    """The answer is that of the least important alone, whenever that relieves the pair in one exchange."""
    situation, priority = case
    least = situation.movable & (np.array(priority) == min(priority))
    alone = proposed(name, replace(situation, movable=least))
    if len({p.group for p in alone}) == 1 and relieved(name, situation, after(situation, alone)):
        assert proposed(name, replace(situation, facts=facts(priority))) == alone


@pytest.mark.parametrize("name", BY_LOAD)
def test_some_cases_are_of_either_kind(name):
    """The test before looks at something: at times the least important suffice, at times they do not."""
    kinds = set()
    for seed in range(40):
        situation = random_situation(seed, nodes=2, operators=12, load=0.6)
        priority = np.random.default_rng(seed).integers(0, 2, 12)
        found = proposed(name, replace(situation, facts=facts(priority)))
        if found:
            kinds.add(any(priority[p.operator] for p in found))
    assert kinds == {True, False}


class Ranked:
    """A policy that is told priorities by chance, whatever it is asked."""

    def __init__(self, name):
        self.name = name

    def propose(self, situation, *, rng):
        priority = np.random.default_rng(3).integers(0, 3, len(situation.node))
        return make_policy(self.name).propose(replace(situation, facts=facts(priority)), rng=rng)


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=f"{name}-{check.name}")
        for name in (*BY_LOAD, *IMPROVING)
        for check in check_policy(lambda name=name: Ranked(name))
        if check.name not in ("valid",)  # may propose nothing where the important ones could
    ],
)
def test_the_contract_holds_with_priorities(check):
    check.run()


@pytest.mark.parametrize("name", [*BY_LOAD, *IMPROVING])
def test_moves_of_one_exchange_come_with_the_least_important_first(name):
    some = 0
    for seed in range(20):
        situation = random_situation(seed)
        priority = np.random.default_rng(seed).integers(0, 3, len(situation.node))
        found = proposed(name, replace(situation, facts=facts(priority)))
        for group in {p.group for p in found}:
            ranks = [int(priority[p.operator]) for p in found if p.group == group]
            assert ranks == sorted(ranks)
            some += len(set(ranks)) > 1
    assert some


@pytest.mark.parametrize("name", [*BY_LOAD, "balance", "degradation"])
def test_a_manager_moves_the_less_important_of_two_like_queries(name):
    """Four like operators on one node of two: whatever the policy, those of low priority go."""
    operators = [
        {"name": f"f{k}", "kind": "filter", "input": "s", "where": "x > 0", "priority": priority}
        for k, priority in enumerate((2, 0, 2, 0))
    ]
    document = {
        "streams": {"s": {"schema": {"ts": "timestamp", "x": "long"}, "time": "ts", "rate": 10}},
        "operators": [each | {"cost": 0.01, "selectivity": 0.5} for each in operators],
        "outputs": {f"out{k}": {"input": f"f{k}"} for k in range(4)},
    }
    network = parse_network(document).network
    options = {"cost": "cpu"} if name in ("balance", "degradation") else {}
    manager = Manager(
        network,
        Cluster.equal(2),
        dict.fromkeys(network.operators, Cluster.equal(2).names[0]),
        policy=make_policy(name, options),
        rng=np.random.default_rng(0),
    )
    wave = 0.2 + 0.01 * np.sin(np.arange(10.0))
    told = StatisticsReported(at_s=1.0, operators=tuple(network.operators), series=np.tile(wave, (4, 1)))
    moved = {each.operator for each in manager.handle(told)}
    assert moved
    assert moved <= {"f1", "f3"}
