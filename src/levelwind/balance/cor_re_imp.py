"""Redistribution, also between even nodes that are likely to be overloaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.balance.pairing import CENTRAL, PAIRINGS
from levelwind.balance.pairwise import (
    CORRELATED,
    CORRELATED_TEXT,
    PAIRING_TEXT,
    THRESHOLD,
    THRESHOLD_TEXT,
    propose_pairwise,
)
from levelwind.balance.protocol import Proposal, Situation
from levelwind.balance.rounds import REDISTRIBUTE
from levelwind.plugins import option


@dataclass(frozen=True, slots=True, kw_only=True)
class CorReImpPolicy:
    """As ``cor_re``, and a node in danger redistributes with the one that it is correlated with least.

    In danger is a node whose divergent load level (mean plus standard deviation) exceeds its CPU.
    It redistributes if the correlation is below θ, and only if that raises it.
    """

    name: ClassVar[str] = "cor_re_imp"
    summary: ClassVar[str] = (
        "cor_re, and nodes likely to be overloaded redistribute with the one they correlate with least"
    )
    origin: ClassVar[str] = "seed 001, section 3.3.4; seed 000, figure 5.5"

    threshold: float = option(THRESHOLD, THRESHOLD_TEXT, least=0.0)
    correlated: float = option(CORRELATED, CORRELATED_TEXT, least=-1.0)
    pairing: str = option(CENTRAL, PAIRING_TEXT, choices=PAIRINGS)

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """One period of pairs."""
        return propose_pairwise(
            situation,
            rng,
            reason="redistributes by correlation",
            method=REDISTRIBUTE,
            pairing=self.pairing,
            threshold=self.threshold,
            improve_below=self.correlated,
        )
