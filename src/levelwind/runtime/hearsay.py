"""What spread joins are told of nodes: measured in each step, kept with its commit, told in the next step.

A router gives rows to its hosts by what it is told. Being part of the commit, that is the same however often
the next step is run: a step that is run again routes as it did. Results never depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import msgspec

from levelwind.diffusion import profiling
from levelwind.diffusion.hosts import LEAST_FREE, Reported
from levelwind.model import Cluster, JoinPart, Node
from levelwind.model.operator import Diffusion
from levelwind.operators.multijoin.order import mark_names
from levelwind.runtime.messages import NodeReport
from levelwind.runtime.program import Box, Layout, Program

# What was measured before counts so much less with each step: about the last thirty steps matter.
FADE = 0.97
# The same for what corrections go by: about the last five, or they would answer to what is long over.
FADE_RECENT = 0.8
# An instance that is x times as loaded as the mean gets x to this power less with each step: a small one,
# since what is given now is worked off a window later. Never more, or less, than so many times its part.
GAIN, MOST_CORRECTION = 0.03, 4.0
# Below so many CPU seconds, loads are noise.
LEAST_WORK_S = 1e-3
# Pairs of rows near in time below which a selectivity is not measured.
LEAST_PAIRS = 30


class NodeHeard(msgspec.Struct, array_like=True, frozen=True):
    """Of a node: CPU seconds and bytes sent, faded, and the memory that it used last."""

    cpu_s: float = 0.0
    sent_bytes: float = 0.0
    memory_bytes: float = 0.0


class Heard(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was measured so far: wall seconds, nodes, and CPU seconds of parts of spread joins, faded alike.

    ``recent`` are the parts' CPU seconds again, faded sooner.

    ``corrections``, by operator that sends: how much more or less each of its instances is given than its
    node's capacity says, since it was found to be less or more loaded than the others.

    ``busiest``, likewise by operator that sends: CPU seconds of the instance that had most to do in each
    step, faded as `profiling` wants it.
    """

    wall_s: float = 0.0
    nodes: dict[str, NodeHeard] = {}
    parts: dict[str, float] = {}
    recent: dict[str, float] = {}
    corrections: dict[str, tuple[float, ...]] = {}
    busiest: dict[str, float] = {}


def diffusions(layout: Layout) -> tuple[Box, ...]:
    """The boxes that send rows of spread joins."""
    return tuple(box for box in layout.boxes if isinstance(box.operator.spec, Diffusion))


def heard_after(
    before: Heard | None,
    program: Program,
    reports: Iterable[NodeReport],
    wall_s: float,
    cluster: Cluster | None = None,
) -> Heard | None:
    """With one step more; None without a spread join. O(boxes)."""
    layout = program.layout
    senders = diffusions(layout)
    if not senders:
        return None
    before = before or Heard()
    nodes = {
        name: NodeHeard(FADE * old.cpu_s, FADE * old.sent_bytes, old.memory_bytes)
        for name, old in before.nodes.items()
    }
    parts = {name: FADE * old for name, old in before.parts.items()}
    recent = {name: FADE_RECENT * old for name, old in before.recent.items()}
    spent: dict[str, float] = {}
    for report in reports:
        if report.node < 0:
            continue
        name = program.nodes[report.node]
        old = nodes.get(name, NodeHeard())
        cpu_s = sum(box.cpu_s for box in report.boxes)
        nodes[name] = NodeHeard(
            old.cpu_s + cpu_s, old.sent_bytes + report.sent_bytes, max(report.memory_bytes, 0)
        )
        for own in report.boxes:
            box = layout.boxes[own.box]
            if isinstance(box.operator.spec, JoinPart) and own.rows_in:
                parts[box.name] = parts.get(box.name, 0.0) + own.cpu_s
                recent[box.name] = recent.get(box.name, 0.0) + own.cpu_s
                spent[box.name] = spent.get(box.name, 0.0) + own.cpu_s
    heard = Heard(FADE * before.wall_s + wall_s, nodes, parts, recent)
    corrections = {
        box.name: _Join(box, program, heard, cluster).corrected(before.corrections.get(box.name))
        for box in senders
    }
    busiest = {
        box.name: profiling.FADE * before.busiest.get(box.name, 0.0)
        + max(_Join(box, program, heard, cluster).work(spent), default=0.0)
        for box in senders
    }
    return msgspec.structs.replace(heard, corrections=corrections, busiest=busiest)


def told_to(
    box: Box,
    program: Program,
    heard: Heard | None,
    marks: Mapping[str, Mapping[str, int]],
    cluster: Cluster | None,
) -> Reported:
    """What the router of a spread join is told before a step. O(its parts).

    Parameters
    ----------
    marks
        Of every box, as of the last commit.
    cluster
        What nodes can do; None: all alike.
    """
    join = _Join(box, program, heard or Heard(), cluster)
    known = join.known(join.heard.corrections.get(box.name))
    speed = [own * correction for own, correction in zip(join.speed(), known, strict=True)]
    mean = sum(speed) / len(speed)
    return Reported(
        speed=tuple(each / mean for each in speed),
        usage=tuple(_usage(node, join.parts, join.heard, join.placement) for node in join.nodes),
        selectivity=_selectivities(join.aliases, [marks.get(part.name, {}) for part in join.parts]),
        busiest_s=join.heard.busiest.get(box.name, 0.0),
    )


class _Join:
    """A spread join as it stands: its parts, and the node of each of its instances."""

    def __init__(self, box: Box, program: Program, heard: Heard, cluster: Cluster | None) -> None:
        spec = box.operator.spec
        assert isinstance(spec, Diffusion)
        assert spec.join.diffuse is not None
        self.heard, self.aliases, self.weights = heard, spec.join.aliases, spec.join.diffuse.weights
        self.parts = [each for each in program.layout.boxes if _belongs(each, box)]
        self.placement = program.placement
        self.home = _homes(self.parts, heard, self.placement, spec.join.diffuse.instances)
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
            used = _usage(node, self.parts, self.heard, self.placement)
            free = max(1.0 - sum(w * u for w, u in zip(self.weights, used, strict=True)), LEAST_FREE)
            loads.append(own * self.home.count(node.name) / (node.cpu * free))
        mean = sum(loads) / len(loads)
        least = mean / MOST_CORRECTION**2
        return tuple(
            min(max(old * (mean / max(load, least)) ** GAIN, 1 / MOST_CORRECTION), MOST_CORRECTION)
            for old, load in zip(before, loads, strict=True)
        )


def _belongs(part: Box, diffusion: Box) -> bool:
    spec = part.operator.spec
    return isinstance(spec, JoinPart) and part.operator.inputs[0].source == diffusion.operator.name


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


def _usage(
    node: Node, parts: Sequence[Box], heard: Heard, placement: Mapping[str, str]
) -> tuple[float, float, float]:
    """Parts of a node's CPU, without this join's own, memory and bandwidth that are in use."""
    own = heard.nodes.get(node.name)
    if own is None or heard.wall_s <= 0:
        return (0.0, 0.0, 0.0)
    join = sum(
        heard.parts[part.name]
        for part in parts
        if placement[part.name] == node.name and part.name in heard.parts
    )
    cpu = max(0.0, own.cpu_s - join) / (heard.wall_s * node.cpu)
    memory = own.memory_bytes / node.memory_bytes if node.memory_bytes else 0.0
    bandwidth = 0.0
    if node.bandwidth_bytes_per_s:
        bandwidth = own.sent_bytes / heard.wall_s / node.bandwidth_bytes_per_s
    return (min(cpu, 1.0), min(memory, 1.0), min(bandwidth, 1.0))


def _selectivities(
    aliases: Sequence[str], marks: Sequence[Mapping[str, int]]
) -> dict[tuple[int, int], float]:
    """For pairs of inputs, the share of rows near in time that agree, over all parts."""
    found = {}
    for i, k in combinations(range(len(aliases)), 2):
        near, agreed = mark_names(aliases[i], aliases[k])
        met = sum(own.get(near, 0) for own in marks)
        if met >= LEAST_PAIRS:
            found[i, k] = (sum(own.get(agreed, 0) for own in marks) + 0.5) / (met + 1)
    return found
