"""Conditions so simple that asking a column directly is quicker than having Polars plan a query.

A column itself, and its comparison with a constant: most of what operators ask, a thousand times a batch.
They never fail a row.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from levelwind.operators.expressions.builder import Builder

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Shortcut = Callable[[pl.DataFrame], pl.Series]
# Types whose values Polars compares with a Python constant as such, without looking for a common type.
_PLAIN = ("int", "bigint", "double", "string", "boolean")
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "EQ": operator.eq,
    "NEQ": operator.ne,
    "LT": operator.lt,
    "LTE": operator.le,
    "GT": operator.gt,
    "GTE": operator.ge,
}


def shortcut(tree: Expr, build: Builder) -> Shortcut | None:
    """A quicker way to the values of a tree, if there is one."""
    kind = type(tree).__name__
    if kind == "Column":
        return _column(tree, build)
    if kind in _COMPARISONS:
        return _comparison(tree, build, _COMPARISONS[kind])
    return None


def _name(node: Expr, build: Builder) -> str | None:
    """The name of the column that a node is; None if it is something else, or a struct's field."""
    part = build.part(node) if type(node).__name__ == "Column" else None
    if part is None or not part.value.meta.is_column():
        return None
    return part.value.meta.output_name()


def _column(tree: Expr, build: Builder) -> Shortcut | None:
    name = _name(tree, build)
    return None if name is None else lambda rows: rows.get_column(name)


def _comparison(tree: Expr, build: Builder, compare: Callable[[Any, Any], Any]) -> Shortcut | None:
    name = _name(tree.this, build)
    if name is None:
        return None
    kind, constant = build.types[name], build.part(tree.expression)
    same = constant.type == kind or (kind, constant.type) == ("bigint", "int")
    if kind not in _PLAIN or not same or not constant.never_null:
        return None
    value = constant.constant
    return lambda rows: compare(rows.get_column(name), value)
