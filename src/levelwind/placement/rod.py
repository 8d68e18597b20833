"""Resilient operator distribution: the plan that bears as many rate points as a greedy pass can find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.loads.arrays import Ints
from levelwind.loads.directions import directions
from levelwind.loads.feasible import reach_power
from levelwind.loads.planes import least_distance, planes, volume_of_planes
from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement import greedy
from levelwind.placement.clustering import clusterings
from levelwind.placement.protocol import Decision, infeasible, option
from levelwind.placement.units import Units, make_units

# Above this many units the second way to break ties is not tried: the gain is small, the time is not.
SECOND_TRY_UP_TO = 2000
FINALISTS = 4
# Orders tried by the pass that counts sending: as many as keep the units placed at about this number.
UNITS_SHUFFLED = 8000
MOST_STEPS = 10**8


@dataclass(frozen=True, slots=True, kw_only=True)
class RodPlanner:
    """Maximise the set of input rates that no node is overloaded by, greedily.

    Needs no rates, only costs and selectivities. Operators in falling order of the norm of their load
    vector; each goes to a node whose plane stays above the ideal one (class I) or, failing that, whose
    plane stays farthest from the lower bound point (class II). If sending rows costs CPU or bandwidth is
    limited, clusterings of the operators are tried as well, and the plan with the largest feasible set,
    everything counted, is taken: never a worse one than without clustering.

    Notes
    -----
    O(operators log operators + operators × nodes × variables per operator) for each pass; one or two
    passes without costs of sending, some tens with them. Reference: seed 000, sections 4.3 and 4.4. We
    differ from print where it is wrong (class II takes the *largest* plane distance), in ordering by
    normalised coefficients, and in comparing clusterings by volume, not by plane distance.
    """

    name: ClassVar[str] = "rod"
    summary: ClassVar[str] = "resilient operator distribution: bears as many rate points as a greedy pass can"
    origin: ClassVar[str] = "seed 000, chapter 4"
    needs: ClassVar[str] = "nothing"

    class_one: str = option(
        "cut", "which node when several cost nothing; cut: fewest streams cut", choices=greedy.CLASS_ONE_RULES
    )
    order: str = option(
        "normalised", "operators by normalised or raw load coefficients", choices=greedy.ORDERS
    )
    cluster: str = option(
        "volume",
        "clusterings are compared by volume or by smallest plane distance, or not tried",
        choices=("volume", "plane", "off"),
    )

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Place greedily, with the best clustering."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        candidates = list(self._candidates(units, rng))
        best = self._best(problem, candidates)
        return best.decision()

    def _candidates(self, units: Units, rng: np.random.Generator) -> Iterator[Candidate]:
        seed = int(rng.integers(2**62))
        plain = self._place(units, "fullest", seed)
        yield Candidate(units=units, greedy=plain, clustering="none")
        if self.class_one == "cut" and units.count <= SECOND_TRY_UP_TO:
            other = self._place(units, "plane", seed)
            if (other.nodes != plain.nodes).any():
                yield Candidate(units=units, greedy=other, clustering="none")
        if self.cluster == "off" or not units.problem.variables or not len(units.problem.carried.producer):
            return
        # ROD's pass does not see what sending costs: beside it, one that does, on units and on clusterings.
        yield from _counting_sending(units, "none", shuffles=UNITS_SHUFFLED // max(1, units.count))
        for thresholds, coarse in clusterings(units):
            text = f"{coarse.count} clusters of {units.count} units, {thresholds}"
            yield Candidate(units=coarse, greedy=self._place(coarse, "fullest", seed), clustering=text)
            yield from _counting_sending(coarse, text)

    def _place(self, units: Units, ties: str, seed: int) -> greedy.Greedy:
        rng = np.random.default_rng(seed)
        return greedy.place_greedily(units, rng=rng, class_one=self.class_one, ties=ties, order=self.order)

    def _best(self, problem: Problem, candidates: list[Candidate]) -> Candidate:
        if len(candidates) == 1:
            return candidates[0]
        if self.cluster == "plane":
            lower = problem.normalised_lower
            distances = [least_distance(planes(problem, c.assignment), lower) for c in candidates]
            return candidates[int(np.argmax(distances))]
        # A rough ranking on few rays, then a close look at the first few, and at the plain plans, which
        # come first: whatever the ranking says, the answer is never below them.
        rough = [rough_volume(problem, c.assignment) for c in candidates]
        ranked = sorted(range(len(candidates)), key=lambda i: -rough[i])
        finalists = sorted({0, 1, *ranked[:FINALISTS]})
        close = [volume(problem, candidates[i].assignment) for i in finalists]
        return candidates[finalists[int(np.argmax(close))]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One greedy placement, and the clustering it came from."""

    units: Units
    greedy: greedy.Greedy
    clustering: str

    @property
    def assignment(self) -> Ints:
        """Node of each operator."""
        return self.units.assignment(self.greedy.nodes)

    def decision(self) -> Decision:
        """The candidate as the planner's answer."""
        return Decision(
            status=PlanStatus.PLACED,
            assignment=self.assignment,
            notes=() if self.clustering == "none" else (f"clustering: {self.clustering}",),
            reasons=_reasons(self.units, self.greedy),
        )


def _counting_sending(units: Units, clustering: str, shuffles: int = 0) -> Iterator[Candidate]:
    """Candidates of the pass that counts what sending costs, unless the network is too large for it."""
    # Compiled code, and slow to import: only networks where sending costs anything come here.
    from levelwind.placement.sending import place_by_volume, steps

    if steps(units) > MOST_STEPS:
        return
    rule = np.where(units.fixed >= 0, greedy.PINNED, greedy.VOLUME)
    for nodes in place_by_volume(units, seed=1, shuffles=shuffles):
        yield Candidate(units=units, greedy=greedy.Greedy(nodes=nodes, rule=rule), clustering=clustering)


def volume(problem: Problem, assignment: Ints) -> float:
    """Feasible set of a placement, as a share of the ideal set."""
    return volume_of_planes(planes(problem, assignment), problem.normalised_lower).ratio


def rough_volume(problem: Problem, assignment: Ints) -> float:
    """As `volume`, on 1,024 rays that are the same for every placement: good enough to rank plans."""
    found, lower = planes(problem, assignment), problem.normalised_lower
    weights, ideal = found.all, 1.0 - lower.sum()
    slack = 1.0 - found.constant - weights @ lower
    if ideal <= 0 or (slack <= 0).any():
        return float(slack.min(initial=0.0))
    rays = directions(weights.shape[1], 1024, 1, 1)[0]
    return float(reach_power(weights * (ideal / slack)[:, None], rays).mean())


def _reasons(units: Units, result: greedy.Greedy) -> list[str]:
    texts = {
        greedy.PINNED: "pinned",
        greedy.CLASS_ONE: "class I: the node's plane stays above the ideal one, so nothing is lost",
        greedy.CLASS_TWO: "class II: every node loses; this one's plane stays farthest from the lower bound",
        greedy.VOLUME: "the feasible set stays largest with it here, cost of sending included",
        greedy.WITHOUT_LOAD: "no load: fewest streams cut",
    }
    turn = {int(unit): i + 1 for i, unit in enumerate(greedy.sequence(units, "normalised"))}
    members = units.members
    reasons = []
    for unit in units.of.tolist():
        text = f"{texts[int(result.rule[unit])]} (turn {turn[unit]} of {units.count})"
        if len(members[unit]) > 1:
            names = [units.problem.physical.names[j] for j in members[unit]]
            text += "; placed as one with " + ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
        reasons.append(text)
    return reasons
