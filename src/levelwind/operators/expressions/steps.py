"""Computations in several steps, each of whose results is used more than once.

Written as one expression, a value that is used in three places is computed three times, and so is each
value in it: that grows with the power of the depth. In steps each value has a column of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

VALUE = "value"


def in_steps(value: pl.Expr, steps: Sequence[Mapping[str, pl.Expr]], dtype: pl.DataType) -> pl.Expr:
    """The last column of the last step.

    Parameters
    ----------
    steps
        Columns by name; they may read those of the steps before, and the value as the column `VALUE`.
    """
    planned = [[column.alias(name) for name, column in step.items()] for step in steps]

    def run(values: pl.Series) -> pl.Series:
        frame = values.rename(VALUE).to_frame()
        for step in planned:
            frame = frame.with_columns_seq(step)
        return frame.to_series(-1)

    return value.map_batches(run, return_dtype=dtype, is_elementwise=True)
