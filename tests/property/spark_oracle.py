"""Real Spark as a judge: every expression over every row in one query, failures included.

Spark's internal `TryEval` gives null where an expression fails. Around a struct that holds the value,
which is never null itself, it tells failed rows from null values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

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


# Spark plans this many expressions at once; with more the time for each grows.
CHUNK = 150


class Answer(NamedTuple):
    """The type of an expression, its values, and whether each row failed."""

    type: str
    values: list[Any]
    failed: list[bool]


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

    def evaluate(self, rows: pl.DataFrame, expressions: Sequence[str]) -> list[Answer]:
        """What Spark makes of each expression."""
        frame = self._frame(rows)
        answers: list[Answer] = []
        for start in range(0, len(expressions), CHUNK):
            answers += self._evaluate(frame, expressions[start : start + CHUNK])
        return answers

    def refuses(self, rows: pl.DataFrame, text: str) -> bool:
        """Whether Spark's analyser refuses an expression."""
        from pyspark.errors import AnalysisException

        try:
            self._frame(rows).selectExpr(text)
        except AnalysisException:
            return True
        return False

    def _evaluate(self, frame: Any, expressions: Sequence[str]) -> list[Answer]:
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
        asked = frame.select(*columns)
        types = [field.dataType["v"].dataType.simpleString() for field in asked.schema]
        answers = []
        for kind, column in zip(types, asked.toArrow().columns, strict=True):
            structs = pl.Series(pl.from_arrow(column))
            answers.append(Answer(kind, plain(structs.struct.field("v")), structs.is_null().to_list()))
        return answers

    def _frame(self, rows: pl.DataFrame) -> Any:
        frame = self.session.createDataFrame(rows.to_arrow(compat_level=pl.CompatLevel.oldest()))
        local = [name for name, dtype in rows.schema.items() if dtype == pl.Datetime("us")]
        return frame.withColumns({name: frame[name].cast("timestamp_ntz") for name in local})


def plain(values: pl.Series) -> list[Any]:
    """Values in Python; times as integers, since Python's own end with the year 9999."""
    return (values.to_physical() if values.dtype.is_temporal() else values).to_list()


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values are equal; floats within 1e-9, and NaN is NaN."""
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        return ours == theirs or math.isclose(ours, theirs, rel_tol=1e-9)
    if ours == theirs:
        return type(ours) is type(theirs)
    # Before version 19 Java writes some floats with more digits than they need.
    return isinstance(ours, str) and isinstance(theirs, str) and _shortened(theirs) == _shortened(ours)


def _shortened(text: str) -> str:
    """The text with every float in it in as few digits as there can be."""
    return re.sub(r"-?\d+\.\d+(E-?\d+)?", lambda match: repr(float(match[0])), text)
