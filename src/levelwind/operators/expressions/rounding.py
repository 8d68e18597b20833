"""Rounding: ``round`` with halves away from zero, ``ceil`` and ``floor``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import polars as pl

from levelwind.frontend.columntypes import INTEGERS
from levelwind.operators.expressions.arguments import argument, constant_of
from levelwind.operators.expressions.arithmetic import narrow, numeric, overflow, wide
from levelwind.operators.expressions.builder import Builder, Rule, null
from levelwind.operators.expressions.casts import cast
from levelwind.operators.expressions.numbercasts import as_decimal, rounded_quotient, ten_to, unscaled
from levelwind.operators.expressions.parts import Part, refuse, strict
from levelwind.operators.expressions.quotients import exact_quotient
from levelwind.operators.expressions.sparktypes import MOST_DIGITS, WIDE, decimal_of, decimal_type
from levelwind.operators.expressions.steps import VALUE, in_steps

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

# Whole numbers up to here are exact as doubles.
_EXACT = 2.0**52


def _round(node: Expr, build: Builder) -> Part:
    part = numeric(build.part(node.this), "round")
    written = node.args.get("decimals")
    digits = 0
    if written is not None:
        found = constant_of(argument(build.part(written), "int", "round"), "round", "the second argument")
        if found is None:
            return null(part.type)
        digits = int(str(found))
    if part.type in INTEGERS:
        return _round_integer(part, digits)
    if (given := decimal_of(part.type)) is not None:
        return _round_decimal(part, *given, digits)
    value = _round_double(part.value.cast(pl.Float64), digits)
    return strict([part], value if part.type == "double" else value.cast(pl.Float32), part.type)


def _round_integer(part: Part, digits: int) -> Part:
    kind = part.type
    if digits >= 0:
        return part
    if -digits > 19:
        return strict([part], part.value * 0, kind)
    units = wide(part, kind).cast(pl.Int128)
    tens = ten_to(-digits)
    value = narrow((rounded_quotient(units, tens) * tens).cast(WIDE[kind], strict=False), kind)
    return strict([part], value, kind, overflow(kind))


def _round_decimal(part: Part, precision: int, scale: int, digits: int) -> Part:
    """To fewer digits; there may be one more before the point, as of 9.9."""
    kept = min(max(digits, 0), scale)
    before = max(precision - scale + 1, -digits + 1 if digits < 0 else 0)
    precision = min(before + kept, MOST_DIGITS)
    kind = decimal_type(precision, kept)
    units, cut = unscaled(part.value), scale - digits
    if digits >= scale:
        value = as_decimal(units, precision, kept)
    elif cut > MOST_DIGITS:
        value = as_decimal(units * 0, precision, kept)
    else:
        back = ten_to(min(max(-digits, 0), MOST_DIGITS))
        value = as_decimal(rounded_quotient(units, ten_to(cut)) * back, precision, kept)
    return strict([part], value, kind, overflow(kind))


def _round_double(value: pl.Expr, digits: int) -> pl.Expr:
    """As if the shortest decimal that reads as the double were rounded.

    A double lies at or above the middle between two steps iff it is no smaller than the double that the
    middle is read as; so exact decimals are not needed. Holds up to 15 digits; a double whose
    last digit is worth more than a step stays as it is.
    """
    if abs(digits) > 22:
        return value if digits > 0 else value * 0.0
    scale = float(10 ** abs(digits))

    def number(steps: pl.Expr) -> pl.Expr:
        return exact_quotient(steps, scale) if digits >= 0 else steps * scale

    size, below = pl.col("size"), pl.col("below")
    found = pl.when(size >= number(below + 0.5)).then(below + 1.0).otherwise(below)
    rounded = pl.when(pl.col(VALUE) < 0).then(-pl.col("found")).otherwise(pl.col("found"))
    steps = [
        {"size": pl.col(VALUE).abs()},
        {"steps": size * scale if digits >= 0 else exact_quotient(size, scale)},
        {"below": pl.col("steps").floor()},
        # The product may have been rounded over a step.
        {"below": pl.when(number(below) > size).then(below - 1.0).otherwise(below)},
        {"below": pl.when(number(below + 1.0) <= size).then(below + 1.0).otherwise(below)},
        {"found": number(found)},
        {"rounded": pl.when(pl.col("steps") < _EXACT).then(rounded).otherwise(pl.col(VALUE))},
    ]
    return in_steps(value, steps, pl.Float64())


def _whole(name: str, compute: Callable[[pl.Expr], pl.Expr], *, up: bool) -> Rule:
    """``ceil`` and ``floor``."""

    def rule(node: Expr, build: Builder) -> Part:
        if node.args.get("decimals") is not None:
            refuse(f"{name} must have one argument")
        part = numeric(build.part(node.this), name)
        if part.type in INTEGERS:
            return cast(part, "bigint")
        if (given := decimal_of(part.type)) is not None:
            return _whole_decimal(part, *given, up=up)
        whole = compute(part.value.cast(pl.Float64))
        # NaN is 0 in Java.
        value = (
            pl.when(part.value.is_nan())
            .then(pl.lit(0, dtype=pl.Int64))
            .otherwise(whole.cast(pl.Int64, strict=False))
        )
        return strict([part], value, "bigint", overflow("bigint"))

    return rule


def _whole_decimal(part: Part, precision: int, scale: int, *, up: bool) -> Part:
    if scale == 0:
        return part
    digits = min(precision - scale + 1, MOST_DIGITS)
    kind = decimal_type(digits, 0)
    units, tens = unscaled(part.value), ten_to(scale)
    value = as_decimal(0 - ((0 - units) // tens) if up else units // tens, digits, 0)
    return strict([part], value, kind)


RULES: Mapping[str, Rule] = {
    "Round": _round,
    "Ceil": _whole("ceil", lambda value: value.ceil(), up=True),
    "Floor": _whole("floor", lambda value: value.floor(), up=False),
}
