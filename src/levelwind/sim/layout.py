"""From a network on a cluster to the kernel's arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import floor
from typing import Any

import numpy as np

from levelwind.loads.problem import Problem
from levelwind.model import Join, JoinPart, Model, Multijoin, Operator
from levelwind.model.operator import Diffusion
from levelwind.rewrite.split import PhysicalOperator, PhysicalStream
from levelwind.sim.arrivals import Arrivals
from levelwind.sim.notes import BINS
from levelwind.sim.spreading import SpreadJoins
from levelwind.sim.tables import (
    EVENT,
    FLOW,
    INLET,
    NODE,
    NOWHERE,
    OPERATOR,
    READY,
    SEGMENT,
    SIDE,
    SOURCE,
    TOTALS,
    TRACE,
    TUPLE,
    WAIT,
    Floats,
    Ints,
    Law,
    Rule,
    Table,
    Tables,
)

# Room at the start; all of it doubles when it is used up, but for the trace, which is handed out.
_TUPLES, _EVENTS, _WINDOW, _TRACE = 1024, 64, 16, 1 << 16
# CPU seconds of one portion of a load that a `series` states outright, without rows.
PORTION_S = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the kernel leaves open.

    Parameters
    ----------
    cost
        ``fixed``: every row of an operator costs the same, as in the papers. ``exponential``: the stated
        cost is the mean, which makes a node with Poisson arrivals an M/M/1 queue.
    selectivity
        ``credit``: fractions add up until they make a row. ``chance``: each row by chance.
    queues
        ``node``: one queue per node, first come, first served. ``operator``: one per operator, so that nodes
        can choose; see `Simulator.schedule`.
    """

    cost: str = "fixed"
    selectivity: str = "credit"
    queues: str = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plumbing:
    """The kernel's tables as they stand at time 0, with the names behind the rows.

    Sources are the network's streams in their order, then one for each operator that states a load series.
    ``flows`` names each flow by what it carries, ``exits`` each exit by its output: empty, if none is stated.
    ``spread`` holds the spread joins, ``spread_flows`` the flow of each route of their operators.
    """

    tables: Tables
    sources: tuple[str, ...]
    flows: tuple[str, ...]
    exits: tuple[str, ...]
    spread: SpreadJoins
    spread_flows: Mapping[tuple[int, str | None], int]


@dataclass(slots=True)
class _Flow:
    """A flow while it is gathered: its readers as (operator, cost, side, emits).

    ``part`` is the operator and route of a spread join that it comes from.
    """

    name: str
    rows: float
    bytes: float = 0.0
    transfer_s: float = 0.0
    inlets: list[tuple[int, float, int, bool]] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    credit: float | None = None
    part: tuple[int, str | None] | None = None


def lay_out(
    problem: Problem,
    arrivals: Mapping[str, Arrivals],
    *,
    horizon_s: float,
    choices: Choices | None = None,
    traced: bool = False,
    placement: Mapping[str, str] | None = None,
    rng: np.random.Generator,
) -> Plumbing:
    """Lay a problem out for the kernel.

    Parameters
    ----------
    arrivals
        By stream; one that is left out is silent.
    horizon_s
        How far stated load series are repeated.
    placement
        Where operators stand at the start: instances of a spread join get rows by the speed of their nodes.
    rng
        For the credit that flows start with: were it 0, all filters would drop their first rows together.

    Notes
    -----
    O(physical arcs + steps of the arrivals).
    """
    choices = choices or Choices()
    network = problem.network
    series = {
        j: o.logical.spec.series
        for j, o in enumerate(problem.physical.operators)
        if isinstance(o.logical.spec, Model) and o.logical.spec.series
    }
    operators = problem.physical.operators
    sources = (*network.streams, *(operators[j].name for j in series))
    spread = SpreadJoins(problem)
    if placement is not None:
        spread.follow(problem.assignment(placement), problem.cpu)
    flows = _Flows(problem, len(sources), spread).gathered(list(series))
    every = [arrivals.get(name, Arrivals()) for name in network.streams]
    every += [_background(series[j], operators[j].share, horizon_s) for j in series]
    tables = Tables(
        totals=_totals(problem, choices),
        tuples=_chain(np.zeros(_TUPLES, TUPLE)),
        events=np.zeros(max(_EVENTS, 2 * (len(sources) + len(problem.cpu))), EVENT),
        nodes=node_rows(problem.cpu, problem.bandwidth),
        operators=np.zeros(len(operators), OPERATOR),
        sources=np.zeros(len(sources), SOURCE),
        segments=np.zeros(sum(len(one.until_s) for one in every), SEGMENT),
        given=_joined([one.times_s for one in every]),
        latency=_latency(problem),
        histogram=np.zeros(BINS, dtype=np.int64),
        trace=np.zeros(_TRACE if traced else 0, TRACE),
        **_queues(choices, len(operators), len(problem.cpu)),
        **_connections(flows, operators, rng),
    )
    _fill_operators(tables, flows[len(sources) :], operators, rng)
    _fill_sources(tables, flows[: len(sources)], every, _entries(problem, len(series)), rng)
    flat = [flow for by_producer in flows for flow in by_producer]
    tables.totals["widest"] = max([1, *(len(flow.inlets) + len(flow.exits) for flow in flat)])
    return Plumbing(
        tables=tables,
        sources=sources,
        flows=tuple(flow.name for flow in flat),
        exits=tuple(name for flow in flat for name in flow.outputs),
        spread=spread,
        spread_flows={flow.part: number for number, flow in enumerate(flat) if flow.part is not None},
    )


class _Flows:
    """Gathers the flows of every producer: sources first, then operators."""

    def __init__(self, problem: Problem, sources: int, spread: SpreadJoins) -> None:
        self.problem = problem
        self.spread = spread.flows
        self.operators = problem.physical.operators
        self.first_operator = sources
        self.stream_number = {name: i for i, name in enumerate(problem.network.streams)}
        self.flows: list[list[_Flow]] = [[] for _ in range(sources + len(self.operators))]

    def gathered(self, with_series: list[int]) -> list[list[_Flow]]:
        fed: set[tuple[int, str | None]] = set()
        parts: dict[tuple[int, str | None, str], float] = {}
        for stream in self.problem.physical.streams:
            flow = self._flow(stream)
            producer = self._producer(stream)
            if stream.share < 1.0 and len(stream.consumers) == 1 and not stream.outputs:
                # Parts of one stream take turns: of k instances exactly one gets each row.
                place = (producer, stream.route, self.operators[stream.consumers[0]].logical.name)
                before = parts.get(place, 0.0)
                flow.credit = before % 1.0
                parts[place] = before + flow.rows
            self.flows[producer].append(flow)
            if stream.producer is not None:
                fed.add((stream.producer, stream.route))
        self._stated_loads()
        for number, j in enumerate(with_series, start=len(self.stream_number)):
            self.flows[number].append(_background_flow(self.operators[j].name, j))
        if not self.problem.network.outputs:
            # Without outputs the network ends where nobody reads on.
            for j, operator in enumerate(self.operators):
                for route in operator.logical.routes:
                    rows = self._rows(j, route)
                    if (j, route) not in fed and rows > 0:
                        name = operator.name if route is None else f"{operator.name}.{route}"
                        leaving = _Flow(name, rows, exits=[NOWHERE], outputs=[""])
                        self.flows[self.first_operator + j].append(leaving)
        return self.flows

    def _producer(self, stream: PhysicalStream) -> int:
        if stream.producer is None:
            return self.stream_number[stream.source]
        return self.first_operator + stream.producer

    def _flow(self, stream: PhysicalStream) -> _Flow:
        network = self.problem.network
        nodes = {name: i for i, name in enumerate(self.problem.cluster.names)}
        if stream.producer is None:
            name, rows = stream.source, stream.share
            size, transfer = network.streams[stream.source].bytes, 0.0
        else:
            origin = self.operators[stream.producer]
            name = origin.name if stream.route is None else f"{origin.name}.{stream.route}"
            rows = self._rows(stream.producer, stream.route) * stream.share / origin.share
            size = origin.logical.bytes_of(stream.route)
            transfer = origin.logical.transfer_cost_of(stream.route)
        places = [network.outputs[output].node for output in stream.outputs]
        flow = _Flow(name, rows, bytes=size or 0.0, transfer_s=transfer)
        if stream.producer is not None and self._is_spread(stream.producer):
            flow.part = (stream.producer, stream.route)
        flow.exits = [NOWHERE if place is None else nodes[place] for place in places]
        flow.outputs = list(stream.outputs)
        for reader in stream.consumers:
            logical = self.operators[reader].logical
            stated = self.spread.costs.get(reader, logical.stated_cost_s)
            cost = 0.0 if _states_load(logical) else stated
            for side, port in enumerate(logical.inputs):
                if (port.source, port.route) == (stream.source, stream.route):
                    flow.inlets.append((reader, cost, side if logical.is_join else NOWHERE, True))
        return flow

    def _rows(self, operator: int, route: str | None) -> float:
        """Rows on a route for each row that the operator takes."""
        if self._is_spread(operator):
            return self.spread.ratios.get((operator, route), 0.0)
        return self.operators[operator].logical.selectivity_of(route)

    def _is_spread(self, operator: int) -> bool:
        return isinstance(self.operators[operator].logical.spec, Diffusion | JoinPart)

    def _stated_loads(self) -> None:
        """Load coefficients stated outright: every row of the stream makes the operator work, and no more."""
        for j, operator in enumerate(self.operators):
            spec = operator.logical.spec
            for name, cost in (spec.load or {}).items() if isinstance(spec, Model) else ():
                flow = _Flow(name, operator.share, inlets=[(j, cost, NOWHERE, False)])
                self.flows[self.stream_number[name]].append(flow)


def _states_load(operator: Operator) -> bool:
    spec = operator.spec
    return isinstance(spec, Model) and (spec.load is not None or spec.series is not None)


def _background_flow(name: str, operator: int) -> _Flow:
    return _Flow(name, 1.0, inlets=[(operator, PORTION_S, NOWHERE, False)])


def _background(series: Any, share: float, horizon_s: float) -> Arrivals:
    """A load series as portions of work, evenly spaced; the series begins again when it is over."""
    seconds = max(1, int(np.ceil(horizon_s)))
    rate = np.resize(np.asarray(series, dtype=float), seconds) * share / PORTION_S
    return Arrivals(law=Law.REGULAR, until_s=np.arange(1.0, seconds + 1.0), rate=rate)


def node_rows(cpu: Floats, bandwidth: Floats) -> Table:
    """Idle nodes."""
    nodes = np.zeros(len(cpu), NODE)
    nodes["cpu"], nodes["bandwidth"] = cpu, bandwidth
    for name in ("head", "tail", "serving", "batch_head", "batch_tail"):
        nodes[name] = NOWHERE
    return nodes


def _queues(choices: Choices, operators: int, nodes: int) -> dict[str, Table]:
    """The tables of queues per operator; without rows if nodes have one queue."""
    own = choices.queues == "operator"
    waits = np.zeros(operators if own else 0, WAIT)
    for name in ("head", "tail", "before", "after"):
        waits[name] = NOWHERE
    order = np.zeros(_TUPLES if own else 0, dtype=np.int64)
    return {
        "queues": np.zeros((0, 0) if own else 0),
        "waits": waits,
        "ready": ready_rows(nodes if own else 0),
        "order": order,
    }


def ready_rows(count: int) -> Table:
    """Nodes whose operators have nothing to do."""
    ready = np.zeros(count, READY)
    ready["head"] = ready["tail"] = NOWHERE
    return ready


def _totals(problem: Problem, choices: Choices) -> Table:
    totals = np.zeros(1, TOTALS)
    totals["shared_bandwidth"] = problem.network_bandwidth
    totals["exponential_cost"] = choices.cost == "exponential"
    totals["random_yield"] = choices.selectivity == "chance"
    totals["free_count"] = _TUPLES
    totals["rule"] = Rule.OLDEST if choices.queues == "operator" else Rule.FIFO
    return totals


def _chain(tuples: Table) -> Table:
    """All tuples free, each followed by the next."""
    tuples["follower"] = np.arange(1, len(tuples) + 1)
    tuples["follower"][-1] = NOWHERE
    return tuples


def _latency(problem: Problem) -> Floats:
    if problem.cluster.latency_ms is None:
        return np.zeros((0, 0))
    return np.array(problem.cluster.latency_ms) / 1000.0


def _connections(
    by_producer: list[list[_Flow]], operators: tuple[PhysicalOperator, ...], rng: np.random.Generator
) -> dict[str, Table]:
    """The tables of flows, inlets, exits and join windows."""
    every = [flow for flows in by_producer for flow in flows]
    windows = [_windows(operator) for operator in operators]
    side_start = _starts([len(here) for here in windows])
    flows = np.zeros(len(every), FLOW)
    flows["ratio"] = [flow.rows for flow in every]
    flows["bytes"] = [flow.bytes for flow in every]
    flows["transfer_s"] = [flow.transfer_s for flow in every]
    draws = rng.random(len(every)).tolist()
    flows["credit"] = [d if f.credit is None else f.credit for f, d in zip(every, draws, strict=True)]
    _bound(flows, "inlet", [len(flow.inlets) for flow in every])
    _bound(flows, "exit", [len(flow.exits) for flow in every])
    inlets = np.zeros(sum(len(flow.inlets) for flow in every), INLET)
    for name, column in zip(("operator", "cost_s", "side", "emits"), range(4), strict=True):
        inlets[name] = [inlet[column] for flow in every for inlet in flow.inlets]
    inlets["flow"] = [number for number, flow in enumerate(every) for _ in flow.inlets]
    joined = inlets["side"] >= 0
    inlets["side"][joined] += side_start[inlets["operator"][joined]].astype(np.int32)
    sides = np.zeros(side_start[-1], SIDE)
    sides["window_s"] = [window for here in windows for window in here]
    sides["bytes"] = 1.0
    sizes = flows["bytes"][inlets["flow"][joined]]
    sides["bytes"][inlets["side"][joined]] = np.where(sizes > 0.0, sizes, 1.0)
    exits = np.array([node for flow in every for node in flow.exits], dtype=np.int64)
    return {
        "flows": flows,
        "inlets": inlets,
        "exits": exits,
        "sides": sides,
        "side_times": np.zeros((len(sides), _WINDOW)),
    }


def _fill_operators(
    tables: Tables,
    by_operator: list[list[_Flow]],
    operators: tuple[PhysicalOperator, ...],
    rng: np.random.Generator,
) -> None:
    rows = tables.operators
    rows["pair_weight"] = [1.0 / operator.share for operator in operators]
    rows["random"] = _words(rng, len(rows))
    rows["parked_head"] = rows["parked_tail"] = NOWHERE
    rows["fan"] = [_fan(flows) for flows in by_operator]
    _bound(rows, "side", [len(_windows(operator)) for operator in operators])
    first = len(tables.flows) - sum(len(flows) for flows in by_operator)
    _bound(rows, "flow", [len(flows) for flows in by_operator], first)


def _fill_sources(
    tables: Tables,
    by_source: list[list[_Flow]],
    arrivals: list[Arrivals],
    entries: list[int],
    rng: np.random.Generator,
) -> None:
    rows = tables.sources
    rows["random"] = _words(rng, len(rows))
    rows["cycle_s"] = [one.cycle_s for one in arrivals]
    rows["law"] = [int(one.law) for one in arrivals]
    rows["node"] = entries
    rows["fan"] = [_fan(flows) for flows in by_source]
    _bound(rows, "flow", [len(flows) for flows in by_source])
    _bound(rows, "given", [len(one.times_s) for one in arrivals])
    ends = _starts([len(one.until_s) for one in arrivals])
    rows["cursor"], rows["segment_end"] = ends[:-1], ends[1:]
    rows["cursor"][rows["law"] == Law.GIVEN] = 0
    tables.segments["until_s"] = _joined([one.until_s for one in arrivals])
    tables.segments["rate"] = _joined([one.rate for one in arrivals])


def _entries(problem: Problem, further: int) -> list[int]:
    """The node at which each source enters, NOWHERE if none is stated."""
    nodes = {name: i for i, name in enumerate(problem.cluster.names)}
    stated = [nodes.get(stream.node or "", NOWHERE) for stream in problem.network.streams.values()]
    return stated + [NOWHERE] * further


def _windows(operator: PhysicalOperator) -> list[float]:
    """The window of each input of a join, in seconds."""
    spec = operator.logical.spec
    if isinstance(spec, Join):
        return [spec.within_s] * len(operator.logical.inputs)
    if isinstance(spec, Multijoin):
        return [spec.windows_s[alias] for alias in spec.aliases]
    return []


def _fan(flows: list[_Flow]) -> int:
    """Most tuples that one row of a producer can become."""
    # What a spread join sends may all come to go one way, as its parts move.
    spread = sum(flow.rows for flow in flows if flow.part is not None)
    most = [flow.rows if flow.part is None else spread for flow in flows]
    wide = [len(flow.inlets) + len(flow.exits) for flow in flows]
    return 1 + sum((floor(rows) + 1) * each for rows, each in zip(most, wide, strict=True))


def _bound(rows: Table, what: str, counts: list[int], first: int = 0) -> None:
    ends = _starts(counts) + first
    rows[f"{what}_start"], rows[f"{what}_end"] = ends[:-1], ends[1:]


def _words(rng: np.random.Generator, count: int) -> Ints:
    return rng.integers(-(2**63), 2**63, size=count, dtype=np.int64)


def _starts(counts: list[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(np.array(counts, dtype=np.int64))]).astype(np.int64)


def _joined(arrays: list[Floats]) -> Floats:
    return np.concatenate([np.zeros(0), *arrays]).astype(float)
