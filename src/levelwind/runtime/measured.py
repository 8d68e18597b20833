"""What a run has measured: rates, costs, selectivities and loads, from its statistics.

**Which rate.** The rate of a stream is what its source *offers*: rows per second of event time, times the
speed of a replay that states one (``speed: 20``; ``max`` and live sources count as 1). Rows per second of
wall time would be what got through: on a node that cannot keep up that is too little, and a plan made from
it would leave the node overloaded; in a replay as fast as possible it is far too much. Where a run keeps up
with a live source the two agree. A stream without event time has only wall time to go by.

**Which load.** ``load`` is what was spent: CPU seconds per second of wall time. ``ideal_load`` is what the
offered rates call for: rates × selectivities × costs.

**Which steps.** Those of the last start, without the first ones (3, or a tenth if that is more, but never
more than half: imports and compilation are no part of an operator's cost) and without those that close.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, floor
from typing import Any

import numpy as np
import polars as pl

from levelwind.errors import input_error
from levelwind.frontend import load_network
from levelwind.loads.rates import pairs_per_s
from levelwind.model import Model, Network, Operator, Port, Stream
from levelwind.model.frozen import frozen_mapping
from levelwind.operators.rows import BEGINNING, END
from levelwind.rewrite import split
from levelwind.runtime.recording import OPERATORS, STEPS, read_statistics
from levelwind.runtime.rundir import RunDirectory
from levelwind.runtime.sources import OWN_FORMATS

WARM_UP_STEPS = 3
WARM_UP_SHARE = 0.1
# A series longer than this is cut at its start: a day of 200 operators would be millions of figures.
MOST_SAMPLES = 3600
NO_OUTPUT = "(no output)"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStream:
    """A stream: rows in the measured steps, rows per second as offered and as taken in."""

    name: str
    rows: int
    rate: float
    wall_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredOperator:
    """An operator or instance. ``cost_s`` and ``selectivity`` are None if nothing came in.

    Both are per row in, for a join per pair that its inputs' rates let expect. ``rate`` is in rows per
    second as offered. Loads are in CPU seconds per second; ``series`` has one sample a second.
    """

    name: str
    logical: str
    kind: str
    node: str
    rows_in: int
    rows_out: int
    rejected: int
    cpu_s: float
    cost_s: float | None
    selectivity: float | None
    rate: float
    load: float
    ideal_load: float
    state_bytes: int
    series: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredNode:
    """A node. Loads are shares of its CPU; ``max`` and ``std`` are of its series, one sample a second."""

    name: str
    operators: int
    load: float
    max: float
    std: float
    ideal_load: float
    series: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredQuery:
    """An output with all that feeds it. What several outputs use is shared equally among them."""

    name: str
    operators: int
    load: float
    ideal_load: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalCost:
    """An operator as written, its instances taken together; None where nothing came in."""

    cost_s: float | None = None
    selectivity: float | None = None
    route_selectivity: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """All that a run has measured in ``steps`` steps over ``seconds`` of wall time."""

    steps: int
    left_out: int
    seconds: float
    streams: Mapping[str, MeasuredStream]
    operators: Mapping[str, MeasuredOperator]
    nodes: Mapping[str, MeasuredNode]
    queries: Mapping[str, MeasuredQuery]
    costs: Mapping[str, LogicalCost]


def measure_run(directory: RunDirectory) -> tuple[Network, Measured]:
    """The network of a run, and what it has measured so far.

    Raises
    ------
    InputError
        If the run has not done and written down a single step yet.
    """
    folder = directory.path / "statistics"
    operators, steps = read_statistics(folder, OPERATORS), read_statistics(folder, STEPS)
    if operators is None or steps is None:
        raise _nothing_yet()
    network = load_network(directory.network_file).network
    told = directory.read()
    cpu = told.get("cpu") or dict.fromkeys(told.get("nodes", ()), 1.0)
    return network, measure(network, operators, steps, cpu=cpu)


def measure(
    network: Network, operators: pl.DataFrame, steps: pl.DataFrame, *, cpu: Mapping[str, float]
) -> Measured:
    """Work out rates, costs and loads from statistics.

    Parameters
    ----------
    operators, steps
        As `Recorder` writes them: a row per operator and step, a row per stream and step.
    cpu
        The nodes in order, and what each can do.

    O(operators × steps).
    """
    period = _period(steps)
    done = _of_operators(operators, period)
    series = _series(operators, period, "operator")
    work = _Work(network, period, done)
    found: dict[str, MeasuredOperator] = {}
    for physical in split(network).operators:
        row, name = done.get(physical.name), physical.logical.name
        if row is None:
            continue
        amount = work.amounts[name]
        own = amount * physical.share if physical.logical.is_join else row["rows_in"]
        share = row["rows_in"] / work.rows_in[name] if work.rows_in[name] else physical.share
        load = row["cpu_s"] / period.seconds
        found[physical.name] = MeasuredOperator(
            name=physical.name,
            logical=name,
            kind=physical.logical.kind,
            node=row["node"],
            rows_in=row["rows_in"],
            rows_out=row["rows_out"],
            rejected=row["rejected"],
            cpu_s=row["cpu_s"],
            cost_s=row["cpu_s"] / own if own else None,
            selectivity=row["rows_out"] / own if own else None,
            rate=work.rates_in[name] * share,
            load=load,
            ideal_load=row["cpu_s"] * work.amounts_per_s[name] / amount if amount else load,
            state_bytes=row["state_bytes"],
            series=series.get(physical.name, (0.0,) * period.samples),
        )
    return Measured(
        steps=len(period.kept),
        left_out=period.left_out,
        seconds=period.seconds,
        streams=work.streams,
        operators=frozen_mapping(found),
        nodes=frozen_mapping(_nodes(found, _series(operators, period, "node"), period, cpu)),
        queries=frozen_mapping(_queries(network, found.values())),
        costs=work.costs,
    )


def measured_network(network: Network, measured: Measured) -> Network:
    """The network with costs, selectivities and rates as measured; what was not seen at work stays as stated.

    Instances of a split operator have been taken together: the network states costs of operators as written.
    """
    streams = {
        name: replace(stream, rate=(measured.streams[name].rate,)) if name in measured.streams else stream
        for name, stream in network.streams.items()
    }
    operators = {
        name: _with_cost(operator, measured.costs.get(name, LogicalCost()))
        for name, operator in network.operators.items()
    }
    return replace(network, streams=streams, operators=operators)


def _with_cost(operator: Operator, cost: LogicalCost) -> Operator:
    if cost.cost_s is None:
        return operator
    spec = operator.spec
    if isinstance(spec, Model) and operator.inputs:
        spec = Model()  # a load that is stated outright would go before the measured cost
    return replace(
        operator,
        spec=spec,
        cost_s=cost.cost_s,
        selectivity=cost.selectivity if cost.route_selectivity is None else None,
        route_selectivity=cost.route_selectivity,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Period:
    """The steps that are measured: (step, time, wall_s) of each in order, and the streams in them."""

    kept: pl.DataFrame
    left_out: int
    session: float
    start: float
    seconds: float
    rows: Mapping[str, int]
    event_s: Mapping[str, float]

    @property
    def samples(self) -> int:
        """Whole seconds, one at least."""
        return min(max(1, floor(self.seconds + 1e-9)), MOST_SAMPLES)


def _nothing_yet() -> Exception:
    rule = "a run must have done a step before it can be measured"
    return input_error(rule, key="RUN", hint="statistics are written every few seconds: try again later")


def _period(steps: pl.DataFrame) -> _Period:
    session: Any = steps.get_column("session").max()
    steps = steps.filter(pl.col("session") == session, ~pl.col("closing"))
    each = steps.select("step", "time", "wall_s").unique("step").sort("step")
    if each.is_empty():
        raise _nothing_yet()
    skip = min(max(WARM_UP_STEPS, ceil(each.height * WARM_UP_SHARE)), each.height // 2)
    kept = each.slice(skip)
    first = kept.row(0, named=True)
    last = kept.row(-1, named=True)
    inside = steps.filter(pl.col("step") >= first["step"])
    before = steps.filter(pl.col("step") < first["step"])
    return _Period(
        kept=kept,
        left_out=skip,
        session=session,
        start=first["time"],
        seconds=max(last["time"] + last["wall_s"] - first["time"], 1e-9),
        rows=dict(inside.group_by("stream").agg(pl.col("rows").sum()).iter_rows()),
        event_s=_event_seconds(before, inside),
    )


def _event_seconds(before: pl.DataFrame, inside: pl.DataFrame) -> dict[str, float]:
    """How far the event time of each stream came; streams of which that is not known are left out."""
    known = pl.col("watermark").is_between(BEGINNING, END, closed="none")

    def latest(frame: pl.DataFrame) -> dict[str, int]:
        return dict(frame.filter(known).group_by("stream").agg(pl.col("watermark").max()).iter_rows())

    starts, ends = latest(before), latest(inside)
    passed = {name: (end - starts[name]) / 1e6 for name, end in ends.items() if name in starts}
    return {name: seconds for name, seconds in passed.items() if seconds > 0}


def _of_operators(operators: pl.DataFrame, period: _Period) -> dict[str, dict[str, Any]]:
    """Sums over the measured steps, and node and state after the last of them."""
    inside = operators.filter(pl.col("session") == period.session).join(
        period.kept.select("step"), on="step", how="semi"
    )
    sums = [pl.col(name).sum() for name in ("cpu_s", "rows_in", "rows_out", "rejected")]
    last = [pl.col(name).last() for name in ("node", "state_bytes")]
    found = inside.sort("step").group_by("operator", maintain_order=True).agg(*sums, *last)
    return {row["operator"]: row for row in found.iter_rows(named=True)}


def _series(operators: pl.DataFrame, period: _Period, by: str) -> dict[str, tuple[float, ...]]:
    """CPU seconds per second for each operator or node, a step's CPU spread evenly over its wall time."""
    whole = floor(period.seconds + 1e-9)
    first = max(0, whole - MOST_SAMPLES)
    length = 1.0 if whole else period.seconds
    began = (pl.col("time") - period.start) / length
    shares = (
        period.kept.with_columns(
            began.alias("from"), (began + (pl.col("wall_s") / length).clip(1e-9)).alias("to")
        )
        .with_columns(
            pl.int_ranges(pl.col("from").floor().cast(pl.Int64), pl.col("to").ceil().cast(pl.Int64)).alias(
                "second"
            )
        )
        .explode("second")
        .with_columns(
            (
                (pl.min_horizontal("to", pl.col("second") + 1) - pl.max_horizontal("from", "second"))
                / (pl.col("to") - pl.col("from"))
            ).alias("share")
        )
        .filter(pl.col("second").is_between(first, first + period.samples - 1))
        .select("step", "second", "share")
    )
    spent = (
        operators.filter(pl.col("session") == period.session)
        .group_by(by, "step")
        .agg(pl.col("cpu_s").sum())
        .join(shares, on="step")
        .group_by(by, "second")
        .agg((pl.col("cpu_s") * pl.col("share")).sum() / length)
    )
    found: dict[str, list[float]] = {}
    for name, second, load in spent.iter_rows():
        found.setdefault(name, [0.0] * period.samples)[second - first] = load
    return {name: tuple(samples) for name, samples in found.items()}


@dataclass(slots=True)
class _Work:
    """How much work every operator as written was given, and would be given a second.

    Work is counted in rows in, for joins in pairs that the rates of the inputs let expect. Filled in
    topological order, since what an operator is offered depends on what those before it let through.
    """

    network: Network
    period: _Period
    done: Mapping[str, Mapping[str, Any]]
    streams: dict[str, MeasuredStream] = field(default_factory=dict)
    costs: dict[str, LogicalCost] = field(default_factory=dict)
    rows_in: dict[str, int] = field(default_factory=dict)
    rates_in: dict[str, float] = field(default_factory=dict)
    amounts: dict[str, float] = field(default_factory=dict)
    amounts_per_s: dict[str, float] = field(default_factory=dict)
    _rates: dict[Port, float] = field(default_factory=dict)
    _offered_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, stream in self.network.streams.items():
            self._add_stream(name, stream)
        for name in self.network.order:
            self._add_operator(self.network.operators[name])

    def _add_stream(self, name: str, stream: Stream) -> None:
        rows = self.period.rows.get(name, 0)
        offered = self.period.event_s.get(name)
        seconds = self.period.seconds if offered is None else offered / speed_of(stream)
        rate = rows / seconds
        self._rates[Port(source=name)] = rate
        self._offered_s[name] = seconds
        self.streams[name] = MeasuredStream(
            name=name, rows=rows, rate=rate, wall_rate=rows / self.period.seconds
        )

    def _add_operator(self, operator: Operator) -> None:
        name = operator.name
        rows_in, rows_out, cpu = self._total(operator)
        rates = [self._rates[port] for port in operator.inputs]
        # A join has pairs only while all its inputs flow.
        seconds = min((self._offered_s[port.source] for port in operator.inputs), default=self.period.seconds)
        work_per_s = sum(rates)
        work: float = rows_in
        if operator.is_join:
            work_per_s = float(pairs_per_s(operator, [np.array([rate]) for rate in rates])[0])
            work = work_per_s * seconds
        self.rows_in[name], self.rates_in[name] = rows_in, sum(rates)
        self.amounts[name], self.amounts_per_s[name] = work, work_per_s
        self._offered_s[name] = seconds
        if not work:
            self.costs[name] = LogicalCost()
            self._rates |= {Port(source=name, route=route): 0.0 for route in operator.routes}
            return
        by_route = self._by_route(operator, rows_out)
        let_through = {route: rows / work for route, rows in by_route.items()}
        for route, selectivity in let_through.items():
            self._rates[Port(source=name, route=route)] = work_per_s * selectivity
        named = {route: selectivity for route, selectivity in let_through.items() if route is not None}
        self.costs[name] = LogicalCost(
            cost_s=cpu / work,
            selectivity=rows_out / work,
            route_selectivity=frozen_mapping(named) if named else None,
        )

    def _total(self, operator: Operator) -> tuple[int, int, float]:
        """Rows in, rows out and CPU seconds of all instances."""
        names = [operator.name]
        if operator.split is not None:
            names = [f"{operator.name}[{number}]" for number in range(operator.split.into)]
        rows = [self.done[name] for name in names if name in self.done]
        return (
            sum(row["rows_in"] for row in rows),
            sum(row["rows_out"] for row in rows),
            sum(row["cpu_s"] for row in rows),
        )

    def _by_route(self, operator: Operator, rows_out: int) -> dict[str | None, float]:
        """Rows out on each route: as counted by a reader that reads nothing else, else an equal part."""
        if operator.routes == (None,):
            return {None: rows_out}
        known: dict[str | None, float] = {}
        for other in self.network.operators.values():
            if len(other.inputs) == 1 and other.inputs[0].source == operator.name:
                known[other.inputs[0].route] = self._total(other)[0]
        rest = [route for route in operator.routes if route not in known]
        left = max(0.0, rows_out - sum(known.values()))
        return {route: known[route] if route in known else left / len(rest) for route in operator.routes}


def speed_of(stream: Stream) -> float:
    """How many seconds of event time a source offers per second; 1 if it follows no clock but its own."""
    source = stream.source or {}
    if source.get("format") not in OWN_FORMATS:
        return 1.0
    try:
        return float(source.get("speed", 1.0))
    except (TypeError, ValueError):  # max
        return 1.0


def _nodes(
    operators: Mapping[str, MeasuredOperator],
    series: Mapping[str, tuple[float, ...]],
    period: _Period,
    cpu: Mapping[str, float],
) -> dict[str, MeasuredNode]:
    found = {}
    for name in dict.fromkeys([*cpu, *series]):
        able = cpu.get(name, 1.0)
        samples = np.array(series.get(name, (0.0,) * period.samples)) / able
        here = [operator for operator in operators.values() if operator.node == name]
        found[name] = MeasuredNode(
            name=name,
            operators=len(here),
            load=float(samples.mean()),
            max=float(samples.max()),
            std=float(samples.std()),
            ideal_load=sum(operator.ideal_load for operator in here) / able,
            series=tuple(samples.tolist()),
        )
    return found


def _queries(network: Network, operators: Iterable[MeasuredOperator]) -> dict[str, MeasuredQuery]:
    users: dict[str, list[str]] = {name: [] for name in network.operators}
    for output in network.outputs.values():
        for name in _upstream(network, output.input):
            users[name].append(output.name)
    load, ideal, count = (dict.fromkeys([*network.outputs, NO_OUTPUT], 0.0) for _ in range(3))
    for operator in operators:
        for name in users[operator.logical] or [NO_OUTPUT]:
            share = 1.0 / max(1, len(users[operator.logical]))
            load[name] += operator.load * share
            ideal[name] += operator.ideal_load * share
            count[name] += 1
    return {
        name: MeasuredQuery(name=name, operators=int(count[name]), load=load[name], ideal_load=ideal[name])
        for name in load
        if count[name] or name != NO_OUTPUT
    }


def _upstream(network: Network, port: Port) -> set[str]:
    """The operators that a port's rows come through."""
    found: set[str] = set()
    waiting = [port.source]
    while waiting:
        name = waiting.pop()
        if name in network.operators and name not in found:
            found.add(name)
            waiting += [read.source for read in network.operators[name].inputs]
    return found
