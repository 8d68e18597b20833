"""Commits: one readable file per step that says what is true after it.

A commit is made by renaming a finished file into place, so it is there whole or not at all. It names
everything that the next step needs: how far the sources were read, watermarks, where every operator
stands, the segments of its state, rows in flight, and the rows of the outputs that are to be published.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from weakref import WeakValueDictionary

import msgspec

from levelwind.errors import input_error
from levelwind.model.frozen import frozen_mapping
from levelwind.operators.state import EMPTY, Segment, State, Table
from levelwind.runtime.durable import write_whole
from levelwind.runtime.hearsay import Heard
from levelwind.runtime.messages import InFlight
from levelwind.runtime.messages import Segment as Stored
from levelwind.runtime.storage import read_segment

COMMITS = "commits"
# Raised when a commit written by this version could not be read by an older one.
FORMAT = 1


class TableRecord(msgspec.Struct, frozen=True):
    """A table: the column by which rows grow old, the bound below which they are gone, its segments."""

    clock: str
    horizon: int
    segments: tuple[Stored, ...]


class BoxRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """An operator (or instance) after a step."""

    node: str
    watermark: int
    token: str = ""
    tables: dict[str, TableRecord] = {}
    marks: dict[str, int] = {}

    @property
    def has_state(self) -> bool:
        """Whether there is anything to load."""
        return bool(self.tables or self.marks)


class Published(msgspec.Struct, frozen=True, omit_defaults=True):
    """Rows of one output that a commit made real: files written aside, and the name they get."""

    output: str
    staged: tuple[str, ...]
    rows: int
    final: str | None = None


class MoveRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operator moved between two batches: why, where to, what it cost."""

    step: int
    operator: str
    source: str
    target: str
    cause: str
    bytes: int = 0
    milliseconds: float = 0.0


class Version(msgspec.Struct, frozen=True):
    """Which network a step ran, if that was changed while it ran: digests of it, and of what it began as."""

    network: str
    origin: str


class Commit(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that is true after a step. ``heard`` is what was measured of nodes, for spread joins."""

    step: int
    nodes: tuple[str, ...]
    streams: dict[str, int]
    boxes: dict[str, BoxRecord]
    format: int = FORMAT
    batch: int | None = None
    offsets: tuple[str, ...] = ()
    time: str = ""
    fingerprints: dict[str, str] = {}
    in_flight: tuple[InFlight, ...] = ()
    outbox: tuple[Published, ...] = ()
    moves: tuple[MoveRecord, ...] = ()
    rows: dict[str, int] = {}
    closed: bool = False
    version: Version | None = None
    # Operators that are not computed themselves, with those whose rows and state are theirs, too.
    served_by: dict[str, str] = {}
    heard: Heard | None = None


def state_of(record: BoxRecord | None, directory: str) -> State:
    """The state that a record tells of; segments are read when first asked for."""
    if record is None or not record.has_state:
        return EMPTY
    tables = {
        name: Table(
            table.clock, tuple(_segment(stored, directory) for stored in table.segments), table.horizon
        )
        for name, table in record.tables.items()
    }
    return State(frozen_mapping(tables), frozen_mapping(record.marks))


# Operators that share panes name the same segments: one object stands for each, so that they still share
# them after a load, and what a process has read once it does not read again.
_SEGMENTS: WeakValueDictionary[tuple[str, str], Segment] = WeakValueDictionary()


def _segment(stored: Stored, directory: str) -> Segment:
    found = _SEGMENTS.get((directory, stored.place))
    if found is None:
        found = _SEGMENTS[directory, stored.place] = Segment(
            rows=stored.rows,
            bytes=stored.bytes,
            low=stored.low,
            high=stored.high,
            place=stored.place,
            load=lambda: read_segment(directory, stored.place),
        )
    return found


def known_segment(directory: str, segment: Segment) -> None:
    """Let a segment that was just given its place be found by it."""
    assert segment.place is not None
    _SEGMENTS[directory, segment.place] = segment


def path_of(directory: str, step: int) -> Path:
    """Where the commit of a step lies."""
    return Path(directory, COMMITS, f"{step:09d}.json")


def read_commit(directory: str, step: int) -> Commit:
    """The commit of a step. Kept, since a node may need many operators from one."""
    path = path_of(directory, step)
    return _read_commit(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _read_commit(path: Path, _: int) -> Commit:
    data = path.read_bytes()
    try:
        return msgspec.json.decode(data, type=Commit)
    except msgspec.ValidationError:
        refuse_newer(msgspec.json.decode(data, type=_Version).format)
        raise


class _Version(msgspec.Struct):
    """Of a commit that may be of another version, the one thing that all have in common."""

    format: int = FORMAT


def refuse_newer(format: int) -> None:
    """Refuse a format that a later version has written."""
    if format > FORMAT:
        rule = "the checkpoint's format must be one that this version knows"
        hint = f"it was written by a newer version: format {format}, known up to {FORMAT}"
        raise input_error(rule, key="checkpoint", value=format, hint=hint)


def write_commit(directory: str, commit: Commit) -> int:
    """Make a commit real; returns its size in bytes."""
    path = path_of(directory, commit.step)
    data = msgspec.json.encode(commit)
    write_whole(path, msgspec.json.format(data, indent=1) if len(data) < READABLE else data)
    return len(data)


# Above this many bytes a commit is one line: laying it out would cost more than writing it.
READABLE = 1 << 18


def steps_of(directory: str) -> list[int]:
    """The steps whose commits are there, in order."""
    folder = Path(directory, COMMITS)
    if not folder.is_dir():
        return []
    return sorted(int(path.stem) for path in folder.glob("[0-9]*.json"))
