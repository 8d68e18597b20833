"""A replay as Spark's streaming reader sees it; traces and generators differ in the replay alone."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from levelwind.errors import input_error
from levelwind.model import Column, Schema
from levelwind.runtime.replay import Offset, Progress, Replay, offset_of, position_of

# What Spark hands back to `latestOffset` where the options, not the trigger, say how large a batch is.
BY_OPTIONS = 2**62


class Part(InputPartition):  # type: ignore[misc]
    """The rows from one position up to another."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end


class ReplayReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Plans batches by the progress of a replay, in one process for the query, and reads them in others.

    It is pickled for the readers: it holds what describes the replay, never its rows, which every process
    loads once for itself.
    """

    def __init__(self, replay: Replay, schema: pa.Schema) -> None:
        self.replay = replay
        self.schema = schema
        self._progress = Progress(replay)

    def initialOffset(self) -> Offset:  # noqa: N802
        """Where a new query begins."""
        return offset_of(0)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """A limit in name: tells the usual triggers from those that must take everything at once."""
        return ReadMaxRows(BY_OPTIONS)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Where a batch from ``start`` ends now."""
        everything = isinstance(limit, ReadAllAvailable)
        return offset_of(self._progress.latest(position_of(start), everything=everything))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """All rows there will be count as available, whatever the speed: to wait for them makes no sense."""
        if self.replay.end() is None:
            rule = "a source without an end cannot be read until it ends"
            raise input_error(rule, key="source")
        self._progress.hurried = True

    def partitions(self, start: Offset, end: Offset) -> list[Part]:
        """The parts of a batch."""
        return [Part(low, high) for low, high in self.replay.split(position_of(start), position_of(end))]

    def read(self, partition: Part) -> Iterator[pa.RecordBatch]:
        """The rows of a part, in the very types in which Spark expects them."""
        for batch in self.replay.read(partition.start, partition.end):
            yield batch if batch.schema == self.schema else batch.cast(self.schema)
        _freeze()


class ReplaySource(DataSource):  # type: ignore[misc]
    """A data source that replays rows; the schema is the one the user gives to the reader."""

    describe: Callable[[Mapping[str, Any], Schema], Replay]

    def streamReader(self, schema: StructType) -> ReplayReader:  # noqa: N802
        """A reader of the rows that the options describe."""
        replay = type(self).describe(dict(self.options), model_schema(schema))
        return ReplayReader(replay, to_arrow_schema(schema, timezone="UTC"))


@cache
def _freeze() -> None:
    """Take what this process has imported and loaded so far out of the garbage collector's sight, once.

    A Python worker of Spark collects garbage after every task: with all modules in sight, that takes 20 ms.
    """
    gc.collect()
    gc.freeze()


def model_schema(schema: StructType) -> Schema:
    """A Spark schema in the model's words."""
    return tuple(Column(name=field.name, type=field.dataType.simpleString()) for field in schema.fields)
