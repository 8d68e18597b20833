"""Made-up streams: seeded, of a chosen shape, and the same rows however they are cut into batches.

The options of ``format: generator``:

- ``shape``: ``steady`` {rate}; ``periodic`` {high, low, period, phase}; ``onoff`` {rate, on, off};
  ``selfsimilar`` {rate, hurst, cv}; or ``series`` {rates}, one a second. Its parameters stand beside it.
  Rates are in rows per second.
- ``seed``, default 0; ``columns``: what stands in which column, by column (see `levelwind.runtime.fillings`).
- ``duration`` or ``rows``: the end; without, there is none (of a series: its own). ``start``: the
  first event time, default 2026-01-01T00:00:00Z.
- ``speed``: 1 (default) is real time, 10 ten times as fast, ``max`` as fast as it can, in batches of
  ``batch`` (default 1s) of event time.
- ``partitions``: how many tasks make a batch's rows, default 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from levelwind.errors import Problem, did_you_mean
from levelwind.model import Schema
from levelwind.runtime.fillings import Filling, Rows, read_filling
from levelwind.runtime.randomness import key
from levelwind.runtime.replay import ROWS_PER_RECORD_BATCH, Offset, even_parts, offset_of
from levelwind.runtime.shapes import SLOT_US, OnOff, Periodic, SelfSimilar, Series, Shape, Steady
from levelwind.runtime.source_options import US_PER_S, OptionReader, arrow_schema

# 2026-01-01T00:00:00Z: event time must not depend on when a run was started.
USUAL_START_US = 1_767_225_600 * US_PER_S
USUAL_CV = 0.6
SHAPES = {
    "steady": ("rate",),
    "periodic": ("high", "low", "period", "phase"),
    "onoff": ("rate", "on", "off"),
    "selfsimilar": ("rate", "hurst", "cv"),
    "series": ("rates",),
}
COMMON = ("shape", "time", "seed", "duration", "rows", "speed", "batch", "start", "columns", "partitions")
# Shorter bursts could not be told from noise in slots of 100 ms, and there would be very many.
LEAST_ON_OFF_US = 10_000
# A batch of silence is made longer, up to so many slots (1,000 s), until it has rows.
MOST_SILENT_SLOTS = 10_000


@dataclass(frozen=True, kw_only=True)
class Generator:
    """A made-up stream; a position in it is microseconds of event time since its beginning.

    Time is cut into slots of 100 ms. The shape says how many rows a slot has; they are spread evenly over it.
    A row's values are drawn by its slot and its number there.

    ``batch_us`` is the event time of one batch when it runs as fast as it can, ``batch_asked`` whether the
    options say so: then it bounds the batches of a paced run too.
    """

    shape: Shape
    schema: pa.Schema
    time: str
    fillings: tuple[Filling | None, ...]
    seed: int = 0
    duration_us: int | None = None
    rows: int | None = None
    speed: float | None = 1.0
    batch_us: int = US_PER_S
    batch_asked: bool = False
    start_us: int = USUAL_START_US
    partitions: int = 1

    def end(self) -> int | None:
        """The position after the last row, if there is a last one."""
        return self.duration_us if self.rows is None else _after_row(self.shape, self.rows - 1)

    def moment(self, position: int) -> int:
        """Positions are times already."""
        return self.start_us + position

    def reached(self, start: int, moment: int) -> int:
        """The position at an event time, unless there was silence since ``start``: no rows, no batch."""
        position, end = moment - self.start_us, self.end()
        if end is not None and position >= end:
            return end
        return position if position > start and self._has_rows(start, position) else start

    def cut(self, start: int, *, asked_only: bool) -> int | None:
        """The end of the batch on the grid of batches, later if there is silence."""
        if asked_only and not self.batch_asked:
            return None
        position, end = (start // self.batch_us + 1) * self.batch_us, self.end()
        last = start + max(MOST_SILENT_SLOTS * SLOT_US, self.batch_us)
        while not self._has_rows(start, position) and position < last:
            position += self.batch_us
        return position if end is None else min(position, end)

    def split(self, start: int, end: int) -> list[tuple[int, int]]:
        """Equal stretches of time."""
        return even_parts(start, end, self.partitions)

    def read(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The rows of a stretch of time, in order, a few thousand slots at a time."""
        for low, high in self._stretches(start, end):
            rows = self._rows(low, high)
            if len(rows.times):
                yield from _record_batches(self._fill(rows))

    def _fill(self, rows: Rows) -> pa.RecordBatch:
        columns = []
        for field, filling in zip(self.schema, self.fillings, strict=True):
            if filling is None:  # the time column
                columns.append(pa.array(rows.times, type=field.type))
            else:
                columns.append(filling.values(rows, key(self.seed, "column", field.name), field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _rows(self, start: int, end: int) -> Rows:
        """The rows of a stretch of time, still without values."""
        first, last = start // SLOT_US, -(-end // SLOT_US)
        counts = self.shape.counts(first, last)
        slots = np.repeat(np.arange(first, last), counts)
        in_slot = np.arange(len(slots)) - np.repeat(np.cumsum(counts) - counts, counts)
        times = slots * SLOT_US + _offsets_us(in_slot, np.repeat(counts, counts))
        low, high = np.searchsorted(times, (start, end))
        numbers = None
        if self.rows is not None or any(filling and filling.numbered for filling in self.fillings):
            numbers = self.shape.rows_before(first) + np.arange(len(slots))
            if self.rows is not None:  # more than one row may have the last one's time
                high = min(int(high), max(0, self.rows - self.shape.rows_before(first)))
            numbers = numbers[low:high]
        counters = (slots[low:high].astype(np.uint64) << np.uint64(32)) + in_slot[low:high].astype(np.uint64)
        return Rows(counters=counters, times=self.start_us + times[low:high], numbers=numbers)

    def _has_rows(self, start: int, end: int) -> bool:
        first, last = start // SLOT_US, -(-end // SLOT_US)
        if last - first > 2 and self.shape.counts(first + 1, last - 1).any():
            return True
        edges = {(start, min(end, (first + 1) * SLOT_US)), (max(start, (last - 1) * SLOT_US), end)}
        return any(len(self._rows(low, high).times) for low, high in edges if low < high)

    def _stretches(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Pieces of a stretch of time with about as many rows each as a record batch may have."""
        first, last = start // SLOT_US, -(-end // SLOT_US)
        low, rows = start, 0
        for slot, count in enumerate(self.shape.counts(first, last).tolist(), start=first):
            if rows and rows + count > ROWS_PER_RECORD_BATCH:
                yield low, slot * SLOT_US
                low, rows = slot * SLOT_US, 0
            rows += count
        if low < end:
            yield low, end


def _offsets_us(in_slot: Any, counts: Any) -> Any:
    """When the rows of a slot come, evenly spread over it."""
    return (2 * in_slot + 1) * SLOT_US // (2 * counts)


@lru_cache(maxsize=16)
def _after_row(shape: Shape, number: int) -> int:
    """The position just after a row, given by its number from 0."""
    high = 1
    while shape.rows_before(high) <= number:
        high *= 2
    low = high // 2
    while low < high:  # the first slot whose end has seen the row
        middle = (low + high) // 2
        if shape.rows_before(middle + 1) > number:
            high = middle
        else:
            low = middle + 1
    count = int(shape.counts(low, low + 1)[0])
    return low * SLOT_US + int(_offsets_us(number - shape.rows_before(low), count)) + 1


def _record_batches(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for first in range(0, batch.num_rows, ROWS_PER_RECORD_BATCH):
        yield batch.slice(first, ROWS_PER_RECORD_BATCH)


def read_generator(options: Mapping[str, Any], schema: Schema, time: str | None = None) -> Generator:
    """The generator that the options describe.

    Raises
    ------
    InputError
        With every problem of the options.
    """
    reader = OptionReader(options)
    found = _read(reader, schema, time)
    reader.done()
    return found


def check_generator_options(
    options: Mapping[str, Any], schema: Schema, time: str | None, *, at: str = "source"
) -> list[Problem]:
    """Everything wrong with the options of a generator; ``at`` is where they stand in the file."""
    reader = OptionReader(options, at)
    _read(reader, schema, time)
    return reader.problems


def end_offset(options: Mapping[str, Any], schema: Schema) -> Offset | None:
    """The offset after the last row of a generator, None if it is endless."""
    end = read_generator(options, schema).end()
    return None if end is None else offset_of(end)


def _read(reader: OptionReader, schema: Schema, time: str | None) -> Generator:
    word = reader.choice("shape", tuple(SHAPES))
    if word is None:
        reader.only((*COMMON, *(name for names in SHAPES.values() for name in names)), "a generator")
    else:
        reader.only((*COMMON, *SHAPES[word]), f"a generator of shape {word}")
    column = reader.time_column(schema, time)
    if "duration" in reader and "rows" in reader:
        reader.refuse("rows", "cannot go with duration: one of them is the end")
    if "rows" in reader and word == "series":
        reader.refuse("rows", "cannot go with a series: it says how many rows there are")
    seed = reader.integer("seed", 0, least=-(2**63))
    target = arrow_schema(schema)
    shape = _read_shape(reader, word, seed)
    length = len(shape.rates) * US_PER_S if isinstance(shape, Series) else None
    return Generator(
        shape=shape,
        schema=target,
        time=column,
        fillings=_read_fillings(reader, target, column),
        seed=seed,
        duration_us=reader.duration_us("duration") if "duration" in reader else length,
        rows=reader.integer("rows", 1) if "rows" in reader else None,
        speed=reader.speed(),
        batch_us=reader.duration_us("batch", US_PER_S),
        batch_asked="batch" in reader,
        start_us=reader.moment_us("start", USUAL_START_US) or 0,
        partitions=reader.integer("partitions", 1),
    )


def _read_shape(reader: OptionReader, word: str | None, seed: int) -> Shape:
    if word == "periodic":
        return _read_periodic(reader)
    if word == "onoff":
        rate = reader.number("rate", above=True)
        on, off = (reader.duration_us(name, least_us=LEAST_ON_OFF_US) / US_PER_S for name in ("on", "off"))
        return OnOff(rate=rate, on_s=on, off_s=off, seed=seed)
    if word == "selfsimilar":
        hurst = reader.number("hurst", 0.8, least=0.5)
        if hurst >= 1:
            reader.refuse("hurst", "must be below 1", hurst)
        cv = reader.number("cv", USUAL_CV)
        return SelfSimilar(rate=reader.number("rate", above=True), hurst=hurst, cv=cv, seed=seed)
    if word == "series":
        return Series(rates=reader.numbers("rates"))
    return Steady(rate=reader.number("rate", above=True) if word == "steady" else 1.0)


def _read_periodic(reader: OptionReader) -> Periodic:
    high, low = reader.number("high", above=True), reader.number("low", 0.0)
    if low > high:
        reader.refuse("low", "must not be above high", f"low {low:g}, high {high:g}")
    period_s = reader.duration_us("period") / US_PER_S
    return Periodic(high=high, low=low, period_s=period_s, phase_s=_read_phase(reader, period_s))


def _read_phase(reader: OptionReader, period_s: float) -> float:
    """A duration, or a share of the period."""
    value = reader.raw("phase")
    try:
        share = 0.0 if value is None else float(value)
    except (TypeError, ValueError):
        return math.fmod(reader.duration_us("phase", 0, least_us=0) / US_PER_S, period_s)
    if not 0 <= share < 1:
        reader.refuse("phase", "must be a duration, or a share of the period from 0 to below 1", value)
        return 0.0
    return share * period_s


def _read_fillings(reader: OptionReader, schema: pa.Schema, time: str) -> tuple[Filling | None, ...]:
    given = reader.mapping("columns")
    for name in given:
        if name == time:
            reader.refuse(f"columns.{name}", "the time column is filled by the shape")
        elif name not in schema.names:
            hint = did_you_mean(name, schema.names)
            reader.refuse(f"columns.{name}", "is not a column of the stream", hint=hint)
    return tuple(
        None if field.name == time else read_filling(field.name, field.type, given.get(field.name), reader)
        for field in schema
    )
