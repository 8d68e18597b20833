"""All streams as one DataFrame, and its rows as Arrow data where the nodes' tasks read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl
import pyarrow as pa
from pyspark import RDD
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, lit
from pyspark.sql.pandas.types import to_arrow_schema

from levelwind.model import Schema
from levelwind.runtime.frames import from_arrow

STREAM = "stream"


@dataclass(frozen=True)
class Intake:
    """How the rows of several streams share one table.

    Column 0 is the number of the stream; streams of one schema share their columns, and the columns of
    the others are null. So a single query reads them all, and no row is packed twice.
    """

    streams: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    names: tuple[tuple[str, ...], ...]
    schema: bytes = b""

    @classmethod
    def of(cls, frames: Mapping[str, DataFrame]) -> tuple[Intake, DataFrame]:
        """The layout, and all streams as one DataFrame."""
        groups: dict[str, int] = {}
        columns: list[tuple[str, ...]] = []
        parts: list[DataFrame] = []
        for number, frame in enumerate(frames.values()):
            group = groups.setdefault(
                ",".join(f"{f.name}:{f.dataType.simpleString()}" for f in frame.schema), len(groups)
            )
            names = tuple(f"c{group}_{index}" for index in range(len(frame.columns)))
            columns.append(names)
            renamed = [col(f"`{old}`").alias(new) for old, new in zip(frame.columns, names, strict=True)]
            parts.append(frame.select(lit(number).alias(STREAM), *renamed))
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.unionByName(part, allowMissingColumns=True)
        schema = to_arrow_schema(whole.schema, timezone="UTC")
        intake = cls(
            tuple(frames),
            tuple(columns),
            tuple(tuple(frame.columns) for frame in frames.values()),
            schema.serialize().to_pybytes(),
        )
        return intake, whole

    def rows(self, batches: Iterable[bytes]) -> Iterator[tuple[str, pl.DataFrame]]:
        """(stream, rows) from Arrow record batches, in their order."""
        schema = pa.ipc.read_schema(pa.py_buffer(self.schema))
        position = {name: index for index, name in enumerate(schema.names)}
        for data in batches:
            batch = pa.ipc.read_record_batch(pa.py_buffer(data), schema)
            for number, part in self._by_stream(batch):
                arrays = [part.column(position[name]) for name in self.columns[number]]
                yield (
                    self.streams[number],
                    from_arrow(pa.Table.from_arrays(arrays, names=list(self.names[number]))),
                )

    def _by_stream(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """A batch cut where the stream changes: tasks read one stream each, so mostly it does not."""
        numbers = batch.column(0).to_numpy()
        start = 0
        while start < len(numbers):
            number = int(numbers[start])
            other = (numbers[start:] != number).argmax() if numbers[-1] != number else 0
            end = start + int(other) if other else len(numbers)
            yield number, batch.slice(start, end - start)
            start = end


def arrow_batches(frame: DataFrame) -> RDD[bytes]:
    """A DataFrame's rows as Arrow record batches without their schema, one element each.

    The conversion is Spark's own, the one behind ``toArrow``, met halfway: its batches go to Python
    workers instead of the driver.
    """
    context = frame.sparkSession.sparkContext
    return RDD(frame._jdf.toArrowBatchRdd().toJavaRDD(), context, NoOpSerializer())


def spark_schema(schema: Schema) -> str:
    """A schema as Spark's DDL."""
    return ", ".join(f"`{column.name}` {column.type}" for column in schema)


def select_schema(frame: DataFrame, schema: Schema | None) -> DataFrame:
    """A user's DataFrame with the columns that the network declares, in that order and of those types."""
    if schema is None:
        return frame
    types = dict(frame.dtypes)
    wanted = [
        (column.name, col(f"`{column.name}`"), types.get(column.name) == column.type, column.type)
        for column in schema
    ]
    return frame.select(
        *(found if same else found.cast(kind).alias(name) for name, found, same, kind in wanted)
    )
