"""What a manager may ask of a simulation beside loads; counted only if it does."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from levelwind.balance.costs.protocol import RECEIVING, ROWS_OUT, SENDING, SENT, STATE_BYTES
from levelwind.rewrite.split import PhysicalOperator
from levelwind.sim.simulator import Simulator


class Counts:
    """Figures per operator, from one report to the next."""

    def __init__(self, simulator: Simulator, operators: Sequence[PhysicalOperator]) -> None:
        self._simulator, self._names = simulator, tuple(operator.name for operator in operators)
        self._transfer_s = np.array([operator.logical.transfer_cost_s for operator in operators])
        self._since, self._rows = 0.0, np.zeros(len(self._names), dtype=np.int64)

    def report(self, now_s: float, wanted: Collection[str]) -> dict[str, Any]:
        """The parts of a `StatisticsReported` that hold what is wanted. O(operators + rows held)."""
        found: dict[str, Any] = {}
        sending = not {SENT, SENDING, RECEIVING}.isdisjoint(wanted)
        if ROWS_OUT in wanted or sending:
            rows = self._simulator.rows_out
            per_s = (rows - self._rows) / max(now_s - self._since, 1e-9)
            self._since, self._rows = now_s, rows
            found["seen"] = {ROWS_OUT: per_s} if ROWS_OUT in wanted else {}
            if sending:
                # Half of what a row costs is spent at each end, and loads are without it.
                half = per_s * self._transfer_s / 2
                found["seen"] |= {SENT: np.zeros(len(half)), SENDING: half, RECEIVING: half}
        if STATE_BYTES in wanted:
            held = self._simulator.held_bytes.astype(np.int64).tolist()
            found["state_bytes"] = dict(zip(self._names, held, strict=True))
        return found
