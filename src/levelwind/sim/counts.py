"""What a manager may ask of a simulation beside loads; counted only if it does."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from levelwind.balance.costs.protocol import RECEIVING, ROWS_IN, ROWS_OUT, SENDING, SENT, STATE_BYTES
from levelwind.balance.facts import route_shares, stated_parts
from levelwind.loads.arrays import Floats
from levelwind.rewrite.split import PhysicalNetwork
from levelwind.sim.simulator import Simulator


class Counts:
    """Figures per operator, from one report to the next."""

    def __init__(self, simulator: Simulator, physical: PhysicalNetwork) -> None:
        self._simulator, self._names = simulator, physical.names
        self._transfer_s = np.array([operator.logical.transfer_cost_s for operator in physical.operators])
        self._carried = _carried(physical)
        self._since = 0.0
        self._rows_in = self._rows_out = np.zeros(len(self._names), dtype=np.int64)

    def report(self, now_s: float, wanted: Collection[str]) -> dict[str, Any]:
        """The parts of a `StatisticsReported` that hold what is wanted. O(operators + rows held)."""
        found: dict[str, Any] = {}
        sending = not {SENT, SENDING, RECEIVING}.isdisjoint(wanted)
        if sending or not {ROWS_IN, ROWS_OUT}.isdisjoint(wanted):
            taken, rows, lasted = self._simulator.taken, self._simulator.rows_out, now_s - self._since
            came = (taken - self._rows_in) / max(lasted, 1e-9)
            per_s = (rows - self._rows_out) / self._carried / max(lasted, 1e-9)
            self._since, self._rows_in, self._rows_out = now_s, taken, rows
            every = {ROWS_IN: came, ROWS_OUT: per_s}
            found["seen"] = {name: every[name] for name in every if name in wanted}
            if sending:
                # Half of what a row costs is spent at each end, and loads are without it.
                half = per_s * self._transfer_s / 2
                found["seen"] |= {SENT: np.zeros(len(half)), SENDING: half, RECEIVING: half}
        if STATE_BYTES in wanted:
            held = self._simulator.held_bytes.astype(np.int64).tolist()
            found["state_bytes"] = dict(zip(self._names, held, strict=True))
        return found


def _carried(physical: PhysicalNetwork) -> Floats:
    """How many times a simulator counts each operator's rows.

    It has those twice that are read whole and split, and none on routes that nobody reads; but if a network
    states no outputs, whatever nobody reads leaves it.
    """
    carried = np.zeros(len(physical.operators))
    inner = [stream for stream in physical.streams if stream.producer is not None]
    for stream, part in zip(inner, stated_parts(physical, inner), strict=True):
        carried[stream.producer] += part
    read = {(stream.producer, stream.route) for stream in inner}
    for j, operator in enumerate(() if physical.network.outputs else physical.operators):
        shares = route_shares(operator.logical).items()
        carried[j] += sum(share for route, share in shares if (j, route) not in read)
    return np.where(carried > 0.0, carried, 1.0)
