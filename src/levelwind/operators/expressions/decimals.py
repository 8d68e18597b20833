"""Decimal arithmetic by Spark's rules for precision and scale, on unscaled 128-bit integers.

Where an intermediate result may need more than 38 digits, which 128 bits do not hold, the rows are
computed one by one with Python's integers (`widedecimals`): slower, and as exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import polars as pl

from levelwind.operators.expressions import widedecimals
from levelwind.operators.expressions.casts import cast
from levelwind.operators.expressions.numbercasts import (
    as_decimal,
    low_bits,
    rescaled,
    rounded_quotient,
    ten_to,
    truncated_quotient,
    unscaled,
)
from levelwind.operators.expressions.parts import Part, refuse, strict
from levelwind.operators.expressions.shortening import MOST_KEPT, shortened
from levelwind.operators.expressions.sparktypes import (
    INTEGER_DIGITS,
    MOST_DIGITS,
    VOID,
    adjusted_decimal,
    decimal_of,
    decimal_type,
    is_decimal,
)


class Digits(NamedTuple):
    """Precision and scale."""

    precision: int
    scale: int

    @property
    def before(self) -> int:
        """Digits before the point."""
        return self.precision - self.scale


def digits_of(part: Part) -> Digits:
    """Precision and scale of a decimal or integer; a literal has as many digits as are written."""
    if (digits := decimal_of(part.type)) is not None:
        return Digits(*digits)
    if part.is_literal:
        return Digits(len(str(abs(part.constant))), 0)
    return Digits(INTEGER_DIGITS[part.type], 0)


def as_part(part: Part) -> Part:
    """A decimal or an integer as a decimal."""
    return part if is_decimal(part.type) else cast(part, decimal_type(*digits_of(part)))


def combine(operation: str, left: Part, right: Part) -> Part:
    """Two numbers of which one is a decimal and none a float."""
    left, right = _sides(left, right)
    a, b = digits_of(left), digits_of(right)
    kind = _result(operation, a, b)
    fits = max(a.before, b.before) + max(a.scale, b.scale) <= MOST_DIGITS
    if _room(operation, a, b, kind) and fits:
        value = _fast(operation, left.value, right.value, a, b, kind)
    else:
        value = widedecimals.combine(operation, left.value, right.value, a, b, kind)
    if operation in ("Add", "Sub", "Mul"):
        reason = None if _cannot_overflow(operation, a, b, kind) else f"{kind} overflow"
        return strict([left, right], value, kind, reason)
    by_zero = "remainder by zero" if operation in ("Mod", "pmod") else "division by zero"
    zero = unscaled(right.value) == 0
    return strict(
        [right, left], value, kind, pl.when(zero).then(pl.lit(by_zero)).otherwise(pl.lit(f"{kind} overflow"))
    )


def _sides(left: Part, right: Part) -> tuple[Part, Part]:
    sides = []
    for part, other in ((left, right), (right, left)):
        if part.type == VOID:
            part = cast(part, other.type)
        if part.type not in INTEGER_DIGITS and not is_decimal(part.type):
            refuse("must be decimal numbers", part.type)
        sides.append(as_part(part))
    return sides[0], sides[1]


def _result(operation: str, a: Digits, b: Digits) -> str:
    """The type of a result, by https://spark.apache.org/docs/latest/sql-ref-ansi-compliance.html."""
    scale = max(a.scale, b.scale)
    if operation == "Mul":
        return adjusted_decimal(a.precision + b.precision + 1, a.scale + b.scale)
    if operation == "Div":
        scale = max(6, a.scale + b.precision + 1)
        return adjusted_decimal(a.before + b.scale + scale, scale)
    if operation in ("Mod", "pmod"):
        return adjusted_decimal(min(a.before, b.before) + scale, scale)
    if operation == "IntDiv":
        return "bigint"
    return adjusted_decimal(max(a.before, b.before) + scale + 1, scale)


def _room(operation: str, a: Digits, b: Digits, kind: str) -> bool:
    """Whether no intermediate result needs more than 38 digits."""
    if operation == "Mul":
        return a.precision + b.precision <= MOST_DIGITS
    if operation == "Div":
        scale = (decimal_of(kind) or (0, 0))[1]
        # Spark rounds at 39 digits after the point first; with larger divisors that may be seen.
        return a.before + b.scale + scale <= MOST_DIGITS and b.precision + scale <= MOST_DIGITS
    return max(a.before, b.before) + max(a.scale, b.scale) + 1 <= MOST_DIGITS


def _cannot_overflow(operation: str, a: Digits, b: Digits, kind: str) -> bool:
    precision, scale = decimal_of(kind) or (0, 0)
    if operation == "Mul":
        return precision - scale >= a.before + b.before + 1
    return precision - scale >= max(a.before, b.before) + 1


def _fast(operation: str, left: pl.Expr, right: pl.Expr, a: Digits, b: Digits, kind: str) -> pl.Expr:
    if operation == "IntDiv":
        scale = max(a.scale, b.scale)
        x, y = rescaled(unscaled(left), a.scale, scale), rescaled(unscaled(right), b.scale, scale)
        # Java keeps the low 64 bits.
        return low_bits(truncated_quotient(x, y))
    precision, scale = decimal_of(kind) or (0, 0)
    x, y = unscaled(left), unscaled(right)
    if operation == "Mul":
        return as_decimal(rescaled(x * y, a.scale + b.scale, scale), precision, scale)
    if operation == "Div":
        shift = scale - a.scale + b.scale
        return as_decimal(rounded_quotient(x * ten_to(shift), y), precision, scale)
    common = max(a.scale, b.scale)
    x, y = rescaled(x, a.scale, common), rescaled(y, b.scale, common)
    if operation in ("Mod", "pmod"):
        units = _remainder(x, y)
        if operation == "pmod":
            units = pl.when(units < 0).then(_remainder(units + y, y)).otherwise(units)
    else:
        units = x + y if operation == "Add" else x - y
    return as_decimal(rescaled(units, common, scale), precision, scale)


def _remainder(x: pl.Expr, y: pl.Expr) -> pl.Expr:
    return (x.abs() % y.abs()) * x.sign()


def signed(part: Part, compute: Callable[[pl.Expr], pl.Expr]) -> Part:
    """Negated, or without its sign."""
    digits = digits_of(part)
    if digits.precision <= MOST_KEPT:
        value = compute(unscaled(part.value)).reinterpret(dtype=pl.Decimal(*digits))
        return strict([part], value, part.type)
    units = unscaled(part.value)
    # A number that keeps its sign stays as it is.
    turned = compute(units)
    changed = shortened(turned, digits.precision)
    turned = pl.when(turned == units).then(units).otherwise(changed)
    return strict([part], as_decimal(turned, *digits), part.type, f"{part.type} overflow")


def comparable(left: Part, right: Part) -> tuple[Part, Part]:
    """Two decimals as numbers of one scale that Polars compares exactly."""
    a, b = digits_of(left), digits_of(right)
    scale = max(a.scale, b.scale)
    if max(a.before, b.before) + scale > MOST_DIGITS:
        return widedecimals.comparable(left, a, right, b)
    return _units(left, a, scale), _units(right, b, scale)


def _units(part: Part, digits: Digits, scale: int) -> Part:
    value = rescaled(unscaled(part.value), digits.scale, scale)
    return Part(value, part.type, part.checks, part.hidden, part.is_constant, part.constant)
