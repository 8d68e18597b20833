"""Operators that burst together stand apart: the global correlation-based algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.loads.arrays import Ints
from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.distribution import distribute, improve
from levelwind.placement.protocol import Decision, infeasible, option
from levelwind.placement.spreading import Spreading, by_domains, make_spreading, super_operators
from levelwind.placement.units import Units, make_units

BAND = 0.01  # when operators are dealt out to domains


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationPlanner:
    """The least loaded node takes the operator least correlated with it and most with the others.

    The score of operator o at node i is the mean over nodes of ρ(o, node) less ρ(o, i), where ρ is the
    correlation of load series, 0 if either is constant. When all are placed, the i-th most loaded node gives
    to the i-th least loaded, once; then the least correlated pairs of nodes are redistributed as long as that
    raises their correlation. Ties are the rule: the heavier operator goes first, then the one written first.

    Notes
    -----
    O(units² × samples + nodes⁴) at the worst, a few milliseconds for 20 nodes; above ``domain`` nodes in
    sub-domains. Reference: figures 5.6 and 5.7 of seed 000, section 3.4 of seed 001; `distribution` and
    `pairs` say where we differ from print.
    """

    name: ClassVar[str] = "correlation"
    summary: ClassVar[str] = "operators whose loads rise together on different nodes, mean loads balanced"
    origin: ClassVar[str] = "seed 000, section 5.2.2; seed 001, section 3.4"
    needs: ClassVar[str] = "series"

    threshold: float = option(
        0.8, "pairs of nodes correlated less than this (θ) are redistributed", least=-1.0
    )
    domain: int = option(50, "most nodes planned at once; more are planned in sub-domains", least=2)
    overlap: bool = option(True, "sub-domains overlap: a second round joins halves of neighbouring ones")
    group: float = option(
        0.0, "operators below this load (CPU seconds per second) are joined to super-operators", least=0.0
    )

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Distribute greedily, balance once, improve pair by pair."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        seed = int(rng.integers(2**62))
        units, notes = joined(units, self.group, band=BAND, seed=seed)
        nodes = self.spread(make_spreading(units), seed=seed)
        notes += domain_note(len(problem.cpu), self.domain, overlap=self.overlap)
        reasons = [
            "pinned"
            if units.fixed[unit] >= 0
            else "least correlated with what stands there, when placed or when two nodes were evened out"
            for unit in units.of.tolist()
        ]
        return Decision(
            status=PlanStatus.PLACED, assignment=units.assignment(nodes), notes=notes, reasons=reasons
        )

    def spread(self, whole: Spreading, *, seed: int) -> Ints:
        """Node of each unit, in sub-domains if there are many nodes."""

        def first(part: Spreading, start: Ints) -> Ints:
            return distribute(part.series, start, part.cpu, threshold=self.threshold)

        def again(part: Spreading, start: Ints) -> Ints:
            nodes = start.copy()
            improve(part.series, nodes, part.fixed < 0, part.cpu, self.threshold)
            return nodes

        return by_domains(
            whole, size=self.domain, overlap=self.overlap, band=BAND, seed=seed, first=first, again=again
        )


def joined(units: Units, least: float, *, band: float, seed: int) -> tuple[Units, tuple[str, ...]]:
    """The units with small ones joined to super-operators, if ``least`` asks for it, and a note."""
    if least <= 0.0:
        return units, ()
    coarse = units.merged(super_operators(make_spreading(units), least, band=band, seed=seed))
    return coarse, (f"{units.count} units joined to {coarse.count} of load {least:g} or more",)


def domain_note(nodes: int, size: int, *, overlap: bool) -> tuple[str, ...]:
    """That sub-domains were used, if they were."""
    if nodes <= size:
        return ()
    kind = "overlapping" if overlap else "separate"
    return (f"planned in {-(-nodes // size)} {kind} sub-domains of at most {size} nodes",)
