"""Degradation: nodes that have become worse than they were give what costs them most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.balance.ledger import TIE, Ledger, Trial
from levelwind.balance.protocol import Proposal, Situation
from levelwind.balance.redistribution import TRIALS, Redistribution, priorities, proposals
from levelwind.loads.arrays import Floats, Ints
from levelwind.plugins import option


@dataclass(frozen=True, slots=True, kw_only=True)
class DegradationPolicy(Redistribution):
    """A node whose cost rose since its operators last changed gives operators until it is as it was.

    It gives, of the lowest priority first, those whose move removes most connections, then those that cost
    most; each to the node that it has most connections to, or else to the cheapest. A move that removes
    connections must not raise the larger of the two costs nor the sum of all; any other must lower the larger
    one. No node becomes fuller by CPU than the
    fullest was, or ``room`` above the mean. Of a plan that nobody has changed yet nothing
    is known: then every cost counts as a rise.

    Notes
    -----
    The largest cost never rises. The percent difference may: helping one of several bad nodes leaves the
    others as they are. O(nodes + arcs of a node's operators) a move, `TRIALS` tries a period; nodes that were
    not reached come next time.
    """

    name: ClassVar[str] = "degradation"
    summary: ClassVar[str] = (
        "nodes that cost more than when their operators last changed give what removes connections"
    )
    origin: ClassVar[str] = "seed 003, section 6.3.2"

    percent_difference: float = option(
        0.0, "percent that the costs of the fullest and the emptiest node must differ by: 0 any, 100 never",
        least=0.0,
    )  # fmt: skip
    degraded: float = option(10.0, "percent that a node's cost must have risen by", least=0.0)

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """One period: nodes in the order of how much they rose."""
        if not len(situation.node) or not self.sees(situation):
            return ()
        ledger, takers = self.opened(situation), self.takers(situation)
        if ledger.difference <= self.percent_difference or not len(takers):
            return ()
        before = ledger.cost.copy()
        goal = np.nan_to_num(
            np.zeros(ledger.count) if situation.reference is None else situation.reference
        ) * (1.0 + self.degraded / 100.0)
        risen = np.flatnonzero(before > goal + TIE)
        made: list[Trial] = []
        tries, moved = TRIALS, -1
        while tries > 0 and moved < len(made):
            # What one node gave may have made room for what another could not give.
            moved = len(made)
            for node in risen[np.argsort(goal[risen] - ledger.cost[risen], kind="stable")].tolist():
                if tries > 0:
                    tries -= self._relieve(situation, ledger, takers, node, float(goal[node]), made)
        return proposals(ledger, made, before, "its node's cost rose")

    def _relieve(
        self, situation: Situation, ledger: Ledger, takers: Ints, node: int, goal: float, made: list[Trial]
    ) -> int:
        """Move operators away from a node until it is at its goal; the number of tries."""
        refused: set[tuple[int, int]] = set()
        tries = 0
        while ledger.cost[node] > goal + TIE:
            choice = _next(situation, ledger, takers, node, refused)
            if choice is None:
                break
            trial = ledger.attempt(*choice)
            tries += 1
            if _helps(ledger, trial, node) and ledger.has_cpu(*choice):
                ledger.accept(trial, again=True)
                made.append(trial)
                refused.clear()
            else:
                refused.add(choice)
        return tries


def _helps(ledger: Ledger, trial: Trial, node: int) -> bool:
    larger = float(max(ledger.cost[node], ledger.cost[trial.target]))
    new = float(max(trial.cost[node], trial.cost[trial.target]))
    if trial.cost.max() > ledger.cost.max() * (1.0 + TIE):
        return False
    if trial.removed > 0 and new <= larger * (1.0 + TIE):
        return float(trial.cost.sum()) < float(ledger.cost.sum()) * (1.0 - TIE) or new < larger * (1.0 - TIE)
    return new < larger * (1.0 - TIE) and float(ledger.cost[node]) >= float(ledger.cost[trial.target])


def _next(
    situation: Situation, ledger: Ledger, takers: Ints, node: int, refused: set[tuple[int, int]]
) -> tuple[int, int] | None:
    """The unit to try next and where: what removes most connections, else the costliest to the cheapest."""
    units, others = ledger.units_on(node), takers[takers != node]
    if not len(units) or not len(others):
        return None
    cheapest = int(others[np.argmin(ledger.cost[others])])
    owner, near = ledger.ties(units)
    at_home = np.bincount(owner[near == node], minlength=len(units))
    options: list[tuple[int, int, int]] = [(k, cheapest, -int(at_home[k])) for k in range(len(units))]
    away = np.isin(near, others)
    pairs, arcs = np.unique(owner[away] * ledger.count + near[away], return_counts=True)
    options += [
        (pair // ledger.count, pair % ledger.count, count - int(at_home[pair // ledger.count]))
        for pair, count in zip(pairs.tolist(), arcs.tolist(), strict=True)
    ]
    options = [each for each in options if (int(units[each[0]]), each[1]) not in refused]
    if not options:
        return None
    amounts: Floats = ledger.unit_amounts(units)
    important = priorities(situation, ledger, units)
    best = min(
        options,
        key=lambda each: (
            float(important[each[0]]),
            -max(each[2], 0),
            -float(amounts[each[0]]),
            float(ledger.cost[each[1]]),
            each,
        ),
    )
    return int(units[best[0]]), int(best[1])
