"""A node's part of a superstep: all its operators run on everything that has reached it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from levelwind.errors import RunError
from levelwind.model import Model, Port
from levelwind.operators.hashing import xxhash64
from levelwind.operators.model import SECONDS, burn, outright_load_s
from levelwind.operators.protocol import Stepped
from levelwind.operators.rows import END, ORDER, Arrived
from levelwind.operators.shedding import thinned
from levelwind.operators.state import Segment, State
from levelwind.operators.types import empty_frame
from levelwind.runtime.batch import Batch
from levelwind.runtime.commits import known_segment
from levelwind.runtime.delivery import parted
from levelwind.runtime.frames import decode
from levelwind.runtime.groups import Group, groups_of
from levelwind.runtime.memory import recall, remember, tidy
from levelwind.runtime.messages import (
    BoxReport,
    Entry,
    InFlight,
    Rows,
    Seen,
    TableReport,
    pack,
    pack_rows,
    unpack,
)
from levelwind.runtime.messages import Segment as Stored
from levelwind.runtime.program import Box, Part, Program
from levelwind.runtime.staging import as_json
from levelwind.runtime.storage import read_segment
from levelwind.runtime.task import Task
from levelwind.runtime.watermarks import advance, input_watermarks

Message = tuple[int, bytes]


@dataclass(slots=True)
class _Inbox:
    """What has reached each input, with the rank that orders it."""

    frames: dict[tuple[int, int], list[tuple[tuple[int, int], pl.DataFrame]]] = field(default_factory=dict)

    def put(self, box: int, number: int, rank: tuple[int, int], rows: pl.DataFrame) -> None:
        self.frames.setdefault((box, number), []).append((rank, rows))

    def take(self, box: int, number: int) -> pl.DataFrame | None:
        found = self.frames.pop((box, number), None)
        if found is None:
            return None
        if len(found) == 1:
            return found[0][1]
        found.sort(key=lambda item: item[0])
        return pl.concat([rows for _, rows in found], how="vertical")


@dataclass(slots=True)
class _Away:
    """What a box has sent to others: bytes, and CPU seconds that it took."""

    bytes: int = 0
    cpu_s: float = 0.0


class NodeStep:
    """One node in one superstep of one batch. `run` may be called once."""

    def __init__(self, program: Program, batch: Batch, node: int, level: int) -> None:
        self.program, self.batch, self.node, self.level = program, batch, node, level
        self.layout = program.layout
        self.parts = tuple(self.layout.readers)
        self.number = {part: index for index, part in enumerate(self.parts)}
        self.inbox = _Inbox()
        self.task = Task(batch, node, level)
        self.rows: dict[str, int] = {}
        self.away = _Away()

    def run(self, messages: Iterable[bytes]) -> Iterator[Message]:
        """Yield messages for the next superstep; after the last one, reports for the driver."""
        last, began = self.level == self.program.depth - 1, time.process_time()
        seen: list[Seen] = []
        for message in messages:
            header, body = unpack(message)
            if isinstance(header, Rows):
                if self._receive(header, body) and not last:
                    yield self.node, message
            elif isinstance(header, Entry):
                seen += header.seen
                for part in header.seen:
                    self.rows[part.stream] = self.rows.get(part.stream, 0) + part.rows
                if not last:
                    yield self.node, message
            else:
                yield self.node, message
        self._receive_in_flight()
        self.task.received_s = time.process_time() - began
        watermarks, _ = input_watermarks(self.program, self._streams(seen), self.batch.behind)
        for group in groups_of(self.program, self.node, self.level):
            yield from self._step(group, watermarks)
        report = self.task.finish()
        tidy(self.batch)
        yield self.node, pack(report)

    def _streams(self, seen: list[Seen]) -> dict[str, int]:
        if self.batch.closing:
            return dict.fromkeys(self.layout.network.streams, END)
        return advance(self.layout.network, self.batch.streams, seen)

    def _receive(self, header: Rows, body: memoryview) -> bool:
        """Hand rows to the boxes that run now; whether others need them in a later superstep."""
        readers = self._readers_here(self.parts[header.part])
        now = [(box, number) for box, number in readers if self.program.levels[box] == self.level]
        if now:
            rows = decode(body)
            self.task.received_bytes += int(rows.estimated_size())
            for box, number in now:
                self.inbox.put(box, number, header.rank, rows)
        return any(self.program.levels[box] > self.level for box, _ in readers)

    def _readers_here(self, part: Part) -> list[tuple[int, int]]:
        return [
            (reader.box, reader.input)
            for reader in self.layout.readers.get(part, ())
            if self.program.home[reader.box] == self.node
        ]

    def _receive_in_flight(self) -> None:
        """Rows that were put out in the last step for boxes on other nodes."""
        for entry in self.batch.in_flight:
            here = [box for box in entry.readers if self.program.home[box] == self.node]
            if not here:
                continue
            self.task.received_bytes += entry.bytes
            part = self.parts[entry.part]
            rows = self._as_ordered(part.port, read_segment(self.batch.directory, entry.place))
            for reader in self.layout.readers[part]:
                if reader.box in here:
                    # Older than anything of this step, whoever sends it.
                    self.inbox.put(reader.box, reader.input, (-2, entry.producer), rows)

    def _as_ordered(self, port: Port, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with a rank iff the port has one: they may have been sent before an operator came or went."""
        if port in self.layout.ordered:
            return rows if ORDER in rows.columns else ranked(rows)
        return rows.drop(ORDER, strict=False)

    def _step(self, group: Group, watermarks: Sequence[Sequence[int]]) -> Iterator[Message]:
        """Run the boxes of a group, and send on what they put out."""
        states: list[State] = []
        loads: list[tuple[int, float]] = []
        for box in group.boxes:
            token = self.batch.tokens[box.index] if self.batch.tokens else ""
            state, loaded, seconds = recall(self.batch, box.name, token)
            states.append(state)
            loads.append((loaded, seconds))
        inputs = [self._arrived(box, watermarks[box.index]) for box in group.boxes]
        start = time.process_time()
        try:
            taken = [self._thinned(box, own) for box, own in zip(group.boxes, inputs, strict=True)]
            results = group.step(states, taken, self.batch.told.get(group.boxes[0].name))
            self._burn(group.boxes[0])
        except Exception as error:
            names = ", ".join(box.name for box in group.boxes)
            message = f"operator {names}: {type(error).__name__}: {error}"
            raise RunError(message) from error
        cpu = (time.process_time() - start) / len(group.boxes)
        for box, before, arrived, kept, result, load in zip(
            group.boxes, states, inputs, taken, results, loads, strict=True
        ):
            begin = time.process_time()
            out, out_bytes, rows_in = 0, 0, sum(input.rows.height for input in arrived)
            self.away = _Away()
            for route, rows in result.outputs.items():
                out += rows.height
                if rows.height:
                    out_bytes += int(rows.estimated_size())
                    yield from self._send(box, Port(source=box.operator.name, route=route), rows)
            self._reject(box, result)
            tables = self._store(before, result.state)
            remember(self.batch, box.name, self.task.token, result.state)
            self.task.boxes.append(
                BoxReport(
                    box=box.index,
                    rows_in=rows_in,
                    rows_out=out,
                    cpu_s=cpu + time.process_time() - begin,
                    state_bytes=result.state.bytes,
                    tables=tables,
                    marks=dict(result.state.marks),
                    loaded_bytes=load[0],
                    loaded_s=load[1],
                    rejected=sum(rejected.rows.height for rejected in result.rejected),
                    shed=result.shed + rows_in - sum(input.rows.height for input in kept),
                    said=None if result.said is None else dict(result.said),
                    out_bytes=out_bytes,
                    away_bytes=self.away.bytes,
                    away_s=self.away.cpu_s,
                )
            )

    def _burn(self, box: Box) -> None:
        """Spend what a model operator states outright, whatever it reads."""
        if isinstance(box.operator.spec, Model):
            before = self.batch.rows.get(SECONDS, 0)
            seconds = range(before, before + self.rows.get(SECONDS, 0))
            instances = len(self.layout.boxes_of[box.operator.name])
            burn(outright_load_s(box.operator.spec, self.rows, seconds) / instances)

    def _arrived(self, box: Box, watermarks: Sequence[int]) -> list[Arrived]:
        arrived = []
        for number, watermark in enumerate(watermarks):
            rows = self.inbox.take(box.index, number)
            if rows is None:
                port = box.operator.inputs[number]
                rows = empty_frame(self.layout.types[port], ordered=port in self.layout.ordered)
            arrived.append(Arrived(rows, watermark))
        return arrived

    def _thinned(self, box: Box, arrived: Sequence[Arrived]) -> list[Arrived]:
        """What a box takes of what has reached it: all, unless it is to leave rows out."""
        share = self.batch.shares.get(box.index, 1.0)
        if share >= 1.0:
            return list(arrived)
        return [Arrived(thinned(each.rows, share), each.watermark) for each in arrived]

    def _send(self, box: Box, port: Port, rows: pl.DataFrame) -> Iterator[Message]:
        """To outputs, to boxes of this superstep, and to those of later ones."""
        for output in self.layout.outputs.get(port, ()):
            self.task.stage.put(output, rows, box.index)
        if port in self.layout.ordered:
            rows = self._ranked(box, rows)
        rank = (box.index, 0)
        for part, share in parted(self.layout, port, rows):
            away: list[int] = []
            for reader in self.layout.readers[part]:
                home, level = self.program.home[reader.box], self.program.levels[reader.box]
                if home == self.node and level == self.level:
                    self.inbox.put(reader.box, reader.input, rank, share)
                elif self.program.within:
                    if home not in away:
                        away.append(home)
                else:
                    away.append(reader.box)
            if not away:
                continue
            begin = time.process_time()
            self.away.bytes += int(share.estimated_size())
            if self.program.within:
                message = pack_rows(self.number[part], rank, share)
                self.task.sent_bytes += len(message) * len([home for home in away if home != self.node])
                for home in away:
                    yield home, message
            else:
                place, size = self.task.segments.add(share)
                self.task.sent_bytes += size
                self.task.in_flight.append(
                    InFlight(
                        self.number[part], box.index, place, share.height, size, tuple(dict.fromkeys(away))
                    )
                )
            self.away.cpu_s += time.process_time() - begin

    def _ranked(self, box: Box, rows: pl.DataFrame) -> pl.DataFrame:
        """With a rank: that of what came in, or one that the content decides."""
        if ORDER not in rows.columns:
            return ranked(rows)
        if not box.instance:
            return rows
        each = sum(self.layout.leaves[port] for port in box.operator.inputs)
        return rows.with_columns(pl.col(ORDER) + ((box.instance * each) << 48))

    def _reject(self, box: Box, result: Stepped) -> None:
        for rejected in result.rejected:
            self.task.stage.reject(box.name, rejected)
            if self.layout.network.errors.on_error == "fail":
                row = as_json(rejected.rows.head(1))[0]
                self.task.failures.append(f"operator {box.name!r}: {rejected.reasons[0]}; row {row}")

    def _store(self, before: State, after: State) -> dict[str, TableReport]:
        """Write the segments that have no place yet; name the others by their number in the last commit."""
        reports: dict[str, TableReport] = {}
        for name, table in after.tables.items():
            known = before.tables.get(name)
            number = {id(segment): i for i, segment in enumerate(known.segments)} if known else {}
            segments: list[int | Stored] = []
            for segment in table.segments:
                old = number.get(id(segment))
                segments.append(self._stored(segment) if old is None else old)
            reports[name] = TableReport(table.clock, table.horizon, tuple(segments))
        return reports

    def _stored(self, segment: Segment) -> Stored:
        if segment.place is None:
            segment.place, segment.bytes = self.task.segments.add(segment.frame)
            known_segment(self.batch.directory, segment)
        return Stored(segment.place, segment.rows, segment.bytes, segment.low, segment.high)


def ranked(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with a rank that their content alone decides, for what comes out in no order of its own."""
    ranks = xxhash64(rows.get_columns(), [None] * rows.width)
    # The upper bits are for the number of the source.
    return rows.with_columns((ranks.cast(pl.Int64) & ((1 << 47) - 1)).alias(ORDER))
