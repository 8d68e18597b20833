"""What tests of time windows share: aggregates over one kind of rows, and steps of them."""

from __future__ import annotations

import polars as pl

from levelwind.model import Aggregate, Column, Operator, Port, TimeWindow
from levelwind.operators.aggregate import make_aggregate
from levelwind.operators.aggregate.kernels import TimeWindows
from levelwind.operators.rows import BEGINNING, END, TIME, Arrived, RowType
from levelwind.operators.state import EMPTY

SECOND = 1_000_000
TYPES = {
    "ts": "timestamp",
    "k": "string",
    "g": "string",
    "n": "bigint",
    "x": "double",
    "d": "decimal(10,2)",
    "e": "decimal(38,2)",
}
READ = RowType(tuple(Column(name=name, type=kind) for name, kind in TYPES.items()), "ts")
SCHEMA = {
    "ts": pl.Int64,
    "k": pl.String,
    "g": pl.String,
    "n": pl.Int64,
    "x": pl.Float64,
    "d": pl.Decimal(10, 2),
    "e": pl.Decimal(38, 2),
}


def aggregate(size, slide=None, *, by=(), **compute):
    """An aggregate over windows of so many seconds."""
    window = TimeWindow(size_s=size, slide_s=slide or size)
    spec = Aggregate(window=window, compute=compute or {"c": "count(*)"}, by=by)
    made = make_aggregate(Operator(name="w", inputs=(Port(source="s"),), spec=spec), (READ,))
    assert isinstance(made, TimeWindows)
    return made


def rows(*given):
    """Rows from dictionaries; ``ts`` is in seconds."""
    table = [{**dict.fromkeys(SCHEMA), **row, "ts": round(row["ts"] * SECOND)} for row in given]
    return pl.DataFrame(table, schema=SCHEMA).with_columns(pl.col("ts").cast(TIME))


def at(*times, **values):
    return rows(*({"ts": each, **values} for each in times))


def step(kernel, given, watermark, state=EMPTY):
    """One step; the watermark is in seconds."""
    mark = watermark if watermark in (BEGINNING, END) else round(watermark * SECOND)
    return kernel.step(state, [Arrived(given, mark)])


def out(stepped, *names):
    """What was put out: the start of the window in seconds, then the columns asked for."""
    found = stepped.outputs.get(None)
    if found is None:
        return []
    start = (pl.col("window_start").to_physical() / SECOND).alias("start")
    return sorted(found.select(start, *names).rows(), key=str)


def run(kernel, *batches):
    """All that comes out of batches of (rows, watermark in seconds) and of the end, and what is rejected."""
    state, found, reasons = EMPTY, [], []
    for given, watermark in (*batches, (rows(), END)):
        stepped = step(kernel, given, watermark, state)
        state = stepped.state
        found += [stepped.outputs[None]] if None in stepped.outputs else []
        reasons += [reason for bad in stepped.rejected for reason in bad.reasons]
    return pl.concat(found) if found else None, reasons


def values(frame, *names):
    return sorted(frame.select(names).rows(), key=str)
