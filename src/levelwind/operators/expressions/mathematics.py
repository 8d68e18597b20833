"""Functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from levelwind.operators.expressions.arguments import argument
from levelwind.operators.expressions.builder import Builder, Rule
from levelwind.operators.expressions.parts import Part, eager, strict
from levelwind.operators.expressions.quotients import exact_quotient

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Compute = Callable[[pl.Expr], pl.Expr]


def _of_double(name: str, compute: Compute) -> Rule:
    """A function from a double to a double."""

    def rule(node: Expr, build: Builder) -> Part:
        part = argument(build.part(node.this), "double", name)
        return strict([part], compute(part.value), "double")

    return rule


def _positive(value: pl.Expr) -> pl.Expr:
    """Null where there is no logarithm; NaN has one."""
    return pl.when(value > 0).then(value)


def _logarithm(node: Expr, build: Builder) -> Part:
    """``log(base, x)``, as which ``log10(x)`` and ``log2(x)`` are parsed too."""
    base = argument(build.part(node.this), "double", "log")
    part = argument(build.part(node.expression), "double", "log")
    if base.is_constant and base.constant == 10.0:
        value = _positive(part.value).map_batches(_log10, return_dtype=pl.Float64, is_elementwise=True)
    elif base.never_null and base.constant > 0:
        value = exact_quotient(_positive(part.value).log(), math.log(base.constant))
    else:
        value = _positive(part.value).log() / _positive(base.value).log()
    return strict([base, part], value, "double")


def _log10(values: pl.Series) -> pl.Series:
    """NumPy's, which is exact at powers of ten where Polars' is not."""
    with np.errstate(divide="ignore", invalid="ignore"):  # of what stands in the place of nulls
        return pl.Series(values.name, np.log10(values), dtype=pl.Float64)


def _power(node: Expr, build: Builder) -> Part:
    base = argument(build.part(node.this), "double", "pow")
    exponent = argument(build.part(node.expression), "double", "pow")
    value = base.value.pow(exponent.value)
    if not (exponent.never_null and math.isfinite(exponent.constant)):
        # In Java ±1 to a power that is no finite number is NaN.
        odd = (base.value.abs() == 1) & ~exponent.value.is_finite()
        value = pl.when(odd).then(pl.lit(math.nan)).otherwise(value)
    return strict([base, exponent], value, "double")


def _arctangent(node: Expr, build: Builder) -> Part:
    left = argument(build.part(node.this), "double", "atan2")
    right = argument(build.part(node.expression), "double", "atan2")
    value = pl.arctan2(_unsigned_zero(left.value), _unsigned_zero(right.value))
    return strict([left, right], value, "double")


def _unsigned_zero(value: pl.Expr) -> pl.Expr:
    """0.0 for -0.0."""
    return pl.when(value == 0).then(pl.lit(0.0)).otherwise(value)


def _is_nan(node: Expr, build: Builder) -> Part:
    part = argument(build.part(node.this), "double", "isnan")
    return eager([part], part.value.is_nan().fill_null(False), "boolean")


RULES: Mapping[str, Rule] = {
    "Sqrt": _of_double("sqrt", lambda value: value.sqrt()),
    "Exp": _of_double("exp", lambda value: value.exp()),
    "Ln": _of_double("ln", lambda value: _positive(value).log()),
    "Sin": _of_double("sin", lambda value: value.sin()),
    "Cos": _of_double("cos", lambda value: value.cos()),
    "Tan": _of_double("tan", lambda value: value.tan()),
    "Asin": _of_double("asin", lambda value: value.arcsin()),
    "Acos": _of_double("acos", lambda value: value.arccos()),
    "Atan": _of_double("atan", lambda value: value.arctan()),
    "Radians": _of_double("radians", lambda value: value.radians()),
    "Degrees": _of_double("degrees", lambda value: value.degrees()),
    "Sign": _of_double("sign", lambda value: value.sign()),
    "Log": _logarithm,
    "Pow": _power,
    "Atan2": _arctangent,
    "IsNan": _is_nan,
}
