"""The policy that moves operators when the network between nodes changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from levelwind.balance import Situation, local_relaxation, make_policy, surroundings
from levelwind.balance.facts import make_facts
from levelwind.balance.surroundings import estimated
from levelwind.control.events import LatencyMeasured, StatisticsReported
from levelwind.control.instructions import Move
from levelwind.control.manager import Manager
from levelwind.errors import InputError
from levelwind.loads import make_problem
from levelwind.model import Cluster, Node
from levelwind.placement import measure
from levelwind.reproduce.wide_area import aggregations, cluster_of
from levelwind.space import embed
from levelwind.testing import check_policy


def plane(seed, count):
    spots = np.random.default_rng(seed).uniform(0, 100, (count, 3))
    return np.sqrt(((spots[:, None] - spots[None]) ** 2).sum(-1))


def situation(problem, node, load=0.01, **changes):
    count = len(node)
    made = Situation(
        series=np.full((count, 2), load),
        node=np.asarray(node),
        cpu=np.ones(len(problem.cpu)),
        movable=np.ones(count, dtype=bool),
        unit=np.arange(count),
        state_bytes=np.zeros(count),
        around=surroundings(problem, np.array(problem.cluster.latency_ms)),
    )
    return replace(made, **changes)


def proposed(given, **options):
    return make_policy("local_relaxation", options).propose(given, rng=np.random.default_rng(0))


def world(seed, queries=5, count=40):
    rng = np.random.default_rng(seed)
    cluster = cluster_of(plane(seed, count))
    problem = make_problem(aggregations(rng, cluster.names, queries), cluster)
    return problem, rng.integers(count, size=queries)


@pytest.mark.parametrize("seed", range(5))
def test_one_move_that_saves_what_it_says(seed):
    problem, node = world(seed)
    (move,) = proposed(situation(problem, node))
    after = node.copy()
    after[move.operator] = move.to
    saved = measure(problem, node).network_usage - measure(problem, after).network_usage
    assert saved > 0
    assert f"saves {saved:.4g} bytes" in move.reason


def test_a_node_that_is_not_ready_is_passed_over():
    problem, node = world(0)
    given, ready = situation(problem, node), np.ones(40, dtype=bool)
    (first,) = proposed(given)
    ready[first.to] = False
    (second,) = proposed(replace(given, ready=ready))
    assert second.to != first.to


def test_it_comes_to_rest_near_the_optimum():
    from levelwind.placement import make_planner

    problem, node = world(7)
    for _ in range(100):
        moves = proposed(situation(problem, node))
        if not moves:
            break
        node = node.copy()
        node[moves[0].operator] = moves[0].to
    best = make_planner("optimal_network").plan(problem, rng=np.random.default_rng(0)).assignment
    assert measure(problem, node).network_usage < 1.15 * measure(problem, best).network_usage


def test_thresholds():
    problem, node = world(3)
    assert not proposed(situation(problem, node), saving=0.99)
    assert not proposed(situation(problem, node), displacement=1e6)


def test_what_may_be_chance_moves_nothing():
    problem, node = world(3)
    latency = np.array(problem.cluster.latency_ms)
    sure, unsure = (surroundings(problem, latency, np.full_like(latency, ms)) for ms in (0.1, 60.0))
    assert proposed(situation(problem, node, around=sure))
    assert not proposed(situation(problem, node, around=unsure))
    assert proposed(situation(problem, node, around=unsure), certainty=0.0)


def test_latencies_that_have_not_changed_are_embedded_once(monkeypatch):
    asked = []
    monkeypatch.setattr(local_relaxation, "_KNOWN", {})
    monkeypatch.setattr(local_relaxation, "MOST_KNOWN", 2)

    def counted(latency, **more):
        asked.append(latency)
        return embed(latency, **more)

    monkeypatch.setattr(local_relaxation, "embed", counted)
    worlds = [situation(*world(seed)) for seed in (1, 2, 3)]
    first = [proposed(each) for each in worlds]
    assert len(asked) == 3
    assert proposed(worlds[2]) == first[2]
    assert len(asked) == 3
    assert proposed(worlds[0]) == first[0]  # forgotten meanwhile: there is room for two
    assert len(asked) == 4


def test_means_and_errors_of_reports():
    rng = np.random.default_rng(0)
    reports = [rng.normal(10.0, 2.0, (50, 50)) for _ in range(25)]
    mean, error = estimated(reports)
    assert np.allclose(mean, np.mean(reports, axis=0))
    assert np.median(error) == pytest.approx(2.0 / 5.0, rel=0.1)
    assert estimated(reports[:1])[1] is None
    assert np.median(estimated(reports[:2])[1]) > 5.0  # two samples say next to nothing


def test_full_nodes_get_nothing():
    problem, node = world(3, queries=3)
    (move,) = proposed(situation(problem, node))
    cpu = np.full(40, 0.009)
    assert not proposed(situation(problem, node, cpu=cpu))
    cpu[move.to] = 1.0
    (again,) = proposed(situation(problem, node, cpu=cpu))
    assert again.to == move.to


def test_without_latencies_nothing_moves():
    problem, node = world(0)
    assert not proposed(situation(problem, node, around=None))


@pytest.mark.parametrize("check", list(check_policy("local_relaxation")), ids=lambda check: check.name)
def test_rules_that_hold_for_every_policy(check):
    if check.name in ("valid", "immovable_counts"):
        pytest.skip("it does not balance loads")
    check.run()


def test_units_and_immovable_operators():
    problem, node = world(1)
    unit = np.array([0, 0, 1, 2, 3])
    together = node.copy()
    together[1] = together[0]
    moves = proposed(situation(problem, together, unit=unit))
    assert len({move.to for move in moves}) == 1
    stay = np.zeros(5, dtype=bool)
    assert not proposed(situation(problem, node, movable=stay))


def manager(cluster, problem, node):
    names = problem.physical.names
    return Manager(
        problem.network,
        cluster,
        {name: cluster.names[i] for name, i in zip(names, node, strict=True)},
        policy=make_policy("local_relaxation"),
        rng=np.random.default_rng(0),
    )


def test_a_manager_moves_when_latencies_change():
    problem, node = world(2)
    cluster = problem.cluster
    managed = manager(cluster, problem, node)
    report = StatisticsReported(at_s=1.0, operators=problem.physical.names, series=np.full((5, 2), 0.01))
    moved = [each for each in managed.handle(report) if isinstance(each, Move)]
    assert len(moved) == 1
    flat = np.ones((40, 40)) - np.eye(40)
    calm = manager(cluster, problem, node)
    assert calm.handle(LatencyMeasured(at_s=0.5, nodes=cluster.names, latency_ms=np.zeros((40, 40)))) == ()
    assert not calm.handle(report)
    with pytest.raises(InputError, match="square"):
        calm.handle(LatencyMeasured(at_s=2.0, nodes=cluster.names, latency_ms=flat[:3]))


def test_a_manager_without_latencies_has_nothing_to_move():
    problem, node = world(2)
    bare = Cluster(nodes=tuple(Node(name=name) for name in problem.cluster.names))
    report = StatisticsReported(at_s=1.0, operators=problem.physical.names, series=np.full((5, 2), 0.01))
    assert not manager(bare, problem, node).handle(report)


@pytest.mark.parametrize("seed", range(5))
def test_the_most_important_query_moves_first(seed):
    problem, node = world(seed)
    (free,) = proposed(situation(problem, node))
    others = [j for j in range(len(node)) if j != free.operator]
    movable = np.ones(len(node), dtype=bool)
    movable[free.operator] = False
    (second,) = proposed(situation(problem, node, movable=movable))
    given = make_facts(problem.network)
    priority = np.zeros(len(node))
    priority[others] = 1.0
    (found,) = proposed(situation(problem, node, facts=replace(given, priority=priority)))
    assert found == second
    assert proposed(situation(problem, node, facts=given)) == (free,)
