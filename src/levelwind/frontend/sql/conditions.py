"""Conditions taken apart: what must all hold, which tables it is about, and how far apart times may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from levelwind.frontend.sql.durations import interval_us
from levelwind.frontend.sql.relations import is_found

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

# A sum of columns, each with its factor, and of microseconds.
Sum = tuple[dict["Expr", int], int]


def conjuncts(tree: Expr) -> Iterator[Expr]:
    """The conditions that must all hold, in written order; without recursion, since chains may be long."""
    from sqlglot import expressions as exp

    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.And):
            stack += [node.expression, node.this]
        elif isinstance(node, exp.Paren):
            stack.append(node.this)
        else:
            yield node


def together(conditions: Sequence[Expr]) -> Expr:
    """One condition that holds where all of some hold."""
    from sqlglot import expressions as exp

    loose = (exp.Or, exp.Connector, exp.Not)
    parts = [exp.paren(each.copy()) if isinstance(each, loose) else each.copy() for each in conditions]
    whole = parts[0] if len(conditions) > 1 else conditions[0].copy()
    for part in parts[1:]:
        whole = exp.And(this=whole, expression=part)
    return whole


def owners(tree: Expr) -> set[str]:
    """The tables whose columns a condition reads."""
    return {node.args["table"].name for node in tree.walk() if is_found(node)}


@dataclass(frozen=True, slots=True)
class Bound:
    """That one column is at most so many microseconds after another."""

    later: Expr
    earlier: Expr
    most_us: int


def bounds(condition: Expr) -> list[Bound]:
    """What a condition says on the time between two columns; nothing if that is not all it says.

    Times are whole microseconds, so that "less than" is "at most one less".
    """
    from sqlglot import expressions as exp

    if isinstance(condition, exp.Between):
        above = _at_most(condition.args["low"], condition.this, 0)
        below = _at_most(condition.this, condition.args["high"], 0)
        return above + below if above and below else []
    reading = _COMPARISONS.get(type(condition).__name__)
    return reading(condition.this, condition.expression) if reading is not None else []


def _at_most(small: Expr, large: Expr, less: int) -> list[Bound]:
    """The bound in ``small + less <= large``."""
    from sqlglot import expressions as exp

    inner = small.unnest()
    if isinstance(inner, exp.Abs):
        within, most = _sum(inner.this), _sum(large)
        if within is None or most is None or most[0]:
            return []
        times, shift = within
        mirrored = ({column: -factor for column, factor in times.items()}, -shift)
        found = [_bound(side, most[1] - less) for side in (within, mirrored)]
    else:
        left, right = _sum(small), _sum(large)
        found = [None if left is None or right is None else _bound(_plus(left, right, -1), -less)]
    return [bound for bound in found if bound is not None]


def _bound(difference: Sum, most: int) -> Bound | None:
    """The bound in ``difference <= most``, if it is one column less another."""
    times, shift = difference
    columns = {factor: column for column, factor in times.items()}
    if len(times) != 2 or set(columns) != {1, -1}:
        return None
    return Bound(columns[1], columns[-1], most - shift)


def _sum(node: Expr) -> Sum | None:
    from sqlglot import expressions as exp

    node = node.unnest()
    if is_found(node):
        return {node: 1}, 0
    if isinstance(node, exp.Add | exp.Sub):
        left, right = _sum(node.this), _sum(node.expression)
        if left is None or right is None:
            return None
        return _plus(left, right, 1 if isinstance(node, exp.Add) else -1)
    length = interval_us(node)
    return None if length is None else ({}, length)


def _plus(left: Sum, right: Sum, sign: int) -> Sum:
    times = dict(left[0])
    for column, factor in right[0].items():
        times[column] = times.get(column, 0) + sign * factor
    return {column: factor for column, factor in times.items() if factor}, left[1] + sign * right[1]


_COMPARISONS: dict[str, Callable[[Expr, Expr], list[Bound]]] = {
    "LTE": lambda left, right: _at_most(left, right, 0),
    "LT": lambda left, right: _at_most(left, right, 1),
    "GTE": lambda left, right: _at_most(right, left, 0),
    "GT": lambda left, right: _at_most(right, left, 1),
    "EQ": lambda left, right: _at_most(left, right, 0) + _at_most(right, left, 0),
}
