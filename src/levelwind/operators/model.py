"""Model: stands for work of a stated cost, by burning that much CPU time, and of a stated selectivity."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl

from levelwind.model import Model, Operator
from levelwind.operators.protocol import Kernel, Stepped
from levelwind.operators.rows import Arrived, RowType
from levelwind.operators.state import State

# The state: how many rows each input has brought so far, as ``rows0``, ``rows1``, …
COUNT = "rows"
# The stream of one row a second by which load series are burned.
SECONDS = "(seconds)"


def burn(seconds: float, *, since: float | None = None) -> None:
    """Keeps this thread's CPU busy for so many CPU seconds. It does not sleep: load is what it is for.

    Parameters
    ----------
    since
        A reading of `time.thread_time` to count from, so that work already done counts as burned.
    """
    end = (time.thread_time() if since is None else since) + seconds
    while time.thread_time() < end:
        pass


def make_model(operator: Operator, inputs: Sequence[RowType]) -> Kernel:
    """The kernel of a model operator, of any number of inputs, their columns known or not."""
    # As written, not as the nearest binary fraction: 0.29 of 100 rows are 29, not 28. Nine decimal places are
    # kept exactly, and products of counts below then stay within 64 bits.
    selectivity = Fraction(operator.selectivity_of(None)).limit_denominator(10**9)
    assert isinstance(operator.spec, Model)
    outright = operator.spec.load or operator.spec.series
    return Burner(
        0.0 if outright else operator.stated_cost_s, selectivity, tuple(rows.time for rows in inputs)
    )


def outright_load_s(spec: Model, rows: Mapping[str, int], seconds: range) -> float:
    """CPU seconds of a step for a load that is stated outright, which goes before a cost.

    A series goes before load coefficients, as in planning; after its last sample it begins anew.

    Parameters
    ----------
    rows
        Rows that each stream has brought.
    seconds
        The numbers of the seconds that have passed.
    """
    if spec.series:
        return sum(spec.series[second % len(spec.series)] for second in seconds)
    return sum(cost_s * rows.get(stream, 0) for stream, cost_s in (spec.load or {}).items())


@dataclass(frozen=True, slots=True)
class Burner:
    """Burns ``cost_s`` CPU seconds for each row and puts out ``selectivity`` times as many rows.

    Of ``n`` rows that an input has brought in all, ``floor(selectivity · n)`` have been put out: row ``i``
    (from 0) comes out ``floor(selectivity · (i + 1)) − floor(selectivity · i)`` times. That is counted for
    every input by itself, so that neither number nor choice of rows depends on how batches were cut.
    The columns are those of the first input; what another input lacks of them is null.
    """

    cost_s: float
    selectivity: Fraction
    times: tuple[str | None, ...]

    def step(self, state: State, inputs: Sequence[Arrived]) -> Stepped:
        """The rows put out, input by input, after the CPU time of all rows taken in."""
        start = time.thread_time()
        if not inputs:
            return Stepped({None: pl.DataFrame()}, state)
        first = inputs[0].rows
        total = sum(entry.rows.height for entry in inputs)
        if total == 0:
            return Stepped({None: first}, state)
        frames = []
        for index, entry in enumerate(inputs):
            if entry.rows.height:
                taken, state = self._take(entry.rows, state, f"{COUNT}{index}")
                if taken.height:
                    frames.append(taken if index == 0 else self._in_form_of(first, taken, index))
        out = pl.concat(frames) if len(frames) > 1 else frames[0] if frames else first.clear()
        burn(self.cost_s * total, since=start)
        return Stepped({None: out}, state)

    def _take(self, rows: pl.DataFrame, state: State, count: str) -> tuple[pl.DataFrame, State]:
        """Each row as often as it comes out; ``count`` names the number of rows that came before."""
        whole, part = divmod(self.selectivity.numerator, self.selectivity.denominator)
        if part == 0:  # every row counts alike: nothing need be remembered
            taken = rows if whole == 1 else rows.clear() if whole == 0 else _repeated(rows, whole)
            return taken, state
        # Exact in whole numbers: only the remainder of the count matters, and it is small.
        divisor = self.selectivity.denominator
        before = state.marks.get(count, 0)
        place = np.arange(rows.height + 1, dtype=np.int64) + before % divisor
        times = np.diff(place * part // divisor) + whole
        taken = rows[np.flatnonzero(times)] if whole == 0 else _repeated(rows, times)
        return taken, state.with_mark(count, before + rows.height)

    def _in_form_of(self, first: pl.DataFrame, rows: pl.DataFrame, index: int) -> pl.DataFrame:
        """Rows of another input with the columns of the first; the event times stand for each other."""
        names = {name: name for name in rows.columns}
        ours, theirs = self.times[0], self.times[index]
        if ours is not None and theirs is not None:
            names[ours] = theirs
        elif first.width == rows.width == 1:
            names[first.columns[0]] = rows.columns[0]
        columns = []
        for name, dtype in first.schema.items():
            source = names.get(name)
            if source is not None and source in rows.columns and rows.schema[source] == dtype:
                columns.append(rows.get_column(source).alias(name))
            else:
                columns.append(pl.Series(name, [None], dtype=dtype).new_from_index(0, rows.height))
        return pl.DataFrame(columns)


def _repeated(rows: pl.DataFrame, times: int | np.ndarray[tuple[int], np.dtype[np.int64]]) -> pl.DataFrame:
    return rows[np.repeat(np.arange(rows.height), times)]
