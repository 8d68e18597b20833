"""Two ways, selectively: a pair exchanges what stands on the wrong side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.balance.pairing import CENTRAL, PAIRINGS
from levelwind.balance.pairwise import (
    PAIRING_TEXT,
    SCORE,
    SCORE_TEXT,
    THRESHOLD,
    THRESHOLD_TEXT,
    propose_pairwise,
)
from levelwind.balance.protocol import Proposal, Situation
from levelwind.balance.rounds import EXCHANGE
from levelwind.plugins import option


@dataclass(frozen=True, slots=True, kw_only=True)
class CorSePolicy:
    """A pair balances one way, the fuller node gives what scores above δ, again and again, and it balances.

    Between one-way balancing and redistribution, in load moved as in the quality of the plan.
    """

    name: ClassVar[str] = "cor_se"
    summary: ClassVar[str] = "a pair balances, then exchanges operators that score above a threshold"
    origin: ClassVar[str] = "seed 001, section 3.3.3; seed 000, figure 5.4"

    threshold: float = option(THRESHOLD, THRESHOLD_TEXT, least=0.0)
    score: float = option(SCORE, SCORE_TEXT, least=0.0)
    pairing: str = option(CENTRAL, PAIRING_TEXT, choices=PAIRINGS)

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """One period of pairs."""
        return propose_pairwise(
            situation,
            rng,
            reason="exchanges between the pair by correlation",
            method=EXCHANGE,
            pairing=self.pairing,
            threshold=self.threshold,
            score=self.score,
        )
