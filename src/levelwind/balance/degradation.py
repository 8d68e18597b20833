"""Degradation: nodes that have become worse than they were give what costs them most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.balance.ledger import TIE, Ledger, Trial
from levelwind.balance.protocol import Proposal, Situation
from levelwind.balance.redistribution import Redistribution, difference, proposals, trials
from levelwind.loads.arrays import Ints
from levelwind.plugins import option


@dataclass(frozen=True, slots=True, kw_only=True)
class DegradationPolicy(Redistribution):
    """A node whose cost rose since its operators last changed gives operators until it is as it was.

    It gives, of the lowest priority first, those whose move removes most connections, then those that cost
    most; each to the node that it has most connections to, or else to the cheapest. A move that removes
    connections must not raise the larger of the two costs nor the sum of all; any other must lower the larger
    one. No node becomes fuller by CPU than
    the one that gave was, or ``room`` above the mean. Of a plan that nobody has changed yet nothing is known:
    then every cost counts as a rise.

    Notes
    -----
    The largest cost never rises. The percent difference may: helping one of several bad nodes leaves the
    others as they are. O(nodes + arcs of a node's operators) a move, `trials` tries a period at most; nodes
    that were not reached come next time.
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
        if difference(situation, ledger) <= self.percent_difference or not len(takers):
            return ()
        before = ledger.cost.copy()
        goal = np.nan_to_num(
            np.zeros(ledger.count) if situation.reference is None else situation.reference
        ) * (1.0 + self.degraded / 100.0)
        risen = np.flatnonzero(before > goal + TIE)
        made: list[Trial] = []
        tries, moved = trials(ledger.count), -1
        while tries > 0 and moved < len(made):
            # What one node gave may have made room for what another could not give.
            moved = len(made)
            for node in risen[np.argsort(goal[risen] - ledger.cost[risen], kind="stable")].tolist():
                if tries > 0:
                    tries -= _relieve(situation, ledger, takers, node, float(goal[node]), made, tries)
        return proposals(ledger, made, before, "its node's cost rose")


def _relieve(
    situation: Situation,
    ledger: Ledger,
    takers: Ints,
    node: int,
    goal: float,
    made: list[Trial],
    most: int,
) -> int:
    """Move operators away from a node until it is at its goal; the number of tries."""
    refused: set[tuple[int, int]] = set()
    tries, moved = 0, True
    while moved:
        moved = False
        for choice in _ranked(situation, ledger, takers, node):
            if tries >= most or ledger.cost[node] <= goal + TIE:
                return tries
            if choice in refused:
                continue
            tries += 1
            trial = ledger.attempt(*choice)
            if _helps(ledger, trial, node) and ledger.has_cpu(*choice):
                ledger.accept(trial, again=True)
                made.append(trial)
                moved = True
                break
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


def _ranked(situation: Situation, ledger: Ledger, takers: Ints, node: int) -> list[tuple[int, int]]:
    """Units of a node and where they may go: first what removes most connections, then the costliest.

    Each may go to a node that it has connections to, or to the cheapest.
    """
    units, others = ledger.units_on(node), takers[takers != node]
    if not len(units) or not len(others):
        return []
    owner, near = ledger.ties(units)
    at_home = np.bincount(owner[near == node], minlength=len(units))
    allowed = np.zeros(ledger.count, dtype=bool)
    allowed[others] = True
    away = allowed[near]
    pairs, arcs = np.unique(owner[away] * ledger.count + near[away], return_counts=True)
    unit = np.concatenate([pairs // ledger.count, np.arange(len(units))])
    target = np.concatenate(
        [pairs % ledger.count, np.full(len(units), others[np.argmin(ledger.cost[others])])]
    )
    removed = np.concatenate([arcs, np.zeros(len(units), dtype=np.int64)]) - at_home[unit]
    rank = np.lexsort(
        (
            ledger.cost[target],
            -ledger.unit_amounts(units)[unit],
            -np.maximum(removed, 0),
            ledger.priority[units][unit],
        )
    )
    return list(zip(units[unit[rank]].tolist(), target[rank].tolist(), strict=True))
