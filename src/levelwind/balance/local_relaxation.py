"""The local placement optimiser: an operator moves when the network between nodes has changed enough."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar

import numpy as np

from levelwind.balance.protocol import Proposal, Situation
from levelwind.balance.surroundings import Surroundings
from levelwind.loads.arrays import Floats, Ints, sum_by
from levelwind.placement.pairs import Flags
from levelwind.plugins import option
from levelwind.space import Coordinates, CostSpace, VivaldiConfig, embed

# Springs in one step: with its neighbours fixed, a unit rests at their weighted centroid.
SEED = 0
MOST_KNOWN = 64
_KNOWN: dict[bytes, Coordinates] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRelaxationPolicy:
    """Each unit is placed anew in the latency space, its neighbours where they stand; the best moves.

    A unit whose rest point lies within ``displacement`` of its node is not looked at. For the others the
    ``k`` nodes nearest to the point, and those of its neighbours, are looked at, as far as they have CPU for
    it; with ``probe`` by their latencies, without by their coordinates. A move must save the share ``saving``
    of the network usage of the unit's streams, of all its users together, and ``certainty`` times what the
    latencies may be off: of many candidates some look good by chance. One query moves at a time: of the
    highest priority, as it moves for its own good, the unit that saves most.

    Notes
    -----
    Without latencies it proposes nothing. O(rounds × nodes) for coordinates of latencies that are new, then
    O(arcs + units × k). Of 60 candidates that are all no better, the best seems 3 standard errors better
    once in 13 times; with 2 it would be three times out of four.
    """

    name: ClassVar[str] = "local_relaxation"
    summary: ClassVar[str] = "the operator whose move saves the most network usage, one query at a time"
    origin: ClassVar[str] = "seed 002, section 3.2"

    k: int = option(10, "nearest nodes that are looked at", least=1)
    displacement: float = option(
        5.0, "ms between rest point and node below which nothing is looked up", least=0.0
    )
    certainty: float = option(3.0, "standard errors of the latencies that a saving must exceed", least=0.0)
    saving: float = option(0.1, "least share of an operator's network usage that a move must save", least=0.0)
    probe: bool = option(True, "look up the candidates' real latencies, not only their coordinates")
    load_weight: float = option(0.0, "how many ms a full node moves away in the cost space", least=0.0)

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """The one unit to move now, if any."""
        around = situation.around
        if around is None or len(situation.cpu) < 2 or not len(situation.node):
            return ()
        load = situation.series.mean(axis=1)
        level = sum_by(situation.node, load, len(situation.cpu))
        coordinates = _coordinates(around.latency_ms)
        space = CostSpace(
            coordinates=coordinates, load=level / situation.cpu, load_weight_ms=self.load_weight
        )
        latency = around.latency_ms if self.probe else coordinates.matrix()
        best: tuple[float, float, int, int] | None = None
        priority = np.zeros(len(load)) if situation.facts is None else situation.facts.priority
        for unit in np.unique(situation.unit[situation.movable]).tolist():
            members = np.flatnonzero(situation.unit == unit)
            weight = float(load[members].sum())
            if not situation.movable[members].all() or weight <= 0.0:
                continue
            found = self._best_place(situation, around, space, members, latency, level, weight)
            rank = float(priority[members].max())
            if found is not None and (best is None or (rank, found[0]) > best[:2]):
                best = (rank, *found, unit)
        if best is None:
            return ()
        _, saved, node, unit = best
        return tuple(
            Proposal(operator=int(j), to=node, reason=f"saves {saved:.4g} bytes of network usage")
            for j in np.flatnonzero(situation.unit == unit)
        )

    def _best_place(
        self,
        situation: Situation,
        around: Surroundings,
        space: CostSpace,
        members: Ints,
        latency: Floats,
        level: Floats,
        weight: float,
    ) -> tuple[float, int] | None:
        """The saving and the node of the best move of a unit; None if none is worth it."""
        here = int(situation.node[members[0]])
        other, outward, rate = _neighbours(situation, around, members)
        if not len(other) or rate.sum() <= 0.0:
            return None
        position = space.coordinates.position
        rest = (position[other] * rate[:, None]).sum(axis=0) / rate.sum()
        if np.sqrt(((rest - position[here]) ** 2).sum()) < self.displacement:
            return None
        near = np.union1d(space.nearest(rest[None, :], self.k)[0], other)
        room = level[near] + weight <= situation.cpu[near] * (1 + 1e-9)
        near = near[room & (near != here) & situation.open[near]]
        if not len(near):
            return None
        places = np.append(near, here)
        usage = (rate[:, None] * _between(latency, places, other, outward)).sum(axis=0) / 1000.0
        saved = usage[-1] - usage[:-1]
        sure = saved
        if around.error_ms is not None and self.probe:
            off = rate[:, None] * _between(around.error_ms, places, other, outward) / 1000.0
            squared = (off * off).sum(axis=0)
            sure = saved - self.certainty * np.sqrt(squared[:-1] + squared[-1])
        chosen = int(np.argmax(sure))
        if sure[chosen] <= max(self.saving * usage[-1], 1e-12):
            return None
        return float(saved[chosen]), int(near[chosen])


def _coordinates(latency_ms: Floats) -> Coordinates:
    """Coordinates of a matrix, remembered: latencies seldom change from one period to the next.

    O(nodes²) to recognise a matrix, O(rounds × nodes) to place its nodes.
    """
    key = blake2b(np.ascontiguousarray(latency_ms).tobytes()).digest()
    if key not in _KNOWN:
        while len(_KNOWN) >= MOST_KNOWN:
            del _KNOWN[next(iter(_KNOWN))]
        _KNOWN[key] = embed(latency_ms, config=VivaldiConfig(height=True), seed=SEED)
    return _KNOWN[key]


def _between(latency: Floats, places: Ints, other: Ints, outward: Flags) -> Floats:
    """Latency of each arc (rows) with the unit on each place (columns), in the direction that rows go."""
    away = np.where(outward[:, None], latency[places[None, :], other[:, None]], latency[other][:, places])
    return np.where(places[None, :] == other[:, None], 0.0, away)


def _neighbours(situation: Situation, around: Surroundings, members: Ints) -> tuple[Ints, Flags, Floats]:
    """Nodes that a unit exchanges rows with, arc by arc; whether the rows go there; and their rates."""
    inside = np.zeros(len(situation.node), dtype=bool)
    inside[members] = True

    def at(ends: Ints) -> tuple[Ints, Flags]:
        is_operator = ends >= 0
        node = np.where(is_operator, situation.node[np.maximum(ends, 0)], -1 - ends)
        return node, is_operator & inside[np.maximum(ends, 0)]

    source, sends = at(around.source)
    target, reads = at(around.target)
    ours = sends != reads
    return np.where(sends, target, source)[ours], sends[ours], around.rate[ours]
