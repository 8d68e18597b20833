"""The linear load model against rates pushed through the network number by number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import instances, naive_load, naive_rate, naive_usage

from levelwind.loads import make_problem, planes
from levelwind.model import Cluster
from levelwind.rewrite import linearise, split
from levelwind.testing import strategies

SETTINGS = settings(deadline=None, max_examples=100)


def same(ours, naive):
    return ours == pytest.approx(naive, rel=1e-9, abs=1e-12)


@SETTINGS
@given(st.data())
def test_loads_equal_those_of_rates_pushed_through(data):
    network = data.draw(strategies.networks(operators=(1, 10)))
    rates = data.draw(strategies.rates(network))
    problem = make_problem(network, Cluster.equal(2), rates=rates)
    loads = problem.operator_load @ problem.variable_rates[:, 0]
    for j, operator in enumerate(problem.physical.operators):
        whole = naive_load(network, rates, operator.logical.name)
        assert same(loads[j], whole / len(instances(operator.logical))), operator.name


@SETTINGS
@given(st.data())
def test_load_series_and_means_follow_the_rates_sample_by_sample(data):
    network = data.draw(strategies.networks(operators=(1, 6)))
    problem = make_problem(network, Cluster.equal(1))
    samples = problem.rates.samples
    naive = np.zeros((len(problem.physical.operators), samples))
    for s in range(samples):
        rates = {n: x.rate[s] if len(x.rate) > 1 else x.rate[0] for n, x in network.streams.items()}
        for j, operator in enumerate(problem.physical.operators):
            naive[j, s] = naive_load(network, rates, operator.logical.name) * operator.share
    if samples > 1:
        np.testing.assert_allclose(problem.load_series, naive, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(problem.mean_load, naive.mean(axis=1), rtol=1e-9, atol=1e-12)


# A variable that no operator's load depends on is dropped, and what it costs to send goes with it (see
# test_unit_load_problem). These networks have load behind every output that is read.
LOADED_WITH = {
    "varying": {"idle", "outputs", "loads", "joins"},
    "joins": {"idle", "outputs", "loads", "varying", "entries"},
    "outputs": {"joins", "varying"},
}


@pytest.mark.parametrize("kind", ["varying", "joins"])
@SETTINGS
@given(data=st.data())
def test_carried_rates_equal_the_naive_ones(kind, data):
    network = data.draw(strategies.networks(without=LOADED_WITH[kind]))
    rates = data.draw(strategies.rates(network))
    problem = make_problem(network, Cluster.equal(1), rates=rates)
    value = dict(zip(problem.variables, problem.variable_rates[:, 0], strict=True))
    read = {(p.source, p.route) for o in network.operators.values() for p in o.inputs}
    for (source, route), function in problem.linear.carried_rates.items():
        if (source, route) in read and source in network.operators:
            ours = sum(coefficient * value[v] for v, coefficient in function.items())
            assert same(ours, naive_rate(network, rates, source, route)), (source, route)


@SETTINGS
@given(strategies.networks())
def test_no_variable_is_without_load_and_no_two_act_alike(network):
    linear = linearise(network)
    assert len(set(linear.variables)) == len(linear.variables)
    columns = []
    for variable in linear.variables:
        loads = [load.get(variable, 0.0) for load in linear.loads.values()]
        assert max(loads) > 0
        if variable in linear.introduced:
            sent = [rate.get(variable, 0.0) for rate in linear.carried_rates.values()]
            column = np.array(loads + sent)
            columns.append(column / np.linalg.norm(column))
    for i, one in enumerate(columns):
        for other in columns[:i]:
            assert np.abs(one - other).max() > 1e-12, "two introduced variables could be one"


@SETTINGS
@given(strategies.networks())
def test_instances_sum_to_the_whole(network):
    whole = replace(network, operators={n: replace(o, split=None) for n, o in network.operators.items()})
    parts, together = make_problem(network, Cluster.equal(1)), make_problem(whole, Cluster.equal(1))
    assert parts.variables == together.variables
    for j, name in enumerate(together.physical.names):
        own = [i for i, o in enumerate(parts.physical.operators) if o.logical.name == name]
        np.testing.assert_allclose(parts.operator_load[own].sum(axis=0), together.operator_load[j])
        assert [parts.physical.names[i] for i in own] == instances(network.operators[name])


@SETTINGS
@given(strategies.networks())
def test_every_reader_gets_all_rows_of_what_it_reads(network):
    physical = split(network)
    for j, reader in enumerate(physical.operators):
        for port in set(reader.logical.inputs):
            shares = [
                s.share
                for s in physical.streams
                if (s.source, s.route) == (port.source, port.route) and j in s.consumers
            ]
            assert sum(shares) == pytest.approx(reader.share)


def check_planes(problem, placement, rates):
    """Planes of a placement at a rate point, against a count of everything that is done and sent."""
    network, cluster = problem.network, problem.cluster
    x = problem.total_load * problem.variable_rates[:, 0] / problem.cpu.sum()
    ours = planes(problem, problem.assignment(placement))
    cpu, wire, shared = naive_usage(network, cluster, placement, rates)
    full = [cpu[node.name] / node.cpu for node in cluster.nodes]
    np.testing.assert_allclose(ours.cpu @ x, full, rtol=1e-9, atol=1e-12)
    sent = [
        wire[n.name] / n.bandwidth_bytes_per_s for n in cluster.nodes if n.bandwidth_bytes_per_s is not None
    ]
    if cluster.network_bandwidth_bytes_per_s is not None:
        sent.append(shared / cluster.network_bandwidth_bytes_per_s)
    np.testing.assert_allclose(ours.bandwidth @ x, sent, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", LOADED_WITH)
@SETTINGS
@given(data=st.data())
def test_planes_equal_a_count_of_copies(kind, data):
    cluster = data.draw(strategies.clusters(nodes=(1, 4), bandwidth=True))
    network = data.draw(strategies.networks(nodes=cluster.names, without=LOADED_WITH[kind]))
    loaded = make_problem(network, cluster).variables
    rates = data.draw(strategies.rates(network, least=0.1))
    # Streams without load are no variables: planes say nothing of them.
    rates = {name: rate if name in loaded else 0.0 for name, rate in rates.items()}
    placement = data.draw(strategies.placements(network, cluster))
    check_planes(make_problem(network, cluster, rates=rates), placement, rates)


@SETTINGS
@given(st.data())
def test_planes_at_the_lower_bound_count_streams_without_load_too(data):
    cluster = data.draw(strategies.clusters(nodes=(1, 4), bandwidth=True))
    network = data.draw(strategies.networks(nodes=cluster.names, without={"joins", "varying"}))
    placement = data.draw(strategies.placements(network, cluster))
    problem = make_problem(network, cluster)
    found = planes(problem, problem.assignment(placement))
    least = {name: stream.min_rate for name, stream in network.streams.items()}
    cpu, wire, shared = naive_usage(network, cluster, placement, least)
    full = [cpu[n.name] / n.cpu for n in cluster.nodes]
    full += [wire[n.name] / n.bandwidth_bytes_per_s for n in cluster.nodes if n.bandwidth_bytes_per_s]
    if cluster.network_bandwidth_bytes_per_s is not None:
        full.append(shared / cluster.network_bandwidth_bytes_per_s)
    ours = found.all @ problem.normalised_lower + found.constant
    np.testing.assert_allclose(ours, full, rtol=1e-9, atol=1e-12)


@SETTINGS
@given(st.data())
def test_lower_bound_is_min_rate_of_streams_and_zero_of_introduced_variables(data):
    network = data.draw(strategies.networks())
    problem = make_problem(network, Cluster.equal(2))
    assume(problem.variables)
    for variable, lower in zip(problem.variables, problem.lower, strict=True):
        assert lower == (network.streams[variable].min_rate if variable in network.streams else 0.0)
    # In normalised space the bound's load is its load as a share of all CPU.
    assert problem.normalised_lower.sum() == pytest.approx((problem.operator_load @ problem.lower).sum() / 2)
