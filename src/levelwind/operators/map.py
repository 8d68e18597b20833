"""Map: computes new columns row by row; the event time goes along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from levelwind.model import Operator
from levelwind.model.operator import Map
from levelwind.operators.expressions import Scalar, compile_scalar
from levelwind.operators.protocol import Kernel, Stepped
from levelwind.operators.rows import ORDER, Arrived, RowType, split_rejected
from levelwind.operators.state import State


def make_map(operator: Operator, inputs: Sequence[RowType]) -> Kernel:
    """The kernel of a map."""
    spec = operator.spec
    assert isinstance(spec, Map)
    types, time = inputs[0].types, inputs[0].time
    selected = {name: compile_scalar(text, types) for name, text in spec.select.items() if name != time}
    places = list(spec.select)
    return Mapper(selected, time, places.index(time) if time in places else len(places))


@dataclass(frozen=True, slots=True)
class Mapper:
    """Puts out the selected columns, the time column at its place among them, and the hidden order if any.

    A row on which some expression fails is rejected, with the reason of the first that fails.
    """

    selected: Mapping[str, Scalar]
    time: str | None
    place: int
    # What comes of no rows, by whether they are ordered: computed once, since most steps of most operators
    # may see no rows.
    _nothing: dict[bool, pl.DataFrame] = field(default_factory=dict, compare=False, repr=False)

    def step(self, state: State, inputs: Sequence[Arrived]) -> Stepped:
        """The new columns of every row, in their order."""
        rows = inputs[0].rows
        if rows.height == 0:
            ordered = ORDER in rows.columns
            if ordered not in self._nothing:
                self._nothing[ordered] = self._compute(rows)[0]
            return Stepped({None: self._nothing[ordered]}, state)
        computed, reasons = self._compute(rows)
        if reasons is None:
            return Stepped({None: computed}, state)
        _, rejected = split_rejected(rows, reasons)
        if rejected is None:
            return Stepped({None: computed}, state)
        return Stepped({None: computed.filter(reasons.is_null())}, state, (rejected,))

    def _compute(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series | None]:
        columns, reasons = [], None
        for name, scalar in self.selected.items():
            values, failed = scalar(rows)
            columns.append(values.alias(name))
            if failed is not None:
                reasons = failed if reasons is None else reasons.zip_with(reasons.is_not_null(), failed)
        if self.time is not None:
            columns.insert(self.place, rows.get_column(self.time))
        if ORDER in rows.columns:
            columns.append(rows.get_column(ORDER))
        return pl.DataFrame(columns), reasons
