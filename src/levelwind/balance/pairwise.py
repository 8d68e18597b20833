"""What the papers' pair-wise policies share: a period from situation to proposals."""

from __future__ import annotations

import numpy as np

from levelwind.balance.pairing import CENTRAL, pairs_of_ready, partners
from levelwind.balance.protocol import Proposal, Situation
from levelwind.balance.rounds import run_round
from levelwind.balance.standing import proposals, standing

# The values of table 2 of seed 001, which are the policies' defaults.
THRESHOLD, SCORE, CORRELATED = 0.1, 0.2, 0.8
THRESHOLD_TEXT = "difference of relative loads from which a pair balances (ε)"
SCORE_TEXT = "least score with which an operator is exchanged (δ)"
CORRELATED_TEXT = "nodes correlated more than this are left alone (θ)"
PAIRING_TEXT = "who balances with whom: central knows all loads, random and neighbour need no coordinator"


def propose_pairwise(
    situation: Situation,
    rng: np.random.Generator,
    *,
    reason: str,
    method: int,
    pairing: str,
    threshold: float,
    score: float = SCORE,
    improve_below: float | None = None,
) -> tuple[Proposal, ...]:
    """One period: pairs balance by ``method``; then nodes in danger improve, if given ``improve_below`` (θ).

    Decentralised, a node in danger knows only the node that it meets in this period. Operators of low
    priority move first: the others take part only where those do not relieve a pair.
    O(nodes × units of a pair² × samples), times the number of priorities on a pair.
    """
    before = standing(situation)
    pairs = pairs_of_ready(before.relative, before.ready, pairing, rng)
    count = len(before.cpu)
    partner = np.full(count, -1, dtype=np.int64) if pairing == CENTRAL else partners(pairs, count)
    node = before.node.copy()
    turn = run_round(
        before.series,
        node,
        before.free,
        before.cpu,
        pairs,
        partner,
        method,
        improve_below is not None,
        threshold,
        score,
        -1.0 if improve_below is None else improve_below,
        rng.random(len(node)),
        before.rank,
        before.ready,
    )
    return proposals(before, node, turn, reason)
