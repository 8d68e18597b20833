"""All streams as one DataFrame, and its rows as Arrow data where the nodes' tasks read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl
import pyarrow as pa
from pyspark import RDD
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, lit
from pyspark.sql.pandas.types import to_arrow_schema

from levelwind.model import Schema
from levelwind.runtime.entry import CORRUPT
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
    ddl: tuple[str, ...]
    schema: bytes = b""

    @classmethod
    def of(cls, streams: Mapping[str, Schema]) -> Intake:
        """From the streams' schemas."""
        groups: dict[tuple[tuple[str, str], ...], int] = {}
        columns: list[tuple[str, ...]] = []
        ddl: list[str] = []
        for schema in streams.values():
            kinds = tuple((column.name, column.type) for column in schema)
            group = groups.setdefault(kinds, len(groups))
            names = tuple(f"c{group}_{index}" for index in range(len(schema)))
            columns.append(names)
            ddl.append(", ".join(f"{name} {kind}" for name, (_, kind) in zip(names, kinds, strict=True)))
        return cls(
            tuple(streams),
            tuple(columns),
            tuple(tuple(column.name for column in schema) for schema in streams.values()),
            tuple(ddl),
        )

    def shaped(self, stream: str, frame: DataFrame) -> DataFrame:
        """A stream's DataFrame in the columns of the whole."""
        number = self.streams.index(stream)
        renamed = [
            col(f"`{old}`").alias(new)
            for old, new in zip(self.names[number], self.columns[number], strict=True)
        ]
        # What tells bad records is one column for all: no row is of two streams.
        hidden = [col(CORRUPT)] if CORRUPT in frame.columns else []
        return frame.select(lit(number).alias(STREAM), *renamed, *hidden)

    def ddl_of(self, streams: Iterable[str]) -> str:
        """The schema of a table that holds some of the streams, in Spark's words."""
        parts = dict.fromkeys(self.ddl[self.streams.index(name)] for name in streams)
        return ", ".join((f"{STREAM} int", *parts))

    def united(self, frames: Sequence[DataFrame]) -> tuple[Intake, DataFrame]:
        """All frames as one, and the layout with the schema that it has."""
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame, allowMissingColumns=True)
        schema = to_arrow_schema(whole.schema, timezone="UTC")
        return replace(self, schema=schema.serialize().to_pybytes()), whole

    def rows(self, batches: Iterable[bytes]) -> Iterator[tuple[str, pl.DataFrame]]:
        """(stream, rows) from Arrow record batches, in their order; with `CORRUPT` if any row is bad."""
        schema = pa.ipc.read_schema(pa.py_buffer(self.schema))
        position = {name: index for index, name in enumerate(schema.names)}
        for data in batches:
            batch = pa.ipc.read_record_batch(pa.py_buffer(data), schema)
            for number, part in self._by_stream(batch):
                arrays = [part.column(position[name]) for name in self.columns[number]]
                names = list(self.names[number])
                if CORRUPT in position:
                    bad = part.column(position[CORRUPT])
                    if bad.null_count < len(bad):
                        arrays.append(bad)
                        names.append(CORRUPT)
                yield self.streams[number], from_arrow(pa.Table.from_arrays(arrays, names=names))

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
