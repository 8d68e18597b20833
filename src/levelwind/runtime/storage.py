"""Segments of state as files: written by the nodes, read back where an operator moves or a run restarts."""

from __future__ import annotations

import mmap
from pathlib import Path

import polars as pl

from levelwind.runtime.frames import decode, encode

STATE = "state"


class SegmentWriter:
    """One file that takes all segments which one task writes in one superstep.

    The name holds step, node, superstep and a token of this very attempt: tasks can outlive a killed
    driver for a moment and go on writing, so no two attempts may share a file. Only a commit that names
    a place makes it real.
    """

    def __init__(self, directory: str, name: str) -> None:
        self._directory = directory
        self._name = name
        self._pieces: list[bytes] = []
        self._offset = 0
        self.files: list[Path] = []

    def add(self, frame: pl.DataFrame) -> tuple[str, int]:
        """Take a frame; returns its place and its size in bytes."""
        piece = encode(frame)
        place = f"{self._name}:{self._offset}:{len(piece)}"
        self._pieces.append(piece)
        self._offset += len(piece)
        return place, len(piece)

    def close(self) -> None:
        """Write the file, if there is anything to write."""
        if not self._pieces:
            return
        path = Path(self._directory, STATE, f"{self._name}.arrow")
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            file.writelines(self._pieces)
        self.files.append(path)


def file_of(place: str) -> str:
    """The name of the file that holds a place."""
    return place.split(":", 1)[0] + ".arrow"


def read_segment(directory: str, place: str) -> pl.DataFrame:
    """The frame at a place; its pages are read when they are touched."""
    name, offset, length = place.rsplit(":", 2)
    with open(Path(directory, STATE, f"{name}.arrow"), "rb") as file:
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return decode(memoryview(whole)[int(offset) : int(offset) + int(length)])
