"""What a manager may ask of a simulation beside loads; counted only if it does."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from levelwind.balance.costs.protocol import ROWS_OUT, STATE_BYTES
from levelwind.sim.simulator import Simulator


class Counts:
    """Figures per operator, from one report to the next."""

    def __init__(self, simulator: Simulator, names: tuple[str, ...]) -> None:
        self._simulator, self._names = simulator, names
        self._since, self._rows = 0.0, np.zeros(len(names), dtype=np.int64)

    def report(self, now_s: float, wanted: Collection[str]) -> dict[str, Any]:
        """The parts of a `StatisticsReported` that hold what is wanted. O(operators + rows held)."""
        found: dict[str, Any] = {}
        if ROWS_OUT in wanted:
            rows = self._simulator.rows_out
            found["seen"] = {ROWS_OUT: (rows - self._rows) / max(now_s - self._since, 1e-9)}
            self._since, self._rows = now_s, rows
        if STATE_BYTES in wanted:
            held = self._simulator.held_bytes.astype(np.int64).tolist()
            found["state_bytes"] = dict(zip(self._names, held, strict=True))
        return found
