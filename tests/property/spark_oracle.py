"""Real Spark as a judge: every expression over every row in one query, failures included.

Spark's internal `TryEval` gives null where an expression fails. Around a struct that holds the value,
which is never null itself, it tells failed rows from null values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

CONFIGURATION = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # A failing part must not be moved out of what catches it.
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.alwaysInlineCommonExpr": "true",
    # Few rows and many expressions: compiling them would take longer than interpreting them.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


class Oracle:
    """A Spark session that evaluates expressions over a table."""

    def __init__(self) -> None:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        self._whole = builder.config("spark.driver.memory", "600m").getOrCreate()
        self._whole.sparkContext.setLogLevel("OFF")
        self.session = self._whole.newSession()
        for key, value in CONFIGURATION.items():
            self.session.conf.set(key, value)

    def stop(self) -> None:
        """End Spark."""
        self._whole.stop()

    def types(self, rows: pl.DataFrame, expressions: Sequence[str]) -> list[str]:
        """The types of the results."""
        frame = self._frame(rows).selectExpr(*[f"{text} AS v{at}" for at, text in enumerate(expressions)])
        return [field.dataType.simpleString() for field in frame.schema]

    def evaluate(self, rows: pl.DataFrame, expressions: Sequence[str]) -> list[tuple[list[Any], list[bool]]]:
        """Per expression its values, and whether each row failed."""
        from pyspark.sql import Column
        from pyspark.sql.functions import expr

        jvm = self.session._jvm
        tools = jvm.org.apache.spark.sql.classic.ExpressionUtils
        attempt = jvm.org.apache.spark.sql.catalyst.expressions.TryEval
        columns = []
        for at, text in enumerate(expressions):
            # Arrow cannot tell a failed struct from one whose value is never null: so it may be null.
            held = tools.expression(expr(f"named_struct('v', if(k is null, null, {text}))")._jc)
            columns.append(Column(tools.column(attempt(held))).alias(f"v{at}"))
        found = self._frame(rows).select(*columns).toArrow()
        answers = []
        for column in found.columns:
            structs = pl.Series(pl.from_arrow(column))
            answers.append((plain(structs.struct.field("v")), structs.is_null().to_list()))
        return answers

    def _frame(self, rows: pl.DataFrame) -> Any:
        return self.session.createDataFrame(rows.to_arrow(compat_level=pl.CompatLevel.oldest()))


def plain(values: pl.Series) -> list[Any]:
    """Values in Python; times as integers, since Python's own end with the year 9999."""
    return (values.to_physical() if values.dtype.is_temporal() else values).to_list()


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values are equal; floats within 1e-9, and NaN is NaN."""
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        return ours == theirs or math.isclose(ours, theirs, rel_tol=1e-9)
    return type(ours) is type(theirs) and bool(ours == theirs)
