"""Clusters and queries of the wide-area experiments, and what they cost (seed 002, section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from levelwind.loads.arrays import Floats, Ints, sum_by
from levelwind.loads.problem import Problem
from levelwind.model import Cluster, Model, Network, Node, Operator, Output, Port, Stream, Topology
from levelwind.placement.flows import latency_seconds, make_flows
from levelwind.placement.units import make_units

# Every producer sends 2 kB/s; what leaves the aggregator is an eighth of what enters it.
ROWS_PER_S, ROW_BYTES, PRODUCERS, PASSED = 2.0, 1000.0, 4, 0.125


def cluster_of(latency_ms: Floats, topology: Topology | None = None, *, cpu: float = 1.0) -> Cluster:
    """A cluster of equal nodes with these latencies, named as in the topology, or n0, n1, …"""
    names = topology.nodes if topology is not None else tuple(f"n{i}" for i in range(len(latency_ms)))
    return Cluster(
        nodes=tuple(Node(name=name, cpu=cpu) for name in names),
        latency_ms=tuple(tuple(row) for row in latency_ms.tolist()),
        topology=topology,
    )


def aggregations(
    rng: np.random.Generator,
    names: Sequence[str],
    count: int,
    *,
    producers: int = PRODUCERS,
    passed: float = PASSED,
) -> Network:
    """Queries of some producers, an aggregator and a consumer, all ends of a query on different nodes."""
    streams, boxes, outputs = {}, {}, {}
    for q in range(count):
        ends = [names[i] for i in rng.choice(len(names), producers + 1, replace=False)]
        for k in range(producers):
            name = f"p{q}_{k}"
            streams[name] = Stream(name=name, rate=(ROWS_PER_S,), bytes=ROW_BYTES, node=ends[k])
        boxes[f"a{q}"] = _box(f"a{q}", [f"p{q}_{k}" for k in range(producers)], passed)
        outputs[f"c{q}"] = Output(name=f"c{q}", input=Port(source=f"a{q}"), node=ends[-1])
    return Network(name="aggregations", streams=streams, operators=boxes, outputs=outputs)


def trees(
    rng: np.random.Generator, names: Sequence[str], count: int, *, operators: tuple[int, int] = (2, 6)
) -> Network:
    """Queries of several operators each: random trees from producers down to one consumer.

    An operator passes on between an eighth of what it reads and all of it.
    """
    streams, boxes, outputs = {}, {}, {}

    def producer(name: str) -> str:
        node = names[int(rng.integers(len(names)))]
        streams[name] = Stream(name=name, rate=(ROWS_PER_S,), bytes=ROW_BYTES, node=node)
        return name

    for q in range(count):
        size = int(rng.integers(operators[0], operators[1] + 1))
        # Operator 0 feeds the consumer; every other one feeds an operator before it.
        parent = [int(rng.integers(k)) for k in range(1, size)]
        for k in reversed(range(size)):
            fed = [f"t{q}_{child}" for child in range(1, size) if parent[child - 1] == k]
            wanted = max(0, int(rng.integers(2, 5)) - len(fed))
            inputs = fed + [producer(f"p{q}_{k}_{s}") for s in range(wanted)]
            boxes[f"t{q}_{k}"] = _box(f"t{q}_{k}", inputs, float(2.0 ** rng.uniform(-3, 0)))
        node = names[int(rng.integers(len(names)))]
        outputs[f"c{q}"] = Output(name=f"c{q}", input=Port(source=f"t{q}_0"), node=node)
    return Network(name="trees", streams=streams, operators=boxes, outputs=outputs)


def same_producers(
    rng: np.random.Generator,
    names: Sequence[str],
    *,
    consumers: int,
    producers: int = 2,
    passed: float = 0.25,
    reusable: bool = True,
) -> Network:
    """Queries that aggregate the same streams for different consumers, all ends on different nodes."""
    ends = [names[i] for i in rng.choice(len(names), producers + consumers, replace=False)]
    streams = {
        f"p{k}": Stream(name=f"p{k}", rate=(ROWS_PER_S,), bytes=ROW_BYTES, node=ends[k])
        for k in range(producers)
    }
    boxes = {
        f"a{q}": replace(_box(f"a{q}", list(streams), passed), reusable=reusable) for q in range(consumers)
    }
    outputs = {
        f"c{q}": Output(name=f"c{q}", input=Port(source=f"a{q}"), node=ends[producers + q])
        for q in range(consumers)
    }
    return Network(name="same producers", streams=streams, operators=boxes, outputs=outputs)


def usages(problem: Problem, assignment: Ints) -> Floats:
    """Network usage of each of the `aggregations`, in bytes. O(arcs)."""
    units = make_units(problem)
    flows, latency = make_flows(units).flows, latency_seconds(units)
    owner = np.array([f.home if f.home >= 0 else f.readers[0] for f in flows])
    home = np.array([f.entry if f.home < 0 else assignment[f.home] for f in flows])
    target = np.array([assignment[f.readers[0]] if f.readers else f.exits[0] for f in flows])
    rate = np.array([f.rate for f in flows])
    return sum_by(owner, rate * latency[home, target], units.count)


def delay_penalties(problem: Problem, assignment: Ints) -> Floats:
    """How much longer the longest path of each of the `aggregations` is than the longest direct one."""
    longest, direct = paths_ms(problem, assignment)
    return longest / direct - 1.0


def paths_ms(problem: Problem, assignment: Ints) -> tuple[Floats, Floats]:
    """Each query's longest latency from a producer over the aggregator to the consumer, and directly."""
    units = make_units(problem)
    latency = np.array(problem.cluster.latency_ms)
    longest, direct = np.zeros(units.count), np.zeros(units.count)
    flows = make_flows(units).flows
    consumer = {flow.home: flow.exits[0] for flow in flows if flow.home >= 0}
    for flow in flows:
        if flow.home < 0:
            query = flow.readers[0]
            node, end = int(assignment[query]), consumer[query]
            longest[query] = max(longest[query], latency[flow.entry, node] + latency[node, end])
            direct[query] = max(direct[query], latency[flow.entry, end])
    return longest, direct


def total_usage(problem: Problem, assignment: Ints) -> float:
    """Network usage of all queries together, in bytes."""
    units = make_units(problem)
    nodes = np.empty(units.count, dtype=np.int64)
    nodes[units.of] = assignment
    return make_flows(units).usage(nodes, latency_seconds(units))


def _box(name: str, inputs: Sequence[str], passed: float) -> Operator:
    return Operator(
        name=name,
        spec=Model(),
        inputs=tuple(Port(source=source) for source in inputs),
        cost_s=1e-6,
        selectivity=passed,
        bytes=ROW_BYTES,
    )
