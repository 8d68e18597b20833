"""Arithmetic and operations on bits, with Spark's types and its failures on overflow and zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from levelwind.frontend.columntypes import INTEGERS
from levelwind.operators.expressions import decimals, durations
from levelwind.operators.expressions.builder import Builder, Rule
from levelwind.operators.expressions.casts import cast
from levelwind.operators.expressions.coercion import common_type
from levelwind.operators.expressions.literals import number
from levelwind.operators.expressions.numbercasts import truncated_quotient
from levelwind.operators.expressions.parts import Part, refuse, strict
from levelwind.operators.expressions.quotients import exact_quotient
from levelwind.operators.expressions.sparktypes import (
    FLOATS,
    VOID,
    WIDE,
    dtype_of,
    is_decimal,
    is_numeric,
)

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

BY_ZERO = "division by zero"
REMAINDER_BY_ZERO = "remainder by zero"
_SIGNS = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "IntDiv": "div", "pmod": "pmod"}
Compute = Callable[[Part, Part, str], Part]


def overflow(kind: str) -> str:
    """Why a row fails whose result does not fit its type."""
    return f"{kind} overflow"


def _binary(operation: str) -> Rule:
    """The rule of one operator, whose sides are brought to a common type first."""

    def rule(node: Expr, build: Builder) -> Part:
        return combine(operation, build.part(node.this), build.part(node.expression))

    return rule


def _anonymous_binary(operation: str) -> Rule:
    def rule(node: Expr, build: Builder) -> Part:
        left, right = node.expressions
        return combine(operation, build.part(left), build.part(right))

    return rule


def combine(operation: str, left: Part, right: Part) -> Part:
    """Two numbers, or a time and a duration, by ``Add``, ``Sub``, ``Mul``, ``Div``, ``Mod``, …"""
    if operation in ("Add", "Sub") and durations.concerned(left, right):
        return durations.combine(operation, left, right)
    if operation == "Div" and left.type == VOID:
        left = cast(left, "double")
    kind = _operand_type(operation, left, right)
    if is_decimal(kind):
        return decimals.combine(operation, left, right)
    # A string is read as the type of the other side even if both are divided as doubles.
    left, right = cast(left, kind), cast(right, kind)
    kind = {"Div": "double", "IntDiv": "bigint"}.get(operation, kind)
    return _COMPUTE[operation](cast(left, kind), cast(right, kind), kind)


def _operand_type(operation: str, left: Part, right: Part) -> str:
    kind = common_type([left.type, right.type])
    if left.type == right.type == VOID:
        kind = "bigint" if operation == "IntDiv" else "double"
    sign = _SIGNS[operation]
    if kind is None or not is_numeric(kind) or (operation == "IntDiv" and kind in FLOATS):
        refuse(f"'{sign}' must have numbers at both sides", f"{left.type} {sign} {right.type}")
    return kind


def _sum(left: Part, right: Part, kind: str) -> Part:
    return _widely(left, right, kind, lambda a, b: a + b)


def _difference(left: Part, right: Part, kind: str) -> Part:
    return _widely(left, right, kind, lambda a, b: a - b)


def _product(left: Part, right: Part, kind: str) -> Part:
    return _widely(left, right, kind, lambda a, b: a * b)


def _widely(left: Part, right: Part, kind: str, compute: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Part:
    """Integers are computed in a wider type, and what does not fit afterwards is an overflow."""
    if kind in FLOATS:
        return strict([left, right], compute(left.value, right.value), kind)
    value = narrow(compute(wide(left, kind), wide(right, kind)), kind)
    return strict([left, right], value, kind, overflow(kind))


def wide(part: Part, kind: str) -> pl.Expr:
    """An integer in a type in which no single operation overflows."""
    if part.is_constant:
        return pl.lit(part.constant, dtype=WIDE[kind])
    return part.value.cast(WIDE[kind])


def narrow(value: pl.Expr, kind: str) -> pl.Expr:
    """Back to the integer's own type; null if it does not fit."""
    dtype = dtype_of(kind)
    assert dtype is not None
    return value.cast(dtype, strict=False)


def nonzero(part: Part) -> pl.Expr:
    """A float that is null where it is zero."""
    if part.never_null and part.constant != 0:
        return part.value
    return pl.when(part.value != 0).then(part.value)


def _quotient(left: Part, right: Part, kind: str) -> Part:
    # Spark looks at the divisor first: if it is null, the dividend is not evaluated.
    if right.never_null and right.constant != 0:
        return strict([right, left], exact_quotient(left.value, right.constant), kind)
    return strict([right, left], left.value / nonzero(right), kind, BY_ZERO)


def _whole_quotient(left: Part, right: Part, kind: str) -> Part:
    value = narrow(truncated_quotient(wide(left, kind), wide(right, kind)), kind)
    if right.never_null and right.constant not in (0, -1):
        return strict([right, left], value, kind)
    reason = pl.when(right.value == 0).then(pl.lit(BY_ZERO)).otherwise(pl.lit(overflow(kind)))
    return strict([right, left], value, kind, reason)


def _remainder(left: Part, right: Part, kind: str) -> Part:
    reason = None if right.never_null and right.constant != 0 else REMAINDER_BY_ZERO
    if kind in FLOATS:
        value = float_remainder(left.value, nonzero(right), kind)
    else:
        value = narrow(java_remainder(wide(left, kind), wide(right, kind)), kind)
    return strict([right, left], value, kind, reason)


def java_remainder(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """The remainder with the dividend's sign, of integers wide enough for their absolute values."""
    return (left.abs() % right.abs()) * left.sign()


def float_remainder(left: pl.Expr, right: pl.Expr, kind: str) -> pl.Expr:
    """The exact remainder with the dividend's sign; Polars' own is rounded. The divisor is not zero."""
    return pl.map_batches(
        [left, right], lambda sides: _fmod(*sides), return_dtype=dtype_of(kind), is_elementwise=True
    )


def _fmod(left: pl.Series, right: pl.Series) -> pl.Series:
    if len(left) != len(right):
        height = max(len(left), len(right))
        left, right = (
            side if len(side) == height else side.new_from_index(0, height) for side in (left, right)
        )
    missing = left.is_null() | right.is_null()
    with np.errstate(invalid="ignore"):
        values = np.fmod(left.fill_null(1).to_numpy(), right.fill_null(1).to_numpy())
    found = pl.Series(left.name, values, dtype=left.dtype)
    return found.set(missing, None) if missing.any() else found


def _positive_remainder(left: Part, right: Part, kind: str) -> Part:
    """``pmod``: the remainder plus the divisor where it is negative, cut once more, as Java computes it."""
    reason = None if right.never_null and right.constant != 0 else REMAINDER_BY_ZERO
    if kind in FLOATS:
        divisor = nonzero(right)
        first = float_remainder(left.value, divisor, kind)
        second = float_remainder(first + divisor, divisor, kind)
    else:
        # Java adds in int or bigint, where the sum may wrap around.
        java = pl.Int64 if kind == "bigint" else pl.Int32
        first = narrow(java_remainder(wide(left, kind), wide(right, kind)), kind)
        total = (first.cast(java) + right.value.cast(java)).cast(WIDE[kind])
        second = narrow(java_remainder(total, wide(right, kind)), kind)
    value = pl.when(first < 0).then(second).otherwise(first)
    return strict([right, left], value, kind, reason)


_COMPUTE: Mapping[str, Compute] = {
    "Add": _sum,
    "Sub": _difference,
    "Mul": _product,
    "Div": _quotient,
    "IntDiv": _whole_quotient,
    "Mod": _remainder,
    "pmod": _positive_remainder,
}


def numeric(part: Part, what: str) -> Part:
    """A number; a string or NULL is read as a double."""
    if part.type in ("string", VOID):
        return cast(part, "double")
    if not is_numeric(part.type):
        refuse(f"{what} must have a number", part.type)
    return part


def _negated(node: Expr, build: Builder) -> Part:
    inner = node.this
    if type(inner).__name__ == "Literal" and not inner.is_string:
        return number(inner.name, negative=True)
    if type(inner).__name__ == "TryCast" and type(inner.this).__name__ == "Literal":
        literal = inner.this  # 1L is parsed as a cast; the sign belongs to the number all the same
        if not literal.is_string:
            return cast(number(literal.name, negative=True), build.part(inner).type)
    part = build.part(inner)
    if part.type.startswith("interval"):
        return durations.negated(part)
    part = numeric(part, "'-'")
    # Polars does not negate 128-bit integers; a float must keep the sign of its zero.
    return _signed(part, lambda value: -value if part.type in FLOATS else 0 - value)


def _absolute(node: Expr, build: Builder) -> Part:
    return _signed(numeric(build.part(node.this), "abs"), lambda value: value.abs())


def _signed(part: Part, compute: Callable[[pl.Expr], pl.Expr]) -> Part:
    kind = part.type
    if kind in INTEGERS:
        return strict([part], narrow(compute(wide(part, kind)), kind), kind, overflow(kind))
    if is_decimal(kind):
        return decimals.signed(part, compute)
    return strict([part], compute(part.value), kind)


def _bits(compute: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Rule:
    def rule(node: Expr, build: Builder) -> Part:
        left, right = build.part(node.this), build.part(node.expression)
        kind = common_type([left.type, right.type])
        if kind == VOID:
            kind = "int"
        if kind not in INTEGERS:
            refuse("an operation on bits must have integers", f"{left.type}, {right.type}")
        left, right = cast(left, kind), cast(right, kind)
        return strict([left, right], compute(left.value, right.value), kind)

    return rule


def _flipped(node: Expr, build: Builder) -> Part:
    part = build.part(node.this)
    if part.type not in INTEGERS:
        refuse("'~' must have an integer", part.type)
    return strict([part], part.value ^ pl.lit(-1, dtype=dtype_of(part.type)), part.type)


RULES: Mapping[str, Rule] = {
    **{name: _binary(name) for name in ("Add", "Sub", "Mul", "Div", "IntDiv", "Mod")},
    "pmod": _anonymous_binary("pmod"),
    "Neg": _negated,
    "Abs": _absolute,
    "BitwiseAnd": _bits(lambda a, b: a & b),
    "BitwiseOr": _bits(lambda a, b: a | b),
    "BitwiseXor": _bits(lambda a, b: a ^ b),
    "BitwiseNot": _flipped,
}
