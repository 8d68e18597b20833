"""Selective exchange, also between even nodes that are likely to be overloaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.balance.pairing import CENTRAL, PAIRINGS
from levelwind.balance.pairwise import (
    CORRELATED,
    CORRELATED_TEXT,
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
class CorSeImpPolicy:
    """As ``cor_se``, and a node in danger exchanges with the one that it is correlated with least.

    In danger is a node whose divergent load level (mean plus standard deviation) exceeds its CPU.
    It exchanges if the correlation is below θ, and only if that raises it.

    The papers' best policy for load that nobody can foresee.
    """

    name: ClassVar[str] = "cor_se_imp"
    summary: ClassVar[str] = (
        "cor_se, and nodes likely to be overloaded exchange with the one they correlate with least"
    )
    origin: ClassVar[str] = "seed 001, section 3.3.4; seed 000, figure 5.5"

    threshold: float = option(THRESHOLD, THRESHOLD_TEXT, least=0.0)
    score: float = option(SCORE, SCORE_TEXT, least=0.0)
    correlated: float = option(CORRELATED, CORRELATED_TEXT, least=-1.0)
    pairing: str = option(CENTRAL, PAIRING_TEXT, choices=PAIRINGS)

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """One period of pairs."""
        return propose_pairwise(
            situation,
            rng,
            reason="exchanges by correlation",
            method=EXCHANGE,
            pairing=self.pairing,
            threshold=self.threshold,
            score=self.score,
            improve_below=self.correlated,
        )
