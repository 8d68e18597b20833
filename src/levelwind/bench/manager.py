"""What managing costs: CPU, bytes and memory of the manager at 1,000 nodes and 20,000 operators.

Chains of ten operators are dealt out over the nodes in turn, so that there is much to do. Reports come once a
period; every move is reported as done before the next. Measured are one manager under each policy, and tiers:
a top manager over groups of fifty nodes, each of which has a manager that may run elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from levelwind.balance import make_policy
from levelwind.bench.balance import CHAIN, SAMPLES, chains
from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.control import Manager, TopManager
from levelwind.control.events import Event, Heartbeat, MoveDone, StatisticsReported
from levelwind.control.footprint import Footprint, Meter
from levelwind.control.instructions import Instruction, Move
from levelwind.control.queries import groups_of
from levelwind.model import Cluster, Model, Network, Node, Operator, Port, Stream

NAME = "manager"
SENDING = ("sent", "sending", "receiving")
NODES, OPERATORS, GROUP = 1000, 20_000, 50
REPORTS, LIMIT_MS = 12, 50.0
# What a manager may take in, give out and hold.
LIMITS = {
    "bytes_in": ("bytes in per node and second", 10_000.0),
    "bytes_out": ("bytes out per node and second", 1_000.0),
    "memory_bytes": ("bytes of memory per node", 100_000.0),
}
POLICIES: Mapping[str, Mapping[str, Any]] = {
    "no policy": {},
    "balance by cpu": {"name": "balance"},
    "degradation by output_rate": {"name": "degradation", "cost": "output_rate"},
    "steady_pairs": {"name": "steady_pairs"},
    "replan": {"name": "replan"},
}


def world(nodes: int, operators: int) -> tuple[Network, Cluster, dict[str, str]]:
    """Chains, nodes in groups, and a placement: dealt out in turn within a chain's group."""
    boxes = {}
    for number in range(operators):
        chain, place = divmod(number, CHAIN)
        reads = f"I{chain}" if place == 0 else f"o{number - 1}"
        boxes[f"o{number}"] = Operator(name=f"o{number}", spec=Model(), inputs=(Port(source=reads),))
    streams = {f"I{k}": Stream(name=f"I{k}", rate=(1.0,)) for k in range(operators // CHAIN)}
    cluster = Cluster(
        nodes=tuple(Node(name=f"n{i}", properties={"rack": f"r{i // GROUP}"}) for i in range(nodes))
    )
    groups = list(groups_of(cluster, "rack").values())
    placement = {}
    for number in range(operators):
        own = groups[number // CHAIN % len(groups)]
        placement[f"o{number}"] = own[number % len(own)].name
    return Network(streams=streams, operators=boxes), cluster, placement


def managed(
    meter: Meter, network: Network, series: Any, *, reports: int, beats: tuple[str, ...] = ()
) -> list[float]:
    """CPU milliseconds of each report, what it leads to included."""
    names, rng, spent = tuple(network.operators), np.random.default_rng(0), []
    # Sending and receiving cost a tenth of an operator's work each, and all of them send.
    seen = dict.fromkeys(("rows_in", "rows_out"), np.ones(len(names)))
    seen |= dict.fromkeys(SENDING, 0.1 * series.mean(axis=1))
    for number in range(reports):
        event = StatisticsReported(
            at_s=float(number),
            operators=names,
            series=series * rng.uniform(0.97, 1.03, (len(names), 1)),
            seen=seen,
        )
        began = process_time()
        for node in beats:
            meter.handle(Heartbeat(at_s=float(number), node=node))
        answer = meter.handle(event)
        for instruction in answer:
            if isinstance(instruction, Move):
                meter.handle(MoveDone(at_s=float(number), operator=instruction.operator))
        spent.append(1000.0 * (process_time() - began))
    return spent


def run(settings: Settings, *, nodes: int = NODES, operators: int = OPERATORS) -> Result:
    """Every policy, then tiers; the first report pays for compilation and for reading the network."""
    reports = settings.rounds(REPORTS)
    network, cluster, placement = world(nodes, operators)
    series = chains(operators // CHAIN, settings.seed, load=0.7)
    series *= 0.7 * nodes / series.mean(axis=1).sum()
    assert series.shape == (operators, SAMPLES)
    figures, spent, notes = [], {}, []
    for label, options in POLICIES.items():
        settings.step(label)
        rest = {key: value for key, value in options.items() if key != "name"}
        policy = make_policy(options["name"], rest) if options else None
        meter = Meter(
            Manager(
                network, cluster, placement, policy=policy, rng=np.random.default_rng(0), silent_after_s=3.0
            ),
            cpu_clock=process_time,
        )
        spent[label] = managed(meter, network, series, reports=reports, beats=cluster.names)[1:]
        figures.append(_figure(f"a report and {nodes:,} heartbeats, {label}", spent[label]))
        footprint = meter.footprint(nodes)
        each = _known(footprint)
        figures += [
            Figure(label=f"{what}, {label}", value=each[key], unit="bytes", limit=limit)
            for key, (what, limit) in LIMITS.items()
        ]
        notes.append(_note(label, footprint))
    settings.step("tiers")
    policy = make_policy("balance", {})
    top = TopManager(network, cluster, placement, groups="rack", policy=policy, rng=np.random.default_rng(0))
    meter = Meter(top, cpu_clock=process_time)
    below = [_timed(lower) for lower in top.lower.values()]
    tiers = managed(meter, network, series, reports=reports)[1:]
    rounds = list(zip(*below, strict=True))[1:]
    label = f"a report, a group of {GROUP} nodes, balance by cpu, the slowest group"
    figures.append(_figure(label, [max(each) for each in rounds]))
    parts = [sum(each) for each in rounds]
    above = [whole - part for whole, part in zip(tiers, parts, strict=True)]
    figures.append(_figure(f"a report, the top manager of {len(below)} groups", above))
    notes.append(_note("tiers, all managers together", meter.footprint(nodes)))
    own = spent["degradation by output_rate"]
    return Result(
        name=NAME,
        ours=_figure("a report, degradation by output_rate", own),
        baseline=Figure(label="the limit", value=LIMIT_MS, unit="ms"),
        ratio=LIMIT_MS / median(own),
        spread=spread_of([LIMIT_MS / each for each in own]),
        figures=figures,
        notes=[f"{nodes:,} nodes, {operators:,} operators, {reports - 1} reports each", *notes],
        details={"spent_ms": {**spent, "tiers": tiers}},
    )


def _timed(lower: Manager) -> list[float]:
    """CPU milliseconds that a manager spends on each report from now on."""
    spent: list[float] = []
    handle = lower.handle

    def timed(event: Event) -> tuple[Instruction, ...]:
        began = process_time()
        answer = handle(event)
        if isinstance(event, StatisticsReported):
            spent.append(1000.0 * (process_time() - began))
        return answer

    setattr(lower, "handle", timed)  # noqa: B010
    return spent


def _figure(label: str, spent: list[float]) -> Figure:
    return Figure(label=label, value=median(spent), unit="ms", limit=LIMIT_MS)


def _known(spent: Footprint) -> dict[str, float]:
    """Figures as far as they are known: rates are, after two reports."""
    return {key: value for key, value in spent.as_dict().items() if value is not None}


def _note(label: str, spent: Footprint) -> str:
    each = _known(spent)
    return (
        f"{label}: per node and second {1e6 * each['cpu_s']:.1f} µs of CPU, {each['bytes_in']:.0f} bytes in, "
        f"{each['bytes_out']:.1f} bytes out; {each['memory_bytes'] / 1000:.1f} kB of memory per node; "
        f"longest event {each['longest_ms']:.1f} ms"
    )
