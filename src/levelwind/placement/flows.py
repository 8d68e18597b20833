"""What travels between units, and what it costs the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from levelwind.loads.arrays import Floats, Ints
from levelwind.model import Join, Multijoin, Network, RowWindow
from levelwind.placement.units import Units

UNPLACED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Rows that leave one place for several; a node gets one copy, however many readers stand there.

    Parameters
    ----------
    home
        The unit that puts them out, −1 if they enter from outside; then ``entry`` is the node.
    readers
        Units that read them, ``home`` left out.
    exits
        Nodes of the outputs that take them.
    rate
        Bytes per second, rows per second where rows state no size.
    cpu
        CPU seconds per second that sending one copy costs, half at each end.
    wire
        Bytes per second that a copy takes of every bandwidth on its way.
    """

    home: int
    entry: int
    readers: tuple[int, ...]
    exits: tuple[int, ...]
    rate: float
    cpu: float
    wire: float


@dataclass(frozen=True, kw_only=True)
class Flows:
    """All flows of a problem that have a place to come from, and where units meet them."""

    units: Units
    flows: tuple[Flow, ...]

    @cached_property
    def of(self) -> list[list[int]]:
        """Flows at each unit, as home or as reader."""
        lists: list[list[int]] = [[] for _ in range(self.units.count)]
        for f, flow in enumerate(self.flows):
            for unit in (*flow.readers, *((flow.home,) if flow.home >= 0 else ())):
                lists[unit].append(f)
        return lists

    def home(self, flow: Flow, nodes: Sequence[int] | Ints) -> int:
        """The node that a flow comes from, −1 if its unit is not placed."""
        return flow.entry if flow.home < 0 else int(nodes[flow.home])

    def usage(self, nodes: Sequence[int] | Ints, latency_s: Floats) -> float:
        """Network usage of a whole placement: Σ rate × latency over all copies. O(arcs)."""
        total = 0.0
        for flow in self.flows:
            home = self.home(flow, nodes)
            targets = {int(nodes[unit]) for unit in flow.readers} | set(flow.exits)
            total += flow.rate * sum(float(latency_s[home, target]) for target in targets - {home})
        return total

    def at(self, unit: int, candidates: Ints, nodes: Ints, latency_s: Floats) -> Floats:
        """What the flows of one unit cost with it on each of the candidates, the others as placed.

        Flows whose other end is not placed yet count nothing. O(arcs at the unit × candidates).
        """
        cost = np.zeros(len(candidates))
        for f in self.of[unit]:
            flow = self.flows[f]
            if flow.home == unit:
                others = {int(nodes[reader]) for reader in flow.readers if nodes[reader] >= 0}
                for target in others | set(flow.exits):
                    cost += flow.rate * latency_s[candidates, target]
                continue
            home = self.home(flow, nodes)
            if home >= 0:
                there = self.receivers(flow, nodes, without=unit) | {home}
                paid = np.isin(candidates, np.fromiter(there, dtype=np.int64))
                cost += np.where(paid, 0.0, flow.rate * latency_s[home, candidates])
        return cost

    def receivers(self, flow: Flow, nodes: Sequence[int] | Ints, *, without: int = -1) -> set[int]:
        """Nodes that get a copy as far as readers are placed, one unit left out."""
        placed = {int(nodes[unit]) for unit in flow.readers if unit != without and nodes[unit] >= 0}
        return placed | set(flow.exits)


def make_flows(units: Units) -> Flows:
    """The flows of a problem at its stated rates. O(arcs)."""
    problem = units.problem
    network, index = problem.network, {name: i for i, name in enumerate(problem.cluster.names)}
    unit = units.of.tolist()
    flows = []
    for stream in problem.physical.streams:
        origin = network.operators.get(stream.source)
        if origin is None:
            entering = network.streams[stream.source]
            if entering.node is None:
                continue
            home, entry, size, transfer = -1, index[entering.node], entering.bytes, 0.0
        else:
            assert stream.producer is not None
            home, entry = unit[stream.producer], -1
            size, transfer = origin.bytes_of(stream.route), origin.transfer_cost_of(stream.route)
        places = (network.outputs[name].node for name in stream.outputs)
        exits = tuple(dict.fromkeys(index[place] for place in places if place is not None))
        readers = tuple(dict.fromkeys(unit[reader] for reader in stream.consumers if unit[reader] != home))
        if not readers and not exits:
            continue
        mean = float(problem.rates.of(problem.linear.rates[stream.source, stream.route]).mean())
        rows = stream.share * (mean if np.isfinite(mean) else 0.0)
        flows.append(
            Flow(
                home=home,
                entry=entry,
                readers=readers,
                exits=exits,
                rate=rows * (1.0 if size is None else size),
                cpu=rows * transfer,
                wire=rows * (size or 0.0),
            )
        )
    return Flows(units=units, flows=tuple(flows))


def held_bytes(units: Units) -> Floats:
    """Bytes of rows that each unit must hold: windows of joins and of rows, where row sizes are stated.

    Aggregates over time hold a row per group and pane; how many groups there are is not stated, and they
    count nothing. O(operators).
    """
    problem = units.problem
    network, held = problem.network, np.zeros(units.count)
    for j, operator in enumerate(problem.physical.operators):
        spec = operator.logical.spec
        if isinstance(spec, Join):
            spans = [spec.within_s] * len(operator.logical.inputs)
        elif isinstance(spec, Multijoin):
            spans = [spec.windows_s[alias] for alias in spec.aliases]
        elif isinstance(window := getattr(spec, "window", None), RowWindow):
            sizes = [_row_bytes(network, port.source) for port in operator.logical.inputs]
            held[units.of[j]] += window.rows * max(sizes, default=0.0)
            continue
        else:
            continue
        for port, span in zip(operator.logical.inputs, spans, strict=True):
            rate = float(problem.rates.of(problem.linear.rates[port.source, port.route]).mean())
            rows = rate * operator.share * span if np.isfinite(rate) else 0.0
            held[units.of[j]] += rows * _row_bytes(network, port.source)
    return held


def _row_bytes(network: Network, source: str) -> float:
    operators, streams = network.operators, network.streams
    return (operators[source].bytes if source in operators else streams[source].bytes) or 0.0


def latency_seconds(units: Units) -> Floats:
    """The cluster's latencies in seconds; a node is at 0 from itself whatever the file says."""
    latency = np.array(units.problem.cluster.latency_ms, dtype=float) / 1000.0
    np.fill_diagonal(latency, 0.0)
    return latency
