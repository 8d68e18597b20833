"""How rows are parted among the instances of a split operator, so that those that belong together meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from levelwind.errors import input_error
from levelwind.frontend.columntypes import UNKNOWN
from levelwind.model import Operator
from levelwind.model.operator import Join, Multijoin
from levelwind.operators.join_conjuncts import equal_columns
from levelwind.operators.rows import RowType


@dataclass(frozen=True, slots=True)
class Cut:
    """The columns of an input that are hashed (none: all), the types they are hashed in, and into how many.

    A type is None where a column's own will do.
    """

    columns: tuple[str, ...]
    types: tuple[str | None, ...]
    into: int


def cuts_of(operator: Operator, inputs: Sequence[RowType]) -> tuple[Cut, ...]:
    """How each input of a split operator is cut.

    Raises
    ------
    InputError
        If a join is to be split by columns that rows of a pair or group need not agree in.
    """
    assert operator.split is not None
    if isinstance(operator.spec, Join | Multijoin):
        return _of_join(operator, operator.spec, inputs)
    by, into = operator.split.by, operator.split.into
    return tuple(_cut(by, rows, into) for rows in inputs)


def _cut(columns: tuple[str, ...], rows: RowType, into: int) -> Cut:
    # Of an unknown type, the values of one batch may be held in another type than those of the next.
    return Cut(columns, tuple(UNKNOWN if rows.types.get(c) == UNKNOWN else None for c in columns), into)


def _of_join(operator: Operator, spec: Join | Multijoin, inputs: Sequence[RowType]) -> tuple[Cut, ...]:
    """All inputs by columns that are equal in what is joined, hashed in the type in which they compare."""
    assert operator.split is not None
    by = operator.split.by
    types = [
        {f"{alias}.{name}": kind for name, kind in rows.types.items()}
        for alias, rows in zip(spec.aliases, inputs, strict=True)
    ]
    equal = equal_columns(spec.where, types)
    chosen = [each for each in equal if not by or not {*each.columns}.isdisjoint(by)]
    torn = [name for name in by if not any(name in each.columns for each in chosen)]
    if torn or not chosen:
        rule = "a join must be split by columns that its condition sets equal: others would tear pairs apart"
        none = "it sets no columns equal" if len(inputs) == 2 else "it sets no columns of all inputs equal"
        hint = "; ".join(" = ".join(each.columns) for each in equal) or none
        raise input_error(
            rule, key=f"operators.{operator.name}.split.by", value=", ".join(torn) or None, hint=hint
        )
    # In the order in which they are written, which must not change while there is state.
    chosen.sort(key=lambda each: min(by.index(name) for name in each.columns if name in by) if by else 0)
    return tuple(
        Cut(
            tuple(each.columns[input].removeprefix(f"{alias}.") for each in chosen),
            tuple(None if types[input][each.columns[input]] == each.type else each.type for each in chosen),
            operator.split.into,
        )
        for input, alias in enumerate(spec.aliases)
    )
