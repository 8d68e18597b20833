"""A join's condition taken apart: what is asked of one row, what makes keys, what is asked of pairs.

Only conditions that cannot fail are asked early: whether a pair is rejected must not depend on how the
rows were cut into batches, and no row may be rejected for a pair that never comes about. A pair is put to
the rest of the condition, in written order, once all early conditions hold for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from levelwind.operators.equality import as_key
from levelwind.operators.expressions import Scalar, compile_tree, passing
from levelwind.operators.expressions.sparktypes import dtype_of
from levelwind.operators.join_conjuncts import (
    Types,
    conditions_of,
    equality_in,
    inputs_read,
    names_in,
    stands_for,
)
from levelwind.operators.join_safety import never_fails

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


@dataclass(frozen=True, slots=True)
class Key:
    """Two values that must be equal, one of each side, and the type in which they are compared."""

    sides: tuple[Scalar, Scalar]
    type: str


@dataclass(frozen=True, slots=True)
class Condition:
    """A join's condition.

    Attributes
    ----------
    alone
        For the left and the right side: what is asked of each row before it is kept; none if nothing is.
    keys
        Equalities between the sides.
    rest
        What is asked of each pair, or None.
    reads
        The columns that the rest reads.
    """

    alone: tuple[tuple[Scalar, ...], tuple[Scalar, ...]] = ((), ())
    keys: tuple[Key, ...] = ()
    rest: Scalar | None = None
    reads: tuple[str, ...] = ()

    def wanted(self, side: int, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows that can be in a pair at all: a row of the others need not even be kept."""
        for scalar in self.alone[side]:
            if rows.is_empty():
                break
            rows = rows.filter(passing(scalar, rows)[0])
        return rows

    def keys_of(self, side: int, rows: pl.DataFrame) -> pl.DataFrame | None:
        """The values that must be equal, a column each, in the same form on both sides; None without any."""
        if not self.keys:
            return None
        columns = []
        for index, key in enumerate(self.keys):
            values, _ = key.sides[side](rows)
            dtype = dtype_of(key.type)
            assert dtype is not None
            columns.append(as_key(values.cast(dtype)).alias(str(index)))
        return pl.DataFrame(columns)


def split_condition(where: str | None, sides: Sequence[Types]) -> Condition:
    """Takes a condition apart.

    Parameters
    ----------
    where
        The condition; None holds always.
    sides
        Spark type by column of the left and of the right input, columns behind their input's alias.
    """
    types = {**sides[0], **sides[1]}
    alone: tuple[list[Scalar], list[Scalar]] = ([], [])
    keys: list[Key] = []
    rest: list[Expr] = []
    for conjunct in conditions_of(where):
        read = inputs_read(conjunct, sides)
        key = _key(conjunct, sides, types) if len(read) == 2 else None
        if key is not None:
            keys.append(key)
        elif len(read) == 1 and never_fails(conjunct, types):
            (side,) = read
            alone[side].append(compile_tree(conjunct.copy(), types))
        else:
            rest.append(conjunct)
    return Condition((tuple(alone[0]), tuple(alone[1])), tuple(keys), *_asked_of_pairs(rest, types))


def _asked_of_pairs(rest: list[Expr], types: Types) -> tuple[Scalar | None, tuple[str, ...]]:
    """The conditions that are left as one, in written order, and the columns it reads."""
    from sqlglot import expressions as exp

    if not rest:
        return None, ()
    names = {name for conjunct in rest for name in names_in(conjunct)}
    reads = tuple(column for column in types if any(stands_for(name, column) for name in names))
    whole: Expr = exp.paren(rest[0].copy())
    for conjunct in rest[1:]:
        whole = exp.And(this=whole, expression=exp.paren(conjunct.copy()))
    return compile_tree(whole, types), reads


def _key(node: Expr, sides: Sequence[Types], types: Types) -> Key | None:
    """The key that an equality makes, if it is one between the sides and computing it cannot fail."""
    equality = equality_in(node, sides, types)
    if equality is None:
        return None
    left, right = (compile_tree(value.copy(), types) for value in equality.values)
    return Key((left, right), equality.type)
