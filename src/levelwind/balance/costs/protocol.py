"""What a cost model is: statistics and wiring in, a normalised cost table out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from levelwind.balance.protocol import Situation
from levelwind.loads.arrays import Floats, Ints, sum_by
from levelwind.model.frozen import frozen_mapping

# What a run can count for each operator. A cost model names those that it reads; no other is collected.
LOAD, ROWS_IN, ROWS_OUT, STATE_BYTES = "load", "rows_in", "rows_out", "state_bytes"
SENT, SENDING, RECEIVING = "sent", "sending", "receiving"
STATISTICS: Mapping[str, str] = frozen_mapping(
    {
        LOAD: "CPU seconds per second that the offered rates ask for",
        ROWS_IN: "rows taken in per second",
        ROWS_OUT: "rows put out per second, on all routes together",
        STATE_BYTES: "bytes of rows that it keeps in memory",
        SENT: "the part of its load that goes into sending its rows to other nodes",
        SENDING: "load of sending its rows, if other nodes read all of them",
        RECEIVING: "load of receiving its rows, on each other node that reads all of them",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTable:
    """How full every node is, and what part of that is each operator's.

    Parameters
    ----------
    node
        Cost of each node: 0 is empty, 1 is full.
    operator
        What each operator adds to the cost of the node where it stands.
    share
        The same as a part of the node's cost (equation 6.2): those on one node sum up to 1, or to 0 on a
        node without cost.
    """

    node: Floats
    operator: Floats
    share: Floats

    @property
    def percent_difference(self) -> float:
        """How far apart the fullest and the emptiest node are, in percent of a full one; 0 to 100."""
        return percent_difference(self.node)


def percent_difference(cost: Floats) -> float:
    """The largest cost less the smallest, in percent of 1, or of the largest if that is above 1."""
    if not len(cost):
        return 0.0
    return float(percent_between(cost.max(), cost.min()))


def percent_between(high: Floats, low: Floats) -> Floats:
    """How far a lower cost is from a higher one, in percent of 1, or of the higher one if that is above 1."""
    # Rounding must not make it more than all: 100 means never.
    return np.minimum(100.0, 100.0 * (high - low) / np.maximum(1.0, high))


class CostModel(Protocol):
    """Says how full a node is. The cost of a node is the sum of its operators' amounts over its capacity.

    Pure, and it tells nodes and operators apart by position alone. It is a frozen dataclass; its fields are
    its options, made by `option`. ``statistics`` names what it reads of `STATISTICS`; ``wired`` whether the
    amount of an operator depends on where those stand that it exchanges rows with (never on any other).
    A wired model needs a situation with facts.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    origin: ClassVar[str]
    statistics: ClassVar[frozenset[str]]
    wired: ClassVar[bool]

    def capacity(self, situation: Situation) -> Floats:
        """What makes each node full, in the unit of the amounts; above 0."""
        ...

    def amounts(self, situation: Situation, node: Ints, which: Ints) -> Floats:
        """Amounts of the operators in ``which``, if all operators stood as ``node`` says."""
        ...


def cost_table(model: CostModel, situation: Situation) -> CostTable:
    """The cost table of a situation. O(operators + arcs)."""
    every = np.arange(len(situation.node))
    amounts = model.amounts(situation, situation.node, every)
    operator = amounts / model.capacity(situation)[situation.node]
    node = sum_by(situation.node, operator, len(situation.cpu))
    own = node[situation.node]
    share = np.divide(operator, own, out=np.zeros_like(operator), where=own > 0)
    return CostTable(node=node, operator=operator, share=share)


def fair_capacity(situation: Situation, total: float) -> Floats:
    """Capacity where nobody states one: an equal part of a total, so that a node of cost 1 has its share."""
    count = max(1, len(situation.cpu))
    return np.full(len(situation.cpu), total / count if total > 0 else 1.0)
