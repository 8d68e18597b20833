"""Measures against naive recomputation from the contract's words."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import (
    logical,
    naive_cut_streams,
    naive_delay,
    naive_load,
    naive_network_usage,
    naive_usage,
)

from levelwind import planning
from levelwind.frontend.generate import random_trees
from levelwind.loads import make_problem, planes
from levelwind.model import Cluster, Network, Stream
from levelwind.placement import make_units, node_loads
from levelwind.testing import strategies

SETTINGS = settings(deadline=None, max_examples=60)
# With these, rows may be sent whose rate no operator's load depends on (see test_unit_load_problem).
UNLOADED = {"joins", "varying", "idle", "loads"}


def draw_placed(data, *, nodes=(1, 4), without=(), latency=True):
    cluster = data.draw(strategies.clusters(nodes=nodes, bandwidth=True, latency=latency))
    network = data.draw(strategies.networks(nodes=cluster.names, without=without))
    placement = data.draw(strategies.placements(network, cluster))
    return network, cluster, placement


def close(ours, naive):
    return ours == pytest.approx(naive, rel=1e-9, abs=1e-12)


def mean_rates(network):
    return {name: float(np.mean(stream.rate)) for name, stream in network.streams.items()}


def sampled(network):
    samples = max(len(s.rate) for s in network.streams.values())
    for i in range(samples):
        yield {n: s.rate[i if len(s.rate) > 1 else 0] for n, s in network.streams.items()}


@SETTINGS
@given(st.data())
def test_loads_at_the_stated_rates(data):
    network, cluster, placement = draw_placed(data, without=UNLOADED)
    found = planning.measure(network, cluster, placement)
    cpu, _, _ = naive_usage(network, cluster, placement, mean_rates(network))
    loads = [cpu[node.name] / node.cpu for node in cluster.nodes]
    assert close(found.max_load, max(loads))
    assert close(found.load_spread, max(loads) - min(loads))


@SETTINGS
@given(st.data())
def test_loads_of_nonlinear_networks_are_means_over_the_series(data):
    network, cluster, placement = draw_placed(data, without={"transfer"})
    found = planning.measure(network, cluster, placement)
    each = [naive_usage(network, cluster, placement, rates)[0] for rates in sampled(network)]
    loads = [np.mean([cpu[node.name] for cpu in each]) / node.cpu for node in cluster.nodes]
    assert close(found.max_load, max(loads))
    assert close(found.load_spread, max(loads) - min(loads))


@SETTINGS
@given(st.data())
def test_series_measures(data):
    network, cluster, placement = draw_placed(data)
    found = planning.measure(network, cluster, placement)
    series = {node.name: [] for node in cluster.nodes}
    for rates in sampled(network):
        for node, value in naive_usage(network, cluster, placement, rates)[0].items():
            series[node].append(value)
    if len(next(iter(series.values()))) == 1:
        assert found.load_std is found.load_std_bound is found.load_correlation is None
        return
    assert close(found.load_std, np.mean([np.std(np.array(series[n.name]) / n.cpu) for n in cluster.nodes]))
    whole = np.sum(list(series.values()), axis=0)
    assert close(found.load_std_bound, np.std(whole) / sum(n.cpu for n in cluster.nodes))
    if len(cluster.nodes) == 1:
        assert found.load_correlation is None
        return
    pairs = []
    for a, b in itertools.combinations(series.values(), 2):
        flat = any(np.ptp(s) <= 1e-9 * max(map(abs, s)) for s in (a, b))
        pairs.append(0.0 if flat else np.corrcoef(a, b)[0, 1])
    assert found.load_correlation == pytest.approx(np.mean(pairs), abs=1e-6)
    assert found.load_std >= found.load_std_bound - 1e-12 or len({n.cpu for n in cluster.nodes}) > 1


@SETTINGS
@given(st.data())
def test_measures_of_the_network_between(data):
    network, cluster, placement = draw_placed(data)
    found = planning.measure(network, cluster, placement)
    assert found.cut_streams == naive_cut_streams(network, placement)
    assert found.delay == naive_delay(network, cluster, placement)
    each = [naive_network_usage(network, cluster, placement, rates) for rates in sampled(network)]
    assert close(found.network_usage, np.mean(each))


@SETTINGS
@given(st.data())
def test_moved_load(data):
    network, cluster, placement = draw_placed(data)
    before = data.draw(strategies.placements(network, cluster))
    found = planning.measure(network, cluster, placement, moved_from=before)
    moved = 0.0
    for name, node in placement.items():
        if before[name] != node:
            operator = logical(network, name)
            parts = 1 if operator.split is None else operator.split.into
            moved += np.mean(
                [naive_load(network, rates, operator.name) / parts for rates in sampled(network)]
            )
    assert close(found.moved_load, moved)
    assert planning.measure(network, cluster, placement).moved_load is None
    assert planning.measure(network, cluster, placement, moved_from=placement).moved_load == 0.0


@SETTINGS
@given(st.data())
def test_distances(data):
    network, cluster, placement = draw_placed(data)
    problem = make_problem(network, cluster)
    found = planning.measure(network, cluster, placement)
    rows = planes(problem, problem.assignment(placement))  # held to its own oracle in test_load_model
    lower = [
        (network.streams[v].min_rate if v in network.streams else 0.0) * total / problem.cpu.sum()
        for v, total in zip(problem.variables, problem.total_load, strict=True)
    ]
    distances = []
    for row, taken in zip([*rows.cpu, *rows.bandwidth], rows.constant, strict=True):
        norm = math.sqrt(sum(w * w for w in row))
        assume(norm > 0 or taken <= 1)  # full before any variable counts: the distance is not a number
        if norm > 0:
            distances.append((1 - taken - sum(w * x for w, x in zip(row, lower, strict=True))) / norm)
    assert (found.min_plane_distance is None) == (not distances)
    if distances:
        assert close(found.min_plane_distance, min(distances))
    heaviest = max((w for row in rows.cpu for w in row), default=0.0)
    assert (found.min_axis_distance is None) == (heaviest == 0)
    if heaviest > 0:
        assert close(found.min_axis_distance, 1 / heaviest)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_explain_says_what_measure_says(data):
    network, cluster, placement = draw_placed(data, nodes=(1, 3))
    operator = data.draw(st.sampled_from(sorted(placement)))
    found = planning.explain(network, cluster, placement, operator, seed=3)
    assert found.node == placement[operator]
    assert found.here == planning.measure(network, cluster, placement, seed=3)
    assert set(found.elsewhere) == set(cluster.names) - {found.node}
    for node, measures in found.elsewhere.items():
        assert measures == planning.measure(network, cluster, {**placement, operator: node}, seed=3)


def bears(network, rates, planner, count):
    """Whether the planner's plan on so many equal nodes bears the rates."""
    trial = make_problem(network, Cluster.equal(count), rates=rates)
    stated = {n: Stream(name=n, rate=(rates[n],)) for n in network.streams}
    fixed = Network(streams=stated, operators=network.operators)
    plan = planning.plan(fixed, count, planner)
    if plan.status.value != "placed":
        return False
    return bool(node_loads(trial, trial.assignment(plan.placement)).max() <= 1 + 1e-9)


@pytest.mark.parametrize("planner", ["rod", "llf", "connected"])
@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_size_is_enough_and_one_fewer_is_not(planner, data):
    network = data.draw(
        strategies.networks(
            operators=(1, 7), without={"joins", "varying", "min_rates", "series", "outputs", "bytes"}
        )
    )
    rates = data.draw(strategies.rates(network, least=0.2))
    assume(make_problem(network, Cluster.equal(1)).variables)  # none at all: see the conformance checks
    found = planning.size(network, rates, planner=planner)
    if found.nodes is None:
        units = make_units(make_problem(network, Cluster.equal(1), rates=rates))
        most = max(math.ceil(units.mean_load.sum()), units.count)
        assert not any(bears(network, rates, planner, count) for count in range(1, most + 1))
        return
    assert bears(network, rates, planner, found.nodes)
    assert found.nodes == 1 or not bears(network, rates, planner, found.nodes - 1)
    cpu, _, _ = naive_usage(network, Cluster.equal(found.nodes), found.plan.placement, rates)
    assert close(max(found.loads.values()), max(cpu.values()))
    if max(cpu.values()) > 0:
        assert close(found.margin, 1 / max(cpu.values()))


def test_explain_uses_the_seed_it_is_given():
    network = random_trees(np.random.default_rng(0), operators=10, streams=5)
    placement = {name: f"n{i % 2 + 1}" for i, name in enumerate(network.operators)}
    found = planning.explain(network, 2, placement, "o1", seed=3)
    moved = {**placement, "o1": "n2"}
    assert found.here == planning.measure(network, 2, placement, seed=3)
    assert found.elsewhere == {"n2": planning.measure(network, 2, moved, seed=3)}
    assert found.elsewhere["n2"] != planning.measure(network, 2, moved, seed=0)
