"""Operators that burst together stand apart: the global correlation-based algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.loads.arrays import Floats, Ints, standardised, sum_by
from levelwind.loads.problem import Problem
from levelwind.model import PlanStatus
from levelwind.placement.protocol import Decision, infeasible
from levelwind.placement.units import Units, make_units

# Scores nearer than this are equal: operators of one chain have the same series but for rounding.
TIE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationPlanner:
    """The least loaded node takes the operator least correlated with it and most with the others.

    The score of operator o at node i is the mean over nodes of ρ(o, node) less ρ(o, i), where ρ is the
    correlation of load series, 0 if either is constant. Equal scores are the rule: the heavier operator
    goes first, then the one written first. A round of one-way balancing between the most and the least
    loaded nodes ends it. O(operators² × samples). Reference: figure 5.6 of seed 000.
    """

    name: ClassVar[str] = "correlation"
    summary: ClassVar[str] = "operators whose loads rise together on different nodes, mean loads balanced"
    origin: ClassVar[str] = "seed 000, section 5.2.2; seed 001"
    needs: ClassVar[str] = "series"

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        """Distribute greedily, then balance once."""
        units = make_units(problem)
        if units.conflicts:
            return infeasible(*units.conflicts)
        assert problem.load_series is not None
        series = sum_by(units.of, problem.load_series, units.count)
        nodes = _distribute(units, series)
        _balance(units, series, nodes)
        reasons = [
            "pinned"
            if units.fixed[unit] >= 0
            else "least correlated with what stands there, when the node was least loaded"
            for unit in units.of.tolist()
        ]
        return Decision(status=PlanStatus.PLACED, assignment=units.assignment(nodes), reasons=reasons)


def _distribute(units: Units, series: Floats) -> Ints:
    cpu = units.problem.cpu
    mean = series.mean(axis=1)
    shape = standardised(series)
    nodes = units.fixed.copy()
    pinned = nodes >= 0
    node_series = sum_by(nodes[pinned], series[pinned], len(cpu))
    correlation = shape @ standardised(node_series).T
    summed = correlation.sum(axis=1)
    load = node_series.mean(axis=1)
    free = ~pinned
    for _ in range(int(free.sum())):
        receiver = int(np.argmin(load / cpu))
        score = np.where(free, summed / len(cpu) - correlation[:, receiver], -np.inf)
        best = np.flatnonzero(score >= score.max() - TIE)
        unit = int(best[np.argmax(mean[best])])
        nodes[unit], free[unit] = receiver, False
        node_series[receiver] += series[unit]
        load[receiver] += mean[unit]
        fresh = shape @ standardised(node_series[receiver : receiver + 1])[0]
        summed += fresh - correlation[:, receiver]
        correlation[:, receiver] = fresh
    return nodes


def _balance(units: Units, series: Floats, nodes: Ints) -> None:
    """One round: the i-th most loaded node gives to the i-th least loaded, best score first."""
    cpu, mean, shape = units.problem.cpu, series.mean(axis=1), standardised(series)
    load = sum_by(nodes, mean, len(cpu))
    order = np.argsort(-load / cpu, kind="stable").tolist()
    for i in range(len(order) // 2):
        giver, taker = order[i], order[-1 - i]
        while True:
            gap = (load[giver] / cpu[giver] - load[taker] / cpu[taker]) / (1 / cpu[giver] + 1 / cpu[taker])
            fits = (nodes == giver) & (units.fixed < 0) & (mean > 0) & (mean < gap)
            candidates = np.flatnonzero(fits)
            if not len(candidates):
                break
            at = [series[nodes == node].sum(axis=0, keepdims=True) for node in (giver, taker)]
            score = shape[candidates] @ (standardised(at[0])[0] - standardised(at[1])[0])
            best = candidates[score >= score.max() - TIE]
            unit = int(best[np.argmax(mean[best])])
            nodes[unit] = taker
            load[giver] -= mean[unit]
            load[taker] += mean[unit]
