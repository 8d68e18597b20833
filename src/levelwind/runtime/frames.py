"""Frames as bytes: Arrow's stream format, what travels between nodes and lies in checkpoints."""

from __future__ import annotations

import polars as pl
import pyarrow as pa


def encode(frame: pl.DataFrame) -> bytes:
    """A frame as bytes. About 60 µs and a copy of the data."""
    table = frame.to_arrow(compat_level=pl.CompatLevel.newest())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def decode(data: bytes | memoryview | pa.Buffer) -> pl.DataFrame:
    """The frame that `encode` made bytes of; shares their memory."""
    with pa.ipc.open_stream(data) as reader:
        return from_arrow(reader.read_all())


def from_arrow(table: pa.Table) -> pl.DataFrame:
    """A Polars frame over Arrow data."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
