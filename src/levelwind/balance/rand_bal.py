"""Chance: which operators a pair balances with does not matter, or so it was thought."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.balance.pairing import CENTRAL, PAIRINGS
from levelwind.balance.pairwise import PAIRING_TEXT, THRESHOLD, THRESHOLD_TEXT, propose_pairwise
from levelwind.balance.protocol import Proposal, Situation
from levelwind.balance.rounds import BY_CHANCE
from levelwind.plugins import option


@dataclass(frozen=True, slots=True, kw_only=True)
class RandBalPolicy:
    """The fuller node of a pair gives random operators that fit half the difference, until none fits."""

    name: ClassVar[str] = "rand_bal"
    summary: ClassVar[str] = "the fuller node of a pair gives operators by chance"
    origin: ClassVar[str] = "seed 001, section 5.1.3"

    threshold: float = option(THRESHOLD, THRESHOLD_TEXT, least=0.0)
    pairing: str = option(CENTRAL, PAIRING_TEXT, choices=PAIRINGS)

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """One period of pairs."""
        return propose_pairwise(
            situation,
            rng,
            reason="balances the pair, by chance",
            method=BY_CHANCE,
            pairing=self.pairing,
            threshold=self.threshold,
        )
