"""Work: CPU, with what sending and receiving would cost under another placement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from levelwind.balance.costs.protocol import LOAD, RECEIVING, ROWS_IN, ROWS_OUT, SENDING, SENT
from levelwind.balance.facts import around
from levelwind.balance.protocol import Situation
from levelwind.loads.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCost:
    """A node is full when its operators, and what they send and receive, ask for all of its CPU.

    What was measured of an operator's load has in it what the operator sends where it stands. Without that,
    and with what it would send and receive elsewhere, a placement can be judged before anything is moved:
    rows are made ready for sending once, however many nodes read them, and received by every node that does.
    Of a route, and for an instance of a split operator, only its own rows count. Two operators of one node
    that read the same rows are charged for receiving them each.
    """

    name: ClassVar[str] = "work"
    summary: ClassVar[str] = "share of a node's CPU that operators ask for, sending and receiving included"
    origin: ClassVar[str] = "ours; seed 000, section 4.4, has the CPU cost of sending in planning"
    statistics: ClassVar[frozenset[str]] = frozenset({LOAD, ROWS_IN, ROWS_OUT, SENT, SENDING, RECEIVING})
    wired: ClassVar[bool] = True

    def capacity(self, situation: Situation) -> Floats:
        """CPU of every node."""
        return situation.cpu

    def amounts(self, situation: Situation, node: Ints, which: Ints) -> Floats:
        """Own load, what is sent, and what is received from other nodes. O(arcs of ``which``)."""
        assert situation.facts is not None
        wiring, seen, own = situation.facts.wiring, situation.seen, node[which]
        owner, arc = around(wiring.reader_start, wiring.reader_arc, which)
        away = node[wiring.consumer[arc]] != own[owner]
        # Readers of one stream stand side by side: the first that is away counts.
        streams = wiring.stream[arc[away]]
        first = np.diff(streams, prepend=-1) != 0
        sent = np.bincount(owner[away][first], weights=situation.part[streams[first]], minlength=len(which))
        feeds, arc = around(wiring.source_start, wiring.source_arc, which)
        producer = wiring.producer[arc]
        away = node[producer] != own[feeds]
        amount = seen[RECEIVING][producer[away]] * situation.part[wiring.stream[arc[away]]]
        received = np.bincount(feeds[away], weights=amount, minlength=len(which))
        working: Floats = np.maximum(situation.mean_load[which] - seen[SENT][which], 0.0)
        return working + sent * seen[SENDING][which] + received
