"""Division of floats, rounded once.

Polars divides by a constant by multiplying with its reciprocal, which is rounded twice: 100.5 / 100 is not
1.005 then. By a column it divides properly.
"""

from __future__ import annotations

import math

import polars as pl


def exact_quotient(left: pl.Expr, divisor: float) -> pl.Expr:
    """A column divided by a constant."""
    if not math.isfinite(divisor) or abs(math.frexp(divisor)[0]) == 0.5:
        return left / divisor  # the reciprocal of a power of two is exact
    roots = left.meta.root_names()
    if not roots:
        return left / divisor
    # A column of the constant: of any column it is known whether it is null.
    return left / (pl.col(roots[0]).is_null().cast(pl.Float64) * 0.0 + divisor)
