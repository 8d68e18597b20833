"""Recorded streams: the rows of files, replayed by their own times.

The options of ``format: trace``:

- ``path``: a parquet, CSV or JSON lines file, or a directory of them. The columns of the stream's schema are
  read by name, as their declared types.
- ``unit``: ``s``, ``ms`` or ``us``, if the time column is a number since the epoch.
- ``where``: ``column = value``, only these rows; several streams may share a file so, and stay in step.
- ``order``: ``time`` (default; rows of equal time as in the file) or ``file``: as they stand, each when the
  latest time so far has come, so that late rows are replayed as late.
- ``speed``: 1 (default) is real time, 10 ten times as fast, ``max`` as fast as it can, in batches of
  ``batch`` (default 1s) of event time or of ``rows`` rows.
- ``scale``: each row so many times, fractions too. ``repeat``: how often it is played, or ``forever``.
  ``start``: the time to which the file's first row is moved.
- ``partitions``: how many tasks read a batch's rows, default 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from levelwind.errors import InputError, Problem, did_you_mean, input_error
from levelwind.model import Schema
from levelwind.runtime.replay import ROWS_PER_RECORD_BATCH, Offset, even_parts, offset_of
from levelwind.runtime.source_options import US_PER_S, OptionReader, arrow_schema
from levelwind.runtime.trace_files import (
    TIME,
    US_PER,
    TraceFile,
    Where,
    as_value,
    find_files,
    microseconds_of,
    parse_where,
    peek,
    read_files,
)

OPTIONS = (
    "path", "time", "unit", "speed", "batch", "rows", "repeat", "scale", "start", "where", "order",
    "partitions",
)  # fmt: skip
ORDERS = ("time", "file")
FOREVER = "forever"
# Finer fractions of a row are not kept: row numbers times this must fit into 64 bits.
MOST_PARTS = 1_000_000
_ARRIVAL = "__arrival"
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Which rows are replayed, and in what order: all that must be read from files is told by this."""

    path: str
    time: str
    unit: str | None = None
    where: Where | None = None
    order: str = "time"


@dataclass(frozen=True, slots=True)
class Pace:
    """When the rows of a recording come: event times in the order of replay, never falling.

    In the order of the file, a row comes when the latest time so far has come. ``origin`` and ``span`` are
    those of the whole file, whatever part of it is replayed: so streams that share a file stay in step.
    """

    times: Numbers
    origin: int
    span: int


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A recording at a chosen speed; a position in it is a number of rows.

    ``scale`` repeats rows: row j stands there as often as a whole number lies between j·scale and
    (j + 1)·scale. ``repeat`` (None: for ever) plays it again, the times moved on by its length.
    ``batch_us`` of event time or ``batch_rows`` rows are one batch when it runs as fast as it can;
    ``batch_asked``: the options say so, and it bounds the batches of a paced run too.
    """

    recording: Recording
    schema: pa.Schema
    speed: float | None = 1.0
    batch_us: int = US_PER_S
    batch_rows: int | None = None
    batch_asked: bool = False
    repeat: int | None = 1
    scale: Fraction = Fraction(1)
    start_us: int | None = None
    partitions: int = 1

    def end(self) -> int | None:
        """The number of rows in all rounds."""
        if not self._round():
            return 0
        return None if self.repeat is None else self.repeat * self._round()

    def moment(self, position: int) -> int:
        """The time at which the row at a position comes; the beginning, before the first."""
        pace = self._pace()
        if position == 0 or not self._round():
            return pace.origin + self._shift()
        rounds, row = divmod(position, self._round())
        return int(pace.times[self._original(row)]) + rounds * pace.span + self._shift()

    def reached(self, start: int, moment: int) -> int:
        """How many rows have come by an event time."""
        pace = self._pace()
        if not self._round():
            return start
        since = moment - self._shift()
        rounds = max(0, (since - pace.origin) // pace.span)
        if self.repeat is not None:
            rounds = min(rounds, self.repeat - 1)
        rows = int(np.searchsorted(pace.times, since - rounds * pace.span, side="right"))
        return max(start, rounds * self._round() + int(rows * self.scale))

    def cut(self, start: int, *, asked_only: bool) -> int | None:
        """After so many rows, or where the grid of batches says: then there is at least one row."""
        if asked_only and not self.batch_asked:
            return None
        if self.batch_rows is not None:
            return start + self.batch_rows
        begin = self._pace().origin + self._shift()
        batch = (self._next_moment(start) - begin) // self.batch_us
        return self.reached(start, begin + (batch + 1) * self.batch_us - 1)

    def split(self, start: int, end: int) -> list[tuple[int, int]]:
        """Equal numbers of rows."""
        return even_parts(start, end, self.partitions)

    def read(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The rows from one number up to another."""
        length = self._round()
        while start < end:
            rounds, row = divmod(start, length)
            count = min(end - start, length - row, ROWS_PER_RECORD_BATCH)
            yield self._part(row, count, rounds * self._pace().span + self._shift())
            start += count

    def _part(self, row: int, count: int, moved_us: int) -> pa.RecordBatch:
        """Some rows of one round, their times moved."""
        table = _load_rows(self.recording, find_files(self.recording.path), self.schema)
        if self.scale == 1:
            table = table.slice(row, count)
        else:
            table = table.take(pa.array(self._original(np.arange(row, row + count))))
        if moved_us:
            place = table.schema.get_field_index(self.recording.time)
            times = microseconds_of(table.column(place)) + moved_us
            table = table.set_column(place, self.schema.field(place), pa.array(times, type=TIME))
        columns = [column.combine_chunks() for column in table.columns]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _pace(self) -> Pace:
        return _load_pace(self.recording, find_files(self.recording.path))

    def _next_moment(self, position: int) -> int:
        """The time of the row at a position, of the first row too."""
        first = int(self._pace().times[self._original(0)]) + self._shift()
        return first if position == 0 else self.moment(position)

    def _shift(self) -> int:
        return 0 if self.start_us is None else self.start_us - self._pace().origin

    def _round(self) -> int:
        """Rows in one round."""
        return int(len(self._pace().times) * self.scale)

    def _original(self, row: Any) -> Any:
        """The row of the recording that stands at a row of a round."""
        return -(-(row + 1) * self.scale.denominator // self.scale.numerator) - 1


@lru_cache(maxsize=32)
def _load_pace(recording: Recording, files: tuple[TraceFile, ...]) -> Pace:
    """The times of a recording: all that must be known to say how far it has come."""
    table, everything = _load(recording, files, {})
    if len(everything) == 0:
        return Pace(np.zeros(0, dtype=np.int64), 0, 1)
    times = microseconds_of(table.column(_ARRIVAL))
    first = int(everything[0] if recording.order == "file" else everything.min())
    last = int(everything.max())
    # The next round begins after the last row by the mean distance of rows.
    gap = (last - first) // max(1, len(everything) - 1)
    return Pace(times, first, last - first + max(1, gap))


@lru_cache(maxsize=32)
def _load_rows(recording: Recording, files: tuple[TraceFile, ...], schema: pa.Schema) -> pa.Table:
    """The rows of a recording in the order of replay, kept by this process until a file changes."""
    table, _ = _load(recording, files, dict(zip(schema.names, schema.types, strict=True)))
    return table.select(schema.names).combine_chunks()


def _load(
    recording: Recording, files: tuple[TraceFile, ...], columns: Mapping[str, pa.DataType]
) -> tuple[pa.Table, Numbers]:
    """Columns of the rows that are replayed, in their order; the times of all rows, in the files' order."""
    wanted: dict[str, pa.DataType | None] = {recording.time: None, **columns}
    where = recording.where
    if where is not None and where.column not in wanted:
        wanted[where.column] = None
    table = read_files(files, wanted, recording.time, recording.unit)
    times = table.column(recording.time)
    if times.null_count:
        rule = f"the time column {recording.time} must not be null"
        raise input_error(rule, key="path", value=f"{times.null_count} rows of {recording.path}")
    everything = microseconds_of(times)
    # In the file's order a row waits for all before it, be they replayed here or by another stream.
    arrival = np.maximum.accumulate(everything) if recording.order == "file" else everything
    table = table.append_column(_ARRIVAL, pa.array(arrival))
    if where is not None:
        table = table.filter(where.kept(table.column(where.column)))
        if table.num_rows == 0 and len(everything):
            rule = "no row has this value"
            raise input_error(rule, key="where", value=f"{where.column} = {where.value}")
    own = microseconds_of(table.column(_ARRIVAL))
    if np.any(own[1:] < own[:-1]):
        table = table.take(pa.array(np.argsort(own, kind="stable")))
    return table, everything


def read_trace(options: Mapping[str, Any], schema: Schema, time: str | None = None) -> Trace:
    """The trace that the options describe; the files are looked at, not read.

    Raises
    ------
    InputError
        With every problem of the options and of the files' columns.
    """
    reader = OptionReader(options)
    found = _read(reader, schema, time)
    reader.done()
    return found


def check_trace_options(
    options: Mapping[str, Any], schema: Schema, time: str | None, *, at: str = "source"
) -> list[Problem]:
    """Everything wrong with the options of a trace; ``at`` is where they stand in the file.

    If nothing else is wrong the times are read too: a null, or text that is no time, is found before the
    start and not hours later.
    """
    reader = OptionReader(options, at)
    found = _read(reader, schema, time)
    if not reader.problems:
        try:
            found.end()
        except InputError as error:
            _pass_on(reader, error)
    return reader.problems


def end_offset(options: Mapping[str, Any], schema: Schema) -> Offset | None:
    """The offset after the last row of a trace, None if it is repeated for ever."""
    end = read_trace(options, schema).end()
    return None if end is None else offset_of(end)


def _pass_on(reader: OptionReader, error: InputError) -> None:
    for problem in error.problems:
        reader.refuse(problem.key, problem.rule, problem.value, problem.hint)


def _read(reader: OptionReader, schema: Schema, time: str | None) -> Trace:
    reader.only(OPTIONS, "a trace")
    target = arrow_schema(schema)
    unit = reader.choice("unit", tuple(US_PER)) if "unit" in reader else None
    if "batch" in reader and "rows" in reader:
        reader.refuse("rows", "cannot go with batch: one of them is the size of a batch")
    recording = Recording(
        path=reader.text("path") or "",
        time=reader.time_column(schema, time),
        unit=unit,
        where=_read_where(reader),
        order=reader.choice("order", ORDERS, "time") or "time",
    )
    _check_files(reader, recording, target)
    return Trace(
        recording=recording,
        schema=target,
        speed=reader.speed(),
        batch_us=reader.duration_us("batch", US_PER_S),
        batch_rows=reader.integer("rows", 1) if "rows" in reader else None,
        batch_asked="batch" in reader or "rows" in reader,
        repeat=None if reader.raw("repeat") == FOREVER else reader.integer("repeat", 1),
        scale=_read_scale(reader),
        start_us=reader.moment_us("start"),
        partitions=reader.integer("partitions", 1),
    )


def _read_scale(reader: OptionReader) -> Fraction:
    value = reader.number("scale", 1.0, above=True)
    found = Fraction(str(value)).limit_denominator(MOST_PARTS)
    if not found:
        reader.refuse("scale", f"must be at least {1 / MOST_PARTS:g}", value)
        return Fraction(1)
    return found


def _read_where(reader: OptionReader) -> Where | None:
    if "where" not in reader:
        return None
    try:
        return parse_where(str(reader.raw("where")))
    except ValueError as error:
        reader.refuse("where", str(error), reader.raw("where"))
        return None


def _check_files(reader: OptionReader, recording: Recording, schema: pa.Schema) -> None:
    """Whether the files have the columns, by their heads."""
    if not recording.path:
        return
    try:
        heads = [(file, peek(file)) for file in find_files(recording.path)]
    except InputError as error:
        _pass_on(reader, error)
        return
    for file, types in heads:
        for name in schema.names:
            if name not in types:
                rule = f"the file has no column {name}"
                reader.refuse("path", rule, file.path, did_you_mean(name, types))
        _check_unit(reader, recording, file, types)
        _check_where(reader, recording.where, file, types)


def _check_unit(
    reader: OptionReader, recording: Recording, file: TraceFile, types: Mapping[str, pa.DataType]
) -> None:
    kind = types.get(recording.time)
    if kind is None:
        return
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if numeric and recording.unit is None and "unit" not in reader:
        rule = f"is missing: the time column {recording.time} is a number"
        reader.refuse("unit", rule, f"{kind} in {file.path}", "unit: s, ms or us since the epoch")
    elif recording.unit is not None and not numeric and not pa.types.is_null(kind):
        reader.refuse("unit", "is for time columns of numbers", f"{recording.time} is of type {kind}")


def _check_where(
    reader: OptionReader, where: Where | None, file: TraceFile, types: Mapping[str, pa.DataType]
) -> None:
    if where is None:
        return
    kind = types.get(where.column)
    if kind is None:
        rule = f"there is no column {where.column} in {file.path}"
        reader.refuse("where", rule, hint=did_you_mean(where.column, types))
        return
    try:
        as_value(where.value, kind.value_type if pa.types.is_dictionary(kind) else kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        reader.refuse("where", f"the value must be of the column's type, {kind}", where.value)
