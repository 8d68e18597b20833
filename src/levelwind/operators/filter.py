"""Filter: keeps the rows that fulfil a condition, or sends each row the first way whose condition holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from levelwind.model import Operator
from levelwind.model.operator import Filter
from levelwind.operators.expressions import Scalar, compile_scalar, passing
from levelwind.operators.protocol import Kernel, Stepped
from levelwind.operators.rows import Arrived, Rejected, RowType
from levelwind.operators.state import State


def make_filter(operator: Operator, inputs: Sequence[RowType]) -> Kernel:
    """The kernel of a filter: with one condition, or with routes in written order."""
    spec = operator.spec
    assert isinstance(spec, Filter)
    types = inputs[0].types
    if spec.routes:
        return Router({route: compile_scalar(text, types) for route, text in spec.routes.items()})
    return Keeper(compile_scalar("true" if spec.where is None else spec.where, types))


@dataclass(frozen=True, slots=True)
class Keeper:
    """Keeps the rows for which the condition holds; null is as good as false."""

    condition: Scalar

    def step(self, state: State, inputs: Sequence[Arrived]) -> Stepped:
        """The rows that are kept, in their order."""
        rows = inputs[0].rows
        if rows.height == 0:
            return Stepped({None: rows}, state)
        mask, reasons = passing(self.condition, rows)
        rejected = _rejected(rows, reasons)
        return Stepped({None: rows if mask.all() else _kept(rows, mask)}, state, rejected)


@dataclass(frozen=True, slots=True)
class Router:
    """Sends each row to the first route whose condition holds, in written order; a row with none is dropped.

    A condition is asked only of the rows that no route before has taken: a row cannot fail on a condition
    that it never reaches.
    """

    routes: Mapping[str, Scalar]

    def step(self, state: State, inputs: Sequence[Arrived]) -> Stepped:
        """The rows of every route, in their order."""
        left = inputs[0].rows
        outputs: dict[str | None, pl.DataFrame] = {}
        rejected: tuple[Rejected, ...] = ()
        for route, condition in self.routes.items():
            if left.height == 0:
                outputs[route] = left
                continue
            mask, reasons = passing(condition, left)
            taken = mask.sum()
            if taken == left.height:
                outputs[route], left = left, left.clear()
                continue
            outputs[route] = _kept(left, mask) if taken else left.clear()
            if reasons is not None:
                rejected += _rejected(left, reasons)
                mask = mask | reasons.is_not_null()
            elif not taken:
                continue
            left = _kept(left, ~mask)
        return Stepped(outputs, state, rejected)


def _kept(rows: pl.DataFrame, mask: pl.Series) -> pl.DataFrame:
    """The rows where the mask is true; column by column, which for small frames takes a third of the time."""
    return pl.DataFrame([column.filter(mask) for column in rows.get_columns()])


def _rejected(rows: pl.DataFrame, reasons: pl.Series | None) -> tuple[Rejected, ...]:
    """The rows on which the condition failed."""
    if reasons is None or reasons.null_count() == len(reasons):
        return ()
    bad = reasons.is_not_null()
    return (Rejected(rows.filter(bad), reasons.filter(bad)),)
