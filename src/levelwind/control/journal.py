"""What was decided, and why: a bounded list of records for people."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One decision.

    ``what`` is accepted, rejected, placed, dropped, done, failed, shed, ignored or alarm.
    ``operator``, ``source`` and ``target`` are names, None where there is none. ``load`` is the operator's
    mean load in CPU seconds per second, as far as it was known.
    """

    at_s: float
    what: str
    reason: str
    operator: str | None = None
    source: str | None = None
    target: str | None = None
    load: float | None = None

    def __str__(self) -> str:
        way = "" if self.operator is None else f" {self.operator}"
        if self.source is not None and self.target is not None:
            way += f" {self.source} → {self.target}"
        elif self.target is not None or self.source is not None:
            way += f" {'on' if self.source is None else 'from'} {self.target or self.source}"
        return f"{self.at_s:.3f} s {self.what}{way}: {self.reason}"


class Journal:
    """The last ``size`` records, oldest first, and how many of each kind there were in all."""

    def __init__(self, size: int) -> None:
        self._records: deque[Record] = deque(maxlen=size)
        self._counts: dict[str, int] = {}
        self._taken = 0

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    @property
    def counts(self) -> dict[str, int]:
        """Number of records by what they say, forgotten ones included."""
        return dict(self._counts)

    def add(self, record: Record) -> None:
        """Write a record down; the oldest is forgotten when there are too many."""
        self._records.append(record)
        self._counts[record.what] = self._counts.get(record.what, 0) + 1

    def take(self) -> list[Record]:
        """Records since this was last asked for, oldest first, as far as they are not forgotten."""
        total = sum(self._counts.values())
        new, self._taken = total - self._taken, total
        return list(self._records)[max(0, len(self._records) - new) :]
