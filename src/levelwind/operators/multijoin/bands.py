"""Bands: conditions that keep a number of one input near a number of another, found by a sorted search.

A band only narrows down which rows are looked at. The condition it was read from is still asked of each
group, so that a band may be a little too wide, as it must be where numbers are rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from levelwind.frontend.columntypes import INTEGERS
from levelwind.operators.expressions import Scalar, compile_tree
from levelwind.operators.expressions.sparktypes import INTEGER_BITS, decimal_of
from levelwind.operators.join_conjuncts import Types, inputs_read
from levelwind.operators.join_safety import value_type

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Floats = npt.NDArray[np.float64]
# How much wider than written, relative to the numbers that are compared: more than any rounding of theirs.
_SLACK, _SLACK_OF_FLOAT = 1e-9, 1e-5
# Of decimals with more digits, sums may not fit.
_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Band:
    """That ``values[0] - values[1]``, of two inputs, lies between two bounds wherever a condition holds.

    ``limit`` is the largest number of either for which computing the condition cannot fail: beyond that,
    rows that the band leaves out might have been rejected.
    """

    inputs: tuple[int, int]
    values: tuple[Scalar, Scalar]
    low: float
    high: float
    slack: float
    limit: float

    def numbers(self, input: int, rows: pl.DataFrame) -> Floats | None:
        """The values of one of the inputs, NaN for null; None if the band does not hold for such values.

        NaN and the infinite are such values: they are greater than any difference.
        """
        values, _ = self.values[self.inputs.index(input)](rows)
        found = values.cast(pl.Float64)
        if found.is_nan().any() or (len(found) and float(found.abs().max() or 0.0) > self.limit):  # type: ignore[arg-type]
            return None
        return found.fill_null(np.nan).to_numpy()

    def around(self, input: int, others: Floats) -> tuple[Floats, Floats]:
        """Between which values of one input the partners of the other input's values lie."""
        if input == self.inputs[0]:
            low, high = others + self.low, others + self.high
        else:
            low, high = others - self.high, others - self.low
        room = self.slack * (2 * np.abs(others) + max(_finite(self.low), _finite(self.high)))
        return low - room, high + room


def _finite(bound: float) -> float:
    return 0.0 if bound in (-inf, inf) else abs(bound)


@dataclass(frozen=True, slots=True)
class _Term:
    """A value of one input, and how the type of it narrows a band."""

    input: int
    value: Expr
    limit: float
    slack: float


# A sum of terms, each with its factor, of a constant, and how large its constants are taken together.
_Sum = tuple[dict[str, tuple[int, _Term]], float, float]
_NOTHING: _Sum = ({}, 0.0, 0.0)


def bands_in(conditions: Sequence[Expr], inputs: Sequence[Types], types: Types) -> tuple[Band, ...]:
    """The bands that some conditions make; several of one pair of values make one."""
    found: dict[tuple[str, str], tuple[_Term, _Term, float, float, float]] = {}
    for condition in conditions:
        for terms, constant, room in _not_above_zero(condition, inputs, types):
            by_factor = {factor: (text, term) for text, (factor, term) in terms.items()}
            if len(terms) != 2 or set(by_factor) != {1, -1}:
                continue
            (plus, above), (minus, below) = by_factor[1], by_factor[-1]
            if above.input == below.input:
                continue
            # above - below <= -constant
            if above.input < below.input:
                key, first, second, low, high = (plus, minus), above, below, -inf, -constant
            else:
                key, first, second, low, high = (minus, plus), below, above, constant, inf
            before = found.get(key)
            if before is not None:
                low, high, room = max(low, before[2]), min(high, before[3]), max(room, before[4])
            found[key] = first, second, low, high, room
    return tuple(
        Band(
            (first.input, second.input),
            (compile_tree(first.value.copy(), types), compile_tree(second.value.copy(), types)),
            low,
            high,
            max(first.slack, second.slack),
            (min(first.limit, second.limit) - room) / 2,
        )
        for first, second, low, high, room in found.values()
    )


def _not_above_zero(condition: Expr, inputs: Sequence[Types], types: Types) -> Iterator[_Sum]:
    """Sums that are at most zero wherever the condition holds."""
    from sqlglot import expressions as exp

    if isinstance(condition, exp.Between):
        yield from _difference(condition.args["low"], condition.this, inputs, types)
        yield from _difference(condition.this, condition.args["high"], inputs, types)
    elif isinstance(condition, exp.LT | exp.LTE):
        yield from _difference(condition.this, condition.expression, inputs, types)
    elif isinstance(condition, exp.GT | exp.GTE):
        yield from _difference(condition.expression, condition.this, inputs, types)
    elif isinstance(condition, exp.EQ):
        yield from _difference(condition.this, condition.expression, inputs, types)
        yield from _difference(condition.expression, condition.this, inputs, types)


def _difference(small: Expr, large: Expr, inputs: Sequence[Types], types: Types) -> Iterator[_Sum]:
    """What ``small <= large`` says is at most zero."""
    from sqlglot import expressions as exp

    most = _sum(large, inputs, types)
    inner = small.unnest()
    least = _sum(inner.this if isinstance(inner, exp.Abs) else small, inputs, types)
    if most is None or least is None:
        return
    yield _plus(least, most, -1)
    if isinstance(inner, exp.Abs):
        yield _plus(_plus(_NOTHING, least, -1), most, -1)


def _sum(node: Expr, inputs: Sequence[Types], types: Types) -> _Sum | None:
    from sqlglot import expressions as exp

    node = node.unnest()
    if isinstance(node, exp.Literal):
        return None if node.is_string else ({}, float(node.this), abs(float(node.this)))
    if isinstance(node, exp.Neg):
        inner = _sum(node.this, inputs, types)
        return None if inner is None else _plus(_NOTHING, inner, -1)
    if isinstance(node, exp.Add | exp.Sub):
        left, right = _sum(node.this, inputs, types), _sum(node.expression, inputs, types)
        if left is None or right is None:
            return None
        return _plus(left, right, 1 if isinstance(node, exp.Add) else -1)
    read, kind = inputs_read(node, inputs), value_type(node, types)
    if len(read) != 1 or kind is None:
        return None
    if kind in INTEGERS:
        limit, slack = float(2 ** (INTEGER_BITS[kind] - 1) - 1), _SLACK
    elif kind in ("float", "double"):
        limit = float(np.finfo(np.float32 if kind == "float" else np.float64).max) / 4
        slack = _SLACK_OF_FLOAT if kind == "float" else _SLACK
    else:
        digits = decimal_of(kind)
        if digits is None or digits[0] > _MOST_DIGITS:
            return None
        limit, slack = inf, _SLACK
    return {node.sql(dialect="spark"): (1, _Term(read.pop(), node, limit, slack))}, 0.0, 0.0


def _plus(left: _Sum, right: _Sum, sign: int) -> _Sum:
    terms = dict(left[0])
    for text, (factor, term) in right[0].items():
        before = terms.get(text)
        # One that cancels out stays, and spoils the band: computing it might have failed.
        terms[text] = ((0 if before is None else before[0]) + sign * factor, term)
    return terms, left[1] + sign * right[1], left[2] + right[2]
