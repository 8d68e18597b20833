"""What a replayable source is, and how far it has come by now: the same for traces and generators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from time import monotonic
from typing import Protocol

import pyarrow as pa

US_PER_S = 1_000_000
# Of one record batch: large enough that its fixed cost does not show, small enough to be passed on early.
ROWS_PER_RECORD_BATCH = 65_536
Offset = dict[str, int]


def offset_of(position: int) -> Offset:
    """A position in the form in which it is stored: small, and JSON."""
    return {"position": position}


def position_of(offset: Offset) -> int:
    """The position in a stored offset."""
    return int(offset["position"])


class Replay(Protocol):
    """Rows in an order that never changes, each at a position; positions only grow.

    The rows from one position up to another are the same whenever and wherever they are read, so a batch
    is fully told by the two.
    """

    @property
    def speed(self) -> float | None:
        """Seconds of event time per second; None is as fast as it can."""
        ...

    def end(self) -> int | None:
        """The position after the last row; None if there is no last one."""
        ...

    def moment(self, position: int) -> int:
        """The event time, in microseconds, at which the replay stands at a position."""
        ...

    def reached(self, start: int, moment: int) -> int:
        """The position up to which everything has come by an event time; ``start`` if nothing has."""
        ...

    def cut(self, start: int, *, asked_only: bool) -> int | None:
        """The position at which a batch from ``start`` is cut; None: it is not.

        ``asked_only``: by the size that the options ask for, not by the usual one.
        """
        ...

    def split(self, start: int, end: int) -> list[tuple[int, int]]:
        """The rows of a batch in as many consecutive parts as the options ask for, none of them void."""
        ...

    def read(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The rows from one position up to another."""
        ...


@dataclass(slots=True)
class Progress:
    """How far a replay has come: by the clock and its speed, or as far as the next batch reaches.

    Event time is tied to the clock by the first question after a start, at the position asked about: a
    replay that was stopped goes on where it stopped, and does not make up for the time it was away.
    """

    replay: Replay
    clock: Callable[[], float] = monotonic
    hurried: bool = False
    _tied: tuple[float, int] | None = field(default=None, init=False)

    def latest(self, start: int, *, everything: bool = False) -> int:
        """The position at which a batch from ``start`` ends now; ``start`` itself if there is nothing yet.

        ``everything``: take all there is, whatever batch size the options ask for.
        """
        end = self.replay.end()
        if end is not None and start >= end:
            return start
        paced = self.replay.speed is not None and not self.hurried
        available = self._due(start) if paced else end
        if everything and available is not None:
            return available
        cut = self.replay.cut(start, asked_only=paced)
        found = min(position for position in (available, cut) if position is not None)
        return max(found, start)

    def _due(self, start: int) -> int:
        assert self.replay.speed is not None
        now = self.clock()
        if self._tied is None:
            self._tied = now, self.replay.moment(start)
        since, moment = self._tied
        return self.replay.reached(start, moment + round((now - since) * self.replay.speed * US_PER_S))


def even_parts(start: int, end: int, parts: int) -> list[tuple[int, int]]:
    """A range cut into at most so many consecutive ranges of nearly equal length, none of them empty.

    Examples
    --------
    >>> even_parts(0, 10, 3), even_parts(5, 6, 3)
    ([(0, 3), (3, 6), (6, 10)], [(5, 6)])
    """
    edges = [start + (end - start) * part // parts for part in range(parts + 1)]
    return [(low, high) for low, high in pairwise(edges) if low < high]
