"""Values in the form in which they are equal where Spark says so: one NaN, one zero."""

from __future__ import annotations

import math

import polars as pl


def one_form(values: pl.Series) -> pl.Series:
    """The values with one NaN and one zero."""
    if not values.dtype.is_float():
        return values
    values = values.fill_nan(math.nan)
    zero = (values == 0.0).fill_null(False)  # adding zero to it, which Polars leaves out, is not the way
    return values.zip_with(~zero, pl.Series([0.0], dtype=values.dtype)) if zero.any() else values


def as_key(values: pl.Series) -> pl.Series:
    """The values as keys of a join: floats become their bits.

    Polars joins sorted floats by a merge that finds no partner for NaN, and every single row is sorted.
    """
    if values.dtype == pl.Float64:
        return one_form(values).reinterpret(dtype=pl.Int64)
    if values.dtype == pl.Float32:
        return one_form(values).reinterpret(dtype=pl.Int32)
    return values


def from_key(values: pl.Series, dtype: pl.DataType) -> pl.Series:
    """The values that keys stand for, given what type they had."""
    return values.reinterpret(dtype=dtype) if dtype.is_float() else values
