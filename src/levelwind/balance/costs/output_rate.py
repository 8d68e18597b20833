"""Network output: how much a node sends to others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.balance.costs.protocol import ROWS_IN, ROWS_OUT, fair_capacity
from levelwind.balance.facts import around, capacities
from levelwind.balance.protocol import Situation
from levelwind.loads.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRateCost:
    """A node costs what its operators send to other nodes: equations 6.1 and 6.2.

    An operator's rows are sent once to every other node that reads them, however many operators do there;
    rows that are read on their own node cost nothing. Of a route, and for an instance of a split operator,
    only its own rows are sent: as many as were seen to arrive, or as are stated. Where every node states its
    ``bandwidth`` and every operator the ``bytes`` of its rows, a node is full when it sends as much as it
    can; otherwise a cost of 1 means as many rows as a node puts out on average, sent or not.
    """

    name: ClassVar[str] = "output_rate"
    summary: ClassVar[str] = "rows that a node sends to other nodes per second"
    origin: ClassVar[str] = "seed 003, equations 6.1 and 6.2"
    statistics: ClassVar[frozenset[str]] = frozenset({ROWS_IN, ROWS_OUT})
    wired: ClassVar[bool] = True

    def capacity(self, situation: Situation) -> Floats:
        """Stated bandwidth, or an equal part of all that is put out."""
        assert situation.facts is not None
        stated = capacities(situation.nodes, "bandwidth_bytes_per_s")
        if stated is not None and situation.facts.all_bytes:
            return stated
        every = np.arange(len(situation.node))
        return fair_capacity(situation, float(_rates(situation, every).sum()))

    def amounts(self, situation: Situation, node: Ints, which: Ints) -> Floats:
        """Rate of each stream of an operator times the other nodes that read it. O(arcs of ``which``)."""
        assert situation.facts is not None
        wiring, count = situation.facts.wiring, max(1, len(situation.cpu))
        owner, arc = around(wiring.reader_start, wiring.reader_arc, which)
        target = node[wiring.consumer[arc]]
        away = target != node[which][owner]
        owner, arc, target = owner[away], arc[away], target[away]
        _, first = np.unique(wiring.stream[arc] * count + target, return_index=True)
        parts = situation.part[wiring.stream[arc[first]]]
        return _rates(situation, which) * np.bincount(owner[first], weights=parts, minlength=len(which))


def _rates(situation: Situation, which: Ints) -> Floats:
    """What operators put out: bytes per second if all state the bytes of a row, else rows."""
    assert situation.facts is not None
    rows: Floats = situation.seen[ROWS_OUT][which]
    return rows * situation.facts.bytes[which] if situation.facts.all_bytes else rows
