"""A join's condition taken apart: what is asked of one row, what makes keys, what is asked of pairs.

Only conditions that cannot fail are asked early: whether a pair is rejected must not depend on how the
rows were cut into batches, and no row may be rejected for a pair that never comes about. A pair is put to
the rest of the condition, in written order, once all early conditions hold for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from levelwind.errors import input_error
from levelwind.frontend.expressions import column_name, parse_expression
from levelwind.frontend.sql.conditions import conjuncts
from levelwind.operators.equality import as_key
from levelwind.operators.expressions import Scalar, compile_tree, passing
from levelwind.operators.expressions.sparktypes import dtype_of
from levelwind.operators.join_safety import key_type, never_fails, value_type

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Types = Mapping[str, str]


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
    if where is None:
        return Condition()
    parsed = parse_expression(where)
    if parsed.tree is None:
        fault = parsed.faults[0]
        raise input_error(fault.rule, value=fault.value, hint=fault.hint)
    types = {**sides[0], **sides[1]}
    alone: tuple[list[Scalar], list[Scalar]] = ([], [])
    keys: list[Key] = []
    rest: list[Expr] = []
    for conjunct in conjuncts(parsed.tree):
        read = _sides_of(conjunct, sides)
        key = _key(conjunct, sides, types) if len(read) == 2 else None
        if key is not None:
            keys.append(key)
        elif len(read) == 1 and never_fails(conjunct, types):
            (side,) = read
            alone[side].append(compile_tree(conjunct.copy(), types))
        elif not _is_true(conjunct):
            rest.append(conjunct)
    return Condition((tuple(alone[0]), tuple(alone[1])), tuple(keys), *_asked_of_pairs(rest, types))


@dataclass(frozen=True, slots=True)
class EqualColumns:
    """A column of the left and one of the right that are equal in every pair, and the type of comparison."""

    sides: tuple[str, str]
    type: str


def equal_columns(where: str | None, sides: Sequence[Types]) -> list[EqualColumns]:
    """The columns that a condition sets equal, in written order. Arguments as for `split_condition`."""
    tree = None if where is None else parse_expression(where).tree
    found = []
    for conjunct in () if tree is None else conjuncts(tree):
        equality = _equality(conjunct, sides, {**sides[0], **sides[1]})
        if equality is not None:
            (left, right), kind = equality
            names = column_name(left), column_name(right)
            if all(name in types for name, types in zip(names, sides, strict=True)):
                found.append(EqualColumns(names, kind))
    return found


def _asked_of_pairs(rest: list[Expr], types: Types) -> tuple[Scalar | None, tuple[str, ...]]:
    """The conditions that are left as one, in written order, and the columns it reads."""
    from sqlglot import expressions as exp

    if not rest:
        return None, ()
    names = {name for conjunct in rest for name in _columns_of(conjunct)}
    reads = tuple(column for column in types if any(_reads(name, column) for name in names))
    whole: Expr = exp.paren(rest[0].copy())
    for conjunct in rest[1:]:
        whole = exp.And(this=whole, expression=exp.paren(conjunct.copy()))
    return compile_tree(whole, types), reads


def _is_true(node: Expr) -> bool:
    from sqlglot import expressions as exp

    return isinstance(node, exp.Boolean) and bool(node.this)


def _columns_of(node: Expr) -> Iterator[str]:
    """The names of the columns below a node, as written."""
    from sqlglot import expressions as exp

    for found in node.walk(prune=lambda each: isinstance(each, exp.Column | exp.Dot)):
        if isinstance(found, exp.Column | exp.Dot):
            yield column_name(found)


def _reads(name: str, column: str) -> bool:
    """Whether a name stands for a column or for a field inside it."""
    return name == column or name.startswith(f"{column}.")


def _sides_of(node: Expr, sides: Sequence[Types]) -> set[int]:
    """The sides that a condition reads."""
    return {
        side
        for name in _columns_of(node)
        for side, types in enumerate(sides)
        if any(_reads(name, column) for column in types)
    }


def _key(node: Expr, sides: Sequence[Types], types: Types) -> Key | None:
    """The key that an equality makes, if it is one between the sides and computing it cannot fail."""
    equality = _equality(node, sides, types)
    if equality is None:
        return None
    (left, right), kind = equality
    return Key((compile_tree(left.copy(), types), compile_tree(right.copy(), types)), kind)


def _equality(node: Expr, sides: Sequence[Types], types: Types) -> tuple[tuple[Expr, Expr], str] | None:
    """What is equal on the left and on the right, and the type in which it is compared."""
    from sqlglot import expressions as exp

    if not isinstance(node, exp.EQ):
        return None
    halves: list[Expr] = [node.this, node.expression]
    read = [_sides_of(half, sides) for half in halves]
    if read == [{1}, {0}]:
        halves.reverse()
    elif read != [{0}, {1}]:
        return None
    kinds = [value_type(half, types) for half in halves]
    if kinds[0] is None or kinds[1] is None:
        return None
    kind = key_type(kinds[0], kinds[1])
    return None if kind is None else ((halves[0], halves[1]), kind)
