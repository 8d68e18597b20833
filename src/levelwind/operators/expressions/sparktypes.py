"""Spark's simple types as Polars keeps them.

Decimals are computed on their unscaled integers: a ``decimal(p,s)`` is an `Int128` that counts units of
10⁻ˢ, which holds every number of 38 digits.
"""

from __future__ import annotations

import re
from functools import lru_cache

import polars as pl

from levelwind.frontend.columntypes import INTEGERS, UNKNOWN

VOID = "void"
FLOATS = ("float", "double")
# Integers as wide as the arithmetic on the next smaller type needs, so that overflow can be seen.
WIDE: dict[str, type[pl.DataType]] = {
    "tinyint": pl.Int64,
    "smallint": pl.Int64,
    "int": pl.Int64,
    "bigint": pl.Int128,
}
# Digits that any value of an integer type has room in, by Spark's rules.
INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
MOST_DIGITS = 38
INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}

_DECIMAL = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
_SIMPLE: dict[str, pl.DataType] = {
    "tinyint": pl.Int8(),
    "smallint": pl.Int16(),
    "int": pl.Int32(),
    "bigint": pl.Int64(),
    "float": pl.Float32(),
    "double": pl.Float64(),
    "string": pl.String(),
    "boolean": pl.Boolean(),
    "date": pl.Date(),
    "timestamp": pl.Datetime("us", "UTC"),
    "timestamp_ntz": pl.Datetime("us"),
    "binary": pl.Binary(),
    "interval": pl.Duration("us"),
    VOID: pl.Null(),
}


def decimal_of(kind: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type, None of any other."""
    match = _DECIMAL.fullmatch(kind)
    return None if match is None else (int(match[1]), int(match[2]))


def decimal_type(precision: int, scale: int) -> str:
    """The name of a decimal type."""
    return f"decimal({precision},{scale})"


def bounded_decimal(precision: int, scale: int) -> str:
    """A decimal cut to 38 digits such that those before the point are kept."""
    if precision > MOST_DIGITS:
        precision, scale = MOST_DIGITS, max(0, MOST_DIGITS - (precision - scale))
    return decimal_type(precision, scale)


def adjusted_decimal(precision: int, scale: int) -> str:
    """A decimal cut to 38 digits as Spark does after arithmetic: the scale gives way, down to 6."""
    if precision > MOST_DIGITS:
        scale = max(MOST_DIGITS - (precision - scale), min(scale, 6))
        precision = MOST_DIGITS
    return decimal_type(precision, scale)


def is_decimal(kind: str) -> bool:
    """Whether a type is a decimal."""
    return kind.startswith("decimal")


def is_numeric(kind: str) -> bool:
    """Whether a type is a number."""
    return kind in INTEGERS or kind in FLOATS or is_decimal(kind)


@lru_cache(maxsize=1024)
def dtype_of(kind: str) -> pl.DataType | None:
    """The Polars type of a simple Spark type; None of nested ones."""
    found = _SIMPLE.get(kind)
    if found is None and (digits := decimal_of(kind)) is not None:
        found = pl.Decimal(*digits)
    return found


_NAMES: dict[type[pl.DataType], str] = {
    pl.Int8: "tinyint",
    pl.Int16: "smallint",
    pl.Int32: "int",
    pl.Int64: "bigint",
    pl.Float32: "float",
    pl.Float64: "double",
    pl.String: "string",
    pl.Boolean: "boolean",
    pl.Date: "date",
    pl.Binary: "binary",
    pl.Null: VOID,
    # What Spark has no name for is read as the nearest type that holds all its values.
    pl.UInt8: "smallint",
    pl.UInt16: "int",
    pl.UInt32: "bigint",
    pl.Categorical: "string",
    pl.Enum: "string",
}


def spark_type(dtype: pl.DataType) -> str:
    """The Spark type of a column by its Polars type; unknown if it is none that expressions compute with."""
    if isinstance(dtype, pl.Decimal):
        return decimal_type(dtype.precision or MOST_DIGITS, dtype.scale or 0)
    if isinstance(dtype, pl.Datetime):
        return "timestamp" if dtype.time_zone else "timestamp_ntz"
    if isinstance(dtype, pl.List):
        return f"array<{spark_type(_inner(dtype))}>"
    if isinstance(dtype, pl.Struct):
        fields = (f"{field.name}:{spark_type(_instance(field.dtype))}" for field in dtype.fields)
        return f"struct<{','.join(fields)}>"
    return _NAMES.get(type(dtype), UNKNOWN)


def _inner(dtype: pl.List) -> pl.DataType:
    return _instance(dtype.inner)


def _instance(dtype: object) -> pl.DataType:
    """A type that was given as a class, as an instance."""
    made = dtype() if isinstance(dtype, type) else dtype
    assert isinstance(made, pl.DataType)
    return made
