"""Numbers of more than 34 digits, which Scala's BigDecimal shortens when it negates or multiplies them."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

import polars as pl

MOST_KEPT = 34
_CONTEXT = Context(prec=MOST_KEPT, rounding=ROUND_HALF_EVEN)


def shortened(units: pl.Expr, precision: int) -> pl.Expr:
    """Unscaled integers rounded to 34 digits, halves to even; row by row if there may be more of them."""
    if precision <= MOST_KEPT:
        return units
    return units.map_batches(_shortened, return_dtype=pl.Int128, is_elementwise=True)


def _shortened(units: pl.Series) -> pl.Series:
    short = units.abs() < 10**MOST_KEPT
    if short.all():
        return units
    found = [None if unit is None else int(_CONTEXT.plus(Decimal(unit))) for unit in units.to_list()]
    return pl.Series(units.name, found, dtype=pl.Int128)
