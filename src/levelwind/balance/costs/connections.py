"""Connections: how many a node must serve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.balance.facts import around
from levelwind.balance.protocol import Situation
from levelwind.loads.arrays import Floats, Ints
from levelwind.plugins import option


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionsCost:
    """A node is full when it serves ``most`` connections: to other nodes, to sources and to outputs."""

    name: ClassVar[str] = "connections"
    summary: ClassVar[str] = "number of a node's connections to other nodes, sources and outputs"
    origin: ClassVar[str] = "seed 003, section 4.3.4"
    statistics: ClassVar[frozenset[str]] = frozenset()
    wired: ClassVar[bool] = True

    most: float = option(12.0, "connections that make a node full (the paper's bear 8 to 12)", least=1.0)

    def capacity(self, situation: Situation) -> Floats:
        """The same for every node."""
        return np.full(len(situation.cpu), self.most)

    def amounts(self, situation: Situation, node: Ints, which: Ints) -> Floats:
        """Connections that end at each operator. O(arcs of ``which``)."""
        assert situation.facts is not None
        wiring = situation.facts.wiring
        owner, other = around(wiring.near_start, wiring.near, which)
        away = node[other] != node[which][owner]
        ends = np.bincount(owner[away], minlength=len(which)) + wiring.outside[which]
        return ends.astype(np.float64)
