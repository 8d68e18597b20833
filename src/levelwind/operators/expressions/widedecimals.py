"""Decimal arithmetic whose intermediate results need more than 38 digits, row by row in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import polars as pl

from levelwind.operators.expressions.parts import Part
from levelwind.operators.expressions.sparktypes import MOST_DIGITS, decimal_of

Pair = tuple[int, int]
# Digits after the point to which Spark rounds a quotient before it rounds to the result's scale.
_QUOTIENT_SCALE = 39


def combine(operation: str, left: pl.Expr, right: pl.Expr, a: Pair, b: Pair, kind: str) -> pl.Expr:
    """The exact result, rounded half up to its type; null if it does not fit or divides by zero."""
    # A whole quotient has as many digits as may stand before the point; of them Java keeps 64 bits.
    precision, scale = decimal_of(kind) or (min(a[0] - a[1] + b[1], MOST_DIGITS), 0)
    compute = _OPERATIONS[operation]

    def one(x: int, y: int) -> int | None:
        if y == 0 and operation not in ("Add", "Sub", "Mul"):
            return None
        units, found = compute(x, a[1], y, b[1])
        units = _rescaled(units, found, scale)
        return units if abs(units) < 10**precision else None

    def whole(sides: Sequence[pl.Series]) -> pl.Series:
        height = max(map(len, sides))
        xs, ys = (_units(side, height) for side in sides)
        units = [None if x is None or y is None else one(x, y) for x, y in zip(xs, ys, strict=True)]
        if kind == "bigint":
            kept = [None if u is None else (u + 2**63) % 2**64 - 2**63 for u in units]
            return pl.Series(sides[0].name, kept, dtype=pl.Int64)
        found = pl.Series(sides[0].name, units, dtype=pl.Int128)
        return found.reinterpret(dtype=pl.Decimal(precision, scale))

    dtype = pl.Int64() if kind == "bigint" else pl.Decimal(precision, scale)
    return pl.map_batches([left, right], whole, return_dtype=dtype, is_elementwise=True)


def _units(side: pl.Series, height: int) -> list[int | None]:
    found = side.to_physical().to_list()
    return found if len(found) == height else found * height


def _rescaled(units: int, source: int, target: int) -> int:
    if target >= source:
        return units * 10 ** (target - source)
    return _divided(units, 10 ** (source - target))


def _divided(units: int, by: int) -> int:
    """Rounded to the nearest, halves away from zero."""
    size, divisor = abs(units), abs(by)
    whole, rest = divmod(size, divisor)
    whole += 2 * rest >= divisor
    return whole if (units < 0) == (by < 0) else -whole


def _aligned(x: int, s1: int, y: int, s2: int) -> tuple[int, int, int]:
    scale = max(s1, s2)
    return _rescaled(x, s1, scale), _rescaled(y, s2, scale), scale


def _add(x: int, s1: int, y: int, s2: int) -> Pair:
    a, b, scale = _aligned(x, s1, y, s2)
    return a + b, scale


def _subtract(x: int, s1: int, y: int, s2: int) -> Pair:
    a, b, scale = _aligned(x, s1, y, s2)
    return a - b, scale


def _multiply(x: int, s1: int, y: int, s2: int) -> Pair:
    return x * y, s1 + s2


def _divide(x: int, s1: int, y: int, s2: int) -> Pair:
    shift = _QUOTIENT_SCALE - s1 + s2
    return _divided(x * 10 ** max(shift, 0), y * 10 ** max(-shift, 0)), _QUOTIENT_SCALE


def _truncate(x: int, s1: int, y: int, s2: int) -> Pair:
    a, b, _ = _aligned(x, s1, y, s2)
    whole = abs(a) // abs(b)
    return (whole if (a < 0) == (b < 0) else -whole), 0


def _remainder(x: int, s1: int, y: int, s2: int) -> Pair:
    a, b, scale = _aligned(x, s1, y, s2)
    return _java_remainder(a, b), scale


def _positive_remainder(x: int, s1: int, y: int, s2: int) -> Pair:
    a, b, scale = _aligned(x, s1, y, s2)
    rest = _java_remainder(a, b)
    return (_java_remainder(rest + b, b) if rest < 0 else rest), scale


def _java_remainder(a: int, b: int) -> int:
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


_OPERATIONS: dict[str, Callable[[int, int, int, int], Pair]] = {
    "Add": _add,
    "Sub": _subtract,
    "Mul": _multiply,
    "Div": _divide,
    "IntDiv": _truncate,
    "Mod": _remainder,
    "pmod": _positive_remainder,
}


def comparable(left: Part, a: Pair, right: Part, b: Pair) -> tuple[Part, Part]:
    """The sign of the difference of two decimals, and zero to hold it against."""

    def signs(sides: Sequence[pl.Series]) -> pl.Series:
        height = max(map(len, sides))
        xs, ys = (_units(side, height) for side in sides)
        found = [
            None if x is None or y is None else _sign(x, a[1], y, b[1]) for x, y in zip(xs, ys, strict=True)
        ]
        return pl.Series(sides[0].name, found, dtype=pl.Int8)

    value = pl.map_batches([left.value, right.value], signs, return_dtype=pl.Int8, is_elementwise=True)
    zero = pl.when(right.value.is_not_null()).then(pl.lit(0, dtype=pl.Int8))
    # Null only where its own side is, so that <=> sees which side it was.
    first = pl.when(left.value.is_null()).then(None).otherwise(value.fill_null(1))
    return (
        Part(first, left.type, left.checks, left.hidden),
        Part(zero, right.type, right.checks, right.hidden),
    )


def _sign(x: int, s1: int, y: int, s2: int) -> int:
    difference = Decimal(_subtract(x, s1, y, s2)[0])
    return 0 if difference == 0 else 1 if difference > 0 else -1
