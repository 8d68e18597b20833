"""Making our sources known to a Spark session."""

from __future__ import annotations

from pyspark.sql import SparkSession

from levelwind.spark.sources.generator import GeneratorSource
from levelwind.spark.sources.trace import TraceSource


def register(spark: SparkSession) -> None:
    """Register the formats ``trace`` and ``generator``; doing so again changes nothing."""
    for source in (TraceSource, GeneratorSource):
        spark.dataSource.register(source)
