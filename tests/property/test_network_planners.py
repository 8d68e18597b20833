"""Planners of the network against enumeration, the measures, and what they promise of capacity and delay."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from levelwind import planning
from levelwind.errors import InputError
from levelwind.loads import make_problem
from levelwind.model import Cluster, Join, Model, Network, Node, Operator, Output, PlanStatus, Port, Stream
from levelwind.placement import make_planner, make_units, measure, node_loads
from levelwind.placement.flows import latency_seconds, make_flows
from levelwind.space import TransitStub, find_routes, transit_stub

FEW = settings(deadline=None, max_examples=40)
PLANNERS = ("network", "relaxation", "producer", "consumer", "random_node", "optimal_network")


def wide_cluster(rng, count, *, cpu=1.0, wire=None):
    spots = rng.uniform(0, 50, (count, 2))
    latency = np.sqrt(((spots[:, None] - spots[None]) ** 2).sum(-1)) * rng.uniform(1, 1.5, (count, count))
    np.fill_diagonal(latency, 0.0)
    nodes = tuple(Node(name=f"n{i}", cpu=cpu, bandwidth_bytes_per_s=wire) for i in range(count))
    return Cluster(nodes=nodes, latency_ms=tuple(map(tuple, latency.tolist())))


def tree_queries(rng, cluster, *, queries=1, operators=3, cost=1e-3, pins=0.0, cycle=False):
    """Random trees of operators from pinned streams to a pinned output; now and then a branch to another."""
    streams, boxes, outputs = {}, {}, {}

    def anywhere():
        return cluster.names[int(rng.integers(len(cluster.names)))]

    for q in range(queries):
        last = None
        for k in range(operators):
            name = f"q{q}o{k}"
            inputs = [Port(source=last)] if last is not None else []
            for s in range(int(rng.integers(0 if inputs else 1, 3))):
                stream = f"{name}s{s}"
                streams[stream] = Stream(
                    name=stream,
                    rate=(float(rng.integers(1, 5)),),
                    bytes=float(rng.integers(1, 9)),
                    node=anywhere(),
                )
                inputs.append(Port(source=stream))
            if cycle and k >= 2:
                inputs.append(Port(source=f"q{q}o{k - 2}"))
            boxes[name] = Operator(
                name=name,
                spec=Model(),
                inputs=tuple(inputs),
                cost_s=cost,
                selectivity=float(rng.uniform(0.1, 1.2)),
                bytes=float(rng.integers(1, 9)),
                pinned=anywhere() if rng.random() < pins else None,
            )
            if rng.random() < 0.4:  # a side exit, or a reader beside the chain
                outputs[f"{name}side"] = Output(name=f"{name}side", input=Port(source=name), node=anywhere())
            if last is not None and rng.random() < 0.3:
                side = f"{name}x"
                boxes[side] = replace(boxes[name], name=side, inputs=(Port(source=last),), pinned=None)
                outputs[side] = Output(name=side, input=Port(source=side), node=anywhere())
            last = name
        outputs[f"out{q}"] = Output(name=f"out{q}", input=Port(source=last), node=anywhere())
    return Network(streams=streams, operators=boxes, outputs=outputs)


def least_usage(problem):
    """By looking at every placement with the measure itself."""
    choices = [range(len(problem.cpu)) if node < 0 else (node,) for node in problem.fixed.tolist()]
    return min(measure(problem, np.array(nodes, dtype=np.int64)).network_usage for nodes in product(*choices))


def decided(problem, planner, seed=0, **options):
    return make_planner(planner, options).plan(problem, rng=np.random.default_rng(seed))


@FEW
@given(st.integers(0, 10_000), st.booleans())
def test_flows_cost_what_the_measure_says(seed, cycle):
    rng = np.random.default_rng(seed)
    cluster = wide_cluster(rng, 5)
    problem = make_problem(tree_queries(rng, cluster, queries=2, operators=4, pins=0.2, cycle=cycle), cluster)
    units = make_units(problem)
    flows, latency = make_flows(units), latency_seconds(units)
    nodes = rng.integers(5, size=units.count)
    expected = measure(problem, units.assignment(nodes)).network_usage
    assert flows.usage(nodes, latency) == pytest.approx(expected, rel=1e-9)
    # Moving one unit changes the usage by the difference of its own costs.
    unit, to = int(rng.integers(units.count)), int(rng.integers(5))
    cost = flows.at(unit, np.array([nodes[unit], to]), nodes, latency)
    moved = nodes.copy()
    moved[unit] = to
    assert flows.usage(moved, latency) - expected == pytest.approx(cost[1] - cost[0], abs=1e-9)


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 10_000), st.booleans())
def test_optimal_network_is_the_least_of_all_plans(seed, cycle):
    rng = np.random.default_rng(seed)
    cluster = wide_cluster(rng, 3)
    network = tree_queries(rng, cluster, operators=3, pins=0.2, cycle=cycle)
    assume(len(network.operators) <= 5)
    problem = make_problem(network, cluster)
    found = measure(problem, decided(problem, "optimal_network").assignment).network_usage
    assert found == pytest.approx(least_usage(problem), rel=1e-9)


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 10_000))
def test_network_with_all_nodes_as_candidates_is_optimal_on_trees(seed):
    rng = np.random.default_rng(seed)
    cluster = wide_cluster(rng, 6)
    problem = make_problem(tree_queries(rng, cluster, queries=2, operators=4), cluster)
    best = measure(problem, decided(problem, "optimal_network").assignment).network_usage
    ours = measure(problem, decided(problem, "network", k=6).assignment).network_usage
    assert ours == pytest.approx(best, rel=1e-9, abs=1e-12)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from(PLANNERS))
def test_nothing_is_placed_beyond_cpu_or_bandwidth(seed, planner):
    rng = np.random.default_rng(seed)
    cluster = wide_cluster(rng, 4, cpu=0.05, wire=float(rng.integers(60, 400)))
    network = tree_queries(rng, cluster, queries=3, operators=2, cost=3e-3)
    problem = make_problem(network, cluster)
    answer = decided(problem, planner, seed=seed)
    if answer.assignment is None:
        assert answer.status in (PlanStatus.INFEASIBLE, PlanStatus.REFUSED)
        assert answer.notes
        return
    assert node_loads(problem, answer.assignment).max() <= 1 + 1e-9
    sent = wires(problem, answer.assignment)
    assert (sent <= problem.bandwidth * (1 + 1e-9)).all()


def wires(problem, assignment):
    """Bytes per second at each node, counted copy by copy."""
    network, index = problem.network, {name: i for i, name in enumerate(problem.cluster.names)}
    place = dict(zip(problem.physical.names, assignment.tolist(), strict=True))
    sent = np.zeros(len(index))
    for source in (*network.streams.values(), *network.operators.values()):
        home = index[source.node] if isinstance(source, Stream) else place[source.name]
        readers = {place[o.name] for o in network.operators.values() if Port(source=source.name) in o.inputs}
        readers |= {index[o.node] for o in network.outputs.values() if o.input.source == source.name}
        rate = float(problem.rates.of(problem.linear.rates[source.name, None]).mean())
        for target in readers - {home}:
            sent[[home, target]] += rate * source.bytes
    return sent


def test_what_is_short_is_named():
    rng = np.random.default_rng(0)
    cluster = wide_cluster(rng, 3, cpu=0.01)
    heavy = tree_queries(rng, cluster, operators=2, cost=1.0)
    for planner in PLANNERS[:5]:
        answer = planning.plan(heavy, cluster, planner)
        assert answer.status is PlanStatus.INFEASIBLE
        assert any("CPU is short" in note for note in answer.notes)
    narrow = wide_cluster(rng, 3, wire=0.5)
    many = tree_queries(rng, narrow, operators=2)
    answer = planning.plan(many, narrow, "network")
    assert answer.status is PlanStatus.INFEASIBLE
    assert any("bandwidth" in note for note in answer.notes)
    join = Operator(
        name="j", spec=Join(aliases=("a", "b"), within_s=100.0), inputs=(Port(source="a"), Port(source="b"))
    )
    streams = {n: Stream(name=n, rate=(10.0,), bytes=100.0, node="n0") for n in "ab"}
    small = replace(cluster, nodes=tuple(Node(name=f"n{i}", memory_bytes=1e5) for i in range(3)))
    answer = planning.plan(Network(streams=streams, operators={"j": join}), small, "network")
    assert answer.status is PlanStatus.INFEASIBLE
    assert any("memory is short" in note for note in answer.notes)


def test_full_nodes_are_passed_over():
    """Two operators that would stand at one node, which bears one: both stand near, on different nodes."""
    rng = np.random.default_rng(1)
    cluster = wide_cluster(rng, 30, cpu=1.0)
    streams = {n: Stream(name=n, rate=(1.0,), node="n7") for n in "ab"}
    boxes = {
        f"o{n}": Operator(name=f"o{n}", spec=Model(), inputs=(Port(source=n),), cost_s=0.7) for n in "ab"
    }
    network = Network(streams=streams, operators=boxes)
    for planner in ("network", "relaxation", "producer", "consumer"):
        plan = planning.plan(network, cluster, planner)
        assert plan.status is PlanStatus.PLACED
        assert plan.placement["oa"] != plan.placement["ob"]
        assert plan.measures.max_load <= 1


def star_queries(rng, names, count):
    """The paper's queries: four producers, an aggregator that passes an eighth, a consumer."""
    streams, boxes, outputs = {}, {}, {}
    for q in range(count):
        ends = [names[i] for i in rng.permutation(len(names))[:5]]
        for k in range(4):
            streams[f"p{q}_{k}"] = Stream(name=f"p{q}_{k}", rate=(2.0,), bytes=1000.0, node=ends[k])
        inputs = tuple(Port(source=f"p{q}_{k}") for k in range(4))
        boxes[f"a{q}"] = Operator(
            name=f"a{q}", spec=Model(), inputs=inputs, cost_s=1e-6, selectivity=0.125, bytes=1000.0
        )
        outputs[f"c{q}"] = Output(name=f"c{q}", input=Port(source=f"a{q}"), node=ends[4])
    return Network(streams=streams, operators=boxes, outputs=outputs)


@pytest.mark.parametrize("seed", range(3))
def test_consumer_and_ip_multicast_add_no_delay(seed):
    rng = np.random.default_rng(seed)
    shape = TransitStub(transit_domains=4, transit_nodes=3, stub_domains=12, stub_nodes=5)
    topology = transit_stub(rng, shape)
    routes = find_routes(topology)
    cluster = Cluster(
        nodes=tuple(Node(name=name) for name in topology.nodes),
        latency_ms=tuple(map(tuple, routes.latency_ms.tolist())),
        topology=topology,
    )
    index = {name: i for i, name in enumerate(cluster.names)}
    elsewhere = 0
    for _ in range(20):
        network = star_queries(rng, cluster.names, 1)
        sink = index[network.outputs["c0"].node]
        direct = max(routes.latency_ms[index[s.node], sink] for s in network.streams.values())
        for planner in ("consumer", "ip_multicast"):
            plan = planning.plan(network, cluster, planner)
            assert plan.measures.delay == direct
        elsewhere += index[plan.placement["a0"]] != sink
    assert elsewhere > 5


def test_planners_that_need_what_is_not_stated_are_refused():
    network = star_queries(np.random.default_rng(0), ["n1", "n2", "n3", "n4", "n5"], 1)
    for planner in ("network", "relaxation", "producer", "consumer", "ip_multicast", "optimal_network"):
        with pytest.raises(InputError, match="needs the latencies"):
            planning.plan(network, 5, planner)
    bare = Cluster(nodes=Cluster.equal(5).nodes, latency_ms=((0.0,) * 5,) * 5)
    with pytest.raises(InputError, match="needs the routes"):
        planning.plan(network, bare, "ip_multicast")


def test_tables_and_pins_hold():
    rng = np.random.default_rng(3)
    cluster = wide_cluster(rng, 8)
    network = tree_queries(rng, cluster, queries=2, operators=3)
    boxes = dict(network.operators)
    boxes["q0o0"] = replace(boxes["q0o0"], table="t")
    boxes["q1o1"] = replace(boxes["q1o1"], table="t")
    boxes["q1o0"] = replace(boxes["q1o0"], pinned="n5")
    tied = replace(network, operators=boxes)
    for planner in ("network", "relaxation", "optimal_network", "producer", "consumer"):
        placed = planning.plan(tied, cluster, planner).placement
        assert placed["q0o0"] == placed["q1o1"]
        assert placed["q1o0"] == "n5"


def test_coordinates_alone_never_look_at_the_candidates_latencies():
    """With probe=false a latency that no node measured makes no difference; with probing it does."""
    rng = np.random.default_rng(4)
    cluster = wide_cluster(rng, 100)
    network = star_queries(rng, cluster.names, 30)
    problem = make_problem(network, cluster)
    here = measure(problem, decided(problem, "network", probe=False).assignment).network_usage
    probed = measure(problem, decided(problem, "network").assignment).network_usage
    best = measure(problem, decided(problem, "optimal_network").assignment).network_usage
    assert best <= probed < here


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from(PLANNERS[:5]))
def test_what_fits_in_some_order_is_placed(seed, planner):
    """Operators that leave no room for each other if small ones choose first; some plan bears them all."""
    rng = np.random.default_rng(seed)
    cluster = wide_cluster(rng, 3)
    loads = np.concatenate([rng.dirichlet(np.full(int(rng.integers(1, 4)), 4.0)) * 0.97 for _ in range(3)])
    streams, boxes = {}, {}
    for k, load in enumerate(np.sort(loads).tolist()):
        streams[f"s{k}"] = Stream(name=f"s{k}", rate=(1.0,), bytes=1.0, node="n0")
        boxes[f"o{k}"] = Operator(
            name=f"o{k}", spec=Model(), inputs=(Port(source=f"s{k}"),), cost_s=load, bytes=1.0
        )
    problem = make_problem(Network(streams=streams, operators=boxes), cluster)
    answer = decided(problem, planner, seed=seed)
    assert answer.status is PlanStatus.PLACED, answer.notes
    assert node_loads(problem, answer.assignment).max() <= 1 + 1e-9


def test_what_all_nodes_together_lack_is_told():
    rng = np.random.default_rng(0)
    cluster = wide_cluster(rng, 2, cpu=0.5)
    streams = {f"s{k}": Stream(name=f"s{k}", rate=(1.0,), node="n0") for k in range(3)}
    boxes = {
        f"o{k}": Operator(name=f"o{k}", spec=Model(), inputs=(Port(source=f"s{k}"),), cost_s=0.4)
        for k in range(3)
    }
    network = Network(streams=streams, operators=boxes)
    for planner in PLANNERS:
        answer = planning.plan(network, cluster, planner)
        assert answer.status is PlanStatus.INFEASIBLE
        assert "CPU is short" in answer.notes[0]
        if planner != "optimal_network":
            assert "together need 1.2 of CPU, all nodes have 1" in answer.notes[0]


def test_different_shortages_on_different_nodes_are_all_told():
    """One node lacks CPU for the second operator, the other bandwidth for its rows."""
    rng = np.random.default_rng(0)
    cluster = wide_cluster(rng, 2, wire=50.0)
    streams = {n: Stream(name=n, rate=(1.0,), bytes=100.0, node="n0") for n in "ab"}
    boxes = {
        f"o{n}": Operator(name=f"o{n}", spec=Model(), inputs=(Port(source=n),), cost_s=0.7, bytes=1.0)
        for n in "ab"
    }
    for planner in PLANNERS[:5]:
        answer = planning.plan(Network(streams=streams, operators=boxes), cluster, planner)
        assert answer.status is PlanStatus.INFEASIBLE
        assert "is short on 1 of 2 nodes" in answer.notes[0]
        assert "CPU" in answer.notes[0]
        assert "bandwidth" in answer.notes[0]
