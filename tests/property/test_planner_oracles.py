"""Planners against slow, literal implementations, enumeration and each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracles import all_assignments, literal_rod

from levelwind.frontend.generate import random_trees
from levelwind.loads import make_problem, planes
from levelwind.loads.directions import directions
from levelwind.loads.feasible import reach_power
from levelwind.loads.planes import volume_of_planes
from levelwind.model import Cluster, Model, Network, Node, Operator, PlanStatus, Port, Stream
from levelwind.placement import make_planner, make_units, resilient
from levelwind.placement.greedy import place_greedily
from levelwind.placement.optimal import plans_to_try
from levelwind.placement.rays import add, fill, make_rays, shift_streams, volume_of
from levelwind.testing import WORLDS, strategies, world
from levelwind.testing.worlds import equal_chains

FEW = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])


def decide(problem, planner, seed=0, **options):
    return make_planner(planner, options).plan(problem, rng=np.random.default_rng(seed))


def ratio(problem, assignment):
    return volume_of_planes(planes(problem, assignment), problem.normalised_lower).ratio


def trees(seed, operators, *, streams=3, cpus=(1.0, 1.0, 1.0), transfer=0.0, size=None, wire=None, floor=0.0):
    rng = np.random.default_rng(seed)
    network = random_trees(
        rng, operators=operators, streams=streams, transfer_cost_s=transfer, row_bytes=size
    )
    cluster = Cluster(
        nodes=tuple(Node(name=f"n{i}", cpu=c, bandwidth_bytes_per_s=wire) for i, c in enumerate(cpus))
    )
    if floor:
        total = make_problem(network, cluster).total_load
        lower = {f"I{k + 1}": floor * sum(cpus) / (streams * total[k]) for k in range(streams)}
        network = replace(
            network, streams={n: replace(s, min_rate=lower[n]) for n, s in network.streams.items()}
        )
    return network, cluster


# Greedy ROD


@pytest.mark.parametrize("seed", range(40))
def test_greedy_rod_equals_the_literal_figure(seed):
    rng = np.random.default_rng(1000 + seed)
    cpus = rng.choice([0.5, 1.0, 2.0], int(rng.integers(1, 6)))
    network, cluster = trees(seed, int(rng.integers(3, 40)), cpus=cpus, floor=(0.0, 0.2, 0.9, 3.0)[seed % 4])
    if seed % 3 == 0:
        boxes = dict(network.operators)
        boxes["o1"] = replace(boxes["o1"], pinned=cluster.names[-1])
        network = replace(network, operators=boxes)
    problem = make_problem(network, cluster)
    found = decide(problem, "rod", class_one="first", cluster="off").assignment
    literal = literal_rod(problem.weight, problem.cpu, problem.normalised_lower, problem.fixed)
    assert found.tolist() == literal.tolist()


@pytest.mark.parametrize("per_node", range(1, 12))
@pytest.mark.parametrize("nodes", [2, 3, 7])
def test_equal_operators_fill_a_node_to_the_brim(nodes, per_node):
    # Each node's fair share is exactly met after ``per_node`` operators: still class I, so the first node.
    boxes = {
        f"o{j}": Operator(name=f"o{j}", spec=Model(), inputs=(Port(source="I"),), cost_s=0.1)
        for j in range(nodes * per_node)
    }
    network = Network(streams={"I": Stream(name="I")}, operators=boxes)
    problem = make_problem(network, Cluster.equal(nodes))
    found = decide(problem, "rod", class_one="first", cluster="off").assignment
    assert found.tolist() == [node for node in range(nodes) for _ in range(per_node)]


@FEW
@given(strategies.problems(operators=(1, 9), bandwidth=False))
def test_every_greedy_step_takes_a_node_that_the_figure_allows(problem):
    units = make_units(problem)
    assume(not units.conflicts)
    for rule in ("cut", "fullest", "plane", "random", "first"):
        made = place_greedily(units, rng=np.random.default_rng(0), class_one=rule)
        lower = problem.normalised_lower
        held = np.zeros((len(problem.cpu), len(problem.variables)))
        norms = np.sqrt((units.weight**2).sum(axis=1))
        order = sorted(range(units.count), key=lambda u: (units.fixed[u] < 0, -norms[u]))
        for u in order:
            after = held + np.outer(problem.cpu.sum() / problem.cpu, units.weight[u])
            chosen = made.nodes[u]
            if units.fixed[u] >= 0:
                assert chosen == units.fixed[u]
            elif norms[u] > 0 and len({float(f"{n:.9g}") for n in norms}) == len(norms):
                # Without equal norms the order is certain, and every step can be judged on its own.
                fits = (after <= 1 + 1e-9).all(axis=1)
                room = 1 - after @ lower
                score = np.where(room > 0, room / np.linalg.norm(after, axis=1), room)
                assert fits[chosen] if fits.any() else score[chosen] >= score.max() - 1e-9
            held[chosen] = after[chosen]


@pytest.mark.parametrize("name", WORLDS)
def test_worlds(name):
    here = world(name)
    problem = make_problem(here.network, here.cluster)
    for placement, expected in here.ratios.items():
        found = ratio(problem, problem.assignment(here.placements[placement]))
        assert found == pytest.approx(expected, abs=1e-12), placement
    if here.ideal_volume is not None:
        d = len(problem.variables)
        legs = problem.cpu.sum() / problem.total_load
        assert legs.prod() / np.prod(range(1, d + 1)) == pytest.approx(here.ideal_volume, rel=1e-12)
    for planner, least in here.limits.items():
        network = here.network
        if planner == "llf":
            network = replace(
                network, streams={n: replace(s, rate=(1.0,)) for n, s in network.streams.items()}
            )
        placed = decide(make_problem(network, here.cluster), planner)
        assert ratio(problem, placed.assignment) >= least, planner


def test_areas_of_the_worked_example():
    here = world("worked_example")
    problem = make_problem(here.network, here.cluster)
    area = {
        name: ratio(problem, problem.assignment(placement)) / 160
        for name, placement in here.placements.items()
    }
    assert area == pytest.approx({"a": 1 / 320, "b": 1 / 252, "c": 25 / 5292}, abs=1e-12, rel=0)


@pytest.mark.parametrize("planner", ["rod", "resilient", "optimal"])
def test_plan_c_of_the_worked_example(planner):
    here = world("worked_example")
    placed = decide(make_problem(here.network, here.cluster), planner).assignment
    together = {frozenset(np.flatnonzero(placed == node).tolist()) for node in (0, 1)}
    assert together == {frozenset({0, 3}), frozenset({1, 2})}


@pytest.mark.parametrize("nodes", [1, 2, 3, 5])
def test_equal_chains_of_any_size(nodes):
    here = equal_chains(nodes)
    problem = make_problem(here.network, here.cluster)
    for name, placement in here.placements.items():
        assert ratio(problem, problem.assignment(placement)) == pytest.approx(here.ratios[name], rel=5e-3)
    assert ratio(problem, decide(problem, "rod").assignment) == pytest.approx(1.0, abs=1e-9)


def clustered(seed):
    transfer = (1e-5, 1e-4, 4e-4, 1e-3, 3e-3)[seed % 5]
    network, cluster = trees(seed, 10 + seed, cpus=(1.0, 1.0, 2.0), transfer=transfer)
    problem = make_problem(network, cluster)
    off = ratio(problem, decide(problem, "rod", cluster="off").assignment)
    return off, ratio(problem, decide(problem, "rod").assignment)


@pytest.mark.parametrize("seed", range(30))
def test_clustering_never_loses(seed):
    off, on = clustered(seed)
    assert on >= off - 1e-12


def test_clustering_wins_where_sending_is_dear():
    found = [clustered(seed) for seed in (4, 9, 14)]
    assert sum(on for _, on in found) > 1.2 * sum(off for off, _ in found)


# Optimal and resilient


TINY = [
    (seed, cpus, transfer, wire, floor)
    for seed, (cpus, transfer, wire, floor) in enumerate(
        (cpus, transfer, wire, floor)
        for cpus in ((1.0, 1.0), (1.0, 2.0), (1.0, 1.0, 1.0), (0.5, 1.0, 2.0))
        for transfer, wire in ((0.0, None), (5e-4, None), (0.0, 20_000.0), (5e-4, 20_000.0))
        for floor in (0.0, 0.3)
    )
]


def tiny(seed, cpus, transfer, wire, floor):
    network, cluster = trees(
        seed,
        7 if len(cpus) == 2 else 5,
        streams=2 + (seed % 2),
        cpus=cpus,
        transfer=transfer,
        size=8.0 if wire else None,
        wire=wire,
        floor=floor,
    )
    boxes = dict(network.operators)
    if seed % 2:
        boxes["o2"] = replace(boxes["o2"], pinned=cluster.names[-1])
    if seed % 3 == 1:
        boxes["o1"], boxes["o4"] = replace(boxes["o1"], table="t"), replace(boxes["o4"], table="t")
    return make_problem(replace(network, operators=boxes), cluster)


@pytest.mark.parametrize("case", TINY, ids=lambda c: f"{len(c[1])}nodes-{c[2]:g}-{c[3]}-{c[4]:g}")
def test_optimal_and_resilient_equal_enumeration(case):
    problem = tiny(*case)
    best = max(ratio(problem, nodes) for nodes in all_assignments(problem))
    assert ratio(problem, decide(problem, "optimal").assignment) == pytest.approx(best, rel=1e-12)
    found = decide(problem, "resilient", budget=0.02)
    assert ratio(problem, found.assignment) == pytest.approx(best, rel=1e-12)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])
@given(strategies.problems(streams=(1, 3), operators=(1, 5), nodes=(1, 3), without={"splits"}))
def test_optimal_equals_enumeration_on_any_network(problem):
    units = make_units(problem)
    assume(not units.conflicts and 1 <= len(problem.variables) <= 3)
    best = max(ratio(problem, nodes) for nodes in all_assignments(problem))
    found = decide(problem, "optimal")
    assert ratio(problem, found.assignment) == pytest.approx(best, rel=1e-9, abs=1e-12)


def test_optimal_refuses_what_it_cannot_look_at():
    network, cluster = trees(0, 40)
    found = decide(make_problem(network, cluster), "optimal", limit=1000)
    assert found.status is PlanStatus.REFUSED
    assert found.assignment is None
    assert found.notes


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_plans_to_try_counts_plans_that_are_not_renamings(count):
    network, cluster = trees(1, 5, cpus=(1.0,) * count)
    problem = make_problem(network, cluster)
    shapes = {tuple(np.unique(p, return_inverse=True)[1].tolist()) for p in all_assignments(problem)}
    partitions = {
        frozenset(frozenset(np.flatnonzero(np.array(s) == g).tolist()) for g in set(s)) for s in shapes
    }
    assert plans_to_try(make_units(problem)) == len(partitions)


@pytest.mark.parametrize("seed", range(12))
def test_resilient_is_never_below_rod(seed):
    network, cluster = trees(
        seed,
        12 + 3 * seed,
        streams=5,
        cpus=(1.0, 1.0, 2.0, 0.5),
        transfer=(0.0, 3e-4)[seed % 2],
        size=8.0,
        wire=(None, 50_000.0)[seed // 2 % 2],
        floor=(0.0, 0.2)[seed // 4 % 2],
    )
    problem = make_problem(network, cluster)
    rod = ratio(problem, decide(problem, "rod").assignment)
    found = decide(problem, "resilient", budget=0.05)
    again = decide(problem, "resilient", budget=0.05)
    assert ratio(problem, found.assignment) >= rod
    assert found.assignment.tolist() == again.assignment.tolist()
    assert found.figures == again.figures


def test_resilient_keeps_rods_plan_if_the_search_comes_back_with_less(monkeypatch):
    network, cluster = trees(0, 60, streams=5)
    problem = make_problem(network, cluster)

    def all_on_one_node(units, start, work, rng):
        return np.zeros(units.count, dtype=np.int64), 1

    monkeypatch.setattr(resilient, "search", all_on_one_node)
    found = decide(problem, "resilient", budget=0.02)
    assert ratio(problem, found.assignment) == ratio(problem, decide(problem, "rod").assignment)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_resilient_gains_on_the_figures_trees(seed):
    network = random_trees(np.random.default_rng(seed), operators=50)
    problem = make_problem(network, Cluster.equal(10))
    rod = ratio(problem, decide(problem, "rod").assignment)
    assert ratio(problem, decide(problem, "resilient", budget=2.0).assignment) > 1.1 * rod


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 250))
def test_clustering_never_loses_in_a_wider_sweep(seed):
    off, on = clustered(seed)
    assert on >= off - 1e-12


# The compiled table


def in_double_precision(problem, assignment, *, points, seed):
    """A plan's value on the rays of `make_rays`, by the double precision code."""
    found, lower = planes(problem, assignment), problem.normalised_lower
    weights, ideal = found.all, 1.0 - lower.sum()
    slack = 1.0 - found.constant - weights @ lower
    if (slack < 0).any():
        return float(slack.min())
    rays = directions(weights.shape[1], points, 1, seed)[0]
    return float(reach_power(weights * (ideal / slack)[:, None], rays).mean())


class Table:
    """The compiled table of a plan, and room to work in."""

    def __init__(self, units, points=256, seed=3):
        self.rays = make_rays(units, points=points, seed=seed)
        width = self.rays.unit.shape[1]
        self.rows = np.zeros((2 * len(self.rays.cpu) + 1, width), dtype=np.float32)
        self.stamp = np.zeros(len(self.rays.cpu) + 1, dtype=np.int64)
        self.room = np.zeros((2, width), dtype=np.float32)

    def fill(self, nodes):
        fill(self.rows, nodes, self.rays, self.stamp)

    def move(self, unit, target, nodes):
        source = nodes[unit]
        add(self.rows[source], -self.rays.cpu[source], self.rays.unit[unit])
        add(self.rows[target], self.rays.cpu[target], self.rays.unit[unit])
        shift_streams(self.rows, unit, target, nodes, self.rays, self.stamp)

    def value(self):
        rays = self.rays
        return volume_of(self.rows, rays.planes, rays.ideal, rays.power, self.room[0], self.room[1])


@FEW
@given(
    problem=strategies.problems(streams=(1, 4), operators=(2, 9), nodes=(2, 4)),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_compiled_table_agrees_with_double_precision(problem, seed):
    units = make_units(problem)
    assume(problem.variables and not units.conflicts and problem.normalised_lower.sum() < 0.9)
    rng = np.random.default_rng(seed)
    table = Table(units)
    nodes = rng.integers(0, len(problem.cpu), units.count)
    table.fill(nodes)
    expected = in_double_precision(problem, units.assignment(nodes), points=256, seed=3)
    assert table.value() == pytest.approx(expected, rel=1e-4, abs=1e-4)
    for _ in range(200):
        unit, target = int(rng.integers(units.count)), int(rng.integers(len(problem.cpu)))
        table.move(unit, target, nodes)
        assert nodes[unit] == target
    expected = in_double_precision(problem, units.assignment(nodes), points=256, seed=3)
    assert table.value() == pytest.approx(expected, rel=1e-4, abs=1e-4)
