"""Sinks that need Spark or a terminal: any Spark writer, the console."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

from levelwind.runtime.commits import Published
from levelwind.runtime.durable import write_whole

CONSOLE_ROWS = 20


class SparkSink:
    """Any Spark writer. Rows may come twice after a crash; the column ``batch_id`` tells which batch."""

    exactly_once = False

    def __init__(self, name: str, options: Mapping[str, Any], directory: str) -> None:
        self._options = {key: str(value) for key, value in options.items() if key not in ("format", "mode")}
        self._format = str(options["format"])
        self.staging = str(Path(directory, "outbox", name))
        self._mark = Path(directory, "published", name)
        self.session: SparkSession | None = None

    def publish(self, step: int, published: Published) -> None:
        """Write the rows of a step, unless it is known that they were written."""
        assert self.session is not None
        staged = [path for path in published.staged if Path(path).exists()]
        if self._mark.exists() and int(self._mark.read_text()) >= step:
            return
        rows = self.session.read.parquet(*staged).withColumn("batch_id", lit(step))
        rows.write.format(self._format).options(**self._options).mode("append").save()
        write_whole(self._mark, str(step).encode())
        for path in staged:
            Path(path).unlink(missing_ok=True)

    def holds_rows(self) -> bool:
        """Whether the sink is a directory that has files."""
        path = self._options.get("path")
        return path is not None and Path(path).is_dir() and any(Path(path).glob("[!._]*"))


class ConsoleSink:
    """Prints the first rows of every batch."""

    exactly_once = False

    def __init__(self, name: str, directory: str) -> None:
        self._name = name
        self.staging = str(Path(directory, "outbox", name))

    def publish(self, step: int, published: Published) -> None:
        """Print rows, and give them up."""
        import polars as pl

        staged = [path for path in published.staged if Path(path).exists()]
        if not staged:
            return
        rows = pl.concat([pl.read_parquet(path) for path in staged])
        with pl.Config(tbl_rows=CONSOLE_ROWS, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
            print(f"{self._name}, batch {step}: {rows.height} rows\n{rows}", flush=True)
        for path in staged:
            Path(path).unlink(missing_ok=True)

    def holds_rows(self) -> bool:
        """Never."""
        return False
