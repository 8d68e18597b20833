"""Policies: tables of small cases, what they promise each other, and unequal or many nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from levelwind.balance import Situation, make_policy, policy_names
from levelwind.balance.pairing import pairs_of, partners
from levelwind.errors import InputError
from levelwind.testing.policy_checks import after, random_situation, relative_loads

UP, DOWN = (2.0, 0.0) * 4, (0.0, 2.0) * 4
FLAT = (1.0,) * 8
# Not the one that moves for the network's sake.
BALANCING = [name for name in policy_names() if name != "local_relaxation"]


def situation(*nodes, cpu=None):
    """Nodes as lists of (load, shape)."""
    rows = [load * np.array(shape) for node in nodes for load, shape in node]
    place = [i for i, node in enumerate(nodes) for _ in node]
    count = len(rows)
    return Situation(
        series=np.array(rows),
        node=np.array(place, dtype=np.int64),
        cpu=np.ones(len(nodes)) if cpu is None else np.array(cpu),
        movable=np.ones(count, dtype=bool),
        unit=np.arange(count),
        state_bytes=np.zeros(count),
    )


def moved(policy, case, **options):
    proposed = make_policy(policy, options).propose(case, rng=np.random.default_rng(0))
    return {p.operator: p.to for p in proposed}


@pytest.mark.parametrize("policy", policy_names())
def test_a_difference_below_the_threshold_moves_nothing(policy):
    case = situation([(0.1, FLAT)] * 4, [(0.1, FLAT)] * 3)
    assert moved(policy, case) == {}


@pytest.mark.parametrize("policy", BALANCING)
def test_half_the_difference_is_moved(policy):
    case = situation([(0.1, FLAT)] * 8, [(0.1, FLAT)] * 2)
    load = relative_loads(case, after(case, make_policy(policy).propose(case, rng=np.random.default_rng(0))))
    assert load.tolist() == pytest.approx([0.5, 0.5])


def test_one_way_gives_what_rises_with_its_own_node_and_not_with_the_other():
    case = situation([(0.2, UP), (0.2, UP), (0.2, UP), (0.2, DOWN)], [(0.2, DOWN)])
    assert moved("cor_bal", case) in ({0: 1}, {1: 1}, {2: 1})
    assert 3 not in moved("cor_bal", case)


def test_largest_first_gives_the_largest_that_fits():
    case = situation([(0.5, FLAT), (0.3, FLAT), (0.1, FLAT), (0.05, FLAT)], [(0.2, FLAT)])
    assert moved("llf_bal", case) == {1: 1, 3: 1}


def test_even_nodes_that_burst_in_turn_are_left_alone_by_all_but_the_improved():
    """Each node holds one chain: even, and overloaded half the time."""
    case = situation([(0.2, UP)] * 4, [(0.2, DOWN)] * 4)
    for policy in ("cor_bal", "cor_re", "cor_se", "llf_bal", "rand_bal"):
        assert moved(policy, case) == {}
    for policy in ("cor_re_imp", "cor_se_imp", "steady_pairs"):
        node = after(case, make_policy(policy).propose(case, rng=np.random.default_rng(0)))
        load = np.zeros((2, 8))
        np.add.at(load, node, case.series)
        assert load.std() == pytest.approx(0.0, abs=1e-9), policy


def test_the_improved_ones_wait_for_danger():
    """The same at half the load: mean plus deviation stays below the CPU."""
    case = situation([(0.1, UP)] * 4, [(0.1, DOWN)] * 4)
    for policy in policy_names():
        assert moved(policy, case) == {}


def test_ours_does_not_move_for_little():
    """Nodes almost alike: the exchange that correlation asks for gains less than it moves."""
    rng = np.random.default_rng(0)
    wave = np.array(FLAT) + 0.3 * np.sin(np.arange(8))
    case = situation([(0.1, wave)] * 9, [(0.1, wave)] * 9)
    case = replace(case, series=case.series * rng.uniform(0.98, 1.02, case.series.shape))
    assert moved("steady_pairs", case) == {}


def test_relative_loads_count_on_unequal_nodes():
    """0.8 of 2 CPUs is less than 0.6 of one: the small node gives."""
    case = situation([(0.1, FLAT)] * 8, [(0.1, FLAT)] * 6, cpu=[2.0, 1.0])
    for policy in ("cor_bal", "llf_bal", "rand_bal", "steady_pairs"):
        targets = set(moved(policy, case).values())
        assert targets == {0}, policy


def test_pairs():
    load = np.array([0.5, 0.9, 0.1, 0.7, 0.3])
    rng = np.random.default_rng(0)
    assert pairs_of(load, "central", rng).tolist() == [[1, 2], [3, 4]]
    for pairing in ("random", "neighbour"):
        for _ in range(10):
            found = pairs_of(load, pairing, rng)
            assert len(set(found.ravel().tolist())) == 4
            if pairing == "neighbour":
                assert all((b - a) % 5 == 1 for a, b in found.tolist())
    assert partners(np.array([[1, 2], [3, 4]]), 5).tolist() == [0, 2, 1, 4, 3]
    assert pairs_of(np.array([1.0]), "central", rng).shape == (0, 2)


def run_periods(policy, case, periods, seed=0, **options):
    """The same load again and again, moves carried out at once: load moved, largest divergent level."""
    made, rng = make_policy(policy, options), np.random.default_rng(seed)
    moved_load, mean = 0.0, case.series.mean(axis=1)
    for _ in range(periods):
        proposed = made.propose(case, rng=rng)
        moved_load += sum(float(mean[p.operator]) for p in proposed)
        case = replace(case, node=after(case, proposed))
    load = np.zeros((len(case.cpu), case.series.shape[1]))
    np.add.at(load, case.node, case.series)
    load /= case.cpu[:, None]
    return moved_load, float((load.mean(axis=1) + load.std(axis=1)).max())


@pytest.mark.parametrize("policy", ["cor_se_imp", "cor_re_imp", "steady_pairs"])
def test_without_a_coordinator_it_ends_about_as_well(policy):
    """Random pairs know less and need more periods; the worst node ends within 0.15 of the central one's."""
    for seed in range(3):
        case = random_situation(seed, nodes=12, operators=120, load=0.8)
        central = run_periods(policy, case, 20)[1]
        for pairing in ("random", "neighbour"):
            assert run_periods(policy, case, 60, pairing=pairing)[1] <= central + 0.15


@pytest.mark.parametrize("pairing", ["random", "neighbour"])
@pytest.mark.parametrize("policy", [p for p in BALANCING if p not in ("balance", "degradation", "replan")])
def test_without_a_coordinator_a_node_exchanges_only_with_the_one_it_meets(policy, pairing):
    case = random_situation(1, nodes=9, operators=90, load=0.9)
    met = partners(pairs_of(relative_loads(case, case.node), pairing, np.random.default_rng(0)), 9)
    proposed = make_policy(policy, {"pairing": pairing}).propose(case, rng=np.random.default_rng(0))
    assert proposed
    assert all(p.to == met[case.node[p.operator]] for p in proposed)


def test_ours_ends_lower_than_selective_exchange_for_about_the_load_moved():
    """The simulator has the figures with queues; here only that neither is bought with the other."""
    ours, theirs = [], []
    for seed in range(8):
        case = random_situation(seed, nodes=12, operators=120, load=0.85)
        ours.append(run_periods("steady_pairs", case, 20))
        theirs.append(run_periods("cor_se_imp", case, 20))
    (moved_load, level), (most, highest) = np.mean(ours, axis=0), np.mean(theirs, axis=0)
    assert moved_load <= 1.15 * most
    assert level <= highest


@pytest.mark.parametrize("policy", policy_names())
def test_periods_end_in_rest(policy):
    """With constant load the moves stop: no pair exchanges back and forth for ever."""
    case = random_situation(5, nodes=6, operators=60, load=0.7)
    settled, _ = run_periods(policy, case, 30)
    longer, _ = run_periods(policy, case, 40)
    assert longer == pytest.approx(settled)


def test_registry():
    assert make_policy("cor_se_imp", {"threshold": "0.2", "pairing": "random"}).threshold == 0.2
    with pytest.raises(InputError, match="did you mean 'cor_bal'"):
        make_policy("cor_bla")
    with pytest.raises(InputError) as error:
        make_policy("cor_se", {"pairing": "chance", "treshold": 1, "score": -1})
    rules = [problem.rule for problem in error.value.problems]
    assert rules == [
        "must be one of central, random, neighbour",
        "must name an option of the policy",
        "must be at least 0",
    ]
