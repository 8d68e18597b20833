"""Fusion: the groups that all parts of a spread join have found, as one stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from levelwind.model import Operator
from levelwind.operators.protocol import Kernel, Stepped
from levelwind.operators.rows import Arrived, RowType
from levelwind.operators.state import State


def make_fusion(operator: Operator, inputs: Sequence[RowType]) -> Kernel:
    """The kernel of a fusion."""
    return Fuser()


@dataclass(frozen=True, slots=True)
class Fuser:
    """Puts groups together. No group is found by two parts, so that there is nothing to compare."""

    def step(self, state: State, inputs: Sequence[Arrived]) -> Stepped:
        """All groups."""
        frames = [arrived.rows for arrived in inputs if arrived.rows.height]
        if not frames:
            return Stepped({None: inputs[0].rows}, state)
        return Stepped({None: frames[0] if len(frames) == 1 else pl.concat(frames)}, state)
