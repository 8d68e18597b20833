"""What an operator's kernel is: rows and state in, rows and state out, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import polars as pl

from levelwind.model import Operator
from levelwind.operators.rows import Arrived, Rejected, RowType
from levelwind.operators.state import EMPTY, State


@dataclass(frozen=True, slots=True)
class Stepped:
    """What one step of an operator puts out: rows by route, the new state, rows it could not process.

    ``shed`` counts rows that it left out because there were too many, as its operator says it may. ``said``
    is what it has to say of how it works, as plain data; ``decisions`` in it, how often it changed its mind.
    """

    outputs: Mapping[str | None, pl.DataFrame]
    state: State = EMPTY
    rejected: tuple[Rejected, ...] = ()
    shed: int = 0
    said: Mapping[str, Any] | None = None


class Kernel(Protocol):
    """One operator at work. A kernel is immutable: all it remembers is the state it is given.

    ``step`` is called once per batch, with everything that has reached each input, in the order of the
    operator's inputs, empty frames included. It must

    - give the same result for the same arguments, wherever and however often it is called;
    - put out, over many batches, the same rows whatever way the input was cut into batches;
    - put out every row whose event time the smallest of the input watermarks has settled, and none that
      is older than that watermark was before the step.

    Once all watermarks are `END` there will be no more rows: everything that is open is put out.
    """

    def step(self, state: State, inputs: Sequence[Arrived]) -> Stepped:
        """Take in what has arrived."""
        ...


@runtime_checkable
class Hearing(Protocol):
    """A kernel that can use what was measured elsewhere. What it puts out over time must not depend on it."""

    def hearing(self, told: Any) -> Kernel:
        """The same kernel, told so."""
        ...


Make = Callable[[Operator, Sequence[RowType]], Kernel]
