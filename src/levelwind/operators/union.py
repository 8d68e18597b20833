"""Union: the rows of all inputs as one stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import polars as pl

from levelwind.model import Operator
from levelwind.operators.protocol import Kernel, Stepped
from levelwind.operators.rows import ORDER, Arrived, RowType
from levelwind.operators.state import State

# The hidden order counts rows of one source in its low bits, sources in those above.
SOURCE_BITS = 48


def make_union(operator: Operator, inputs: Sequence[RowType], leaves: Sequence[int] | None = None) -> Kernel:
    """The kernel of a union.

    Parameters
    ----------
    leaves
        How many distinct sources feed each input: 1 for a stream, more for what a union put out. It keeps
        the order of rows free of collisions; one each if not given.
    """
    counts = [1] * len(inputs) if leaves is None else list(leaves)
    if len(counts) != len(inputs):
        message = f"{operator.name}: {len(inputs)} inputs, but leaves of {len(counts)}"
        raise ValueError(message)
    offsets = [0, *accumulate(counts)][: len(inputs)]
    # What an expression's type is cannot always be told from its text; then the widest of the types counts.
    unknown = any(kind == "unknown" for rows in inputs for kind in rows.types.values())
    shifts = tuple(offset << SOURCE_BITS for offset in offsets)
    return Merger(shifts, "vertical_relaxed" if unknown else "vertical")


@dataclass(frozen=True, slots=True)
class Merger:
    """Puts the rows of all inputs together, input by input; columns go by name, in the first input's order.

    Where rows carry the hidden order, each input's is shifted, so that rows of equal event time come in the
    order of the inputs, whatever batch brings them.
    """

    shifts: tuple[int, ...]
    how: Literal["vertical", "vertical_relaxed"]

    def step(self, state: State, inputs: Sequence[Arrived]) -> Stepped:
        """All rows."""
        first = inputs[0].rows
        names = first.columns
        frames = [
            _shifted(arrived.rows, shift, names)
            for arrived, shift in zip(inputs, self.shifts, strict=True)
            if arrived.rows.height
        ]
        if len(frames) > 1:
            return Stepped({None: pl.concat(frames, how=self.how)}, state)
        return Stepped({None: frames[0] if frames else first}, state)


def _shifted(rows: pl.DataFrame, shift: int, names: list[str]) -> pl.DataFrame:
    """One input's rows, with the columns of the union."""
    found = rows.columns
    if found != names:
        rows = rows.select(names)
    if shift and ORDER in found:
        rows = rows.with_columns(pl.col(ORDER) + shift)
    return rows
