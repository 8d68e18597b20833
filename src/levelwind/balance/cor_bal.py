"""One way, by correlation: the fuller node gives what rises with it and not with the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.balance.pairing import CENTRAL, PAIRINGS
from levelwind.balance.pairwise import PAIRING_TEXT, THRESHOLD, THRESHOLD_TEXT, propose_pairwise
from levelwind.balance.protocol import Proposal, Situation
from levelwind.balance.rounds import ONE_WAY
from levelwind.plugins import option


@dataclass(frozen=True, slots=True, kw_only=True)
class CorBalPolicy:
    """The fuller node of a pair gives operators, best score first, until nothing fits half the difference.

    The score of an operator is (ρ with its own node, less ρ with the other)/2. Moves the least load of the
    policies by correlation, and nothing at all if mean loads are even.
    """

    name: ClassVar[str] = "cor_bal"
    summary: ClassVar[str] = "the fuller node of a pair gives what correlates with it and not with the other"
    origin: ClassVar[str] = "seed 001, section 3.3.1; seed 000, figure 5.2"

    threshold: float = option(THRESHOLD, THRESHOLD_TEXT, least=0.0)
    pairing: str = option(CENTRAL, PAIRING_TEXT, choices=PAIRINGS)

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """One period of pairs."""
        return propose_pairwise(
            situation,
            rng,
            reason="balances the pair, one way by correlation",
            method=ONE_WAY,
            pairing=self.pairing,
            threshold=self.threshold,
        )
