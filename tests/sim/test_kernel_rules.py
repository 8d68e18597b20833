"""Rules that hold for every run: rows are kept, time can be cut anywhere, moves suspend what they move."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_worlds import model, network, on, tiny_worlds

from levelwind.model import Cluster, Model, Multijoin, Node, Operator, Port, Split, Stream
from levelwind.sim.arrivals import constant, listed
from levelwind.sim.layout import Choices
from levelwind.sim.simulator import Simulator


def simulator_of(world, *, seed=0, **more):
    problem, placement, times = world
    return Simulator(
        problem, {n: listed(row) for n, row in times.items()}, placement, horizon_s=10.0, seed=seed, **more
    )


@settings(max_examples=150)
@given(tiny_worlds(), st.sampled_from([0.3, 0.8, 5.0]))
def test_rows_are_neither_lost_nor_made(world, until_s):
    problem, _, times = world
    simulator = simulator_of(world)
    tables = simulator.plumbing.tables
    before = tables.flows["credit"].copy()
    simulator.advance(until_s)
    arrived = dict(zip(simulator.plumbing.sources, simulator.arrived.tolist(), strict=True))
    assert arrived == {name: sum(t < until_s for t in row) for name, row in times.items()}
    joins = {j for j, o in enumerate(problem.physical.operators) if o.logical.is_join}
    taken = simulator.taken
    # Every producer puts out its ratio of what it has taken in, to the fraction that is still owed.
    for source, row in enumerate(tables.sources):
        for flow in range(row["flow_start"], row["flow_end"]):
            due = before[flow] + simulator.arrived[source] * tables.flows["ratio"][flow]
            assert simulator.flow_rows[flow] + tables.flows["credit"][flow] == pytest.approx(due)
            assert 0 <= tables.flows["credit"][flow] < 1
    for operator, row in enumerate(tables.operators):
        for flow in range(row["flow_start"], row["flow_end"]):
            if operator not in joins:
                due = before[flow] + taken[operator] * tables.flows["ratio"][flow]
                assert simulator.flow_rows[flow] + tables.flows["credit"][flow] == pytest.approx(due)
    # What was put out for operators has been worked off or is still in the system.
    readers = tables.flows["inlet_end"] - tables.flows["inlet_start"]
    assert int((simulator.flow_rows * readers).sum()) == int(taken.sum()) + simulator.in_system


@settings(max_examples=60)
@given(tiny_worlds(), st.lists(st.floats(0.0, 2.0), max_size=8))
def test_time_can_be_cut_anywhere(world, cuts):
    whole, parts = simulator_of(world), simulator_of(world)
    whole.advance(3.0)
    for cut in sorted(cuts):
        parts.advance(cut)
    parts.advance(3.0)
    assert parts.trace_hash == whole.trace_hash
    assert parts.latencies == whole.latencies


def steady(*, seed, until_s=20.0, choices=None, trace=None):
    net = network(*(model(f"o{k}", "I" if k == 0 else f"o{k - 1}", selectivity=0.9) for k in range(5)))
    problem, _ = on(net, 2)
    placement = {f"o{k}": f"n{k % 2 + 1}" for k in range(5)}
    simulator = Simulator(
        problem, {"I": constant(200.0, until_s)}, placement, horizon_s=until_s, seed=seed, choices=choices,
        trace=trace,
    )  # fmt: skip
    simulator.advance(until_s)
    simulator.flush_trace()
    return simulator


@pytest.mark.parametrize("choices", [Choices(), Choices(cost="exponential", selectivity="chance")])
def test_same_seed_same_trace_to_the_byte(choices):
    traces = {}
    for run, seed in enumerate([1, 1, 2]):
        pieces = []
        simulator = steady(seed=seed, choices=choices, trace=pieces.append)
        traces[run] = (b"".join(piece.tobytes() for piece in pieces), simulator.trace_hash)
    assert traces[0] == traces[1]
    assert len(traces[0][0]) > 100_000
    assert traces[0][0] != traces[2][0]
    assert traces[0][1] != traces[2][1]


def test_keeping_the_trace_changes_nothing():
    assert steady(seed=4).trace_hash == steady(seed=4, trace=lambda rows: None).trace_hash


def test_memory_does_not_grow_with_time():
    net = network(model("o", "I", cost=0.001))
    problem, placement = on(net, 1)
    simulator = Simulator(problem, {"I": constant(500.0, 2000.0)}, placement, horizon_s=2000.0, seed=1)
    simulator.advance(100.0)
    early = simulator.memory_bytes
    simulator.advance(2000.0)
    assert simulator.memory_bytes == early


def test_selectivity_by_chance_has_the_same_mean():
    simulator = steady(seed=5, until_s=500.0, choices=Choices(selectivity="chance"))
    taken = simulator.taken
    np.testing.assert_allclose(taken[1:] / taken[:-1], 0.9, rtol=0.01)


def two_apart(*, rate=100.0):
    """Two operators on one node, each with its stream, another node beside."""
    net = network(model("a", "A", cost=0.004), model("b", "B", cost=0.004), streams=("A", "B"))
    problem, _ = on(net, 2)
    arrivals = {name: constant(rate, 100.0) for name in "AB"}
    return Simulator(problem, arrivals, {"a": "n1", "b": "n1"}, horizon_s=100.0, seed=7)


def test_a_suspended_operator_waits_and_others_go_on():
    simulator = two_apart()
    simulator.advance(5.0)
    before = simulator.taken
    simulator.move(0, 1, takes_s=2.0)
    assert simulator.away.tolist() == [True, False]
    simulator.advance(5.01)
    in_hand = simulator.taken[0] - before[0]
    assert in_hand <= 1  # the tuple in service is finished where it is
    simulator.advance(6.99)
    assert simulator.taken[0] - before[0] == in_hand
    assert simulator.taken[1] - before[1] > 150
    assert simulator.queue_lengths[1] == 0
    simulator.advance(7.0001)
    assert simulator.queue_lengths[1] > 100  # what had waited came along
    busy = simulator.busy_s
    simulator.advance(20.0)
    assert simulator.taken[0] - before[0] > 1000
    assert simulator.busy_s[1] - busy[1] == pytest.approx(0.4 * 13, rel=0.2)


def test_a_move_takes_the_backlog_along():
    simulator = two_apart(rate=300.0)  # twice what one node can do
    simulator.advance(5.0)
    waiting = simulator.queue_lengths[0]
    assert waiting > 1000
    simulator.move(0, 1, takes_s=0.5)
    left = simulator.queue_lengths[0]
    assert 0.4 * waiting < left < 0.6 * waiting


def test_what_a_lost_node_held_is_worked_off_elsewhere():
    simulator = two_apart(rate=200.0)
    simulator.advance(3.0)
    arrived, taken = simulator.arrived.sum(), simulator.taken.sum()
    held = simulator.in_system
    assert held == arrived - taken
    simulator.lose_node(0)
    assert simulator.assignment.tolist() == [-1, -1]
    assert simulator.in_system == held
    simulator.advance(4.0)
    assert simulator.taken.sum() == taken
    number = simulator.add_node("n3", cpu=4.0)
    for operator in (0, 1):
        simulator.move(operator, number, takes_s=0.1)
    simulator.advance(50.0)
    assert simulator.in_system < 20
    assert simulator.taken.sum() + simulator.in_system == simulator.arrived.sum()


def test_a_clean_restart_empties_everything_but_the_sources():
    simulator = two_apart(rate=300.0)
    simulator.advance(5.0)
    simulator.move(0, 1, takes_s=1.0)
    arrived = simulator.arrived
    simulator.restart_clean(np.array([0, 1]))
    assert simulator.in_system == 0
    assert not simulator.away.any()
    assert simulator.assignment.tolist() == [0, 1]
    simulator.record(5.0)
    simulator.advance(10.0)
    new = simulator.arrived - arrived
    assert (new > 1300).all()
    assert simulator.latencies.results < new.sum() <= simulator.latencies.results + simulator.in_system + 2


def test_rows_pass_a_link_one_after_the_other():
    sized = Stream(name="I", bytes=1000.0, node="n1")
    net = network(model("o", "I", cost=1e-6), streams=(sized,))
    cluster = Cluster(
        nodes=(
            Node(name="n1", bandwidth_bytes_per_s=10_000.0),
            Node(name="n2", bandwidth_bytes_per_s=20_000.0),
        ),
        latency_ms=((0.0, 30.0), (30.0, 0.0)),
    )
    problem, placement = on(net, cluster, {"o": "n2"})
    pieces = []
    simulator = Simulator(
        problem, {"I": listed([1.0, 1.0, 1.0])}, placement, horizon_s=5.0, trace=pieces.append
    )
    simulator.advance(5.0)
    simulator.flush_trace()
    rows = np.concatenate(pieces)
    delivered = rows["at_s"][rows["kind"] == 3]
    np.testing.assert_allclose(delivered, [1.18, 1.28, 1.38])  # 100 ms out, 30 ms on the way, 50 ms in


def test_one_copy_serves_all_readers_on_a_node():
    sized = Stream(name="I", bytes=1000.0, node="n1")
    net = network(*(model(f"o{k}", "I", cost=1e-6) for k in range(5)), streams=(sized,))
    cluster = Cluster(nodes=(Node(name="n1", bandwidth_bytes_per_s=10_000.0), Node(name="n2")))
    problem, _ = on(net, cluster)
    placement = {f"o{k}": "n2" for k in range(5)}
    simulator = Simulator(problem, {"I": listed([0.0])}, placement, horizon_s=5.0)
    simulator.advance(0.1001)
    assert simulator.taken.tolist() == [1] * 5


def test_sending_costs_cpu_at_both_ends():
    net = network(model("a", "I", cost=0.001, transfer_cost_s=0.004), model("b", "a", cost=0.001))
    problem, _ = on(net, 2)
    arrivals = {"I": constant(100.0, 200.0)}
    simulator = Simulator(problem, arrivals, {"a": "n1", "b": "n2"}, horizon_s=200.0, seed=1)
    simulator.advance(200.0)
    np.testing.assert_allclose(simulator.busy_s / 200.0, 0.3, rtol=0.03)


def test_stated_loads_make_nodes_busy_without_rows():
    operators = [
        Operator(name="l", spec=Model(load={"I": 0.002})),
        Operator(name="s", spec=Model(series=(0.2, 0.6))),
    ]
    problem, _ = on(network(*operators), 2)
    arrivals = {"I": constant(100.0, 100.0)}
    simulator = Simulator(problem, arrivals, {"l": "n1", "s": "n2"}, horizon_s=100.0, seed=1)
    simulator.advance(100.0)
    np.testing.assert_allclose(simulator.busy_s / 100.0, [0.2, 0.4], rtol=0.03)


@pytest.mark.parametrize("queues", ["node", "operator"])
def test_rows_in_windows_count_with_their_bytes(queues):
    """Three rows of 80 bytes, two of an operator's 50, one of which nobody says how large it is."""
    spec = Multijoin(aliases=("a", "b", "c"), windows_s=dict.fromkeys("abc", 100.0))
    ports = tuple(Port(source=name) for name in ("A", "half", "C"))
    net = network(
        model("half", "B", cost=0.0, bytes=50.0),
        Operator(name="join", spec=spec, inputs=ports, cost_s=0.0, selectivity=0.0),
        streams=(Stream(name="A", bytes=80.0), Stream(name="B", bytes=7.0), "C"),
    )
    times = {"A": [0.1, 0.2, 0.3], "B": [0.15, 0.25], "C": [0.4]}
    simulator = simulator_of((*on(net, 1), times), choices=Choices(queues=queues))
    simulator.advance(5.0)
    assert simulator.in_system == 0
    assert dict(zip(net.operators, simulator.held_bytes.tolist(), strict=True)) == {
        "half": 0.0,
        "join": 3 * 80.0 + 2 * 50.0 + 1.0,
    }


def test_instances_of_a_split_operator_take_turns():
    net = network(model("o", "I", cost=0.0, split=Split(into=4)), model("after", "o", cost=0.0))
    problem, placement = on(net, 1)
    simulator = Simulator(problem, {"I": listed(np.arange(0.0, 1.0, 0.01))}, placement, horizon_s=2.0)
    simulator.advance(0.0201)
    assert sorted(simulator.taken[:4].tolist()) == [0, 1, 1, 1]  # each row to exactly one of them
    simulator.advance(2.0)
    assert simulator.taken.tolist() == [25, 25, 25, 25, 100]
