"""What the benchmarks of the runtime share: files of rows, runs seen from outside, plain queries beside them.

Every side of a comparison is a process of its own (`levelwind.testing.sides`): Spark has one context per
process, with one set of settings.

Time per batch is taken the same way on both sides: from the end of one batch to the end of the next while
more rows are waiting. So whatever Spark does between two batches counts too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from levelwind.model import Cluster, Network
from levelwind.runtime.coordinator import Step
from levelwind.runtime.rundir import Command
from levelwind.spark.api import ScriptedMove, prepare
from levelwind.spark.session import start_session

# Both sides get as many cores, whatever the machine has.
CORES = 2
MASTER = f"local[{CORES}]"
WARM_UP = 5
# File sources take files in the order of their times: one second apart leaves no doubt.
FILES_FROM_S = 1_767_225_600
# Plain queries: as many partitions as cores, as an expert would set them; and no progress forgotten.
PLAIN = {
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.driver.memory": "6g",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A step of a run, and when it had ended, in seconds of a clock that only counts up."""

    step: Step
    end_s: float


def watch(
    network: Network,
    *,
    folder: Path,
    nodes: int | Cluster = CORES,
    placement: Mapping[str, str] | None = None,
    moves: Sequence[ScriptedMove] = (),
    batches: int | None = None,
    on_step: Callable[[Step], None] | None = None,
    session: Any = None,
    reuse: bool = False,
    closing: bool = False,
) -> list[Seen]:
    """Run a network on this machine, and say what happened; the closing step is left out unless asked for.

    Runs to the end of the sources, or stops after a number of ``batches`` with everything open left open.
    ``folder`` is that of the run: a second run there goes on where the first one stopped. Equal operators are
    computed each for itself unless ``reuse`` says otherwise: a benchmark means as many as it writes.
    """
    seen: list[Seen] = []

    def note(step: Step) -> None:
        if step.commit.closed and not closing:
            return
        if on_step is not None:
            on_step(step)
        seen.append(Seen(step=step, end_s=time.perf_counter()))
        if len(seen) == batches:
            run.directory.ask(Command("stop"))  # read before the next batch begins

    run = prepare(
        network,
        nodes,
        placement=placement,
        master=MASTER,
        spark=session,
        run_dir=folder,
        moves=moves,
        until_idle=batches is None,
        reuse=reuse,
        on_step=note,
    )
    try:
        run.start().wait()
    finally:
        run.close()
    return seen


def batch_seconds(seen: Sequence[Seen]) -> list[float]:
    """From the end of each batch to the end of the next: one fewer than there are batches."""
    return [after.end_s - before.end_s for before, after in pairwise(seen)]


def steady(values: Sequence[float], *, warm_up: int = WARM_UP) -> list[float]:
    """Without the first few, in which machines warm up; but never without more than half of them.

    Examples
    --------
    >>> steady([9.0, 5.0, 1.0, 1.1], warm_up=3)
    [1.0, 1.1]
    """
    return list(values[min(warm_up, len(values) // 2) :])


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A straight line through points, by least squares; ``r2`` is the share of the spread it explains."""

    start: float
    slope: float
    r2: float

    def as_dict(self) -> dict[str, float]:
        """The line as JSON."""
        return {"start": self.start, "slope": self.slope, "r2": self.r2}


def line_through(points: Iterable[tuple[float, float]]) -> Line:
    """The line that fits best; two different places at least.

    Examples
    --------
    >>> line_through([(0, 1), (1, 3), (2, 5)])
    Line(start=1.0, slope=2.0, r2=1.0)
    """
    at, found = zip(*points, strict=True)
    x, y = sum(at) / len(at), sum(found) / len(found)
    across = sum((each - x) ** 2 for each in at)
    slope = sum((a - x) * (b - y) for a, b in zip(at, found, strict=True)) / across
    start = y - slope * x
    spread = sum((each - y) ** 2 for each in found)
    left = sum((b - start - slope * a) ** 2 for a, b in zip(at, found, strict=True))
    return Line(start=start, slope=slope, r2=1.0 - left / spread if spread else 1.0)


def write_files(folder: Path, tables: Iterable[pa.Table], *, row_group: int | None = None) -> int:
    """One parquet file per batch, in an order that file sources keep; returns their number."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for count, table in enumerate(tables, start=1):
        path = folder / f"{count:05d}.parquet"
        parquet.write_table(table, path, row_group_size=row_group)
        os.utime(path, (FILES_FROM_S + count, FILES_FROM_S + count))
    return count


def file_source(folder: Path) -> dict[str, Any]:
    """The source of a stream that reads such files, one per batch."""
    return {"format": "parquet", "path": str(folder), "maxFilesPerTrigger": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainQuery:
    """A query of plain Structured Streaming on one of the streams."""

    stream: str
    sql: str


def plain_batches(
    queries: Sequence[PlainQuery],
    *,
    data: Path,
    folder: Path,
    columns: str,
    time_column: str,
    batches: int,
    limit_s: float,
) -> dict[str, Any]:
    """Time plain queries that run side by side, each with a query plan, a checkpoint and a sink of its own.

    They start on empty directories. When all of them wait, all files come at once, so that every query has
    all batches to do and none of them is ahead. A batch is over when the last query is done with it. The
    sink throws rows away. Ends after ``limit_s``, with the batches that all had done by then.
    """
    session = start_session(MASTER, PLAIN, log=folder / "spark.log")
    streams = sorted({query.stream for query in queries})
    for name in streams:
        (folder / name).mkdir(parents=True)
        reader = session.readStream.schema(columns).option("maxFilesPerTrigger", "1")
        frame = reader.parquet(str(folder / name)).withWatermark(time_column, "0 seconds")
        frame.createOrReplaceTempView(name)
    began = time.perf_counter()
    running = [
        session.sql(query.sql)
        .writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", str(folder / "checkpoints" / str(number)))
        .start()
        for number, query in enumerate(queries)
    ]
    started = time.perf_counter()
    for name in streams:
        for path in sorted((data / name).iterdir()):
            os.link(path, folder / name / path.name)
    released = time.time()
    died = _wait(running, batches, time.perf_counter() + limit_s)
    ends = _common_ends([query.recentProgress for query in running], batches)
    return {
        "start_s": started - began,
        "ends_s": [end - released for end in ends],
        "batch_s": [after - before for before, after in pairwise(ends)],
        "finished": len(ends) == batches,
        "died": died,
    }


def _wait(running: Sequence[Any], batches: int, deadline: float) -> str | None:
    """Until every query has done all batches; what one died of, if one did."""
    for query in running:
        while time.perf_counter() < deadline:
            if not query.isActive:
                return str(query.exception()).strip().splitlines()[0][:300]
            last = query.lastProgress
            if last is not None and last["batchId"] >= batches - 1 and last["numInputRows"]:
                break
            if last is not None and last["batchId"] >= batches:
                break
            time.sleep(0.1)
    return None


def _common_ends(progress: Sequence[Sequence[Mapping[str, Any]]], batches: int) -> list[float]:
    """When the last of all queries was done with each batch, as far as all of them came."""
    ends = [
        {int(each["batchId"]): _end(each) for each in of_query if each["numInputRows"]}
        for of_query in progress
    ]
    found = []
    for number in range(batches):
        if any(number not in of_query for of_query in ends):
            break
        found.append(max(of_query[number] for of_query in ends))
    return found


def _end(progress: Mapping[str, Any]) -> float:
    begun = datetime.fromisoformat(str(progress["timestamp"]).replace("Z", "+00:00"))
    return begun.timestamp() + float(progress["durationMs"]["triggerExecution"]) / 1e3


def typical(values: Sequence[float], *, warm_up: int = WARM_UP) -> float | None:
    """The median once warm; None if there is too little to tell."""
    left = steady(values, warm_up=warm_up)
    return median(left) if left else None
