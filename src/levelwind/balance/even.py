"""Balance: operators from the costliest node to the cheapest, until costs are even."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.balance.costs.protocol import percent_difference
from levelwind.balance.ledger import TIE, Ledger, Trial
from levelwind.balance.protocol import Proposal, Situation
from levelwind.balance.redistribution import TRIALS, Redistribution, difference, priorities, proposals
from levelwind.loads.arrays import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancePolicy(Redistribution):
    """The node of the largest cost gives to the one of the smallest, until they differ by less than asked.

    Of the operators whose move lowers the larger of the two costs, those of the lowest priority go first,
    then those that remove a connection, then the one that leaves the larger cost lowest. Nodes in between
    are left alone. The percent difference never becomes larger, and no node becomes fuller by CPU than the
    one that gave was, or ``room`` above the mean. O(nodes + operators of a node) a move, `TRIALS` tries a
    period at most.
    """

    name: ClassVar[str] = "balance"
    summary: ClassVar[str] = (
        "the costliest node gives to the cheapest until costs are even, by any cost model"
    )
    origin: ClassVar[str] = "seed 003, section 6.3.2"

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """One period."""
        if not len(situation.node) or not self.sees(situation):
            return ()
        ledger, takers = self.opened(situation), self.takers(situation)
        before, made, refused = ledger.cost.copy(), list[Trial](), set[tuple[int, int]]()
        if not len(takers):
            return ()
        for _ in range(TRIALS):
            if difference(situation, ledger) <= self.percent_difference:
                break
            heavy, light = int(np.argmax(ledger.cost)), int(takers[np.argmin(ledger.cost[takers])])
            units = ledger.units_on(heavy)
            units = units[[(unit, light) not in refused for unit in units.tolist()]] if refused else units
            best = _best(situation, ledger, units, heavy, light)
            if best is None:
                break
            trial, larger = ledger.attempt(best, light), float(ledger.cost[heavy])
            after = percent_difference(trial.cost)
            falls = max(trial.cost[heavy], trial.cost[light]) < larger * (1.0 - TIE)
            fine = falls and trial.cost.max() <= larger * (1.0 + TIE) and after <= ledger.difference + TIE
            if fine and ledger.has_cpu(best, light):
                ledger.accept(trial)
                made.append(trial)
            else:
                refused.add((best, light))
        return proposals(ledger, made, before, "evens out cost")


def _best(situation: Situation, ledger: Ledger, units: Ints, heavy: int, light: int) -> int | None:
    """The unit to move, judged by the amounts as they stand; None if none lowers the larger cost."""
    if not len(units) or heavy == light:
        return None
    amounts = ledger.unit_amounts(units)
    larger = np.maximum(
        ledger.cost[heavy] - amounts / ledger.capacity[heavy],
        ledger.cost[light] + amounts / ledger.capacity[light],
    )
    owner, near = ledger.ties(units)
    removed = np.bincount(owner[near == light], minlength=len(units)) - np.bincount(
        owner[near == heavy], minlength=len(units)
    )
    fits = (larger < ledger.cost[heavy] * (1.0 - TIE)) & (amounts > 0)
    if ledger.model.wired:
        # The amounts are those of today; beside their neighbours they may be less.
        fits |= removed > 0
    if not fits.any():
        return None
    rank = np.lexsort((larger, removed <= 0, priorities(situation, ledger, units), ~fits))
    return int(units[rank[0]])
