"""Clusters, ROD for what cannot move, correlation for what can: the dissertation's whole plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from levelwind.loads.arrays import Ints
from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.clustering import clusterings
from levelwind.placement.correlation import CorrelationPlanner
from levelwind.placement.greedy import place_greedily
from levelwind.placement.measures import node_series
from levelwind.placement.protocol import Decision, infeasible, option
from levelwind.placement.spreading import make_spreading
from levelwind.placement.units import Units, make_units


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridPlanner:
    """What cannot move is placed to bear any rates; what can, to suit the rates of now.

    Operators joined by streams that are costly to send are clustered. Clusters with an operator that cannot
    move (``movable: false``) are placed by ROD, for whatever rates may come: they stay. All others are spread
    around them by correlation, and are left to a pair-wise policy such as ``cor_se_imp`` when loads change.
    If sending costs something, every clustering of ROD's sweep is planned, and the plan is kept whose largest
    divergent load level (mean plus standard deviation, over CPU, sending included) is least.

    Notes
    -----
    Cost of ``correlation`` for each clustering. Reference: seed 000, opening of chapter 5, and section 4.4.
    """

    name: ClassVar[str] = "hybrid"
    summary: ClassVar[str] = "clusters; rod for what cannot move, correlation for what can, then a policy"
    origin: ClassVar[str] = "seed 000, chapter 5 (opening)"
    needs: ClassVar[str] = "series"

    threshold: float = option(
        0.8, "pairs of nodes correlated less than this (θ) are redistributed", least=-1.0
    )
    cluster: bool = option(True, "join operators whose streams are costly to send")

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Plan every clustering, keep the one with the lowest peak."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        seed = int(rng.integers(2**62))
        candidates = [("", units)]
        if self.cluster and problem.variables and len(problem.carried.producer):
            candidates += [(str(thresholds), coarse) for thresholds, coarse in clusterings(units)]
        plans = [self._spread(candidate, seed) for _, candidate in candidates]
        levels = [
            divergent_level(problem, candidate.assignment(nodes))
            for (_, candidate), nodes in zip(candidates, plans, strict=True)
        ]
        best = int(np.argmin(levels))
        text, chosen = candidates[best]
        notes = ["meant to be run with a pair-wise policy, such as cor_se_imp"]
        if text:
            notes.append(f"clustering: {chosen.count} clusters of {units.count} units, {text}")
        staying = _cannot_move(chosen)
        reasons = [
            "pinned"
            if chosen.fixed[unit] >= 0
            else "cannot move once it runs: placed by rod, for any rates"
            if staying[unit]
            else "can move: placed by correlation with what stands there"
            for unit in chosen.of.tolist()
        ]
        return Decision(
            status=PlanStatus.PLACED,
            assignment=chosen.assignment(plans[best]),
            notes=tuple(notes),
            reasons=reasons,
        )

    def _spread(self, units: Units, seed: int) -> Ints:
        fixed = units.fixed.copy()
        staying = np.flatnonzero(_cannot_move(units) & (fixed < 0))
        if len(staying):
            fixed[staying] = _by_rod(units, staying, seed)
        whole = replace(make_spreading(units), fixed=fixed)
        return CorrelationPlanner(threshold=self.threshold).spread(whole, seed=seed)


def divergent_level(problem: Problem, assignment: Ints) -> float:
    """Largest mean plus standard deviation of a node's load over its CPU, the cost of sending included."""
    assert problem.load_series is not None
    load = node_series(problem, problem.load_series, assignment) / problem.cpu[:, None]
    return float((load.mean(axis=1) + load.std(axis=1)).max())


def _cannot_move(units: Units) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether a unit holds an operator that stays once it runs."""
    staying = np.zeros(units.count, dtype=bool)
    for j, operator in enumerate(units.problem.physical.operators):
        if not operator.logical.movable:
            staying[units.of[j]] = True
    return staying


def _by_rod(units: Units, staying: Ints, seed: int) -> Ints:
    """Nodes that ROD gives to the units that stay, with what is pinned counted and nothing else."""
    problem = units.problem
    kept = np.concatenate([staying, np.flatnonzero(units.fixed >= 0)])
    number = np.full(units.count, -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    rows = np.flatnonzero(number[units.of] >= 0)
    load = problem.operator_load[rows]
    used = np.flatnonzero(load.sum(axis=0) > 0)
    operators = tuple(problem.physical.operators[j] for j in rows.tolist())
    alone = Problem(
        physical=replace(problem.physical, operators=operators, streams=()),
        cluster=problem.cluster,
        linear=replace(problem.linear, variables=tuple(problem.variables[k] for k in used.tolist())),
        rates=problem.rates,
        operator_load=load[:, used],
        lower=problem.lower[used],
        fixed=problem.fixed[rows],
    )
    part = Units(problem=alone, of=number[units.of[rows]], count=len(kept), fixed=units.fixed[kept])
    placed = place_greedily(part, rng=np.random.default_rng(seed), class_one="plane")
    return np.asarray(placed.nodes, dtype=np.int64)[: len(staying)]
