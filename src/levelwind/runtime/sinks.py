"""Sinks: where committed rows become visible.

Rows are first written aside by the nodes. Once the commit that names them is made they are published; a
crash in between is mended by publishing again, so a sink must bear that: the parquet sink does so exactly
once, since a file is there under its final name or it is not.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pyarrow.parquet as parquet

from levelwind.runtime.commits import Published
from levelwind.runtime.durable import force


class Sink(Protocol):
    """Where one output's rows go."""

    staging: str
    exactly_once: bool

    def publish(self, step: int, published: Published) -> Path | None:
        """Make the rows of a step visible; called again after a crash.

        Returns the directory that changed, if there is one: it is forced to disk with those of all others.
        """
        ...

    def holds_rows(self) -> bool:
        """Whether there is something from before."""
        ...


class ParquetSink:
    """A directory that holds one parquet file per batch, each whole."""

    exactly_once = True

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        # Beside the directory, not in it: no reader may stumble over what is not committed.
        self.staging = str(self.path.parent / f".{self.path.name}.staging")

    def publish(self, step: int, published: Published) -> Path | None:
        """Rename the staged file into place; several are first made one."""
        final = self.path / f"part-{step:09d}.parquet"
        staged = [Path(path) for path in published.staged]
        # What was staged goes away only once it was published, if need be into another directory than now.
        if not final.exists() and all(path.exists() for path in staged):
            self.path.mkdir(parents=True, exist_ok=True)
            os.replace(self._one(staged), final)
        for path in staged:
            path.unlink(missing_ok=True)
        return self.path if self.path.is_dir() else None

    def _one(self, staged: Sequence[Path]) -> Path:
        if len(staged) == 1:
            return staged[0]
        joined = staged[0].with_suffix(".joined")
        with parquet.ParquetWriter(joined, parquet.read_schema(staged[0])) as writer:
            for path in staged:
                writer.write_table(parquet.read_table(path).cast(writer.schema))
        force([joined])
        return joined

    def holds_rows(self) -> bool:
        """Whether the directory has any file that readers would take for data."""
        return self.path.is_dir() and any(
            not entry.name.startswith((".", "_")) for entry in self.path.iterdir()
        )


class Discard:
    """Counts rows and forgets them."""

    exactly_once = True
    staging = ""

    def publish(self, step: int, published: Published) -> None:
        """There is nothing to show."""

    def holds_rows(self) -> bool:
        """Never."""
        return False
