"""Frames without rows, by the type of rows they lack."""

from __future__ import annotations

from functools import lru_cache

import polars as pl

from levelwind.operators.expressions.sparktypes import dtype_of
from levelwind.operators.rows import ORDER, RowType


def empty_frame(rows: RowType, *, ordered: bool = False) -> pl.DataFrame:
    """No rows of a type; frames are never changed, so that one serves everybody."""
    return _empty(tuple(rows.types.items()), ordered)


@lru_cache(maxsize=4096)
def _empty(types: tuple[tuple[str, str], ...], ordered: bool) -> pl.DataFrame:
    schema: dict[str, pl.DataType] = {name: dtype_of(kind) or pl.Null() for name, kind in types}
    if ordered:
        schema[ORDER] = pl.Int64()
    return pl.DataFrame(schema=schema)
