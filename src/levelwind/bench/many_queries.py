"""Many queries in one: 160 windowed aggregates, against plain Structured Streaming on the same files.

The dissertation's traffic monitoring: packet count and mean size, over tumbling windows of 1 s and 60 s and
sliding ones of 10 s and 60 s (slide 1 s), by source and by source and destination, on each of ten
sub-streams. A batch is one second of all ten, 20,000 rows.

Both sides read the same parquet files through Spark's file source, one file of a sub-stream per batch. The
baselines are the 160 aggregates as one query each (each reads the files of its sub-stream alone, so no row
is read in vain), and the 16 queries that an expert would write, which read all sub-streams from files that
hold them together and group by sub-stream too. Their results go to the noop sink; ours have no output:
computed, counted, and dropped.

A plain query copies each row into every window that it is in, 60 of them for the longest, and 160 of them
take more memory than most drivers have. So both baselines are taken with more and more aggregates, those
with the cheapest windows first, up to the largest number that comes through: that does not die and has done
a few batches when its time is up (the notes say which were cut off). The headline divides the time
of that number by our time for all 160: it understates what all would take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.bench.runtime_worlds import (
    PlainQuery,
    batch_seconds,
    file_source,
    plain_batches,
    steady,
    typical,
    watch,
    write_files,
)
from levelwind.model import Column
from levelwind.runtime.workloads import Generator, read_generator
from levelwind.testing.sides import answer, network_of, ours, side

NAME = "many_queries"
MODULE = "levelwind.bench.many_queries"
STREAMS, RATE = 10, 2_000
ALL = 160
TOGETHER = "together"
SCHEMA = {"ts": "timestamp", "src": "string", "dst": "string", "size": "int"}
COLUMNS = {
    "src": {"kind": "zipf", "values": 500, "exponent": 1.6, "prefix": "10.0."},
    "dst": {"kind": "zipf", "values": 20, "exponent": 2.0, "prefix": "192.168."},
    "size": {"kind": "uniform", "low": 40, "high": 1500},
}
BATCHES, FULL_BATCHES = 20, 70
PLAIN_BATCHES = 12
SEPARATE, FULL_SEPARATE = (10, 40), (10, 40, 80, 120, 160)
GROUPED, FULL_GROUPED = (4, 16), (4, 8, 16)
LIMIT_S, FULL_LIMIT_S = 45.0, 300.0
START_S, START_EACH_S = 60.0, 2.0
# Fewer batches than this say nothing.
FEWEST = 3
GOAL_SEPARATE, GOAL_GROUPED = 40.0, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One of the sixteen aggregates that every sub-stream has; times in seconds."""

    size_s: int
    slide_s: int | None
    by: tuple[str, ...]
    column: str
    compute: str

    @property
    def name(self) -> str:
        """What it is, in a word."""
        slide = "" if self.slide_s is None else "_slide"
        return f"{self.column}_{'_'.join(self.by)}_{self.size_s}s{slide}"

    def sql(self, stream: str, *, by: tuple[str, ...] = ()) -> str:
        """As a plain query on a stream, by more columns than its own."""
        slide = "" if self.slide_s is None else f", '{self.slide_s} seconds'"
        keys = ", ".join((*by, *self.by))
        return (
            f"SELECT {keys}, window, {self.compute} AS {self.column} FROM {stream} "
            f"GROUP BY {keys}, window(ts, '{self.size_s} seconds'{slide})"
        )

    def operator(self, stream: str) -> dict[str, Any]:
        """As an operator of a network file. A pair costs more than a source, sliding more than tumbling."""
        window = {"size": f"{self.size_s}s"}
        if self.slide_s is not None:
            window["slide"] = f"{self.slide_s}s"
        return {
            "name": f"{stream}_{self.name}",
            "kind": "aggregate",
            "input": stream,
            "by": list(self.by),
            "window": window,
            "compute": {self.column: self.compute},
            "cost": f"{len(self.by) * (2 if self.slide_s is None else 4)}us",
            "selectivity": 0.1,
        }


# Those with the cheapest windows first.
SHAPES = tuple(
    Shape(size_s=size, slide_s=slide, by=by, column=column, compute=compute)
    for (size, slide), by, (column, compute) in product(
        ((1, None), (60, None), (10, 1), (60, 1)),
        (("src",), ("src", "dst")),
        (("packets", "count(*)"), ("mean_size", "avg(size)")),
    )
)


def stream_names() -> list[str]:
    """The sub-streams."""
    return [f"p{number}" for number in range(STREAMS)]


def aggregates(count: int) -> list[tuple[str, Shape]]:
    """The first ``count`` of all (sub-stream, aggregate): all sub-streams of one, then of the next."""
    return [(stream, shape) for shape in SHAPES for stream in stream_names()][:count]


def document(count: int, source: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The first ``count`` aggregates as a network file, with each stream's source."""
    chosen = aggregates(count)
    return {
        "name": NAME,
        "streams": {
            name: {"schema": SCHEMA, "time": "ts", "rate": RATE, "source": dict(source[name])}
            for name in dict.fromkeys(stream for stream, _ in chosen)
        },
        "operators": [shape.operator(stream) for stream, shape in chosen],
    }


def made_up(number: int, seed: int) -> dict[str, Any]:
    """The source that makes a sub-stream up."""
    return {
        "format": "generator", "shape": "steady", "rate": RATE, "speed": "max", "batch": "1s",
        "seed": seed * STREAMS + number, "columns": COLUMNS,
    }  # fmt: skip


def write_data(folder: Path, *, batches: int, seed: int) -> None:
    """Every sub-stream in a folder of its own, and all of them together with a column that says which."""
    schema = tuple(Column(name=name, type=kind) for name, kind in SCHEMA.items())
    made = {
        name: read_generator(made_up(number, seed), schema, "ts")
        for number, name in enumerate(stream_names())
    }
    for name, generator in made.items():
        write_files(folder / name, (_second(generator, at) for at in range(batches)))
    write_files(folder / TOGETHER, _together(made, min(batches, PLAIN_BATCHES)))


def _together(made: Mapping[str, Generator], batches: int) -> Iterator[pa.Table]:
    for at in range(batches):
        parts = []
        for number, generator in enumerate(made.values()):
            part = _second(generator, at)
            parts.append(part.append_column("sub", pa.array([number] * part.num_rows, pa.int32())))
        yield pa.concat_tables(parts).combine_chunks()


def _second(generator: Generator, number: int) -> pa.Table:
    return pa.Table.from_batches(list(generator.read(number * 1_000_000, (number + 1) * 1_000_000)))


def levelwind_side(data: str | None, count: int, batches: int, seed: int) -> dict[str, Any]:
    """Our side: the first ``count`` aggregates in one query, on files or on the rows as they are made up."""
    sources = {
        name: made_up(number, seed) if data is None else file_source(Path(data, name))
        for number, name in enumerate(stream_names())
    }
    network = network_of(document(count, sources))
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        seen = watch(network, folder=Path(folder), batches=batches)
    last = seen[-1].step
    return {
        "batch_s": batch_seconds(seen),
        "step_s": [each.step.wall_s for each in seen],
        "cpu_s": [sum(box.cpu_s for _, box in each.step.boxes) for each in seen],
        "rows_out": [sum(box.rows_out for _, box in each.step.boxes) for each in seen],
        "operators": len(last.program.home),
        "supersteps": last.program.depth,
    }


def plain_side(data: str, count: int, grouped: bool, limit_s: float) -> dict[str, Any]:
    """The baseline: ``count`` separate queries, or the first ``count`` of the sixteen."""
    columns = ", ".join(f"{name} {kind}" for name, kind in SCHEMA.items())
    if grouped:
        queries = [PlainQuery(stream=TOGETHER, sql=each.sql(TOGETHER, by=("sub",))) for each in SHAPES]
        queries, columns = queries[:count], f"{columns}, sub int"
    else:
        queries = [PlainQuery(stream=name, sql=shape.sql(name)) for name, shape in aggregates(count)]
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return plain_batches(
            queries,
            data=Path(data),
            folder=Path(folder),
            columns=columns,
            time_column="ts",
            batches=PLAIN_BATCHES,
            limit_s=limit_s,
        )


def run(
    settings: Settings,
    *,
    separate: tuple[int, ...] | None = None,
    grouped: tuple[int, ...] | None = None,
    batches: int | None = None,
    limit_s: float | None = None,
) -> Result:
    """All 160 of ours, then more and more of either baseline, then ours again with as many as came through.

    Parameters
    ----------
    separate, grouped
        Numbers of plain queries to try, in order.
    batches
        Of our side; the baselines do twelve, or as many as they can within ``limit_s``.
    """
    separate = separate or (FULL_SEPARATE if settings.full else SEPARATE)
    grouped = grouped or (FULL_GROUPED if settings.full else GROUPED)
    batches = batches or (FULL_BATCHES if settings.full else BATCHES)
    limit_s = limit_s or (FULL_LIMIT_S if settings.full else LIMIT_S)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        settings.step("files")
        write_data(Path(folder), batches=max(batches, PLAIN_BATCHES), seed=settings.seed)

        def own(count: int, data: str | None = folder) -> dict[str, Any]:
            settings.step(f"ours, {count} aggregates, {'made-up rows' if data is None else 'files'}")
            return ours(MODULE, "ours", data=data, count=count, batches=batches, seed=settings.seed)

        whole, unread = own(ALL), own(ALL, None)
        alone = _curve(settings, folder, separate, grouped=False, limit_s=limit_s)
        together = _curve(settings, folder, grouped, grouped=True, limit_s=limit_s)
        same = {
            count: own(count) for count in {_largest(alone)[0], STREAMS * _largest(together)[0]} - {0, ALL}
        }
    return _result(whole, unread, same, alone, together, limit_s)


def _curve(
    settings: Settings, folder: str, counts: tuple[int, ...], *, grouped: bool, limit_s: float
) -> dict[int, dict[str, Any]]:
    """A baseline with more and more queries, up to the first number that does not come through."""
    found: dict[int, dict[str, Any]] = {}
    for count in counts:
        settings.step(f"{count} {'grouped' if grouped else 'separate'} plain queries")
        # Some seconds to start each query, beside the time in which they work.
        patience = limit_s + START_S + START_EACH_S * count
        arguments = {"data": folder, "count": count, "grouped": grouped, "limit_s": limit_s}
        found[count] = side(MODULE, "plain", patience_s=patience, **arguments)
        if len(found[count].get("batch_s", ())) < FEWEST:
            break
    return found


def _largest(curve: Mapping[int, Mapping[str, Any]]) -> tuple[int, float]:
    """The largest number of queries that came through, and its seconds per batch; (0, nan) if none did."""
    through = {n: typical(found["batch_s"]) for n, found in curve.items() if _came_through(found)}
    if not through:
        return 0, float("nan")
    most = max(through)
    return most, through[most] or float("nan")


def _came_through(found: Mapping[str, Any]) -> bool:
    return not found.get("died") and len(found.get("batch_s", ())) >= FEWEST


def _result(
    whole: Mapping[str, Any],
    unread: Mapping[str, Any],
    same: Mapping[int, Mapping[str, Any]],
    alone: Mapping[int, Mapping[str, Any]],
    together: Mapping[int, Mapping[str, Any]],
    limit_s: float,
) -> Result:
    mine = typical(whole["batch_s"]) or float("nan")
    most, seconds = _largest(alone)
    most_grouped, seconds_grouped = _largest(together)
    if not most:
        message = f"no plain queries came through: {'; '.join(_story(alone, 'separate', limit_s))}"
        raise RuntimeError(message)
    figures = [_share(f"ours, {ALL}, over {most} separate", mine / seconds, most == ALL, GOAL_SEPARATE)]
    if most_grouped:
        label, every = f"ours, {ALL}, over {most_grouped} of 16 grouped", most_grouped == len(SHAPES)
        figures.append(_share(label, mine / seconds_grouped, every, GOAL_GROUPED))
        figures.append(Figure(label=f"{most_grouped} grouped queries", value=seconds_grouped, unit="s"))
    figures.append(
        Figure(
            label=f"ours, {ALL}, rows made up by the source",
            value=typical(unread["batch_s"]) or float("nan"),
            unit="s",
        )
    )
    baselines = [(most, "separate", seconds), (most_grouped * STREAMS, "grouped", seconds_grouped)]
    for count, found in same.items():
        own = typical(found["batch_s"]) or float("nan")
        figures.append(Figure(label=f"ours, {count} aggregates", value=own, unit="s"))
        figures += [
            Figure(label=f"{what} over ours, {count} alike", value=base_s / own, unit="times")
            for number, what, base_s in baselines
            if number == count
        ]
    base = steady(alone[most]["batch_s"])
    rounds = [b / a for a, b in zip(steady(whole["batch_s"]), base, strict=False)]
    return Result(
        name=NAME,
        ours=Figure(label=f"{ALL} aggregates, a batch of {STREAMS * RATE:,} rows", value=mine, unit="s"),
        baseline=Figure(label=f"{most} of them as separate plain queries", value=seconds, unit="s"),
        ratio=seconds / mine,
        spread=spread_of(rounds),
        figures=figures,
        notes=(
            *_story(alone, "separate", limit_s),
            *_story(together, "grouped", limit_s),
            "with fewer than all of them, the baselines have the cheapest windows: the ratios are bounds "
            "from below",
            f"our windows of 60 s fill up over 60 batches, here there are {len(whole['batch_s']) + 1}; "
            f"the last five took {sum(whole['batch_s'][-5:]) / 5:.3f} s each",
        ),
        details={
            "ours": {ALL: whole, **same},
            "ours_made_up": unread,
            "separate": dict(alone),
            "grouped": dict(together),
        },
    )


def _share(label: str, value: float, whole: bool, goal: float) -> Figure:
    """Our part of a baseline's time. With fewer queries than there are, a missed goal says nothing."""
    limit = 1.0 / goal if whole or value <= 1.0 / goal else None
    return Figure(label=label, value=value, unit="share", limit=limit)


def _story(curve: Mapping[int, Mapping[str, Any]], what: str, limit_s: float) -> Iterator[str]:
    for count, found in curve.items():
        batches = len(found.get("ends_s", ()))
        taken = typical(found.get("batch_s", ()))
        text = f"{count} {what}: "
        if found.get("died"):
            text += f"died after {batches} batches ({found['died'][:120]})"
        elif taken is None:
            text += f"{batches} batches within {limit_s:g} s"
        else:
            ended = "" if found["finished"] else f", cut off after {batches} batches"
            text += f"{taken:.2f} s a batch, {found['start_s']:.0f} s to start{ended}"
        yield text


if __name__ == "__main__":
    answer({"ours": levelwind_side, "plain": plain_side})
