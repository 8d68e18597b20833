"""Where rows enter: late ones are turned away, the others go to the nodes whose operators read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

from levelwind.model import Port, Stream
from levelwind.operators.rows import BEGINNING, ORDER, TIME, Rejected
from levelwind.runtime.batch import Batch
from levelwind.runtime.delivery import parted
from levelwind.runtime.messages import Entry, Seen, pack, pack_rows
from levelwind.runtime.program import Program
from levelwind.runtime.task import Task

ENTRY = -1
# A hidden column that a source may add: the text of a record that could not be read as a row, else null.
CORRUPT = "__corrupt"


def enter(
    program: Program, batch: Batch, partition: int, arrivals: Iterable[tuple[str, pl.DataFrame]]
) -> Iterator[tuple[int, bytes]]:
    """Messages for the nodes from what one reading task has read.

    Parameters
    ----------
    partition
        Number of the reading task: it ranks its rows among those of the others.
    arrivals
        (stream, rows), in order of arrival.

    Yields (node, message). Every node is told what each stream has brought, since the watermark is the
    streams' as a whole.
    """
    layout = program.layout
    task = Task(batch, ENTRY, ENTRY)
    number = {part: index for index, part in enumerate(layout.readers)}
    seen: list[Seen] = []
    for count, (name, arrived) in enumerate(arrivals):
        stream = layout.network.streams[name]
        rows = arrived
        if CORRUPT in rows.columns:
            rows = _sound(stream, rows, task, fail=layout.network.errors.on_error == "fail")
        rows, latest = _admit(stream, rows, batch.streams.get(name, BEGINNING), task)
        seen.append(Seen(name, arrived.height, latest))
        port = Port(source=name)
        if port in layout.ordered:
            rows = rows.with_columns(pl.lit(0, pl.Int64).alias(ORDER))
        if rows.is_empty():
            continue
        for output in layout.outputs.get(port, ()):
            task.stage.put(output, rows, partition)
        for part, share in parted(layout, port, rows):
            message = pack_rows(number[part], (ENTRY, (partition << 20) + count), share)
            for node, _level in program.destinations[part]:
                task.sent_bytes += len(message)
                yield node, message
    task.seen = seen
    told = pack(Entry(tuple(seen)))
    for node in range(len(program.nodes)):
        yield node, told
    # The first node passes the report on to the driver.
    yield 0, pack(task.finish())


def _sound(stream: Stream, rows: pl.DataFrame, task: Task, *, fail: bool) -> pl.DataFrame:
    """The rows whose records could be read; of the others, the text is kept as it came."""
    text = rows.get_column(CORRUPT)
    bad = text.is_not_null()
    rows = rows.drop(CORRUPT)
    if bad.any():
        records = text.filter(bad).alias("record").to_frame()
        reason = f"malformed: its record cannot be read as a row of stream {stream.name}"
        reasons = pl.repeat(reason, records.height, dtype=pl.String, eager=True)
        task.stage.reject(stream.name, Rejected(records, reasons))
        if fail:
            task.failures.append(f"stream {stream.name!r}: {reason}; record {records.item(0, 0)}")
        rows = rows.filter(~bad)
    return rows


def _admit(stream: Stream, rows: pl.DataFrame, watermark: int, task: Task) -> tuple[pl.DataFrame, int]:
    """The rows that are in time, and the largest event time among all."""
    if stream.time is None or rows.is_empty():
        return rows, BEGINNING
    times = rows.get_column(stream.time)
    if times.dtype != TIME:
        times = times.cast(TIME)
        rows = rows.with_columns(times)
    instants = times.to_physical()
    late = instants < watermark
    bad = late.fill_null(True)
    if bad.any():
        reasons = pl.select(
            pl.when(times.is_null())
            .then(pl.lit("no event time"))
            .otherwise(pl.lit(f"late: its time is before the watermark of stream {stream.name}"))
        ).to_series()
        task.stage.reject(stream.name, Rejected(rows.filter(bad), reasons.filter(bad)))
        rows = rows.filter(~bad)
    latest = instants.max()
    return rows, BEGINNING if latest is None else int(latest)  # type: ignore[arg-type]
