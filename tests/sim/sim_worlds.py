"""Small networks and clusters to simulate."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from levelwind.loads.problem import make_problem
from levelwind.model import Cluster, Filter, Join, Model, Network, Node, Operator, Output, Port, Split, Stream


def model(name, *inputs, cost=1e-3, selectivity=1.0, **more):
    ports = tuple(Port(source=i) for i in inputs)
    return Operator(name=name, spec=Model(), inputs=ports, cost_s=cost, selectivity=selectivity, **more)


def network(*operators, streams=("I",), **more):
    return Network(
        streams={s.name: s for s in (Stream(name=s) if isinstance(s, str) else s for s in streams)},
        operators={operator.name: operator for operator in operators},
        **more,
    )


def on(net, cluster, placement=None):
    """A problem, and a placement of all operators (on the first node if none is given)."""
    problem = make_problem(net, cluster if isinstance(cluster, Cluster) else Cluster.equal(cluster))
    first = problem.cluster.names[0]
    return problem, placement or dict.fromkeys(problem.physical.names, first)


@st.composite
def tiny_worlds(draw):
    """A random network on a random cluster, where its operators stand, and when rows come."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sized = draw(st.booleans())
    names = [f"I{k}" for k in range(draw(st.integers(1, 2)))]
    node_count = draw(st.integers(1, 3))
    nodes = [f"n{i + 1}" for i in range(node_count)]
    operators, ports = {}, [Port(source=name) for name in names]
    for j in range(draw(st.integers(1, 5))):
        name = f"o{j}"
        picks = rng.choice(len(ports), size=int(rng.integers(1, 3)))
        inputs = tuple(ports[p] for p in picks)
        common = {
            "name": name,
            "cost_s": float(rng.choice([0.0, 1e-3, 3e-3, 1e-2])),
            "bytes": 100.0 if sized else None,
            "transfer_cost_s": float(rng.choice([0.0, 1e-3])) if sized else 0.0,
        }
        shape = rng.integers(6)
        if shape == 0 and len(inputs) == 2:
            spec = Join(aliases=("a", "b"), within_s=0.05)
            operators[name] = Operator(spec=spec, inputs=inputs, selectivity=0.3, **common)
        elif shape == 1:
            spec = Filter(routes={"x": "true", "y": "true"})
            shares = {"x": 0.5, "y": 0.7}
            operators[name] = Operator(spec=spec, inputs=inputs[:1], route_selectivity=shares, **common)
        elif shape == 2:
            operators[name] = Operator(
                spec=Model(), inputs=inputs[:1], selectivity=0.9, split=Split(into=2), **common
            )
        else:
            ratio = float(rng.choice([0.0, 0.3, 1.0, 1.2, 2.5]))
            operators[name] = Operator(spec=Model(), inputs=inputs, selectivity=ratio, **common)
        ports += [Port(source=name, route=route) for route in operators[name].routes]
    outputs = {}
    if draw(st.booleans()):
        outputs["out"] = Output(name="out", input=ports[-1], node=draw(st.sampled_from([None, *nodes])))
    net = Network(
        streams={
            name: Stream(
                name=name, bytes=200.0 if sized else None, node=draw(st.sampled_from([None, *nodes]))
            )
            for name in names
        },
        operators=operators,
        outputs=outputs,
    )
    latency = None
    if draw(st.booleans()):
        matrix = rng.choice([0.0, 1.0, 7.0], size=(node_count, node_count))
        np.fill_diagonal(matrix, 0.0)
        latency = tuple(map(tuple, matrix.tolist()))
    cluster = Cluster(
        nodes=tuple(
            Node(
                name=node,
                cpu=float(rng.choice([0.5, 1.0, 2.0])),
                bandwidth_bytes_per_s=float(rng.choice([5e4, 1e6])) if sized else None,
            )
            for node in nodes
        ),
        latency_ms=latency,
        network_bandwidth_bytes_per_s=2e5 if sized and draw(st.booleans()) else None,
    )
    problem = make_problem(net, cluster)
    placement = {name: str(rng.choice(nodes)) for name in problem.physical.names}
    times = {name: np.sort(rng.uniform(0, 1, size=int(rng.integers(0, 60)))).tolist() for name in names}
    return problem, placement, times
