"""Memory: the share of it that rows fill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from levelwind.balance.costs.protocol import STATE_BYTES, fair_capacity
from levelwind.balance.facts import capacities
from levelwind.balance.protocol import Situation
from levelwind.loads.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCost:
    """A node is full when the rows that its operators keep fill its memory.

    Where not every node states its ``memory``, a cost of 1 is an equal part of all that is kept.
    """

    name: ClassVar[str] = "memory"
    summary: ClassVar[str] = "share of a node's memory that its operators' rows fill"
    origin: ClassVar[str] = "seed 003, figure 6.1"
    statistics: ClassVar[frozenset[str]] = frozenset({STATE_BYTES})
    wired: ClassVar[bool] = False

    def capacity(self, situation: Situation) -> Floats:
        """Stated memory, or an equal part of all state."""
        stated = capacities(situation.nodes, "memory_bytes")
        return fair_capacity(situation, float(situation.state_bytes.sum())) if stated is None else stated

    def amounts(self, situation: Situation, node: Ints, which: Ints) -> Floats:
        """Bytes of state."""
        return situation.state_bytes[which]
