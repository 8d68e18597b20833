"""Files of a trace as Arrow tables: parquet, CSV or JSON lines, one file or a directory of them."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.json as pjson
import pyarrow.parquet as pq

from levelwind.errors import InputError, did_you_mean, input_error

FORMATS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".csv.gz", ".csv.bz2"),
    "json": (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz"),
}
US_PER = {"s": 1_000_000, "ms": 1_000, "us": 1}
TIME = pa.timestamp("us", tz="UTC")
_PEEKED_BYTES = 1 << 20
_WHERE = re.compile(r"\s*(?:`([^`]+)`|(\w+))\s*={1,2}\s*(.+?)\s*", re.DOTALL)
_HAS_ZONE = r"(?:Z|[+-][0-9]{2}:?(?:[0-9]{2})?)$"
_ARROW_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, pa.ArrowKeyError)


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A file, and by what one sees that it was changed."""

    path: str
    changed_ns: int
    size: int

    @property
    def format(self) -> str:
        """By the end of its name."""
        return format_of(self.path) or ""


@dataclass(frozen=True, slots=True)
class Where:
    """Only the rows in which a column has a value."""

    column: str
    value: str

    def kept(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Which rows are kept; the value is read as the column's type."""
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        return pc.equal(column.cast(kind), as_value(self.value, kind))


def parse_where(text: str) -> Where:
    """Read ``column = value``; the value may be quoted, the column too (in backquotes).

    Raises
    ------
    ValueError
        If it is not of that form.
    """
    match = _WHERE.fullmatch(text)
    if match is None:
        message = "must be of the form column = value"
        raise ValueError(message)
    value = match[3]
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return Where(match[1] or match[2], value)


def as_value(text: str, kind: pa.DataType) -> pa.Scalar:
    """Text as a value of a type."""
    return pa.array([text]).cast(kind)[0]


def format_of(path: str) -> str | None:
    """The format of a file by its name, None if it is none of ours."""
    lower = path.lower()
    return next((name for name, ends in FORMATS.items() if lower.endswith(ends)), None)


def find_files(path: str) -> tuple[TraceFile, ...]:
    """The file, or those of the directory in the order of their names.

    Raises
    ------
    InputError
        If there is none, or one of an unknown format.
    """
    place = Path(path)
    if not place.exists():
        rule = "there is no such file or directory"
        raise input_error(rule, key="path", value=path)
    known = "known: " + ", ".join(end for ends in FORMATS.values() for end in ends)
    if place.is_file():
        if format_of(path) is None:
            rule = "is of no known format"
            raise input_error(rule, key="path", value=path, hint=known)
        return (_stamped(path),)
    entries = sorted(entry.path for entry in os.scandir(path) if entry.is_file())
    seen = [entry for entry in entries if not Path(entry).name.startswith((".", "_"))]
    found = tuple(_stamped(entry) for entry in seen if format_of(entry))
    if not found:
        rule = "the directory holds no file of a known format"
        raise input_error(rule, key="path", value=path, hint=known)
    return found


def _stamped(path: str) -> TraceFile:
    status = os.stat(path)
    return TraceFile(path, status.st_mtime_ns, status.st_size)


def peek(file: TraceFile) -> dict[str, pa.DataType]:
    """Columns and their types by the head of a file, without reading all of it."""
    try:
        if file.format == "parquet":
            return _types(pq.read_schema(file.path))
        if file.format == "csv":
            with pcsv.open_csv(file.path) as reader:
                return _types(reader.schema)
        with pa.input_stream(file.path) as stream:
            head = stream.read(_PEEKED_BYTES)
        if len(head) == _PEEKED_BYTES:
            head = head[: head.rfind(b"\n") + 1]
        return _types(pjson.read_json(io.BytesIO(head)).schema) if head.strip() else {}
    except (*_ARROW_ERRORS, OSError) as error:
        raise _unreadable(file, error) from None


def _types(schema: pa.Schema) -> dict[str, pa.DataType]:
    return dict(zip(schema.names, schema.types, strict=True))


def read_files(
    files: Sequence[TraceFile], wanted: Mapping[str, pa.DataType | None], time: str, unit: str | None
) -> pa.Table:
    """Some columns of all files, one after the other, as the wanted types; the time column as `TIME`.

    A wanted type of None takes the column as it is.

    Raises
    ------
    InputError
        If a column is missing or cannot be read as its type.
    """
    return pa.concat_tables([_read(file, wanted, time, unit) for file in files], promote_options="permissive")


def _read(file: TraceFile, wanted: Mapping[str, pa.DataType | None], time: str, unit: str | None) -> pa.Table:
    types = peek(file)
    for name in wanted:
        if name not in types:
            raise _missing(file, name, types)
    try:
        table = _READERS[file.format](file.path, wanted, time, unit)
    except (*_ARROW_ERRORS, OSError) as error:
        raise _unreadable(file, error) from None
    columns = []
    for name, kind in wanted.items():
        column = table.column(name)
        try:
            if name == time:
                column = as_times(column, unit)
            elif kind is not None and column.type != kind:
                column = _as_type(column, kind)
        except _ARROW_ERRORS as error:
            rule = f"column {name} cannot be read as {TIME if name == time else kind}: {error}"
            raise input_error(rule, key="path", value=file.path) from None
        columns.append(column)
    return pa.table(columns, names=list(wanted))


def _unreadable(file: TraceFile, error: Exception) -> InputError:
    return input_error(f"cannot be read: {error}", key="path", value=file.path)


def _missing(file: TraceFile, name: str, types: Mapping[str, Any]) -> InputError:
    rule = f"the file has no column {name}"
    return input_error(rule, key="path", value=file.path, hint=did_you_mean(name, types))


def _read_parquet(path: str, wanted: Mapping[str, Any], time: str, unit: str | None) -> pa.Table:
    return pq.read_table(path, columns=list(wanted), partitioning=None)


def _read_csv(path: str, wanted: Mapping[str, Any], time: str, unit: str | None) -> pa.Table:
    options = pcsv.ConvertOptions(
        include_columns=list(wanted),
        column_types=_text_types(wanted, time, unit),
        # As in Spark: nothing between two commas is null, and no word is (NA is Namibia).
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return pcsv.read_csv(path, convert_options=options)


def _read_json(path: str, wanted: Mapping[str, Any], time: str, unit: str | None) -> pa.Table:
    # A column of which nothing is known must be found by the reader: then all unexpected ones are.
    unknown = any(kind is None and name != time for name, kind in wanted.items())
    options = pjson.ParseOptions(
        explicit_schema=pa.schema(list(_text_types(wanted, time, unit).items())),
        unexpected_field_behavior="infer" if unknown else "ignore",
    )
    return pjson.read_json(path, parse_options=options)


_READERS = {"parquet": _read_parquet, "csv": _read_csv, "json": _read_json}


def _text_types(wanted: Mapping[str, pa.DataType | None], time: str, unit: str | None) -> dict[str, Any]:
    """How to read columns from text: as their own types, so that nothing is lost to a guess; times below."""
    types = {name: kind for name, kind in wanted.items() if kind is not None and name != time}
    found = {name: pa.string() if pa.types.is_timestamp(kind) else kind for name, kind in types.items()}
    found[time] = pa.string() if unit is None else pa.float64()
    return found


def as_times(column: pa.ChunkedArray, unit: str | None) -> pa.ChunkedArray:
    """A time column as microseconds since the epoch, UTC: numbers by their unit, text as ISO 8601."""
    if unit is not None:
        if pa.types.is_integer(column.type):
            return pc.multiply(column.cast(pa.int64()), US_PER[unit]).cast(TIME)
        scaled = pc.multiply(column.cast(pa.float64()), float(US_PER[unit]))
        return pc.round(scaled).cast(pa.int64()).cast(TIME)
    return _as_type(column, TIME)


def _as_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_timestamp(kind):
        return _as_timestamps(column, kind)
    # Digits may be lost (a double into a float), whole numbers may not wrap round.
    return column.cast(kind, safe=not pa.types.is_floating(kind))


def _as_timestamps(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        zoned = pc.any(pc.match_substring_regex(column, r":[0-9.]+" + _HAS_ZONE)).as_py()
        column = column.cast(pa.timestamp("ns", tz="UTC") if zoned else pa.timestamp("ns"))
    elif not pa.types.is_temporal(column.type):
        message = f"it is of type {column.type}"
        raise pa.ArrowTypeError(message)
    # Times without a zone are in UTC; what is finer than microseconds is cut off.
    if pa.types.is_timestamp(column.type) and column.type.tz is None and kind.tz is not None:
        return column.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).cast(kind)
    return column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None)), safe=False).cast(kind)


def microseconds_of(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """A time column as integers."""
    found: npt.NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return found
