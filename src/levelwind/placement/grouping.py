"""Connected sub-plans of about equal size: few connections between nodes, without knowing any rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import ClassVar

import numpy as np

from levelwind.loads.arrays import Floats
from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.protocol import Decision, infeasible
from levelwind.placement.units import Units, make_units

# Networks up to this size are grouped from several beginnings and improved by swaps as well as by moves.
SMALL = 400
BEGINNINGS = 6
PASSES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingPlanner:
    """Nodes take connected operators in turn, each its share of the count; then the borders are improved.

    A group begins at an operator with few free neighbours, a leaf of what is left, and takes next whatever
    has most connections into it. A node's share of the operators is its share of the CPU. Afterwards
    operators change sides, alone or two for two, where that removes connections and keeps sizes within one of
    their share.

    Notes
    -----
    O((operators + arcs) log operators); for up to 400 operators from several beginnings, and with swaps,
    O(arcs + border²) a pass. Reference: seed 003, section 5.1.3. Its algorithm 3 never visits most operators:
    this follows the text.
    """

    name: ClassVar[str] = "grouping"
    summary: ClassVar[str] = "connected sub-plans of about equal size, few connections between nodes"
    origin: ClassVar[str] = "seed 003, section 5.1.3 (algorithm 3 by its text)"
    needs: ClassVar[str] = "nothing"

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Grow groups from several beginnings, improve their borders, take the best."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        graph = _Graph(units)
        share = len(units.of) * problem.cpu / problem.cpu.sum()
        order = np.argsort(-share, kind="stable").tolist()
        few = graph.count > SMALL
        best: tuple[tuple[int, float], list[int]] | None = None
        for start in range(1 if few else min(BEGINNINGS, max(1, graph.count))):
            nodes = graph.grown(share, order, start)
            graph.improve(nodes, share, swaps=not few)
            sizes = np.bincount(nodes, weights=graph.size, minlength=len(share)) if nodes else share
            score = graph.cut(nodes), float(((sizes - share) ** 2).sum())
            if best is None or score < best[0]:
                best = score, nodes
        assert best is not None
        reasons = [
            "pinned"
            if units.fixed[unit] >= 0
            else "in a connected group, within the node's share of operators"
            for unit in units.of.tolist()
        ]
        return Decision(status=PlanStatus.PLACED, assignment=units.assignment(best[1]), reasons=reasons)


class _Graph:
    """Units and how many arcs tie each two of them."""

    def __init__(self, units: Units) -> None:
        self.count = units.count
        self.size: list[int] = np.bincount(units.of, minlength=units.count).tolist()
        self.fixed: list[int] = units.fixed.tolist()
        self.ties = [Counter(near) for near in units.neighbours]

    def cut(self, nodes: Sequence[int]) -> int:
        """Arcs between units on different nodes."""
        torn = (
            arcs
            for unit, ties in enumerate(self.ties)
            for other, arcs in ties.items()
            if nodes[unit] != nodes[other]
        )
        return sum(torn) // 2

    def grown(self, share: Floats, order: Sequence[int], start: int) -> list[int]:
        """A node for every unit; ``start`` chooses among the leaves with which the first group may begin."""
        nodes = list(self.fixed)
        free = {unit for unit in range(self.count) if nodes[unit] < 0}
        loose = [sum(arcs for other, arcs in ties.items() if other in free) for ties in self.ties]
        seeds: list[tuple[int, int, int]] = []
        for unit in free:
            heappush(seeds, (loose[unit], (unit - start * self.count // BEGINNINGS) % self.count, unit))
        total = sum(self.size[unit] for unit in range(self.count) if nodes[unit] >= 0)
        held = [0.0] * len(share)
        for unit, node in enumerate(nodes):
            if node >= 0:
                held[node] += self.size[unit]
        for turn, node in enumerate(order):
            # What earlier nodes took too much or too little is made up for over those that are left.
            left = float(share[list(order[turn:])].sum())
            waiting = sum(self.size) - total
            rest = sum(held[other] for other in order[turn:])
            room = (waiting + rest) * float(share[node]) / left - held[node] if left else 0.0
            inner = [u for u in range(self.count) if nodes[u] == node] if held[node] else []
            edge: list[tuple[int, int, int]] = []
            inside: Counter[int] = Counter()
            for unit in inner:
                self._touch(unit, free, inside, loose, edge)
            last = turn == len(order) - 1
            while free and (last or room >= 0.5):
                unit = self._next(edge, seeds, free, inside, loose)
                if not last and self.size[unit] - room > room:
                    heappush(seeds, (loose[unit], unit, unit))  # for another node
                    break  # nearer to the share without it
                nodes[unit] = node
                free.discard(unit)
                room -= self.size[unit]
                total += self.size[unit]
                for other, arcs in self.ties[unit].items():
                    if other in free:
                        loose[other] -= arcs
                        heappush(seeds, (loose[other], other, other))
                self._touch(unit, free, inside, loose, edge)
        return nodes

    def _touch(
        self,
        unit: int,
        free: set[int],
        inside: Counter[int],
        loose: Sequence[int],
        edge: list[tuple[int, int, int]],
    ) -> None:
        """Units next to one that came into the group stand at its edge."""
        for other, arcs in self.ties[unit].items():
            if other in free:
                inside[other] += arcs
                heappush(edge, (loose[other] - inside[other], -inside[other], other))

    def _next(
        self,
        edge: list[tuple[int, int, int]],
        seeds: list[tuple[int, int, int]],
        free: set[int],
        inside: Counter[int],
        loose: Sequence[int],
    ) -> int:
        """The unit that leaves fewest arcs open; one beside no group if there is none at the edge."""
        while edge:
            open_arcs, _, unit = heappop(edge)
            if unit in free and open_arcs == loose[unit] - inside[unit]:
                return unit
            if unit in free:  # its neighbours have changed since
                heappush(edge, (loose[unit] - inside[unit], -inside[unit], unit))
        while True:
            arcs, _, unit = heappop(seeds)
            if unit in free and arcs == loose[unit]:
                return unit

    def improve(self, nodes: list[int], share: Floats, *, swaps: bool) -> None:
        """Move or swap units where that removes arcs, until a pass finds nothing, or `PASSES` times."""
        held = np.zeros(len(share))
        np.add.at(held, nodes, self.size)
        low, high = np.minimum(np.floor(share), held), np.maximum(np.ceil(share), held)
        for _ in range(PASSES):
            changed = self._moved(nodes, held, low, high)
            if swaps:
                changed |= self._swapped(nodes)
            if not changed:
                return

    def _gains(self, nodes: Sequence[int], unit: int) -> Counter[int]:
        """Arcs that a unit has to each node."""
        toward: Counter[int] = Counter()
        for other, arcs in self.ties[unit].items():
            toward[nodes[other]] += arcs
        return toward

    def _moved(self, nodes: list[int], held: Floats, low: Floats, high: Floats) -> bool:
        changed = False
        for unit in range(self.count):
            home, size = nodes[unit], self.size[unit]
            if self.fixed[unit] >= 0 or held[home] - size < low[home]:
                continue
            toward = self._gains(nodes, unit)
            target = max(
                (node for node in toward if held[node] + size <= high[node]),
                key=lambda node: (toward[node], -node),
                default=home,
            )
            if toward[target] > toward[home]:
                nodes[unit] = target
                held[home] -= size
                held[target] += size
                changed = True
        return changed

    def _swapped(self, nodes: list[int]) -> bool:
        """Swap two of equal size across a border where both sides together lose arcs."""
        changed = False
        border = [
            unit
            for unit in range(self.count)
            if self.fixed[unit] < 0 and any(nodes[other] != nodes[unit] for other in self.ties[unit])
        ]
        for unit in border:
            toward = self._gains(nodes, unit)
            home, best, partner = nodes[unit], 0, -1
            for other in range(self.count):
                if nodes[other] == home or self.fixed[other] >= 0 or self.size[other] != self.size[unit]:
                    continue
                there = nodes[other]
                back = self._gains(nodes, other)
                gain = toward[there] - toward[home] + back[home] - back[there] - 2 * self.ties[unit][other]
                if gain > best:
                    best, partner = gain, other
            if partner >= 0:
                nodes[unit], nodes[partner] = nodes[partner], home
                changed = True
        return changed
