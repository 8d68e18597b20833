"""The correlation-based algorithms: against print, against brute force, and on the papers' own examples."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind import planning
from levelwind.bench.literal_correlation import Literal
from levelwind.frontend.generate import random_trees
from levelwind.loads import make_problem
from levelwind.model import Cluster, Model, Network, Node, Operator, Port, Stream
from levelwind.placement import make_planner, measure
from levelwind.placement.distribution import distribute
from levelwind.placement.pairs import BY_CORRELATION, exchange, node_series, one_way, redistribute
from levelwind.placement.unit_series import unit_series


def waves(seed, units, samples=8, levels=4):
    """Series from a coarse grid, many of them proportional or constant: ties everywhere."""
    rng = np.random.default_rng(seed)
    shapes = rng.integers(0, levels, (max(1, units // 3), samples)).astype(float)
    return shapes[rng.integers(0, len(shapes), units)] * rng.integers(0, 3, (units, 1))


@pytest.mark.parametrize("seed", range(12))
def test_distribution_is_that_of_print(seed):
    rng = np.random.default_rng(seed)
    nodes, units = int(rng.integers(2, 6)), int(rng.integers(1, 22))
    series = waves(seed, units) if seed % 2 else rng.uniform(0, 1, (units, 8))
    cpu = rng.choice([0.5, 1.0, 1.5], nodes)
    fixed = np.where(rng.random(units) < 0.2, rng.integers(0, nodes, units), -1)
    ours = distribute(unit_series(series), fixed, cpu, threshold=0.8)
    assert ours.tolist() == Literal(series, cpu, fixed).distribute(0.8)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), smooth=st.booleans(), method=st.sampled_from(["one", "re", "se"]))
def test_pairs_are_those_of_print(seed, smooth, method):
    rng = np.random.default_rng(seed)
    units = int(rng.integers(1, 14))
    series = rng.uniform(0, 1, (units, 6)) if smooth else waves(seed, units, 6)
    cpu, free = rng.choice([0.5, 1.0, 2.0], 2), rng.random(units) < 0.8
    side = rng.integers(0, 2, units)
    literal = Literal(series, cpu, np.where(free, -1, side))
    plan = dict(enumerate(side.tolist()))
    known = unit_series(series)
    x, level = node_series(known, side, 2)
    ids = np.arange(units)
    if method == "one":
        one_way(known, ids, side, free, x, level, cpu, BY_CORRELATION, known.mean)
        literal.one_way(plan, 0, 1)
    elif method == "re":
        redistribute(known, ids, side, free, x, level, cpu)
        literal.redistribute(plan, 0, 1)
    else:
        exchange(known, ids, side, free, x, level, cpu, 0.2)
        literal.exchange(plan, 0, 1, 0.2)
    assert side.tolist() == [plan[u] for u in range(units)]
    again, loads = node_series(known, side, 2)
    assert np.allclose(x, again)
    assert np.allclose(level, loads)


def chain_network(phases, *, length=2, cost=0.25):
    """A chain of equal operators per stream; the streams burst in turn."""
    samples = len(phases[0])
    streams, boxes = {}, {}
    for k, wave in enumerate(phases):
        assert len(wave) == samples
        streams[f"I{k}"] = Stream(name=f"I{k}", rate=tuple(wave))
        source = f"I{k}"
        for step in range(length):
            name = f"c{k}_{step}"
            boxes[name] = Operator(
                name=name, spec=Model(), inputs=(Port(source=source),), cost_s=cost, selectivity=1.0
            )
            source = name
    return Network(streams=streams, operators=boxes)


@pytest.mark.parametrize("planner", ["correlation", "steady", "hybrid"])
def test_two_chains_that_burst_in_turn_are_cut(planner):
    """Figure 1 of seed 001: the cut plan, in which neither node's load varies."""
    network = chain_network([(2.0, 1.0) * 5, (1.0, 2.0) * 5])
    plan = planning.plan(network, 2, planner)
    for k in range(2):
        assert plan.placement[f"c{k}_0"] != plan.placement[f"c{k}_1"]
    assert plan.measures.load_std == pytest.approx(0.0, abs=1e-12)
    assert plan.measures.load_spread == pytest.approx(0.0, abs=1e-12)


@given(seed=st.integers(0, 10**6))
def test_the_bounds_of_theorem_5(seed):
    """Figure 5.1 of seed 000: var X/(1 + ρ) bounds var X1 + var X2 from below for ρ > 0, else from above."""
    rng = np.random.default_rng(seed)
    one, other = rng.uniform(0, 1, (2, 10))
    rho = np.corrcoef(one, other)[0, 1]
    whole, parts = np.var(one + other), np.var(one) + np.var(other)
    low, high = sorted((whole, whole / (1 + rho)))
    assert low * (1 - 1e-9) <= parts if rho < 0 else whole / (1 + rho) <= parts * (1 + 1e-9)
    assert parts <= (high if rho < 0 else whole) * (1 + 1e-9)


def variation(series, cpu, nodes):
    load = np.zeros((len(cpu), series.shape[1]))
    np.add.at(load, nodes, series)
    return float((load.var(axis=1) / cpu).sum()), load.mean(axis=1) / cpu


@pytest.mark.parametrize("seed", range(10))
def test_steady_is_near_the_best_plan_in_its_band(seed):
    """Brute force over all plans that keep its band: at most 5% more variation than the best."""
    rng = np.random.default_rng(seed)
    cpu = np.array([1.0, 1.0, 1.5])[: 2 + seed % 2]
    series = rng.uniform(0, 1, (8, 6)) * rng.uniform(0.5, 1.5, (8, 1))
    boxes = {f"o{j}": Operator(name=f"o{j}", spec=Model(series=tuple(row))) for j, row in enumerate(series)}
    cluster = Cluster(nodes=tuple(Node(name=f"n{i}", cpu=float(c)) for i, c in enumerate(cpu)))
    problem = make_problem(Network(operators=boxes), cluster)
    planner = make_planner("steady", {"band": 0.25, "search": 3000})
    nodes = planner.plan(problem, rng=np.random.default_rng(0)).assignment
    found, load = variation(series, cpu, nodes)
    fair = series.mean(axis=1).sum() / cpu.sum()
    stray = np.maximum(0.25 * fair, np.abs(load - fair)) * (1 + 1e-9)
    best = min(
        value
        for plan in product(range(len(cpu)), repeat=len(series))
        for value, levels in [variation(series, cpu, np.array(plan))]
        if (np.abs(levels - fair) <= stray).all()
    )
    assert found <= 1.05 * best + 1e-12


@pytest.fixture(scope="module")
def table_two():
    """Twenty chains of ten operators on twenty nodes, periodic, phases evenly spaced, with Poisson noise."""
    rng = np.random.default_rng(3)
    samples, chains = 20, 20
    phase = rng.permutation(chains) / chains
    wave = np.where((np.arange(samples) / samples + phase[:, None]) % 1 < 0.5, 1.6, 0.4)
    wave *= rng.poisson(90, (chains, samples)) / 90
    streams, boxes = {}, {}
    for k in range(chains):
        rate = wave[k] * rng.uniform(0.8, 1.2)
        streams[f"I{k}"] = Stream(name=f"I{k}", rate=tuple(rate.tolist()))
        source = f"I{k}"
        for step in range(10):
            name = f"c{k}_{step}"
            boxes[name] = Operator(
                name=name,
                spec=Model(),
                inputs=(Port(source=source),),
                cost_s=0.09,
                selectivity=float(rng.uniform(0.8, 1.2)),
            )
            source = name
    return make_problem(Network(streams=streams, operators=boxes), Cluster.equal(20))


def worth(problem, planner, **options):
    decision = make_planner(planner, options).plan(problem, rng=np.random.default_rng(0))
    return measure(problem, decision.assignment)


def test_quality_on_the_papers_setting(table_two):
    cor, llf, ours = (worth(table_two, planner) for planner in ("correlation", "llf", "steady"))
    mean = table_two.mean_load.sum() / 20
    assert cor.load_std <= 1.45 * cor.load_std_bound
    assert cor.load_correlation >= 0.5
    assert llf.load_correlation < 0.2
    assert ours.load_std <= 1.05 * cor.load_std < 0.5 * llf.load_std
    assert ours.load_spread <= 0.021 * mean
    assert ours.load_spread < 0.3 * cor.load_spread


def test_unseen_variation_spreads_every_chain(table_two):
    """With it, no node holds more of one chain than it must; without it, some do."""
    chain = np.arange(200) // 10

    def crowding(unseen):
        planner = make_planner("steady", {"unseen": unseen})
        nodes = planner.plan(table_two, rng=np.random.default_rng(0)).assignment
        held = np.zeros((20, 20))
        np.add.at(held, (nodes, chain), table_two.mean_load)
        return (held**2).sum()

    assert crowding(0.5) < crowding(0.0)


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("planner", ["correlation", "steady"])
def test_sub_domains_lose_little(table_two, planner, overlap):
    whole = worth(table_two, planner)
    parts = worth(table_two, planner, domain=10, overlap=overlap)
    assert parts.load_std <= 1.35 * whole.load_std
    assert parts.load_spread <= 1.5 * whole.load_spread + 0.01


def test_super_operators_stand_together_and_carry_enough(table_two):
    least = 2.5 * float(table_two.mean_load.mean())
    planner = make_planner("steady", {"group": least})
    decision = planner.plan(table_two, rng=np.random.default_rng(0))
    found = measure(table_two, decision.assignment)
    assert "joined" in decision.notes[0]
    assert found.load_std <= 1.6 * worth(table_two, "steady").load_std


def test_hybrid_places_what_cannot_move_for_any_rates():
    """Immovable operators of one stream are spread as ROD spreads them, whatever the rates of now."""
    network = random_trees(np.random.default_rng(1), operators=40, streams=2)
    rng = np.random.default_rng(2)
    streams = {n: Stream(name=n, rate=tuple(rng.uniform(0.1, 2.0, 10))) for n in network.streams}
    boxes = {}
    for name, box in network.operators.items():
        fields = {f: getattr(box, f) for f in ("name", "spec", "inputs", "cost_s", "selectivity")}
        boxes[name] = Operator(
            **fields, movable=int(name.lstrip("abcdefghijklmnopqrstuvwxyz_") or 0) % 2 == 0
        )
    made = Network(streams=streams, operators=boxes)
    plan = planning.plan(made, 4, "hybrid")
    alone = {n: b for n, b in boxes.items() if not b.movable}
    for stream in streams:
        counts = np.zeros(4)
        problem = make_problem(made, Cluster.equal(4))
        column = problem.variables.index(stream)
        for j, name in enumerate(problem.physical.names):
            if name in alone:
                counts[int(plan.placement[name][1:]) - 1] += problem.operator_load[j, column]
        assert counts.max() <= 2.0 * counts.mean()
    assert any("policy" in note for note in plan.notes)


def test_random_balanced_is_balanced_and_random():
    network = chain_network([(1.0, 2.0)] * 6, length=5, cost=0.01)
    plans = [planning.plan(network, 5, "random_balanced", seed=seed) for seed in range(3)]
    assert all(plan.measures.load_spread == pytest.approx(0.0) for plan in plans)
    assert len({tuple(plan.placement.values()) for plan in plans}) == 3
