"""Pairs that move only what is worth moving: our own policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.balance.pairing import CENTRAL, PAIRINGS, pairs_of_ready
from levelwind.balance.pairwise import PAIRING_TEXT, THRESHOLD, THRESHOLD_TEXT
from levelwind.balance.protocol import Proposal, Situation
from levelwind.balance.rounds import run_worth
from levelwind.balance.standing import proposals, standing
from levelwind.plugins import option


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyPairsPolicy:
    """Nodes in danger exchange with the node they differ from most, as long as a step is worth its load.

    One figure for evenness and steadiness, Σ E(X_i²)/C_i, decides everything: which partner (the one with
    which evening out would gain most), which step (move or swap, the largest gain per load moved), and when
    to stop (when the gain per load falls below ``worth`` times the idle share of the pair's CPU). In danger
    is a node whose mean load plus standard deviation exceeds its CPU, or whose relative load exceeds the
    least by more than ``threshold``. Operators of low priority move first: the others take part only where
    those do not take a pair out of danger.

    Notes
    -----
    O(nodes² × samples + exchanges × units of a pair² × (samples + steps)). Ours. Against ``cor_se_imp``: the
    partner is chosen by what there is to gain, not by correlation alone, and a step is weighed against the
    load that it moves, so that noise in a short window moves nothing.
    """

    name: ClassVar[str] = "steady_pairs"
    summary: ClassVar[str] = "nodes in danger exchange what lowers load and variance most for the load moved"
    origin: ClassVar[str] = "ours; the goal of seed 001, section 2.4, weighed against moved load"

    threshold: float = option(THRESHOLD, THRESHOLD_TEXT, least=0.0)
    worth: float = option(
        0.36, "least gain per load moved, as a share of the pair's idle CPU: more moves less", least=0.0
    )
    pairing: str = option(CENTRAL, PAIRING_TEXT, choices=PAIRINGS)

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """One period of exchanges."""
        before = standing(situation)
        pairs = np.zeros((0, 2), dtype=np.int64)
        if self.pairing != CENTRAL:
            pairs = pairs_of_ready(before.relative, before.ready, self.pairing, rng)
            if not len(pairs):
                return ()
        node = before.node.copy()
        turn = run_worth(
            before.series, node, before.free, before.cpu, pairs, self.threshold, self.worth, before.rank,
            before.ready,
        )  # fmt: skip
        return proposals(before, node, turn, "lowers load and variance of two nodes")
