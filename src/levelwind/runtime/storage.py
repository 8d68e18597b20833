"""Segments of state as files: written by the nodes, read back where an operator moves or a run restarts."""

from __future__ import annotations

import mmap
from pathlib import Path

import polars as pl
import pyarrow as pa

from levelwind.runtime.frames import decode, write

STATE = "state"
# Small pieces are gathered up to this size before they are written; what is larger is written as it is.
BUFFER_BYTES = 1 << 16


class SegmentWriter:
    """One file that takes all segments which one task writes in one superstep.

    The name holds step, node, superstep and a token of this very attempt: tasks can outlive a killed
    driver for a moment and go on writing, so no two attempts may share a file. Only a commit that names
    a place makes it real.
    """

    def __init__(self, directory: str, name: str) -> None:
        self._path = Path(directory, STATE, f"{name}.arrow")
        self._name = name
        self._file: pa.NativeFile | None = None
        self.files: list[Path] = []

    def add(self, frame: pl.DataFrame) -> tuple[str, int]:
        """Write a frame; returns its place and its size in bytes. Rows go to the file without a copy here."""
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = pa.BufferedOutputStream(pa.OSFile(str(self._path), "wb"), BUFFER_BYTES)
        begin = self._file.tell()
        write(frame, self._file)
        size = self._file.tell() - begin
        return f"{self._name}:{begin}:{size}", size

    def close(self) -> None:
        """See that all is written, if there is anything to write."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self.files.append(self._path)


def file_of(place: str) -> str:
    """The name of the file that holds a place."""
    return place.split(":", 1)[0] + ".arrow"


def read_segment(directory: str, place: str) -> pl.DataFrame:
    """The frame at a place; its pages are read when they are touched."""
    name, offset, length = place.rsplit(":", 2)
    with open(Path(directory, STATE, f"{name}.arrow"), "rb") as file:
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return decode(memoryview(whole)[int(offset) : int(offset) + int(length)])
