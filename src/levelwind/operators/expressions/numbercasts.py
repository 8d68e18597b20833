"""Casts among numbers and booleans; null where a value has no counterpart."""

from __future__ import annotations

import polars as pl

from levelwind.operators.expressions.javanumbers import shortest_text
from levelwind.operators.expressions.quotients import exact_quotient
from levelwind.operators.expressions.sparktypes import decimal_of, dtype_of

# Digits of the largest value, which may be fewer than Spark reserves for the type.
INTEGER_LENGTHS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def plain(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """As Polars does it."""
    return value.cast(_dtype(target), strict=False)


between_integers = plain


def to_boolean(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """Whether a number is other than zero; NaN is."""
    return value != 0


def float_to_integer(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """Cut toward zero.

    Java compares the bound of bigint as a double, which is 2⁶³: that one value too many is let through,
    and becomes the largest bigint.
    """
    whole = value.cast(_dtype(target), strict=False)
    if target != "bigint":
        return whole
    return pl.when(value == 2.0**63).then(pl.lit(2**63 - 1, dtype=pl.Int64)).otherwise(whole)


def unscaled(value: pl.Expr) -> pl.Expr:
    """A decimal's unscaled integer."""
    return value.to_physical()


def as_decimal(units: pl.Expr, precision: int, scale: int) -> pl.Expr:
    """A decimal from its unscaled integer; null if it has more digits than the type."""
    limit = pl.lit(10**precision, dtype=pl.Int128)
    fits = (units < limit) & (units > -limit)
    return pl.when(fits).then(units).reinterpret(dtype=pl.Decimal(precision, scale))


def ten_to(power: int) -> pl.Expr:
    """10ⁿ as a 128-bit integer."""
    return pl.lit(10**power, dtype=pl.Int128)


def low_bits(units: pl.Expr) -> pl.Expr:
    """The low 64 bits of a 128-bit integer, as a signed number."""
    return ((units + 2**63) % 2**64 - 2**63).cast(pl.Int64, strict=False)


def truncated_quotient(units: pl.Expr, by: pl.Expr) -> pl.Expr:
    """An integer quotient, cut toward zero; null by zero. Both are 128-bit."""
    return (units.abs() // by.abs()) * units.sign() * by.sign()


def rounded_quotient(units: pl.Expr, by: pl.Expr) -> pl.Expr:
    """An integer quotient, rounded to the nearest and halves away from zero. Both are 128-bit."""
    size, divisor = units.abs(), by.abs()
    whole = size // divisor
    # Compared this way round nothing can overflow.
    up = (size - whole * divisor) >= divisor - divisor // 2
    return (whole + up.cast(pl.Int128)) * units.sign() * by.sign()


def rescaled(units: pl.Expr, source: int, target: int) -> pl.Expr:
    """Unscaled integers brought from one scale to another; halves are rounded away from zero."""
    if target >= source:
        return units if target == source else units * ten_to(target - source)
    return rounded_quotient(units, ten_to(source - target))


def between_decimals(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """To another precision and scale."""
    (_, s1), (p2, s2) = _digits(source), _digits(target)
    units = unscaled(value)
    if s2 > s1:  # a number too large for the target must not overflow on the way
        limit = ten_to(max(p2 - (s2 - s1), 0))
        units = pl.when((units < limit) & (units > -limit)).then(units)
    return as_decimal(rescaled(units, s1, s2), p2, s2)


def integer_to_decimal(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """Exactly, or null."""
    precision, scale = _digits(target)
    units, limit = value.cast(pl.Int128), ten_to(precision - scale)
    fits = (units < limit) & (units > -limit)
    return (pl.when(fits).then(units) * ten_to(scale)).reinterpret(dtype=pl.Decimal(precision, scale))


def decimal_to_integer(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """Cut toward zero."""
    scale = _digits(source)[1]
    return truncated_quotient(unscaled(value), ten_to(scale)).cast(_dtype(target), strict=False)


def decimal_to_float(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """The nearest float: by way of the written number, unless the unscaled integer is exact as a double."""
    precision, scale = _digits(source)
    if precision <= 15 and target == "double":
        return exact_quotient(unscaled(value).cast(pl.Float64), float(10**scale))
    return value.cast(pl.String).cast(_dtype(target))


def decimal_to_boolean(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """Whether it is other than zero."""
    return unscaled(value) != 0


def boolean_to_decimal(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """1 or 0."""
    return integer_to_decimal(value.cast(pl.Int32), "int", target)


def float_to_decimal(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """The shortest decimal that reads as the float, rounded half up; null for NaN and infinity."""
    from levelwind.operators.expressions.textcasts import text_to_decimal

    # A float is widened first, and has more digits then.
    finite = pl.when(value.is_finite()).then(value).cast(pl.Float64)
    return text_to_decimal(shortest_text(finite), "string", target)


def _digits(kind: str) -> tuple[int, int]:
    found = decimal_of(kind)
    assert found is not None
    return found


def _dtype(kind: str) -> pl.DataType:
    found = dtype_of(kind)
    assert found is not None
    return found
