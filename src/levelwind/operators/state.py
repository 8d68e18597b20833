"""State of operators: tables made of immutable segments.

A step never changes a segment: it appends new ones, or puts one in the place of several. What must be
written at the end of a batch is thus exactly the segments that have no place yet, and the cost of a
checkpoint follows the change, not the size of the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from levelwind.model.frozen import frozen_mapping

Load = Callable[[], pl.DataFrame]
# So many segments of about one size, or up to twice as many, are merged into one: a table that took n appends
# has at most 2 FAN · log(n) segments, and each of its bytes was written 1 + log(n) times (base FAN).
FAN = 12
# Bytes below which sizes do not matter.
SMALL = 1024


class Segment:
    """An immutable piece of a table: its frame, read when first asked for, and where it is stored.

    ``low`` and ``high`` bound the values of the table's time column (any integer clock of the table's).
    """

    __slots__ = ("__weakref__", "_frame", "_load", "bytes", "high", "low", "memo", "place", "rows")

    def __init__(
        self,
        *,
        rows: int,
        bytes: int,
        low: int,
        high: int,
        frame: pl.DataFrame | None = None,
        load: Load | None = None,
        place: str | None = None,
    ) -> None:
        if frame is None and load is None:
            message = "a segment needs a frame or a way to load it"
            raise ValueError(message)
        self.rows, self.bytes, self.low, self.high = rows, bytes, low, high
        self.place = place
        # For kernels: what they have worked out from the frame and may ask for again. Never stored.
        self.memo: dict[str, Any] = {}
        self._frame, self._load = frame, load

    @classmethod
    def of(cls, frame: pl.DataFrame, clock: str) -> Segment:
        """A new segment, not yet stored; ``clock`` names the integer or time column that bounds it."""
        times = frame.get_column(clock).to_physical().to_numpy()
        return cls(
            rows=frame.height,
            bytes=int(frame.estimated_size()),
            low=int(times.min()),
            high=int(times.max()),
            frame=frame,
        )

    @property
    def at_hand(self) -> bool:
        """Whether its rows need not be read."""
        return self._frame is not None

    @property
    def frame(self) -> pl.DataFrame:
        """Its rows."""
        if self._frame is None:
            assert self._load is not None
            self._frame = self._load()
        return self._frame


@dataclass(frozen=True, slots=True)
class Table:
    """Segments, oldest first; ``clock`` names the column by which rows grow old.

    Rows whose clock is below ``horizon`` are no longer part of the table. They are left out when it is
    read, and given up when it is merged or when a segment holds nothing else.
    """

    clock: str
    segments: tuple[Segment, ...] = ()
    horizon: int = -(2**63)

    @property
    def rows(self) -> int:
        """Rows held, those that are to be given up included."""
        return sum(segment.rows for segment in self.segments)

    @property
    def bytes(self) -> int:
        """Bytes held, about."""
        return sum(segment.bytes for segment in self.segments)

    def append(self, frame: pl.DataFrame) -> Table:
        """With more rows."""
        if frame.is_empty():
            return self
        return self.extend(Segment.of(frame, self.clock))

    def extend(self, segment: Segment) -> Table:
        """With one more segment."""
        return Table(self.clock, (*self.segments, segment), self.horizon)

    def evict(self, below: int) -> Table:
        """Without the rows whose clock is below a bound. O(segments)."""
        if below <= self.horizon:
            return self
        return Table(self.clock, tuple(s for s in self.segments if s.high >= below), below)

    def frames(self) -> list[pl.DataFrame]:
        """The rows of each segment, oldest segment first."""
        return [
            segment.frame
            if segment.low >= self.horizon
            else segment.frame.filter(pl.col(self.clock).to_physical() >= self.horizon)
            for segment in self.segments
        ]

    def read(self) -> pl.DataFrame | None:
        """All rows as one frame, None if there are none; columns by name, missing ones null."""
        return one_frame(self.frames()) if self.segments else None

    def compact(self, merge: Callable[[list[pl.DataFrame]], pl.DataFrame] | None = None) -> Table:
        """With fewer segments, if there are many of about one size.

        Parameters
        ----------
        merge
            Makes one frame of several, such as one row per key; None keeps the rows as they are.
        """
        kept, merged = self.worth_merging()
        if not merged:
            return self
        frames = Table(self.clock, merged, self.horizon).frames()
        return Table(self.clock, kept, self.horizon).append((merge or one_frame)(frames))

    def worth_merging(self) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
        """The older segments that stay, and the newest ones that are to become one (none or at least FAN).

        What the newest become may be the last that a run of larger ones before them had lacked: then all
        of these become one at once. How many above FAN it takes is a number of each run's own: tables that
        began in the same batch would else all be merged in the same batch, and that batch be the slowest.
        """
        run, alike, largest, total = 0, 0, 0, 0
        for count, segment in enumerate(reversed(self.segments), start=1):
            if count > 1 and not _alike(segment.bytes, largest):
                if alike < FAN or not _alike(segment.bytes, total):
                    break
                alike, largest = 1, total
            alike += 1
            largest = max(largest, segment.bytes)
            total += segment.bytes
            if alike >= FAN + segment.rows // FAN % FAN:
                run = count
        return self.segments[: len(self.segments) - run], self.segments[len(self.segments) - run :]


def one_frame(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """All rows; columns by name, missing ones null."""
    return frames[0] if len(frames) == 1 else pl.concat(frames, how="diagonal")


def _alike(older: int, newer: int) -> bool:
    """Whether a segment is of about the size of a newer one, or smaller."""
    return older <= FAN * max(newer, SMALL) / 2


@dataclass(frozen=True, slots=True)
class State:
    """All an operator remembers between batches: tables by name, and whole numbers by name."""

    tables: Mapping[str, Table] = field(default_factory=frozen_mapping)
    marks: Mapping[str, int] = field(default_factory=frozen_mapping)

    def table(self, name: str, clock: str) -> Table:
        """A table, empty if it is new."""
        found: Table | None = self.tables.get(name)
        return Table(clock) if found is None else found

    def with_table(self, name: str, table: Table) -> State:
        """With one table changed."""
        return State(frozen_mapping({**self.tables, name: table}), self.marks)

    def with_mark(self, name: str, value: int) -> State:
        """With one number changed."""
        return State(self.tables, frozen_mapping({**self.marks, name: value}))

    @property
    def bytes(self) -> int:
        """Bytes held, about."""
        return sum(table.bytes for table in self.tables.values())

    def segments(self) -> Iterable[Segment]:
        """All segments of all tables."""
        return (segment for table in self.tables.values() for segment in table.segments)


EMPTY = State()
