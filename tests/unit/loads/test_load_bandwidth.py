"""Theorem 3 where streams enter and leave at nodes; bandwidth planes of a hand-made example."""

from __future__ import annotations

import numpy as np
import pytest

from levelwind.loads import bandwidth_is_abundant, feasible_volume, make_problem, planes
from levelwind.model import Cluster, Model, Network, Node, Operator, Output, Port, Stream


def box(name, source, **more):
    return Operator(name=name, spec=Model(), inputs=(Port(source=source),), **more)


def nodes(*cpus, wire=None, shared=None):
    made = tuple(Node(name=f"n{i + 1}", cpu=cpu, bandwidth_bytes_per_s=wire) for i, cpu in enumerate(cpus))
    return Cluster(nodes=made, network_bandwidth_bytes_per_s=shared)


def two_streams(**more):
    """a reads I1 and feeds b; c reads I2. CPU 1 per row each, a's rows have 10 bytes."""
    boxes = {"a": box("a", "I1", cost_s=1.0, bytes=10.0, **more), "b": box("b", "a", cost_s=1.0)}
    boxes["c"] = box("c", "I2", cost_s=2.0)
    return Network(streams={n: Stream(name=n) for n in ("I1", "I2")}, operators=boxes)


def test_bandwidth_planes_of_two_nodes():
    # Loads: a r1, b r1 on n1, n2; c 2·r2 on n2. CPU: r1 ≤ 1, r1 + 2·r2 ≤ 1. Links: 10·r1 ≤ 5.
    problem = make_problem(two_streams(), nodes(1.0, 1.0, wire=5.0, shared=8.0))
    found = planes(problem, np.array([0, 1, 1]))
    # Ideal 2·r1 + 2·r2 ≤ 2, so x = (r1, r2).
    np.testing.assert_allclose(found.cpu, [[1, 0], [1, 2]])
    np.testing.assert_allclose(found.bandwidth, [[2, 0], [2, 0], [1.25, 0]])
    # Area under r1 + 2·r2 ≤ 1 up to r1 = 1/2: (1/2 + 1/4)/2 · 1/2 = 3/16, of the ideal 1/2.
    volume = feasible_volume(found.all, problem.normalised_lower)
    assert volume.ratio == pytest.approx(3 / 8, abs=1e-12)
    assert volume.error == 0.0


def test_transfer_cost_is_half_at_each_end():
    problem = make_problem(two_streams(transfer_cost_s=0.4), nodes(1.0, 1.0))
    np.testing.assert_allclose(planes(problem, np.array([0, 1, 1])).cpu, [[1.2, 0], [1.2, 2]])
    np.testing.assert_allclose(planes(problem, np.array([0, 0, 1])).cpu, [[2, 0], [0, 2]])


def test_one_copy_for_all_readers_on_a_node():
    boxes = {"a": box("a", "I", cost_s=1.0, transfer_cost_s=0.4)}
    boxes |= {name: box(name, "a", cost_s=1.0) for name in ("b", "c", "d")}
    problem = make_problem(Network(streams={"I": Stream(name="I")}, operators=boxes), nodes(1.0, 1.0, 1.0))
    np.testing.assert_allclose(planes(problem, np.array([0, 1, 1, 1])).cpu * 4 / 3, [[1.2], [3.2], [0]])
    np.testing.assert_allclose(planes(problem, np.array([0, 1, 2, 2])).cpu * 4 / 3, [[1.4], [1.2], [2.2]])


def check_a_cut_is_foreseen(problem, assignment):
    """Bandwidth does cut this placement's set, so it must not be called abundant."""
    found = planes(problem, np.array(assignment))
    limited = feasible_volume(found.all, problem.normalised_lower).ratio
    assert limited < 0.9 * feasible_volume(found.cpu, problem.normalised_lower).ratio
    assert not bandwidth_is_abundant(problem)


def test_abundant_with_a_stream_that_enters_at_a_small_node():
    # Fixed (theorem 3): what a node sends of a stream that enters there counts at no operator.
    # r rows of 1 byte enter at n1 and are read on n2. CPU of n2: r ≤ 8. Link of n1: r ≤ 2.
    network = Network(
        streams={"I": Stream(name="I", bytes=1.0, node="n1")}, operators={"a": box("a", "I", cost_s=1.0)}
    )
    cluster = Cluster(
        nodes=(
            Node(name="n1", cpu=1.0, bandwidth_bytes_per_s=2.0),
            Node(name="n2", cpu=8.0, bandwidth_bytes_per_s=100.0),
        )
    )
    check_a_cut_is_foreseen(make_problem(network, cluster), [1])


def test_abundant_with_readers_of_an_entering_stream_on_several_nodes():
    # Fixed (theorem 3): n1 sends three copies; each reader has three times the CPU load of one copy.
    network = Network(
        streams={"I": Stream(name="I", bytes=1.0, node="n1")},
        operators={name: box(name, "I", cost_s=1.0) for name in ("a", "b", "c")},
    )
    check_a_cut_is_foreseen(make_problem(network, nodes(1.0, 1.0, 1.0, 1.0, wire=1.5)), [1, 2, 3])


def test_abundant_with_outputs_on_one_node():
    # Fixed (theorem 3): rows that leave at n1 count where they come from, not at n1.
    network = Network(
        streams={"I": Stream(name="I")},
        operators={name: box(name, "I", cost_s=1.0, bytes=1.0) for name in ("a", "b", "c")},
        outputs={
            f"out_{n}": Output(name=f"out_{n}", input=Port(source=n), node="n1") for n in ("a", "b", "c")
        },
    )
    check_a_cut_is_foreseen(make_problem(network, nodes(1.0, 1.0, 1.0, 1.0, wire=1.5)), [1, 2, 3])


def test_abundance_needs_room_on_links_and_in_the_network():
    # a sends 10 bytes per row and takes 1 CPU second for it; b reads them.
    assert bandwidth_is_abundant(make_problem(two_streams(), nodes(1.0, 1.0)))
    assert bandwidth_is_abundant(make_problem(two_streams(), nodes(1.0, 1.0, wire=10.1)))
    assert not bandwidth_is_abundant(make_problem(two_streams(), nodes(1.0, 1.0, wire=9.9)))
    # All CPU bears 1 row per second of I1 at most: 10 bytes per second.
    assert bandwidth_is_abundant(make_problem(two_streams(), nodes(1.0, 1.0, shared=10.1)))
    assert not bandwidth_is_abundant(make_problem(two_streams(), nodes(1.0, 1.0, shared=9.9)))
