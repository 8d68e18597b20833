"""The driver's part of a run: step after step, each committed whole before anyone sees its rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from levelwind.errors import RunError
from levelwind.model import Cluster
from levelwind.operators.rows import BEGINNING, END
from levelwind.runtime.batch import Batch
from levelwind.runtime.commits import (
    BoxRecord,
    Commit,
    MoveRecord,
    Published,
    TableRecord,
    Version,
    read_commit,
    steps_of,
    write_commit,
)
from levelwind.runtime.durable import force_directories
from levelwind.runtime.hearsay import diffusions, heard_after, told_to
from levelwind.runtime.inheriting import gone_on_from, inherited_from, origins, taken_over
from levelwind.runtime.messages import BoxReport, NodeReport, Seen, TableReport
from levelwind.runtime.program import Layout, Program
from levelwind.runtime.rerouting import rerouted
from levelwind.runtime.retention import Retention, clear_staging
from levelwind.runtime.sinks import Sink
from levelwind.runtime.watermarks import advance, input_watermarks


class Executor(Protocol):
    """Carries out supersteps: on Spark, or in this process."""

    def run(self, program: Program, batch: Batch, rows: Any) -> list[NodeReport]:
        """Run one step on what the sources brought (None: nothing), and return all nodes' reports."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An operator that is to stand on another node from the next step on."""

    operator: str
    target: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What happened in one step. Times are in seconds."""

    commit: Commit
    reports: tuple[NodeReport, ...]
    program: Program
    started: float
    wall_s: float
    run_s: float
    commit_s: float
    publish_s: float

    @property
    def seen(self) -> dict[str, int]:
        """Rows read of each stream."""
        found: dict[str, int] = {}
        for report in self.reports:
            for part in report.seen:
                found[part.stream] = found.get(part.stream, 0) + part.rows
        return found

    @property
    def boxes(self) -> Iterable[tuple[NodeReport, BoxReport]]:
        """Every box's report beside that of its node."""
        return ((report, box) for report in self.reports for box in report.boxes)


class Coordinator:
    """Runs steps on an executor and commits them.

    Parameters
    ----------
    layout, nodes, placement
        What runs, on which nodes, where at first. A checkpoint knows better where operators stand.
    directory
        The checkpoint.
    sinks
        By output, and dead letters under `DEAD_LETTERS`.
    version
        Which network this is, if it was changed while it ran.
    served_by
        Operators that are not in the layout, since others compute the same for them.
    cluster
        What the nodes can do, for spread joins; None: all alike.
    """

    def __init__(
        self,
        layout: Layout,
        nodes: Sequence[str],
        placement: Mapping[str, str],
        *,
        directory: str,
        executor: Executor,
        sinks: Mapping[str, Sink],
        fingerprints: Mapping[str, str] | None = None,
        version: Version | None = None,
        served_by: Mapping[str, str] | None = None,
        cluster: Cluster | None = None,
        clock: Callable[[], float] = time.time,
        keep: int = 3,
    ) -> None:
        self.layout = layout
        self.program = Program.of(layout, tuple(nodes), placement)
        self.directory = directory
        self.executor = executor
        self.sinks = dict(sinks)
        self.fingerprints = dict(fingerprints or {})
        self.version = version
        self.served_by = dict(served_by or {})
        self.cluster = cluster
        self.clock = clock
        # The last commit, with its records under the names that go on from them: what the next step begins
        # with. Where these are not the names in its file, ``_origins`` has those.
        self.last: Commit | None = None
        self._origins: dict[str, str] = {}
        self._moves: list[Move] = []
        self._shares: dict[str, float] = {}
        self._silent_since: dict[str, float] = {}
        self._retention = Retention(directory, keep)

    def recover(self) -> Commit | None:
        """Go on from the last commit, if there is one: publish what it names, clear what nobody names.

        Operators stand where the commit says, as far as those operators and nodes are still there. Those that
        another computed for, and does no longer, go on from its state. Returns the commit as it was written.
        """
        steps = steps_of(self.directory)
        last = read_commit(self.directory, steps[-1]) if steps else None
        if last is not None:
            self._publish(last)
            self._go_on_from(last, origins(self.layout, last.boxes, inherited_from(last, self.layout)))
            self._take_over_placement()
        commits = [read_commit(self.directory, step) for step in steps]
        self._retention.start(commits)
        clear_staging([sink.staging for sink in self.sinks.values()], commits)
        return last

    def _go_on_from(self, commit: Commit, found: Mapping[str, str]) -> None:
        """Boxes go on from a commit: each from the record of that name in it."""
        self.last = gone_on_from(commit, found)
        written = {name: self._origins.get(old, old) for name, old in found.items()}
        self._origins = {name: old for name, old in written.items() if name != old}

    def _take_over_placement(self) -> None:
        """Where the last commit has operators, unless a pin or a table that came since forbids it."""
        assert self.last is not None
        placement = self.program.placement | taken_over(self.layout, self.program.nodes, self.last)
        self.program = Program.of(self.layout, self.program.nodes, placement)

    def change(
        self,
        layout: Layout,
        placement: Mapping[str, str],
        *,
        sinks: Mapping[str, Sink],
        fingerprints: Mapping[str, str],
        version: Version,
        served_by: Mapping[str, str] | None = None,
        inherited: Mapping[str, str] | None = None,
    ) -> None:
        """From the next step on another network runs; operators that stay keep their state and their rows.

        Those that another computed for and that compute themselves from now on go on with its state and rows
        (``inherited``, to whom from whom). It is real once that step is committed: a run that dies before
        goes on with the network it had.
        """
        if self.last is not None:
            on_their_way = rerouted(self.last.in_flight, self.layout, layout, inherited)
            last = msgspec.structs.replace(self.last, in_flight=on_their_way)
            # What is gone leaves nothing behind: its name may come back with another meaning.
            self._go_on_from(last, origins(layout, self.layout.box_named, inherited or {}))
        self.layout = layout
        self.served_by = dict(served_by or {})
        self.program = Program.of(layout, self.program.nodes, placement)
        self.sinks, self.fingerprints, self.version = dict(sinks), dict(fingerprints), version

    def move(self, moves: Iterable[Move]) -> None:
        """From the next step on, operators stand elsewhere; those there already, or gone, are left out."""
        self._moves += moves

    def shed(self, shares: Mapping[str, float]) -> None:
        """From the next step on, these operators take only such a share of their rows, all others all."""
        self._shares = dict(shares)

    @property
    def step_number(self) -> int:
        """The number of the next step."""
        return 0 if self.last is None else self.last.step + 1

    def step(
        self, rows: Any, *, batch: int | None = None, offsets: Sequence[str] = (), closing: bool = False
    ) -> Step:
        """Run one step and commit it."""
        started = self.clock()
        begin = time.perf_counter()
        moved = self._apply_moves()
        order = self._order(closing=closing)
        reports = self.executor.run(self.program, order, rows)
        ran = time.perf_counter()
        failures = [failure for report in reports for failure in report.failures]
        if failures:
            raise RunError("; ".join(failures[:3]))
        commit = self._commit(order, reports, moved, batch, offsets, run_s=ran - begin)
        write_commit(self.directory, commit)
        committed = time.perf_counter()
        self.last, self._origins = commit, {}
        self._publish(commit)
        published = time.perf_counter()
        self._retention.add(commit)
        return Step(
            commit=commit,
            reports=tuple(reports),
            program=self.program,
            started=started,
            wall_s=published - begin,
            run_s=ran - begin,
            commit_s=committed - ran,
            publish_s=published - committed,
        )

    def close(self) -> list[Step]:
        """Put out all that is open, rows in flight included."""
        steps = [self.step(None, closing=True)]
        # A closing step in `next` mode reaches one node further each time.
        while steps[-1].commit.in_flight or self._unsettled(steps[-1].commit):
            steps.append(self.step(None, closing=True))
        return steps

    def _unsettled(self, commit: Commit) -> bool:
        return any(record.watermark != END for record in commit.boxes.values()) and not self.program.within

    def _apply_moves(self) -> list[MoveRecord]:
        """The new program, and a record for each operator that changes its node."""
        wanted = {move.operator: move for move in self._moves}
        self._moves = []
        placement = self.program.placement
        moved = [
            MoveRecord(
                step=self.step_number,
                operator=name,
                source=placement[name],
                target=move.target,
                cause=move.cause,
            )
            for name, move in wanted.items()
            if name in placement and placement[name] != move.target
        ]
        if moved:
            placement.update({record.operator: record.target for record in moved})
            self.program = Program.of(self.layout, self.program.nodes, placement)
        return moved

    def _order(self, *, closing: bool) -> Batch:
        """What the nodes are told."""
        last = self.last
        boxes = {} if last is None else last.boxes
        records = [boxes.get(box.name) for box in self.layout.boxes]
        return Batch(
            step=self.step_number,
            directory=self.directory,
            previous=None if last is None else last.step,
            tokens=tuple(record.token if record and record.has_state else "" for record in records),
            origins=self._origins,
            streams=self._streams_before(),
            behind=self._behind(records, closing=closing),
            rows={} if last is None else last.rows,
            closing=closing,
            in_flight=() if last is None else last.in_flight,
            shares={
                box.index: self._shares[box.name] for box in self.layout.boxes if box.name in self._shares
            }
            if self._shares
            else {},
            staging={name: sink.staging for name, sink in self.sinks.items()},
            told=self._told(),
        )

    def _told(self) -> dict[str, Any]:
        """What routers of spread joins are told: of the last commit alone, so that it can be told again."""
        heard = None if self.last is None else self.last.heard
        return {box.name: told_to(box, self.program, heard, self.cluster) for box in diffusions(self.layout)}

    def _behind(self, records: Sequence[BoxRecord | None], *, closing: bool) -> tuple[int, ...]:
        """Watermarks behind every box. A run that was closed and goes on is back where its streams are."""
        if self.last is not None and self.last.closed and not closing:
            _, behind = input_watermarks(self.program, self.last.streams, None)
            return tuple(behind)
        return tuple(BEGINNING if record is None else record.watermark for record in records)

    def _streams_before(self) -> dict[str, int]:
        """Watermarks of the streams; one that has been silent too long goes along with those it meets."""
        streams = {} if self.last is None else dict(self.last.streams)
        now = self.clock()
        network = self.layout.network
        idle = {
            name
            for name, stream in network.streams.items()
            if stream.idle_after_s is not None
            and now - self._silent_since.setdefault(name, now) > stream.idle_after_s
        }
        for name in idle:
            awake = [
                streams.get(other, BEGINNING)
                for other in self.layout.met_by[name]
                if other not in idle and network.streams[other].time
            ]
            if awake:
                streams[name] = max(streams.get(name, BEGINNING), min(awake))
        return streams

    def _commit(
        self,
        order: Batch,
        reports: Sequence[NodeReport],
        moved: Sequence[MoveRecord],
        batch: int | None,
        offsets: Sequence[str],
        *,
        run_s: float,
    ) -> Commit:
        seen = [part for report in reports for part in report.seen]
        streams = advance(self.layout.network, order.streams, seen)
        ends = dict.fromkeys(streams, END) if order.closing else streams
        _, behind = input_watermarks(self.program, ends, order.behind)
        placement = self.program.placement
        done = {box.box: (report, box) for report in reports for box in report.boxes}
        boxes: dict[str, BoxRecord] = {}
        for box in self.layout.boxes:
            before = None if self.last is None else self.last.boxes.get(box.name)
            report, result = done[box.index]
            boxes[box.name] = BoxRecord(
                node=placement[box.name],
                # After the end of the sources a later run may bring more: then time goes on from there.
                watermark=behind[box.index],
                token=report.token,
                tables=_tables(before, result.tables),
                marks=result.marks,
            )
        self._note_seen(seen)
        if batch is None and self.last is not None:  # nothing was read
            batch, offsets = self.last.batch, self.last.offsets
        return Commit(
            step=order.step,
            nodes=self.program.nodes,
            streams=streams,
            boxes=boxes,
            batch=batch,
            offsets=tuple(offsets),
            time=datetime.fromtimestamp(self.clock(), UTC).isoformat(),
            fingerprints=self.fingerprints,
            in_flight=tuple(entry for report in reports for entry in report.in_flight),
            outbox=self._outbox(reports),
            moves=tuple(self._with_cost(record, done) for record in moved),
            rows=self._rows_so_far(seen),
            closed=order.closing,
            version=self.version,
            served_by=self.served_by,
            heard=heard_after(
                None if self.last is None else self.last.heard,
                self.program,
                reports,
                run_s,
                {} if self.last is None else {name: box.marks for name, box in self.last.boxes.items()},
                self.cluster,
            ),
        )

    def _with_cost(self, record: MoveRecord, done: Mapping[int, tuple[NodeReport, BoxReport]]) -> MoveRecord:
        """A move with what it took: the state that changed its node, and the time to load it there."""
        before = None if self.last is None else self.last.boxes.get(record.operator)
        tables = {} if before is None else before.tables
        size = sum(segment.bytes for table in tables.values() for segment in table.segments)
        _, result = done[self.layout.box_named[record.operator].index]
        return msgspec.structs.replace(record, bytes=size, milliseconds=result.loaded_s * 1e3)

    def _outbox(self, reports: Sequence[NodeReport]) -> tuple[Published, ...]:
        staged: dict[str, list[tuple[int, str, int]]] = {}
        for report in reports:
            for entry in report.staged:
                staged.setdefault(entry.output, []).append((entry.rank, entry.path, entry.rows))
        return tuple(
            Published(
                name,
                tuple(path for _, path, _ in sorted(entries) if path),
                sum(rows for _, _, rows in entries),
            )
            for name, entries in sorted(staged.items())
        )

    def _rows_so_far(self, seen: Iterable[Seen]) -> dict[str, int]:
        rows = {} if self.last is None else dict(self.last.rows)
        for part in seen:
            rows[part.stream] = rows.get(part.stream, 0) + part.rows
        return rows

    def _note_seen(self, seen: Iterable[Seen]) -> None:
        now = self.clock()
        for part in seen:
            if part.rows:
                self._silent_since[part.stream] = now

    def _publish(self, commit: Commit) -> None:
        # An output that was there at the last commit may be gone after a restart, and with it its rows.
        there = [entry for entry in commit.outbox if entry.output in self.sinks]
        changed = [self.sinks[entry.output].publish(commit.step, entry) for entry in there]
        force_directories(path for path in changed if path is not None)


def _tables(before: BoxRecord | None, reported: Mapping[str, TableReport]) -> dict[str, TableRecord]:
    """Tables with all segments whole: those that stayed are taken over from the last commit."""
    found = {}
    for name, table in reported.items():
        old = before.tables[name].segments if before is not None and name in before.tables else ()
        segments = tuple(old[entry] if isinstance(entry, int) else entry for entry in table.segments)
        found[name] = TableRecord(table.clock, table.horizon, segments)
    return found
