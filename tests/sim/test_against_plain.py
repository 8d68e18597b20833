"""The kernel does what a simulator of two hundred lines does, event by event."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from side_by_side import Both
from sim_worlds import model, network, on, tiny_worlds

from levelwind.model import Cluster


@settings(max_examples=150)
@given(tiny_worlds())
def test_same_trace(world):
    problem, placement, times = world
    both = Both(problem, times, placement)
    both.advance(3.0)
    both.assert_same()
    assert both.kernel.events == both.plain.events


@settings(max_examples=150)
@given(tiny_worlds(), st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=5))
def test_same_trace_with_moves(world, moves):
    problem, placement, times = world
    both = Both(problem, times, placement)
    nodes, count = problem.cluster.names, len(problem.physical.names)
    for step, (operator, node) in enumerate(moves):
        both.advance(0.15 * (step + 1))
        both.move(operator % count, nodes[node % len(nodes)], 0.1 + 0.01 * step)
    both.advance(3.0)
    both.assert_same()


@settings(max_examples=100)
@given(tiny_worlds(), st.integers(0, 99), st.integers(0, 99))
def test_same_trace_when_a_node_is_lost(world, lost, home):
    problem, placement, times = world
    nodes = problem.cluster.names
    both = Both(problem, times, placement)
    both.advance(0.2)
    both.move(0, nodes[home % len(nodes)], 0.05)
    both.advance(0.3)
    gone = nodes[lost % len(nodes)]
    both.lose(gone)
    both.advance(0.4)
    for operator in np.flatnonzero(both.kernel.assignment < 0).tolist():
        both.move(operator, nodes[home % len(nodes)], 0.05)
    both.advance(3.0)
    both.assert_same()


def test_a_wide_fan_out_and_a_long_queue_make_the_tables_grow():
    net = network(*(model(f"o{j}", "I", cost=1e-3) for j in range(300)))
    problem, placement = on(net, Cluster.equal(2))
    placement = {name: f"n{j % 2 + 1}" for j, name in enumerate(placement)}
    both = Both(problem, {"I": np.linspace(0, 1, 50, endpoint=False).tolist()}, placement)
    before = both.kernel.memory_bytes
    both.advance(0.9)
    assert both.kernel.memory_bytes > before
    both.advance(60.0)
    both.assert_same()
    assert both.kernel.in_system == 0


@pytest.mark.parametrize("within_s", [0.2, 3.0])
def test_join_windows_grow_and_forget(within_s):
    from levelwind.model import Join, Operator, Port

    join = Operator(
        name="j",
        spec=Join(aliases=("a", "b"), within_s=within_s),
        inputs=(Port(source="A"), Port(source="B")),
        cost_s=1e-6,
        selectivity=0.01,
    )
    problem, placement = on(network(join, streams=("A", "B")), 1)
    rng = np.random.default_rng(5)
    times = {name: np.sort(rng.uniform(0, 5, size=2000)).tolist() for name in "AB"}
    both = Both(problem, times, placement)
    both.advance(10.0)
    both.assert_same()


def test_many_rows_in_flight():
    cluster = Cluster(nodes=Cluster.equal(2).nodes, latency_ms=((0.0, 400.0), (300.0, 0.0)))
    net = network(model("a", "I", cost=1e-4), model("b", "a", cost=1e-4), model("c", "b", cost=1e-4))
    problem, placement = on(net, cluster, {"a": "n1", "b": "n2", "c": "n1"})
    times = np.sort(np.random.default_rng(1).uniform(0, 2, size=3000)).tolist()
    both = Both(problem, {"I": times}, placement)
    both.advance(1.0)
    assert both.kernel.in_system > 500
    both.advance(4.0)
    both.assert_same()
