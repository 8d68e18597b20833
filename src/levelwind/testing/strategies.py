"""Hypothesis strategies: networks of every shape that planning knows, clusters, rates, placements.

Numbers come from coarse grids on purpose: ties, equal operators and exact fits are where planners break.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from hypothesis import strategies as st

from levelwind.loads import Problem, make_problem
from levelwind.model import (
    Cluster,
    Filter,
    Join,
    Model,
    Multijoin,
    Network,
    Node,
    Operator,
    Output,
    Port,
    Split,
    Stream,
    Union,
)
from levelwind.rewrite import split

FEATURES = frozenset(
    {
        "joins",  # joins and multijoins, whose work grows with the product of rates
        "routes",  # filters with several outputs
        "unions",  # unions, and model operators with several inputs
        "varying",  # selectivities that are not to be relied on
        "splits",  # operators divided into instances
        "loads",  # load coefficients stated outright
        "idle",  # operators that cost nothing
        "transfer",  # CPU cost of sending rows
        "bytes",  # row sizes
        "entries",  # streams that enter at a node (only if nodes are named)
        "outputs",  # outputs, some on a node
        "tables",  # operators that stay together
        "pins",  # operators bound to a node (only if nodes are named)
        "rates",  # every stream states a rate
        "series",  # rates are series of ten samples
        "min_rates",  # lower bounds
    }
)
"""What a network may hold, each on a coin's toss; leave some out with ``without``."""
SAMPLES = 10
# A join's rate is a product of its inputs': more than this many in a row and the numbers mean nothing.
MOST_JOINS = 3


def grid(least: float, most: float, steps: int = 40) -> st.SearchStrategy[float]:
    """Numbers from ``least`` to ``most`` in equal steps."""
    return st.integers(0, steps).map(lambda k: least + (most - least) * k / steps)


def rate_series(*, samples: int = SAMPLES, most: float = 2.0) -> st.SearchStrategy[tuple[float, ...]]:
    """A rate over time in rows per second, one sample a second."""
    return st.lists(grid(0.0, most), min_size=samples, max_size=samples).map(tuple)


def rates(network: Network, *, least: float = 0.0, most: float = 2.0) -> st.SearchStrategy[dict[str, float]]:
    """A constant rate for every stream of a network."""
    return st.fixed_dictionaries({name: grid(least, most) for name in network.streams})


@st.composite
def clusters(
    draw: Callable[..., Any],
    *,
    nodes: tuple[int, int] = (1, 4),
    unequal: bool = True,
    bandwidth: bool = False,
    latency: bool = False,
) -> Cluster:
    """Clusters with unequal CPUs and, if asked for, limits of bandwidth and a latency matrix."""
    count = draw(st.integers(*nodes))
    cpus = st.sampled_from([0.5, 1.0, 1.0, 1.5, 3.0]) if unequal else st.just(1.0)
    wires = st.none() | grid(5.0, 100.0) if bandwidth else st.none()
    made = tuple(
        Node(name=f"n{i + 1}", cpu=draw(cpus), bandwidth_bytes_per_s=draw(wires)) for i in range(count)
    )
    matrix = None
    if latency:
        hop = st.integers(1, 50).map(float)
        matrix = tuple(tuple(0.0 if i == j else draw(hop) for j in range(count)) for i in range(count))
    return Cluster(nodes=made, latency_ms=matrix, network_bandwidth_bytes_per_s=draw(wires))


@st.composite
def networks(
    draw: Callable[..., Any],
    *,
    streams: tuple[int, int] = (1, 3),
    operators: tuple[int, int] = (1, 8),
    nodes: Collection[str] = (),
    without: Collection[str] = (),
) -> Network:
    """Random directed acyclic networks.

    Parameters
    ----------
    streams, operators
        Least and largest number of each.
    nodes
        Names that pins, entries and outputs may use.
    without
        Words of `FEATURES` that the network shall not have.
    """
    unknown = set(without) - FEATURES
    if unknown:
        message = f"no such feature: {', '.join(sorted(unknown))}"
        raise ValueError(message)
    may = FEATURES - set(without)
    inputs = {f"I{k + 1}": _stream(draw, f"I{k + 1}", may, nodes) for k in range(draw(st.integers(*streams)))}
    ports = [Port(source=name) for name in inputs]
    boxes: dict[str, Operator] = {}
    joins = 0
    for k in range(draw(st.integers(*operators))):
        box = _operator(draw, f"o{k + 1}", ports, tuple(inputs), may, nodes, joins < MOST_JOINS)
        joins += box.is_join
        boxes[box.name] = box
        ports += [Port(source=box.name, route=route) for route in box.routes]
    outputs: dict[str, Output] = {}
    if "outputs" in may:
        place = st.none() | st.sampled_from(sorted(nodes)) if nodes else st.none()
        chosen = draw(st.lists(st.sampled_from(ports), max_size=3))
        outputs = {f"out{i}": Output(name=f"out{i}", input=p, node=draw(place)) for i, p in enumerate(chosen)}
    return Network(name="random", streams=inputs, operators=boxes, outputs=outputs)


def _stream(draw: Callable[..., Any], name: str, may: Collection[str], nodes: Collection[str]) -> Stream:
    rate = None
    if "series" in may and "rates" in may and draw(st.booleans()):
        rate = draw(rate_series())
    elif "rates" in may:
        rate = (draw(grid(0.0, 2.0)),)
    return Stream(
        name=name,
        rate=rate,
        min_rate=draw(st.sampled_from([0.0, 0.0, 0.01, 0.05])) if "min_rates" in may else 0.0,
        bytes=draw(st.none() | grid(1.0, 20.0)) if "bytes" in may else None,
        node=draw(st.none() | st.sampled_from(sorted(nodes))) if "entries" in may and nodes else None,
    )


def _operator(
    draw: Callable[..., Any],
    name: str,
    ports: list[Port],
    streams: tuple[str, ...],
    may: Collection[str],
    nodes: Collection[str],
    join_allowed: bool,
) -> Operator:
    kinds = ["model", "model", "model"]
    kinds += ["filter"] if "routes" in may else []
    kinds += ["union"] if "unions" in may else []
    kinds += ["join", "multijoin"] if "joins" in may and join_allowed else []
    kinds += ["load"] if "loads" in may else []
    kind = draw(st.sampled_from(kinds))
    costs = st.just(0.0) | grid(0.05, 1.0) if "idle" in may else grid(0.05, 1.0)
    own: dict[str, Any] = {
        "cost_s": draw(costs),
        "selectivity": draw(st.sampled_from([None, 0.0, 0.25, 0.5, 1.0, 1.0, 1.5])),
        "varying": "varying" in may and draw(st.integers(0, 3)) == 0,
        "split": Split(into=draw(st.integers(2, 3))) if "splits" in may and _rarely(draw) else None,
        "transfer_cost_s": draw(st.just(0.0) | grid(0.05, 0.5)) if "transfer" in may else 0.0,
        "bytes": draw(st.none() | grid(1.0, 20.0)) if "bytes" in may else None,
        "table": draw(st.sampled_from(["t1", "t2"])) if "tables" in may and _rarely(draw) else None,
        "pinned": draw(st.sampled_from(sorted(nodes))) if "pins" in may and nodes and _rarely(draw) else None,
    }
    most = {"union": 3, "model": 3 if "unions" in may else 1, "join": 2, "multijoin": 3}.get(kind, 1)
    least = 2 if kind in ("join", "multijoin") else 0 if kind == "load" else 1
    read = draw(st.lists(st.sampled_from(ports), min_size=least, max_size=most))
    if kind != "multijoin" and kind != "join":
        read = list(dict.fromkeys(read))
    return Operator(name=name, inputs=tuple(read), **own, **_spec(draw, kind, len(read), streams))


def _rarely(draw: Callable[..., Any]) -> bool:
    return bool(draw(st.integers(0, 4)) == 0)


def _spec(draw: Callable[..., Any], kind: str, width: int, streams: tuple[str, ...]) -> Mapping[str, Any]:
    if kind == "union":
        return {"spec": Union()}
    if kind == "filter":
        routes = {f"r{i}": "true" for i in range(draw(st.integers(2, 3)))}
        shares = {route: draw(grid(0.0, 0.5)) for route in routes} if draw(st.booleans()) else None
        return {"spec": Filter(routes=routes), "route_selectivity": shares}
    aliases = tuple("abc"[:width])
    if kind == "join":
        return {"spec": Join(aliases=aliases, within_s=draw(grid(0.1, 1.0)))}
    if kind == "multijoin":
        return {
            "spec": Multijoin(aliases=aliases, windows_s={alias: draw(grid(0.1, 1.0)) for alias in aliases})
        }
    if kind == "load":
        return {"spec": Model(load={name: draw(grid(0.0, 1.0)) for name in streams if draw(st.booleans())})}
    return {"spec": Model()}


@st.composite
def problems(
    draw: Callable[..., Any],
    *,
    streams: tuple[int, int] = (1, 3),
    operators: tuple[int, int] = (1, 8),
    nodes: tuple[int, int] = (1, 4),
    unequal: bool = True,
    bandwidth: bool = True,
    latency: bool = False,
    without: Collection[str] = (),
) -> Problem:
    """A random network on a random cluster, with the load model worked out."""
    cluster = draw(clusters(nodes=nodes, unequal=unequal, bandwidth=bandwidth, latency=latency))
    network = draw(networks(streams=streams, operators=operators, nodes=cluster.names, without=without))
    return make_problem(network, cluster)


def placements(network: Network, cluster: Cluster) -> st.SearchStrategy[dict[str, str]]:
    """Any placement of a network's physical operators, pins and tables not looked at."""
    names = split(network).names
    return st.fixed_dictionaries({name: st.sampled_from(cluster.names) for name in names})
