"""Queues whose waiting times are known from a formula."""

from __future__ import annotations

import numpy as np
import pytest
from sim_worlds import model, network, on

from levelwind.model import Cluster, Node
from levelwind.sim.arrivals import constant
from levelwind.sim.layout import Choices
from levelwind.sim.simulator import Simulator
from levelwind.sim.tables import Law

EXPONENTIAL = Choices(cost="exponential")


def mean_latency(
    net, rate, *, nodes=1, placement=None, choices=None, seeds=4, until_s=40_000.0, law=Law.POISSON
):
    found = []
    for seed in range(seeds):
        problem, stand = on(net, nodes, placement)
        arrivals = {"I": constant(rate, until_s, law=law)}
        simulator = Simulator(problem, arrivals, stand, horizon_s=until_s, seed=seed, choices=choices)
        simulator.record(100.0)
        simulator.advance(until_s)
        found.append(simulator.latencies.mean_s)
    return float(np.mean(found))


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_m_m_1(load):
    cost = 0.01
    latency = mean_latency(network(model("o", "I", cost=cost)), load / cost, choices=EXPONENTIAL)
    assert latency == pytest.approx(cost / (1 - load), rel=0.03)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_m_d_1(load):
    cost = 0.01
    latency = mean_latency(network(model("o", "I", cost=cost)), load / cost)
    assert latency == pytest.approx(cost + cost * load / (2 * (1 - load)), rel=0.03)


def test_d_d_1_never_waits():
    latency = mean_latency(network(model("o", "I", cost=0.01)), 99.0, law=Law.REGULAR, until_s=500.0, seeds=1)
    assert latency == pytest.approx(0.01, rel=1e-9)


def test_tandem_of_two_m_m_1():
    # Burke: what leaves an M/M/1 queue is Poisson again, so the latencies of the two stages add up.
    net = network(model("a", "I", cost=0.01), model("b", "a", cost=0.008))
    latency = mean_latency(
        net, 70.0, nodes=2, placement={"a": "n1", "b": "n2"}, choices=EXPONENTIAL, until_s=30_000.0
    )
    assert latency == pytest.approx(0.01 / (1 - 0.7) + 0.008 / (1 - 0.56), rel=0.03)


def test_two_operators_on_one_node_share_its_queue():
    # Each row is served twice on one node: M/G/1 with feedback, at least twice the work of one visit.
    net = network(model("a", "I", cost=0.004), model("b", "a", cost=0.004))
    problem, stand = on(net, 1)
    simulator = Simulator(problem, {"I": constant(100.0, 2000.0)}, stand, horizon_s=2000.0, seed=3)
    simulator.advance(2000.0)
    assert simulator.busy_s[0] / 2000.0 == pytest.approx(0.8, rel=0.01)
    assert simulator.latencies.mean_s > 0.008


def test_a_node_of_half_the_cpu_takes_twice_as_long():
    cluster = Cluster(nodes=(Node(name="slow", cpu=0.5), Node(name="fast", cpu=2.0)))
    times = {"slow": 0.02, "fast": 0.005}
    for name, expected in times.items():
        net = network(model("o", "I", cost=0.01))
        latency = mean_latency(
            net, 10.0, nodes=cluster, placement={"o": name}, law=Law.REGULAR, until_s=100.0 + 50, seeds=1
        )
        assert latency == pytest.approx(expected, rel=1e-9)


def test_the_ratio_is_one_without_waiting_on_a_node_of_capacity_one():
    net = network(*(model(f"o{k}", "I" if k == 0 else f"o{k - 1}", cost=0.001) for k in range(10)))
    problem, stand = on(net, 1)
    simulator = Simulator(
        problem, {"I": constant(5.0, 100.0, law=Law.REGULAR)}, stand, horizon_s=100.0, seed=1
    )
    simulator.advance(100.0)
    assert simulator.latencies.ratio == pytest.approx(1.0, rel=1e-9)
    assert simulator.latencies.p50_s == pytest.approx(0.01, rel=0.005)


def test_percentiles_are_those_of_the_latencies():
    problem, stand = on(network(model("o", "I", cost=0.01)), 1)
    pieces = []
    simulator = Simulator(
        problem, {"I": constant(85.0, 500.0)}, stand, horizon_s=500.0, seed=2, trace=pieces.append
    )
    simulator.advance(500.0)
    simulator.flush_trace()
    rows = np.concatenate(pieces)
    exact = np.percentile(rows["latency_s"][rows["kind"] == 2], [50, 99])
    found = simulator.latencies
    np.testing.assert_allclose([found.p50_s, found.p99_s], exact, rtol=0.006)
