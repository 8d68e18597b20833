"""What spread joins are told of nodes: measured in each step, kept with its commit, told in the next step.

A router gives rows to its hosts by what it is told. Being part of the commit, that is the same however often
the next step is run: a step that is run again routes as it did. Results never depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import sqrt

import msgspec

from levelwind.diffusion import profiling
from levelwind.diffusion.hosts import LEAST_FREE, Reported
from levelwind.model import Cluster, JoinPart, Node
from levelwind.model.operator import Diffusion
from levelwind.operators.multijoin.order import total_names
from levelwind.runtime.messages import NodeReport
from levelwind.runtime.program import Box, Layout, Program

Marks = Mapping[str, int]
# What was measured before counts so much less with each step: about the last thirty steps matter.
FADE = 0.97
# The same for what corrections go by: about the last five, or they would answer to what is long over.
FADE_RECENT = 0.8
# An instance that is x times as loaded as the mean gets x to this power less with each step: a small one,
# since what is given now is worked off a window later. Never more, or less, than so many times its part.
GAIN, MOST_CORRECTION = 0.03, 4.0
# Below so many CPU seconds, loads are noise.
LEAST_WORK_S = 1e-3
# Pairs of rows near in time below which a selectivity is not measured; so much less do they count with each
# step that measures some; and by so many standard deviations what is measured may lie off what was measured
# before. If it lies further off, the streams have changed, and what was before counts no more.
LEAST_PAIRS, FADE_PAIRS, SURE = 30, 0.99, 5.0


class NodeHeard(msgspec.Struct, array_like=True, frozen=True):
    """Of a node: CPU seconds and bytes sent, faded, and the memory that it used last.

    ``joins``, by operator that sends: of the CPU seconds, those of the parts of a spread join.
    """

    cpu_s: float = 0.0
    sent_bytes: float = 0.0
    memory_bytes: float = 0.0
    joins: dict[str, float] = {}


class Heard(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was measured so far: wall seconds, nodes, and CPU seconds of parts of spread joins, faded alike.

    ``recent`` are the parts' CPU seconds again, faded sooner.

    ``corrections``, by operator that sends: how much more or less each of its instances is given than its
    node's capacity says, since it was found to be less or more loaded than the others.

    ``busiest``, likewise by operator that sends: CPU seconds of the instance that had most to do in each
    step, faded as `profiling` wants it.

    ``pairs``, by operator that sends and the names of two inputs: how many pairs of their rows were found to
    be near in time lately, by whichever parts had rows, and how many of them agreed.
    """

    wall_s: float = 0.0
    nodes: dict[str, NodeHeard] = {}
    parts: dict[str, float] = {}
    recent: dict[str, float] = {}
    corrections: dict[str, tuple[float, ...]] = {}
    busiest: dict[str, float] = {}
    pairs: dict[str, dict[str, tuple[float, float]]] = {}


def diffusions(layout: Layout) -> tuple[Box, ...]:
    """The boxes that send rows of spread joins."""
    return tuple(box for box in layout.boxes if isinstance(box.operator.spec, Diffusion))


def heard_after(
    before: Heard | None,
    program: Program,
    reports: Iterable[NodeReport],
    wall_s: float,
    marks: Mapping[str, Marks],
    cluster: Cluster | None = None,
) -> Heard | None:
    """With one step more; None without a spread join. ``marks`` are the boxes' before the step. O(boxes)."""
    layout = program.layout
    senders = diffusions(layout)
    if not senders:
        return None
    before = _as_now(before, program)
    nodes = {name: _faded(old) for name, old in before.nodes.items()}
    seen: dict[str, list[tuple[Marks, Marks]]] = {}
    parts = {name: FADE * old for name, old in before.parts.items()}
    recent = {name: FADE_RECENT * old for name, old in before.recent.items()}
    spent: dict[str, float] = {}
    for report in reports:
        if report.node < 0:
            continue
        name = program.nodes[report.node]
        old = nodes.get(name, NodeHeard())
        cpu_s, joins = old.cpu_s, dict(old.joins)
        for own in report.boxes:
            box = layout.boxes[own.box]
            cpu_s += own.cpu_s
            if not isinstance(box.operator.spec, JoinPart):
                continue
            joins[_sender(box)] = joins.get(_sender(box), 0.0) + own.cpu_s
            seen.setdefault(_sender(box), []).append((marks.get(box.name, {}), own.marks))
            if own.rows_in:
                parts[box.name] = parts.get(box.name, 0.0) + own.cpu_s
                recent[box.name] = recent.get(box.name, 0.0) + own.cpu_s
                spent[box.name] = spent.get(box.name, 0.0) + own.cpu_s
        sent_bytes = old.sent_bytes + report.sent_bytes
        nodes[name] = NodeHeard(cpu_s, sent_bytes, max(report.memory_bytes, 0), joins)
    pairs = {
        box.name: _pairs_after(before.pairs.get(box.name, {}), box, seen.get(box.name, ())) for box in senders
    }
    heard = Heard(FADE * before.wall_s + wall_s, nodes, parts, recent, pairs=pairs)
    joins_now = [_Join(box, program, heard, cluster) for box in senders]
    return msgspec.structs.replace(
        heard,
        corrections={join.name: join.corrected(before.corrections.get(join.name)) for join in joins_now},
        busiest={
            join.name: profiling.FADE * before.busiest.get(join.name, 0.0) + max(join.work(spent))
            for join in joins_now
        },
    )


def told_to(
    box: Box,
    program: Program,
    heard: Heard | None,
    cluster: Cluster | None,
) -> Reported:
    """What the router of a spread join is told before a step. O(its parts).

    Parameters
    ----------
    cluster
        What nodes can do; None: all alike.
    """
    join = _Join(box, program, _as_now(heard, program), cluster)
    known = join.known(join.heard.corrections.get(box.name))
    speed = [own * correction for own, correction in zip(join.speed(), known, strict=True)]
    mean = sum(speed) / len(speed)
    return Reported(
        speed=tuple(each / mean for each in speed),
        usage=tuple(_usage(node, box.name, join.heard) for node in join.nodes),
        selectivity=_selectivities(join.aliases, join.heard.pairs.get(box.name, {})),
        busiest_s=join.heard.busiest.get(box.name, 0.0),
    )


def _as_now(heard: Heard | None, program: Program) -> Heard:
    """What was heard; if of an older commit, the parts' CPU seconds count where they stand now."""
    if heard is None or not heard.parts or any(node.joins for node in heard.nodes.values()):
        return heard or Heard()
    joins: dict[str, dict[str, float]] = {}
    for box in program.layout.boxes:
        if isinstance(box.operator.spec, JoinPart) and box.name in heard.parts:
            own = joins.setdefault(program.placement[box.name], {})
            own[_sender(box)] = own.get(_sender(box), 0.0) + heard.parts[box.name]
    nodes = {
        name: msgspec.structs.replace(node, joins=joins.get(name, {})) for name, node in heard.nodes.items()
    }
    return msgspec.structs.replace(heard, nodes=nodes)


def _faded(old: NodeHeard) -> NodeHeard:
    joins = {name: FADE * cpu_s for name, cpu_s in old.joins.items()}
    return NodeHeard(FADE * old.cpu_s, FADE * old.sent_bytes, old.memory_bytes, joins)


class _Join:
    """A spread join as it stands: its parts, and the node of each of its instances."""

    def __init__(self, box: Box, program: Program, heard: Heard, cluster: Cluster | None) -> None:
        spec = box.operator.spec
        assert isinstance(spec, Diffusion)
        assert spec.join.diffuse is not None
        self.name, self.heard = box.name, heard
        self.aliases, self.weights = spec.join.aliases, spec.join.diffuse.weights
        self.parts = [
            each
            for each in program.layout.boxes
            if isinstance(each.operator.spec, JoinPart) and _sender(each) == box.name
        ]
        self.home = _homes(self.parts, heard, program.placement, spec.join.diffuse.instances)
        known = {} if cluster is None else {node.name: node for node in cluster.nodes}
        self.nodes = [known.get(name, Node(name=name)) for name in self.home]

    def known(self, corrections: tuple[float, ...] | None) -> tuple[float, ...]:
        """Corrections, none as long as there are none for all instances."""
        if corrections is None or len(corrections) != len(self.nodes):
            return (1.0,) * len(self.nodes)
        return corrections

    def work(self, spent: Mapping[str, float]) -> list[float]:
        """What each instance spent, by what parts did."""
        work = [0.0] * len(self.nodes)
        for part in self.parts:
            assert isinstance(part.operator.spec, JoinPart)
            work[part.operator.spec.instance] += spent.get(part.name, 0.0)
        return work

    def speed(self) -> list[float]:
        """Of each instance: its node's CPU, shared with others there."""
        return [node.cpu / self.home.count(node.name) for node in self.nodes]

    def corrected(self, before: tuple[float, ...] | None) -> tuple[float, ...]:
        """Corrections after a step: more for instances that are less loaded than the others.

        Work that was measured tells, whatever the reason. Seconds per row would not: a row that many partners
        are found for costs more than a copy that is only kept, so that whoever has much to do looks slow.
        """
        before, work = self.known(before), self.work(self.heard.recent)
        if sum(work) < LEAST_WORK_S:
            return before
        loads = []
        for node, own in zip(self.nodes, work, strict=True):
            used = _usage(node, self.name, self.heard)
            free = max(1.0 - sum(w * u for w, u in zip(self.weights, used, strict=True)), LEAST_FREE)
            loads.append(own * self.home.count(node.name) / (node.cpu * free))
        mean = sum(loads) / len(loads)
        least = mean / MOST_CORRECTION**2
        return tuple(
            min(max(old * (mean / max(load, least)) ** GAIN, 1 / MOST_CORRECTION), MOST_CORRECTION)
            for old, load in zip(before, loads, strict=True)
        )


def _sender(part: Box) -> str:
    """The operator that sends rows to a part."""
    return part.operator.inputs[0].source


def _homes(parts: Sequence[Box], heard: Heard, placement: Mapping[str, str], instances: int) -> list[str]:
    """Where each instance stands: the node of the part that worked most; of equals, the first."""
    found: list[tuple[float, str] | None] = [None] * instances
    for part in parts:
        assert isinstance(part.operator.spec, JoinPart)
        work = heard.parts.get(part.name, 0.0)
        best = found[part.operator.spec.instance]
        if best is None or work > best[0]:
            found[part.operator.spec.instance] = work, placement[part.name]
    return [each[1] for each in found if each is not None]


def _usage(node: Node, join: str, heard: Heard) -> tuple[float, float, float]:
    """Parts of a node's CPU, without what the join itself has used there, memory and bandwidth in use."""
    own = heard.nodes.get(node.name)
    if own is None or heard.wall_s <= 0:
        return (0.0, 0.0, 0.0)
    cpu = max(0.0, own.cpu_s - own.joins.get(join, 0.0)) / (heard.wall_s * node.cpu)
    memory = own.memory_bytes / node.memory_bytes if node.memory_bytes else 0.0
    bandwidth = 0.0
    if node.bandwidth_bytes_per_s:
        bandwidth = own.sent_bytes / heard.wall_s / node.bandwidth_bytes_per_s
    return (min(cpu, 1.0), min(memory, 1.0), min(bandwidth, 1.0))


def _pairs_after(
    before: Mapping[str, tuple[float, float]], box: Box, seen: Sequence[tuple[Marks, Marks]]
) -> dict[str, tuple[float, float]]:
    """Pairs of rows that were near and that agreed, with those that parts have measured in a step.

    Parameters
    ----------
    seen
        The marks of each part before the step and after it.
    """
    spec = box.operator.spec
    assert isinstance(spec, Diffusion)
    more = {}
    for first, second in combinations(spec.join.aliases, 2):
        near, agreed = (
            sum(max(0, now.get(name, 0) - old.get(name, 0)) for old, now in seen)
            for name in total_names(first, second)
        )
        if near:
            more[_pair_name(first, second)] = near, agreed
    if not more:
        return dict(before)
    found = {name: (FADE_PAIRS * near, FADE_PAIRS * agreed) for name, (near, agreed) in before.items()}
    for name, (near, agreed) in more.items():
        met, same = found.get(name, (0.0, 0.0))
        expected = near * _chance(met, same)
        if abs(agreed - expected) > SURE * sqrt(expected + 1):
            met, same = 0.0, 0.0
        found[name] = met + near, same + agreed
    return found


def _pair_name(first: str, second: str) -> str:
    return f"{first}, {second}"


def _chance(near: float, agreed: float) -> float:
    return (agreed + 0.5) / (near + 1)


def _selectivities(
    aliases: Sequence[str], pairs: Mapping[str, tuple[float, float]]
) -> dict[tuple[int, int], float]:
    """For pairs of inputs, the share of rows near in time that agree."""
    found = {}
    for i, k in combinations(range(len(aliases)), 2):
        near, agreed = pairs.get(_pair_name(aliases[i], aliases[k]), (0.0, 0.0))
        if near >= LEAST_PAIRS:
            found[i, k] = _chance(near, agreed)
    return found
