"""Spark SQL types as Polars types."""

from __future__ import annotations

import re
from functools import lru_cache

import polars as pl

from levelwind.operators.rows import ORDER, TIME, RowType

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
    "timestamp": TIME,
    "timestamp_ntz": pl.Datetime("us"),
    "binary": pl.Binary(),
    "unknown": pl.Null(),
}
_DECIMAL = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")


@lru_cache(maxsize=1024)
def dtype_of(spark_type: str) -> pl.DataType | None:
    """The Polars type of a Spark SQL type; None for nested ones, which are taken as they come."""
    if spark_type in _SIMPLE:
        return _SIMPLE[spark_type]
    if match := _DECIMAL.fullmatch(spark_type):
        return pl.Decimal(int(match[1]), int(match[2]))
    return None


def empty_frame(rows: RowType, *, ordered: bool = False) -> pl.DataFrame:
    """No rows of a type; frames are never changed, so that one serves everybody."""
    return _empty(tuple(rows.types.items()), ordered)


@lru_cache(maxsize=4096)
def _empty(types: tuple[tuple[str, str], ...], ordered: bool) -> pl.DataFrame:
    schema: dict[str, pl.DataType] = {name: dtype_of(kind) or pl.Null() for name, kind in types}
    if ordered:
        schema[ORDER] = pl.Int64()
    return pl.DataFrame(schema=schema)
