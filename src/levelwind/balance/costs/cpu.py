"""CPU: the load that the offered rates ask for, of what the node has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from levelwind.balance.costs.protocol import LOAD
from levelwind.balance.protocol import Situation
from levelwind.loads.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuCost:
    """A node is full when its operators ask for all its CPU, in the mean over the window."""

    name: ClassVar[str] = "cpu"
    summary: ClassVar[str] = "mean load of a node's operators over its CPU"
    origin: ClassVar[str] = "seed 003, section 6.3.2 names it; the load of seed 001, section 2.2"
    statistics: ClassVar[frozenset[str]] = frozenset({LOAD})
    wired: ClassVar[bool] = False

    def capacity(self, situation: Situation) -> Floats:
        """The CPU."""
        return situation.cpu

    def amounts(self, situation: Situation, node: Ints, which: Ints) -> Floats:
        """Mean loads."""
        return situation.mean_load[which]
