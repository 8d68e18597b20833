"""Two ways, from scratch: a pair deals out anew all that it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.balance.pairing import CENTRAL, PAIRINGS
from levelwind.balance.pairwise import PAIRING_TEXT, THRESHOLD, THRESHOLD_TEXT, propose_pairwise
from levelwind.balance.protocol import Proposal, Situation
from levelwind.balance.rounds import REDISTRIBUTE
from levelwind.plugins import option


@dataclass(frozen=True, slots=True, kw_only=True)
class CorRePolicy:
    """Both nodes of a pair are emptied and filled again, the emptier one choosing by correlation.

    Finds the better plan of the papers' policies and moves the most load: where an operator stood before is
    not looked at.
    """

    name: ClassVar[str] = "cor_re"
    summary: ClassVar[str] = "a pair redistributes all its operators by correlation"
    origin: ClassVar[str] = "seed 001, section 3.3.2; seed 000, figure 5.3"

    threshold: float = option(THRESHOLD, THRESHOLD_TEXT, least=0.0)
    pairing: str = option(CENTRAL, PAIRING_TEXT, choices=PAIRINGS)

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """One period of pairs."""
        return propose_pairwise(
            situation,
            rng,
            reason="redistributes the pair by correlation",
            method=REDISTRIBUTE,
            pairing=self.pairing,
            threshold=self.threshold,
        )
