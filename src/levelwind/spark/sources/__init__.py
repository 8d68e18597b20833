"""Sources of Levelwind's own: recorded traces and made-up streams, as Spark data sources."""

from levelwind.spark.sources.registration import register

__all__ = ["register"]
