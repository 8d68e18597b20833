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
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any

import numpy as np
import polars as pl

from levelwind.errors import input_error
from levelwind.frontend import load_network
from levelwind.loads.offered import Counted, offered_work
from levelwind.model import Model, Network, Operator, Port, Stream
from levelwind.model.frozen import frozen_mapping
from levelwind.operators.rows import BEGINNING, END
from levelwind.rewrite import Shared, diffused, share, split
from levelwind.runtime.recording import OPERATORS, STEPS, read_statistics
from levelwind.runtime.rundir import RunDirectory
from levelwind.runtime.sent import SILENT, Received, Sent, send_byte_s
from levelwind.runtime.sources import OWN_FORMATS

WARM_UP_STEPS = 3
WARM_UP_SHARE = 0.1
# A series longer than this is cut at its start: a day of 200 operators would be millions of figures.
MOST_SAMPLES = 3600
NO_OUTPUT = "(no output)"
LATELY_COUNTED = ("shed", "out_bytes", "away_bytes", "away_s")


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
    shed: int
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
    """An operator as written, its instances taken together; None where nothing came in, or out.

    ``cost_s`` is without what sending took, ``transfer_cost_s`` what a row takes at both ends if it is sent
    to another node, and ``bytes`` its size.
    """

    cost_s: float | None = None
    selectivity: float | None = None
    route_selectivity: Mapping[str, float] | None = None
    transfer_cost_s: float | None = None
    bytes: float | None = None


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
    # Operators that are served by others have no statistics of their own: the run computed them once.
    seen = {name.partition("[")[0] for name in operators.get_column("operator").unique()}
    shared = share(network, prefer=seen) if not seen >= set(network.operators) else Shared.alone(network)
    found = measure(shared.network, operators, steps, cpu=cpu)
    served = {name: found.costs[by] for name, by in shared.served_by.items() if by in found.costs}
    return network, replace(found, costs={**found.costs, **served})


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
    network = diffused(network)
    period = _period(steps)
    done = _of_operators(operators, period)
    series = _series(operators, period, "operator")
    work = _Work(network, period, done)
    found: dict[str, MeasuredOperator] = {}
    for physical in split(network).operators:
        row, name = done.get(physical.name), physical.logical.name
        if row is None:
            continue
        offered, rows_in = work.offered[name], work.counted[name].rows_in
        own = offered.work * physical.share if physical.logical.is_join else row["rows_in"]
        share = row["rows_in"] / rows_in if rows_in else physical.share
        load = row["cpu_s"] / period.seconds
        found[physical.name] = MeasuredOperator(
            name=physical.name,
            logical=name,
            kind=physical.logical.kind,
            node=row["node"],
            rows_in=row["rows_in"],
            rows_out=row["rows_out"],
            rejected=row["rejected"],
            shed=row["shed"],
            cpu_s=row["cpu_s"],
            cost_s=row["cpu_s"] / own if own else None,
            selectivity=row["rows_out"] / own if own else None,
            rate=float(offered.rate[0]) * share,
            load=load,
            ideal_load=row["cpu_s"] * float(offered.work_per_s[0]) / offered.work if offered.work else load,
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
    """The network with costs, selectivities, sizes of rows and rates as measured; the rest stays as stated.

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
        transfer_cost_s=operator.transfer_cost_s if cost.transfer_cost_s is None else cost.transfer_cost_s,
        bytes=operator.bytes if cost.bytes is None else cost.bytes,
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
    received: Received

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
        received=_received(inside),
    )


def _received(steps: pl.DataFrame) -> Received:
    """Of all nodes; nothing if the run began before it was counted."""
    if "received_bytes" not in steps.columns:
        return Received()
    each = steps.unique("step").select(pl.col("received_bytes", "received_s").sum())
    return Received(*each.row(0))


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
    # Of a run that began before they were counted.
    missing = [name for name in LATELY_COUNTED if name not in operators.columns]
    operators = operators.with_columns(pl.lit(0).alias(name) for name in missing)
    inside = operators.filter(pl.col("session") == period.session).join(
        period.kept.select("step"), on="step", how="semi"
    )
    sums = [pl.col(name).sum() for name in ("cpu_s", "rows_in", "rows_out", "rejected", *LATELY_COUNTED)]
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


class _Work:
    """What the measured steps say of the streams, and of every operator as written."""

    def __init__(self, network: Network, period: _Period, done: Mapping[str, Mapping[str, Any]]) -> None:
        self.streams: dict[str, MeasuredStream] = {}
        seconds = {}
        for name, stream in network.streams.items():
            rows, offered = period.rows.get(name, 0), period.event_s.get(name)
            seconds[name] = period.seconds if offered is None else offered / speed_of(stream)
            self.streams[name] = MeasuredStream(
                name=name, rows=rows, rate=rows / seconds[name], wall_rate=rows / period.seconds
            )
        self.received = period.received
        self.counted = dict.fromkeys(network.operators, Counted())
        self.sent = dict.fromkeys(network.operators, SILENT)
        for physical in split(network).operators:
            if physical.name in done:
                row = done[physical.name]
                own = Counted(rows_in=row["rows_in"], rows_out=row["rows_out"], cpu_s=row["cpu_s"])
                self.counted[physical.logical.name] += own
                sent = Sent(row["out_bytes"], row["away_bytes"], row["away_s"])
                self.sent[physical.logical.name] += sent
        self.offered = offered_work(
            network,
            {name: np.array([stream.rate]) for name, stream in self.streams.items()},
            {name: np.array([lasted]) for name, lasted in seconds.items()},
            self.counted,
        )

    @property
    def costs(self) -> dict[str, LogicalCost]:
        """Of every operator as written."""
        send_s = dict(zip(self.sent, send_byte_s(self.sent.values()), strict=True))
        found = {}
        for name, own in self.offered.items():
            counted, sent = self.counted[name], self.sent[name]
            working = 1.0 - sent.away_s / counted.cpu_s if counted.cpu_s else 1.0
            bytes_ = sent.out_bytes / counted.rows_out if sent.out_bytes and counted.rows_out else None
            found[name] = LogicalCost(
                cost_s=None if own.cost_s is None else own.cost_s * max(working, 0.0),
                selectivity=own.selectivity,
                route_selectivity=own.route_selectivity,
                transfer_cost_s=None if bytes_ is None else bytes_ * (send_s[name] + self.received.byte_s),
                bytes=bytes_,
            )
        return found


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
