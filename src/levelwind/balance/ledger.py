"""The books of a redistribution: what every node costs while operators are tried here and there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from levelwind.balance.costs.protocol import CostModel, percent_difference
from levelwind.balance.facts import around
from levelwind.balance.protocol import Situation
from levelwind.loads.arrays import Floats, Ints, sum_by

# Costs and loads nearer than this are equal: they are sums in different orders.
TIE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A unit tried on another node: what the nodes would cost, and how many connections would go."""

    unit: int
    target: int
    cost: Floats
    touched: Ints
    amounts: Floats
    removed: int


class Ledger:
    """Where units stand, and the cost and CPU load of every node, kept right from move to move.

    Units are operators that move together, numbered from 0. A trial costs O(nodes + arcs of the unit and of
    its neighbours).
    """

    def __init__(self, model: CostModel, situation: Situation, *, room: float = 0.0) -> None:
        self.model, self.situation = model, situation
        self.count = len(situation.cpu)
        self.node = situation.node.copy()
        every = np.arange(len(self.node))
        self.capacity = model.capacity(situation)
        self.amounts = np.array(model.amounts(situation, self.node, every), dtype=np.float64)
        self.cost = sum_by(self.node, self.amounts / self.capacity[self.node], self.count)
        self.load = situation.mean_load
        self.relative = sum_by(self.node, self.load, self.count) / situation.cpu
        # So much fuller than all are in the mean any node may become.
        mean = float(self.load.sum() / situation.cpu.sum())
        self.roomy = mean * (1.0 + room)
        self.unit, self.members = _units(situation.unit)
        units = len(self.members) - 1
        self.unit_load = sum_by(self.unit, self.load, units)
        idle = self.unit_load <= 1e-12 * max(1e-300, float(self.unit_load.max(initial=0.0)))
        stuck = np.bincount(self.unit, weights=~situation.movable, minlength=units) > 0
        self.free = ~(idle | stuck)
        self.order = np.argsort(self.unit, kind="stable")
        # That of a unit's most important operator; 0 where nobody knows any.
        self.priority = np.zeros(units)
        if situation.facts is not None and units:
            highest = situation.facts.priority[self.order]
            self.priority = np.maximum.reduceat(highest, self.members[:-1])

    @property
    def difference(self) -> float:
        """Percent difference of the nodes' costs."""
        return percent_difference(self.cost)

    def operators(self, unit: int) -> Ints:
        """Operators of a unit."""
        return self.order[self.members[unit] : self.members[unit + 1]]

    def units_on(self, node: int) -> Ints:
        """Free units on a node, in the order of their numbers."""
        here = self.unit[np.flatnonzero(self.node == node)]
        here = np.unique(here) if len(self.free) < len(self.node) else np.sort(here)
        return here[self.free[here]]

    def givers(self) -> NDArray[np.bool_]:
        """Whether each node has a free unit."""
        first = self.order[self.members[:-1]][self.free]
        return np.bincount(self.node[first], minlength=self.count) > 0

    def unit_amounts(self, units: Ints) -> Floats:
        """Amount of each of these units, as it stands."""
        owner, operators = around(self.members, self.order, units)
        return sum_by(owner, self.amounts[operators], len(units))

    def ties(self, units: Ints) -> tuple[Ints, Ints]:
        """For each of these units the nodes it has connections to: (position in ``units``, node) per arc."""
        if self.situation.facts is None:
            none = np.zeros(0, dtype=np.int64)
            return none, none
        wiring = self.situation.facts.wiring
        owner, operators = around(self.members, self.order, units)
        inner, other = around(wiring.near_start, wiring.near, operators)
        own = owner[inner]
        apart = self.unit[other] != units[own]
        return own[apart], self.node[other[apart]]

    def attempt(self, unit: int, target: int) -> Trial:
        """What moving a unit would do; nothing is changed."""
        operators = self.operators(unit)
        source = int(self.node[operators[0]])
        _, near = self.ties(np.array([unit]))
        removed = int((near == target).sum() - (near == source).sum())
        touched = operators
        if self.model.wired and self.situation.facts is not None:
            wiring = self.situation.facts.wiring
            touched = np.unique(
                np.concatenate([operators, around(wiring.near_start, wiring.near, operators)[1]])
            )
        cost = self.cost - sum_by(
            self.node[touched], self.amounts[touched] / self.capacity[self.node[touched]], self.count
        )
        self.node[operators] = target
        amounts = self.amounts[touched]
        if self.model.wired:
            amounts = self.model.amounts(self.situation, self.node, touched)
        cost += sum_by(self.node[touched], amounts / self.capacity[self.node[touched]], self.count)
        self.node[operators] = source
        return Trial(unit=unit, target=target, cost=cost, touched=touched, amounts=amounts, removed=removed)

    def accept(self, trial: Trial, *, again: bool = False) -> None:
        """Make a trial real; its unit does not move again, unless it may."""
        operators, cpu = self.operators(trial.unit), self.situation.cpu
        source, load = int(self.node[operators[0]]), float(self.unit_load[trial.unit])
        self.relative[source] -= load / cpu[source]
        self.relative[trial.target] += load / cpu[trial.target]
        self.node[operators] = trial.target
        self.amounts[trial.touched] = trial.amounts
        self.cost = np.maximum(trial.cost, 0.0)
        self.free[trial.unit] = again

    def has_cpu(self, unit: int, target: int) -> bool:
        """Whether a node can take a unit and be no fuller by CPU than the unit's node was, or than ``roomy``.

        A cost that is not CPU would otherwise gather everything where nothing has to be sent, and the fullest
        node bounds what gets through.
        """
        source = int(self.node[self.operators(unit)[0]])
        return bool(self.with_cpu(unit, source, target))

    def with_cpu(self, units: Ints | int, source: int, targets: Ints | int) -> NDArray[np.bool_]:
        """`has_cpu` for units of one node and one target, or for one unit and many targets."""
        after = self.relative[targets] + self.unit_load[units] / self.situation.cpu[targets]
        fits: NDArray[np.bool_] = after <= max(self.roomy, float(self.relative[source])) * (1.0 + TIE)
        return fits


def _units(number: Ints) -> tuple[Ints, Ints]:
    """Units without gaps, and where each begins when operators are sorted by them."""
    _, unit = np.unique(number, return_inverse=True)
    counts = np.bincount(unit) if len(unit) else np.zeros(0, dtype=np.int64)
    return unit.astype(np.int64), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
