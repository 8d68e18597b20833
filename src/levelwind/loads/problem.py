"""The numbers of a network on a cluster: what planners decide on and measures are taken from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from levelwind.errors import InputError, did_you_mean
from levelwind.errors import Problem as InputProblem
from levelwind.loads.arrays import Floats, Ints, shared
from levelwind.loads.rates import Rates, value_of
from levelwind.loads.spreading import linear_model
from levelwind.model import Cluster, Diffusion, Model, Network
from levelwind.rewrite import Linearised, PhysicalNetwork, PhysicalStream, diffused, split


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """Streams that are costly to send between nodes, as arrays.

    Parameters
    ----------
    rate
        Rows per second as coefficients of the variables, one row per stream.
    floor
        Rows per second that come at the least from streams without load, which are no variables: such a
        stream counts with its ``min_rate``.
    transfer_s
        CPU seconds per row sent, both ends together.
    bytes
        Bytes per row.
    producer
        Operator index, or −1 for rows that enter from outside.
    entry
        Node index where rows from outside enter, or −1 if they come from no node.
    reader_stream, reader_operator
        One entry per arc from a stream to an operator that reads it.
    exit_stream, exit_node
        One entry per output that stands on a stated node.
    """

    rate: Floats
    floor: Floats
    transfer_s: Floats
    bytes: Floats
    producer: Ints
    entry: Ints
    reader_stream: Ints
    reader_operator: Ints
    exit_stream: Ints
    exit_node: Ints


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A physical network, a cluster, and the linear load model that ties them.

    Attributes use the dissertation's letters where it has one: ``operator_load`` is L^o (operators ×
    variables), ``total_load`` is l, ``cpu`` is C. ``lower`` is the lower bound point in rows per second.
    ``fixed`` holds for each operator the node it must stand on, or −1.
    """

    physical: PhysicalNetwork
    cluster: Cluster
    linear: Linearised
    rates: Rates
    operator_load: Floats
    lower: Floats
    fixed: Ints
    current: Ints | None = None

    @property
    def network(self) -> Network:
        """The network as written."""
        return self.physical.network

    @property
    def variables(self) -> tuple[str, ...]:
        """Streams that cause load, then introduced variables."""
        return self.linear.variables

    @cached_property
    def cpu(self) -> Floats:
        """CPU capacity of each node."""
        return np.array([node.cpu for node in self.cluster.nodes])

    @cached_property
    def total_load(self) -> Floats:
        """Load coefficient of each variable over all operators."""
        return self.operator_load.sum(axis=0)

    @cached_property
    def weight(self) -> Floats:
        """Each operator's share of each variable's load: the normalised L^o."""
        return self.operator_load / self.total_load

    @cached_property
    def normalised_lower(self) -> Floats:
        """The lower bound point where the ideal plane is Σx = 1."""
        return self.lower * self.total_load / self.cpu.sum()

    @cached_property
    def bandwidth(self) -> Floats:
        """Bandwidth of each node in bytes per second, infinite if unstated."""
        return np.array(
            [
                np.inf if n.bandwidth_bytes_per_s is None else n.bandwidth_bytes_per_s
                for n in self.cluster.nodes
            ]
        )

    @property
    def network_bandwidth(self) -> float:
        """Bandwidth of the shared network in bytes per second, infinite if unstated."""
        stated = self.cluster.network_bandwidth_bytes_per_s
        return float("inf") if stated is None else stated

    @property
    def has_bandwidth(self) -> bool:
        """Whether any bandwidth is limited."""
        return bool(np.isfinite(self.bandwidth).any()) or np.isfinite(self.network_bandwidth)

    @cached_property
    def carried(self) -> Carried:
        """The streams that cost CPU or bandwidth to send. O(arcs)."""
        return _carried(self)

    @cached_property
    def load_series(self) -> Floats | None:
        """Load of each operator over time, or None without a single series. O(operators × samples)."""
        stated = [
            o.logical.spec.series if isinstance(o.logical.spec, Model) else None
            for o in self.physical.operators
        ]
        samples = max([self.rates.samples, *(len(s) for s in stated if s is not None)])
        if samples == 1:
            return None
        series = self.operator_load @ np.broadcast_to(self.variable_rates, (len(self.variables), samples))
        for j, own in enumerate(stated):
            if own is not None:
                series[j] += np.asarray(own) * self.physical.operators[j].share
        return series

    @cached_property
    def stated_load(self) -> Floats:
        """Mean of the load series that operators state outright, 0 for all others."""
        return self._of_stated_series(lambda series: sum(series) / len(series))

    @cached_property
    def stated_peak(self) -> Floats:
        """Largest sample of the load series that operators state outright, 0 for all others."""
        return self._of_stated_series(max)

    def _of_stated_series(self, figure: Callable[[Sequence[float]], float]) -> Floats:
        load = np.zeros(len(self.physical.operators))
        for j, operator in enumerate(self.physical.operators):
            spec = operator.logical.spec
            if isinstance(spec, Model) and spec.series:
                load[j] = figure(spec.series) * operator.share
        return load

    @cached_property
    def carried_samples(self) -> Floats:
        """Rows per second of each carried stream over time, from the stated rates; NaN where unknown."""
        rows = [
            self.rates.of(self.linear.rates[stream.source, stream.route]) * stream.share
            for stream in self.physical.streams
            if is_carried(self, stream)
        ]
        return np.array(rows).reshape(len(rows), self.rates.samples)

    @cached_property
    def variable_rates(self) -> Floats:
        """Rate of each variable over time (variables × samples); NaN where unknown."""
        rows = [value_of(self.rates, self.linear, variable) for variable in self.variables]
        return np.array(rows).reshape(len(rows), self.rates.samples)

    @cached_property
    def mean_load(self) -> Floats:
        """Mean load of each operator at the stated rates; NaN where a rate is missing."""
        load: Floats = self.operator_load @ self.variable_rates.mean(axis=1) + self.stated_load
        return load

    def assignment(self, placement: Mapping[str, str]) -> Ints:
        """A placement by names as node indices in operator order."""
        index = {name: i for i, name in enumerate(self.cluster.names)}
        return np.array([index[placement[name]] for name in self.physical.names], dtype=np.int64)

    def placement(self, assignment: Sequence[int] | Ints) -> dict[str, str]:
        """Node indices in operator order as a placement by names."""
        nodes = self.cluster.names
        return {name: nodes[i] for name, i in zip(self.physical.names, assignment, strict=True)}


def make_problem(
    network: Network,
    cluster: Cluster,
    *,
    rates: Mapping[str, float] | None = None,
    current: Mapping[str, str] | None = None,
) -> Problem:
    """Work out the load model of a network and tie it to a cluster.

    Parameters
    ----------
    rates
        Rows per second that replace the stated rates of streams.
    current
        Where operators stand now; those that cannot be moved stay there.
    """
    _check_names(network, cluster, rates or {})
    physical = split(network)
    network = diffused(network)
    linear, stated = linear_model(network, rates)
    column = {variable: k for k, variable in enumerate(linear.variables)}
    load = np.zeros((len(physical.operators), len(column)))
    for j, operator in enumerate(physical.operators):
        for variable, coefficient in linear.loads[operator.logical.name].items():
            load[j, column[variable]] = coefficient * operator.share
    lower = np.array([network.streams[v].min_rate if v in network.streams else 0.0 for v in linear.variables])
    nodes = {name: i for i, name in enumerate(cluster.names)}
    standing = None
    fixed = np.full(len(physical.operators), -1, dtype=np.int64)
    for j, operator in enumerate(physical.operators):
        if operator.logical.pinned is not None:
            fixed[j] = nodes[operator.logical.pinned]
        elif current is not None and not operator.logical.movable:
            # What stood on a node that is gone must move, movable or not.
            fixed[j] = nodes.get(current.get(operator.name, ""), -1)
    if current is not None:
        standing = np.array([nodes.get(current.get(name, ""), -1) for name in physical.names], dtype=np.int64)
    return Problem(
        physical=physical,
        cluster=cluster,
        linear=linear,
        rates=stated,
        operator_load=shared(load),
        lower=shared(lower),
        fixed=shared(fixed),
        current=standing,
    )


def _check_names(network: Network, cluster: Cluster, rates: Mapping[str, float]) -> None:
    nodes, problems = set(cluster.names), []
    places = [(o.name, "pinned", o.pinned) for o in network.operators.values()]
    places += [(s.name, "node", s.node) for s in network.streams.values()]
    places += [(o.name, "node", o.node) for o in network.outputs.values()]
    for name, key, node in places:
        if node is not None and node not in nodes:
            hint = did_you_mean(node, cluster.names)
            problems.append(
                InputProblem(
                    rule="must name a node of the cluster", key=f"{name}.{key}", value=node, hint=hint
                )
            )
    for name, rate in rates.items():
        if name not in network.streams:
            hint = did_you_mean(name, network.streams)
            problems.append(
                InputProblem(rule="must name a stream of the network", key="rates", value=name, hint=hint)
            )
        elif not (isinstance(rate, int | float) and 0 <= rate < float("inf")):
            rule = "a rate must be a number of at least 0"
            problems.append(InputProblem(rule=rule, key=f"rates.{name}", value=str(rate)))
    if problems:
        raise InputError(problems)


def is_carried(problem: Problem, stream: PhysicalStream) -> bool:
    """Whether sending the stream between nodes costs CPU, or bandwidth that is limited."""
    origin = problem.network.operators.get(stream.source)
    if origin is not None:
        route = stream.route
        return origin.transfer_cost_of(route) > 0 or (bool(origin.bytes_of(route)) and problem.has_bandwidth)
    entry = problem.network.streams[stream.source]
    return entry.node is not None and bool(entry.bytes) and problem.has_bandwidth


def _carried(problem: Problem) -> Carried:
    network, linear = problem.network, problem.linear
    nodes = {name: i for i, name in enumerate(problem.cluster.names)}
    column = {variable: k for k, variable in enumerate(linear.variables)}
    rate: list[Floats] = []
    floor: list[float] = []
    idle = {name: s.min_rate for name, s in network.streams.items() if name not in column and s.min_rate}
    transfer: list[float] = []
    size: list[float] = []
    producer: list[int] = []
    entry: list[int] = []
    readers: list[tuple[int, int]] = []
    exits: list[tuple[int, int]] = []
    for stream in problem.physical.streams:
        if not is_carried(problem, stream):
            continue
        origin = network.operators.get(stream.source)
        cost = origin.transfer_cost_of(stream.route) if origin is not None else 0.0
        stated = network.streams[stream.source].bytes if origin is None else origin.bytes_of(stream.route)
        gate = None if origin is not None else network.streams[stream.source].node
        t = len(rate)
        row = np.zeros(len(column))
        for variable, coefficient in linear.carried_rates[stream.source, stream.route].items():
            row[column[variable]] = coefficient * stream.share
        rate.append(row)
        # Copies of a spread join's rows are counted with the join, whether its streams are variables or not.
        spread = origin is not None and isinstance(origin.spec, Diffusion)
        raw = {} if spread else linear.rates[stream.source, stream.route]
        floor.append(stream.share * sum(raw.get(name, 0.0) * least for name, least in idle.items()))
        transfer.append(cost)
        size.append(stated or 0.0)
        producer.append(-1 if stream.producer is None else stream.producer)
        entry.append(-1 if gate is None else nodes[gate])
        readers += [(t, consumer) for consumer in stream.consumers]
        places = (network.outputs[name].node for name in stream.outputs)
        exits += [(t, nodes[place]) for place in places if place is not None]
    arcs = np.array(readers, dtype=np.int64).reshape(-1, 2)
    leaving = np.array(exits, dtype=np.int64).reshape(-1, 2)
    return Carried(
        rate=np.array(rate).reshape(len(rate), len(column)),
        floor=np.array(floor, dtype=float),
        transfer_s=np.array(transfer, dtype=float),
        bytes=np.array(size, dtype=float),
        producer=np.array(producer, dtype=np.int64),
        entry=np.array(entry, dtype=np.int64),
        reader_stream=arcs[:, 0],
        reader_operator=arcs[:, 1],
        exit_stream=leaving[:, 0],
        exit_node=leaving[:, 1],
    )
