"""Dates and times as Spark reads them from strings."""

from __future__ import annotations

import polars as pl


def parsed_date(value: pl.Expr) -> pl.Expr:
    """Placeholder."""
    return value.str.to_date("%Y-%m-%d", strict=False)


def parsed_timestamp(value: pl.Expr, *, zones: bool = True) -> pl.Expr:
    """Placeholder."""
    return value.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us").to_physical()
