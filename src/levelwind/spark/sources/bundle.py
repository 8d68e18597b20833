"""All of a network's traces and generators as one Spark source.

To Spark every source costs something each batch: a process that plans it, a task that reads it. A network
with a hundred replayed streams has one such source. Its offset holds the position of every stream by name,
so that streams may be added to a network that goes on from a checkpoint, or taken out of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from levelwind.runtime.replay import Progress, Replay
from levelwind.runtime.sources import TRACE
from levelwind.runtime.traces import read_trace
from levelwind.runtime.workloads import read_generator
from levelwind.spark.sources.reader import BY_OPTIONS

BUNDLE = "levelwind_bundle"
Positions = dict[str, int]


@dataclass(frozen=True)
class Bundled:
    """One stream of a bundle: its number, its source as written, and the columns its values go to."""

    name: str
    number: int
    source: Mapping[str, Any]
    schema: tuple[tuple[str, str], ...]
    time: str | None
    columns: tuple[str, ...]

    @cached_property
    def replay(self) -> Replay:
        """Its rows."""
        schema: Schema = tuple(Column(name=name, type=kind) for name, kind in self.schema)
        options = {key: value for key, value in self.source.items() if key != "format"}
        options["time"] = self.time
        if self.source["format"] == TRACE:
            return read_trace(options, schema)
        return read_generator(options, schema, self.time)


class Share(InputPartition):  # type: ignore[misc]
    """What one task reads: (stream, from, to)."""

    def __init__(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        self.ranges = tuple(ranges)


class BundleReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Plans and reads the batches of several replays together."""

    def __init__(self, members: Sequence[Bundled], schema: pa.Schema, tasks: int) -> None:
        self.members = tuple(members)
        self.schema = schema
        self.tasks = tasks
        self._progress: dict[str, Progress] = {}
        self._hurried = False

    def initialOffset(self) -> Positions:  # noqa: N802
        """Where a new query begins."""
        return {member.name: 0 for member in self.members}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """A limit in name: tells the usual triggers from those that must take everything at once."""
        return ReadMaxRows(BY_OPTIONS)

    def latestOffset(self, start: Positions, limit: ReadLimit) -> Positions:  # noqa: N802
        """Where a batch from ``start`` ends now."""
        everything = isinstance(limit, ReadAllAvailable)
        # Only its own streams: one that was added in a batch that never came to be begins anew.
        found: Positions = {}
        for member in self.members:
            progress = self._progress.get(member.name)
            if progress is None:
                progress = self._progress[member.name] = Progress(member.replay, hurried=self._hurried)
            found[member.name] = progress.latest(start.get(member.name, 0), everything=everything)
        return found

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """All rows there will be count as available, whatever the speed."""
        for member in self.members:
            if member.replay.end() is None:
                rule = "a source without an end cannot be read until it ends"
                raise input_error(rule, key=f"streams.{member.name}.source")
        self._hurried = True
        for progress in self._progress.values():
            progress.hurried = True

    def partitions(self, start: Positions, end: Positions) -> list[Share]:
        """The streams dealt out to as many tasks as there are cores, each stream whole."""
        ranges = [
            (number, start.get(member.name, 0), end[member.name])
            for number, member in enumerate(self.members)
            if end.get(member.name, 0) > start.get(member.name, 0)
        ]
        shares = [ranges[task :: self.tasks] for task in range(self.tasks)]
        return [Share(share) for share in shares if share]

    def read(self, partition: Share) -> Iterator[pa.RecordBatch]:
        """The rows of some streams, in the columns of all."""
        position = {name: index for index, name in enumerate(self.schema.names)}
        for number, start, end in partition.ranges:
            member = self.members[number]
            for batch in member.replay.read(start, end):
                rows = batch.num_rows
                arrays = [pa.nulls(rows, field.type) for field in self.schema]
                arrays[0] = pa.array([member.number], pa.int32()).take(pa.array([0] * rows, pa.int64()))
                for name, array in zip(member.columns, batch.columns, strict=True):
                    kind = self.schema.field(position[name]).type
                    arrays[position[name]] = array if array.type == kind else array.cast(kind)
                yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class BundleSource(DataSource):  # type: ignore[misc]
    """The data source of a bundle; its one option says what is in it."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return BUNDLE

    def streamReader(self, schema: StructType) -> BundleReader:  # noqa: N802
        """A reader of all streams."""
        told = json.loads(self.options["streams"])
        members = [
            Bundled(
                name=entry["name"],
                number=entry["number"],
                source=entry["source"],
                schema=tuple((name, kind) for name, kind in entry["schema"]),
                time=entry["time"],
                columns=tuple(entry["columns"]),
            )
            for entry in told
        ]
        return BundleReader(members, to_arrow_schema(schema, timezone="UTC"), int(self.options["tasks"]))


def bundle_options(members: Sequence[Bundled], tasks: int) -> dict[str, str]:
    """The options of a bundle's reader."""
    told = [
        {
            "name": member.name,
            "number": member.number,
            "source": dict(member.source),
            "schema": member.schema,
            "time": member.time,
            "columns": member.columns,
        }
        for member in members
    ]
    return {"streams": json.dumps(told), "tasks": str(tasks)}
