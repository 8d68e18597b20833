"""What travels through an exchange: rows of a part, what the sources brought, and the nodes' reports."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl
import pyarrow as pa

from levelwind.runtime.frames import encode

HEADER_BYTES = 4


class Rows(msgspec.Struct, tag="rows", array_like=True, frozen=True):
    """Rows of one part; ``rank`` orders what several producers sent."""

    part: int
    rank: tuple[int, int]


class Seen(msgspec.Struct, tag="seen", array_like=True, frozen=True):
    """What one reading task brought of a stream: rows, of them late, and the largest event time."""

    stream: str
    rows: int
    latest: int


class Entry(msgspec.Struct, tag="entry", array_like=True, frozen=True):
    """All that one reading task brought."""

    seen: tuple[Seen, ...]


class Segment(msgspec.Struct, array_like=True, frozen=True):
    """A stored segment of a table."""

    place: str
    rows: int
    bytes: int
    low: int
    high: int


class TableReport(msgspec.Struct, array_like=True, frozen=True):
    """A table after a step: old segments by their number in the last commit, new ones whole."""

    clock: str
    horizon: int
    segments: tuple[int | Segment, ...]


class BoxReport(msgspec.Struct, array_like=True, frozen=True):
    """What one box did in a step. Times are in seconds. ``said``: see `Stepped`.

    ``out_bytes`` is the size in memory of what it put out, ``away_bytes`` of the part that boxes on other
    nodes read, and ``away_s`` the part of ``cpu_s`` that made this ready for sending.
    """

    box: int
    rows_in: int
    rows_out: int
    cpu_s: float
    state_bytes: int
    tables: dict[str, TableReport]
    marks: dict[str, int]
    loaded_bytes: int = 0
    loaded_s: float = 0.0
    rejected: int = 0
    shed: int = 0
    said: dict[str, Any] | None = None
    out_bytes: int = 0
    away_bytes: int = 0
    away_s: float = 0.0


class Staged(msgspec.Struct, array_like=True, frozen=True):
    """Rows of an output, written aside until the step is committed."""

    output: str
    path: str
    rows: int
    rank: int


class InFlight(msgspec.Struct, array_like=True, frozen=True):
    """Rows that were put out in this step and are read in the next, by boxes on other nodes."""

    part: int
    producer: int
    place: str
    rows: int
    bytes: int
    readers: tuple[int, ...]


class NodeReport(msgspec.Struct, tag="report", array_like=True, frozen=True):
    """What one node did in one superstep.

    ``received_s`` are the CPU seconds, of ``cpu_s``, before any box was run, in which rows of so many bytes
    were read that had been sent to it.
    """

    node: int
    level: int
    token: str
    host: str
    boxes: tuple[BoxReport, ...]
    staged: tuple[Staged, ...]
    in_flight: tuple[InFlight, ...]
    seen: tuple[Seen, ...]
    cpu_s: float
    wall_s: float
    sent_bytes: int
    memory_bytes: int = 0
    failures: tuple[str, ...] = ()
    received_bytes: int = 0
    received_s: float = 0.0


Header = Rows | Entry | NodeReport
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Header).decode


def pack(header: Header, body: bytes | pa.Buffer = b"") -> bytes:
    """One message."""
    head = _encode(header)
    return b"".join((len(head).to_bytes(HEADER_BYTES, "little"), head, body))


def unpack(message: bytes) -> tuple[Header, memoryview]:
    """A message's header, and its body not yet decoded."""
    view = memoryview(message)
    size = int.from_bytes(view[:HEADER_BYTES], "little")
    return _decode(view[HEADER_BYTES : HEADER_BYTES + size]), view[HEADER_BYTES + size :]


def pack_rows(part: int, rank: tuple[int, int], frame: pl.DataFrame) -> bytes:
    """Rows as a message."""
    return pack(Rows(part, rank), encode(frame))
