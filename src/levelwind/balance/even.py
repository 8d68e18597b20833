"""Balance: operators from the costliest node to the cheapest, until costs are even."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from levelwind.balance.costs.protocol import percent_between, percent_difference
from levelwind.balance.ledger import TIE, Ledger, Trial
from levelwind.balance.protocol import Proposal, Situation
from levelwind.balance.redistribution import TRIALS, Redistribution, proposals
from levelwind.loads.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancePolicy(Redistribution):
    """The costliest node with something to give gives to the cheapest, until they differ by less than asked.

    Of the operators whose move lowers the larger of the two costs, those of the lowest priority go first,
    then those that remove a connection, then the one that leaves the larger cost lowest. Where the cheapest
    node takes nothing, as it has no CPU left, say, the next one may; a node that can give nothing, as its
    operators are immovable, not chosen or too large, is left to itself, and the next one gives. No node
    comes to the cost that the one that gave had, the percent difference never becomes larger, and no node
    becomes fuller by CPU than the one that gave was, or ``room`` above the mean. O(nodes + operators of a
    node) a move, `TRIALS` tries a period at most.
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
        if not len(takers):
            return ()
        before, made = ledger.cost.copy(), list[Trial]()
        tries, moved = TRIALS, -1
        while tries > 0 and moved < len(made):
            # What one node gave may have made room for what another could not give.
            moved, givers, refused = len(made), ledger.givers(), set[tuple[int, int]]()
            while tries > 0:
                heavy = int(np.argmax(np.where(givers, ledger.cost, -1.0)))
                cheapest = int(takers[np.argmin(ledger.cost[takers])])
                if not givers[heavy] or not self._apart(ledger.cost[heavy], ledger.cost[cheapest]):
                    break
                units = ledger.units_on(heavy)
                if not len(units):
                    givers[heavy] = False
                    continue
                lights = chain([cheapest], self._others(ledger, takers, units, heavy, cheapest))
                trial, tried = _next(ledger, units, heavy, lights, refused, tries)
                tries -= tried
                if trial is None:
                    givers[heavy] = False
                else:
                    ledger.accept(trial)
                    made.append(trial)
        return proposals(ledger, made, before, "evens out cost")

    def _others(self, ledger: Ledger, takers: Ints, units: Ints, heavy: int, cheapest: int) -> Iterator[int]:
        """Nodes beside the cheapest that could take the least of a node's units, in rising order of cost."""
        others = takers[takers != cheapest]
        others = others[self._apart(ledger.cost[heavy], ledger.cost[others])]
        least = int(units[np.argmin(ledger.unit_load[units])])
        others = others[ledger.with_cpu(least, heavy, others)]
        amounts = ledger.unit_amounts(units)
        smallest = amounts[amounts > 0].min(initial=np.inf)
        fits = ledger.cost[others] + smallest / ledger.capacity[others] < ledger.cost[heavy]
        if ledger.model.wired:
            # The amounts are those of today; beside their neighbours they may be less.
            fits |= np.isin(others, ledger.ties(units)[1])
        others = others[fits]
        yield from others[np.argsort(ledger.cost[others], kind="stable")].tolist()

    def _apart(self, high: Floats, low: Floats) -> NDArray[np.bool_]:
        """Whether costs differ by more than asked."""
        return percent_between(high, low) > self.percent_difference


def _next(
    ledger: Ledger, units: Ints, heavy: int, lights: Iterable[int], refused: set[tuple[int, int]], most: int
) -> tuple[Trial | None, int]:
    """The next move away from a node, None if there is none; and the number of tries."""
    tried = 0
    for light in lights:
        left = units[ledger.with_cpu(units, heavy, light)]
        while tried < most:
            tried += 1
            if refused:
                left = left[[(unit, light) not in refused for unit in left.tolist()]]
            best = _best(ledger, left, heavy, light)
            if best is None:
                break
            trial = ledger.attempt(best, light)
            if _helps(ledger, trial, heavy):
                return trial, tried
            refused.add((best, light))
    return None, tried


def _helps(ledger: Ledger, trial: Trial, heavy: int) -> bool:
    """Whether who gives costs less then, none that rises comes to what it cost, and none drift apart.

    So the costs of all nodes, the largest first, are smaller in the order of words: moves come to an end.
    """
    bound = float(ledger.cost[heavy]) * (1.0 - TIE)
    risen = trial.cost[trial.cost > ledger.cost * (1.0 + TIE)].max(initial=0.0)
    falls = max(float(trial.cost[heavy]), float(risen)) < bound
    return falls and percent_difference(trial.cost) <= ledger.difference + TIE


def _best(ledger: Ledger, units: Ints, heavy: int, light: int) -> int | None:
    """The unit to move, judged by the amounts as they stand; None if none lowers the larger cost."""
    if not len(units):
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
    rank = np.lexsort((larger, removed <= 0, ledger.priority[units], ~fits))
    return int(units[rank[0]])
