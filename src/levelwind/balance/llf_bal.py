"""Largest load first: the classic way for two nodes to balance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.balance.pairing import CENTRAL, PAIRINGS
from levelwind.balance.pairwise import PAIRING_TEXT, THRESHOLD, THRESHOLD_TEXT, propose_pairwise
from levelwind.balance.protocol import Proposal, Situation
from levelwind.balance.rounds import LARGEST_FIRST
from levelwind.plugins import option


@dataclass(frozen=True, slots=True, kw_only=True)
class LlfBalPolicy:
    """The fuller node of a pair gives the largest operator that fits half the difference, until none fits."""

    name: ClassVar[str] = "llf_bal"
    summary: ClassVar[str] = "the fuller node of a pair gives its largest operators first"
    origin: ClassVar[str] = "seed 001, section 5.1.3"

    threshold: float = option(THRESHOLD, THRESHOLD_TEXT, least=0.0)
    pairing: str = option(CENTRAL, PAIRING_TEXT, choices=PAIRINGS)

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """One period of pairs."""
        return propose_pairwise(
            situation,
            rng,
            reason="balances the pair, largest load first",
            method=LARGEST_FIRST,
            pairing=self.pairing,
            threshold=self.threshold,
        )
