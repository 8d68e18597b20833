"""Rows per second through one aggregate that is split in two, against plain Structured Streaming.

Count and mean over tumbling windows of 10 s by one of 1,000 keys. A batch is a parquet file of a million
rows that spans 10 s of event time, so every batch closes one window of every key. Both sides read the same
files by Spark's file source, on two cores. The plain query never leaves the JVM and sums up before its
exchange; ours hands every row to Python and sends it on to its node, and that is what the ratio shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.bench.runtime_worlds import (
    CORES,
    PlainQuery,
    batch_seconds,
    file_source,
    plain_batches,
    steady,
    watch,
    write_files,
)
from levelwind.model import Column
from levelwind.runtime.workloads import read_generator
from levelwind.testing.sides import answer, network_of, ours

NAME = "throughput"
MODULE = "levelwind.bench.throughput"
SCHEMA = {"ts": "timestamp", "key": "string", "value": "double"}
ROWS, WINDOW_S, KEYS = 1_000_000, 10, 1_000
BATCHES, FULL_BATCHES = 12, 30
ROUNDS, FULL_ROUNDS = 1, 3
# Parts of a file that tasks can share.
ROW_GROUPS = 4
GOAL = 0.5


def document(folder: Path) -> dict[str, Any]:
    """The aggregate, split by its key, on the files."""
    return {
        "name": NAME,
        "streams": {"rows": {"schema": SCHEMA, "time": "ts", "source": file_source(folder)}},
        "operators": [
            {
                "name": "means", "kind": "aggregate", "input": "rows", "by": ["key"],
                "window": {"size": f"{WINDOW_S}s"}, "compute": {"n": "count(*)", "mean": "avg(value)"},
                "split": {"into": CORES, "by": "key"}, "cost": "1us", "selectivity": 0.001,
            }
        ],
    }  # fmt: skip


def tables(rows: int, batches: int, seed: int) -> Iterator[pa.Table]:
    """The batches."""
    options = {
        "format": "generator", "shape": "steady", "rate": rows / WINDOW_S, "speed": "max", "seed": seed,
        "columns": {"key": {"kind": "uniform", "low": 0, "high": KEYS - 1, "prefix": "key-"}},
    }  # fmt: skip
    schema = tuple(Column(name=name, type=kind) for name, kind in SCHEMA.items())
    generator = read_generator(options, schema, "ts")
    span = WINDOW_S * 1_000_000
    for number in range(batches):
        read = generator.read(number * span, (number + 1) * span)
        yield pa.Table.from_batches(list(read)).combine_chunks()


def levelwind_side(data: str, batches: int) -> dict[str, Any]:
    """Our side."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        placement = {f"means[{number}]": f"n{number + 1}" for number in range(CORES)}
        network = network_of(document(Path(data, "rows")))
        seen = watch(network, folder=Path(folder), placement=placement, batches=batches)
    return {
        "batch_s": batch_seconds(seen),
        "step_s": [each.step.wall_s for each in seen],
        "node_cpu_s": [sum(node.cpu_s for node in each.step.reports) for each in seen],
        "box_cpu_s": [sum(box.cpu_s for _, box in each.step.boxes) for each in seen],
        "rows_out": [sum(box.rows_out for _, box in each.step.boxes) for each in seen],
    }


def plain_side(data: str, batches: int) -> dict[str, Any]:
    """The same aggregate as a plain query."""
    sql = (
        "SELECT key, window, count(*) AS n, avg(value) AS mean FROM rows "
        f"GROUP BY key, window(ts, '{WINDOW_S} seconds')"
    )
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return plain_batches(
            [PlainQuery(stream="rows", sql=sql)],
            data=Path(data),
            folder=Path(folder),
            columns=", ".join(f"{name} {kind}" for name, kind in SCHEMA.items()),
            time_column="ts",
            batches=batches,
            limit_s=600.0,
        )


def run(settings: Settings, *, rows: int = ROWS, batches: int | None = None) -> Result:
    """Both sides in turn."""
    batches = batches or (FULL_BATCHES if settings.full else BATCHES)
    rounds = settings.rounds(FULL_ROUNDS if settings.full else ROUNDS)
    found: dict[str, list[dict[str, Any]]] = {"ours": [], "plain": []}
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        settings.step("files")
        files = tables(rows, batches, settings.seed)
        write_files(Path(folder, "rows"), files, row_group=-(-rows // ROW_GROUPS))
        for number in range(rounds):
            for name in reversed(found) if number % 2 else found:
                settings.step(f"{name}, round {number + 1} of {rounds}")
                found[name].append(ours(MODULE, name, data=folder, batches=batches))
    mine, plain = ([s for one in found[name] for s in steady(one["batch_s"])] for name in found)
    return Result(
        name=NAME,
        ours=Figure(label="split aggregate", value=rows / median(mine), unit="rows/s"),
        baseline=Figure(label="the same as a plain query", value=rows / median(plain), unit="rows/s"),
        ratio=median(plain) / median(mine),
        spread=spread_of([b / a for a, b in zip(mine, plain, strict=True)]),
        figures=[
            Figure(
                label="our seconds over the plain query's",
                value=median(mine) / median(plain),
                unit="times",
                limit=1.0 / GOAL,
            ),
            Figure(
                label="CPU of our tasks, a batch",
                value=median(s for one in found["ours"] for s in steady(one["node_cpu_s"])),
                unit="s",
            ),
        ],
        notes=(f"batches of {rows:,} rows, {KEYS:,} keys, {len(mine)} batches after warm-up",),
        details=found,
    )


if __name__ == "__main__":
    answer({"ours": levelwind_side, "plain": plain_side})
