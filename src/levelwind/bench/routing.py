"""CPU of the whole step that sends the rows of a spread join, against that of the busiest part that joins.

Streams of points; neighbours in a group are at most a wide band apart in eight dimensions. The join is
spread over 30 instances, each on a node of its own, and runs in this process through the same coordinator
as on Spark. A step of the diffusion reads its state back, counts rows, thinks choices over, lays segments or
paths, gathers the rows of each instance, tells paths to all hops, and saves; making the bytes ready that go
to other nodes is counted, too. All instances work at a time, so the diffusion holds the join up where it
takes longer than the busiest of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.bench.runtime_worlds import steady
from levelwind.model import JoinPart
from levelwind.operators.rows import TIME
from levelwind.runtime.coordinator import Coordinator, Step
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.memory import forget
from levelwind.runtime.program import Layout
from levelwind.testing.sides import network_of

NAME = "routing"
INSTANCES, DIMENSIONS, BAND = 30, 8, 0.15
# Rows of a batch, all streams together; how long a batch is in event time, and the windows.
ROWS, BATCH_S, WINDOW_S = 10_000, 10, 10
BATCHES = 4
CASES = [(method, streams) for streams in (3, 6) for method in ("atr", "ctr")]
MOST_US = 20.0


def document(method: str, streams: int, instances: int) -> dict[str, Any]:
    """The join, spread."""
    names = [f"s{k}" for k in range(streams)]
    values = [f"v{k}" for k in range(DIMENSIONS)]

    def near(one: str, other: str) -> str:
        return " and ".join(f"abs({one}.{v} - {other}.{v}) <= {BAND}" for v in values)

    join = {
        "name": "near", "kind": "multijoin", "inputs": {name: name for name in names},
        "windows": dict.fromkeys(names, f"{WINDOW_S}s"),
        "where": " and ".join(near(one, other) for one, other in pairwise(names)),
        "diffuse": {"method": method, "instances": instances},
    }  # fmt: skip
    schema = {"ts": "timestamp"} | dict.fromkeys(values, "double")
    return {
        "name": NAME,
        "streams": {name: {"schema": schema, "time": "ts"} for name in names},
        "operators": [join],
    }


def batch_rows(rng: np.random.Generator, number: int, streams: int, rows: int) -> list[Any]:
    """One batch, a frame of each stream, in order of time."""
    read = []
    for k in range(streams):
        count = rows // streams
        times = np.sort(rng.integers(0, BATCH_S * 1_000_000, count)) + number * BATCH_S * 1_000_000
        points = {f"v{d}": rng.random(count) for d in range(DIMENSIONS)}
        read.append((f"s{k}", pl.DataFrame({"ts": pl.Series(times).cast(TIME), **points})))
    return [read]


def measured(
    method: str, streams: int, *, batches: int, rows: int, instances: int, seed: int
) -> dict[str, list[float]]:
    """CPU seconds of the diffusion (of it those that make bytes ready) and of each instance, by batch."""
    layout = Layout(network_of(document(method, streams, instances)))
    nodes = tuple(f"n{i}" for i in range(instances + 1))
    placement = {}
    for box in layout.boxes:
        spec = box.operator.spec
        placement[box.name] = nodes[spec.instance + 1] if isinstance(spec, JoinPart) else nodes[0]
    rng = np.random.default_rng(seed)
    forget()
    found: dict[str, list[float]] = {"diffusion": [], "packing": [], "busiest": [], "mean": [], "copies": []}
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        coordinator = Coordinator(
            layout,
            nodes,
            placement,
            directory=str(Path(folder, "checkpoint")),
            executor=InProcess(),
            sinks={},
        )
        coordinator.recover()
        for number in range(batches):
            step = coordinator.step(batch_rows(rng, number, streams, rows))
            for name, value in _told(layout, step, instances).items():
                found[name].append(value)
    return found


def _told(layout: Layout, step: Step, instances: int) -> dict[str, float]:
    parts = np.zeros(instances)
    diffusion = packing = copies = 0.0
    for _, box in step.boxes:
        operator = layout.boxes[box.box].operator
        if isinstance(operator.spec, JoinPart):
            parts[operator.spec.instance] += box.cpu_s
        elif operator.kind == "diffusion":
            diffusion, packing, copies = box.cpu_s, box.away_s, float(box.rows_out)
    return {
        "diffusion": diffusion,
        "packing": packing,
        "busiest": float(parts.max()),
        "mean": float(parts.mean()),
        "copies": copies,
    }


def run(settings: Settings, *, rows: int = ROWS, instances: int = INSTANCES) -> Result:
    """All cases, one after the other; ``--repeat`` is the number of batches of each."""
    batches = settings.rounds(BATCHES)
    runs = {}
    for method, streams in CASES:
        label = f"{method}, {streams} streams"
        settings.step(label)
        runs[label] = measured(
            method, streams, batches=batches, rows=rows, instances=instances, seed=settings.seed
        )
    return summary(runs, rows=rows, instances=instances)


def summary(runs: Mapping[str, Mapping[str, Sequence[float]]], *, rows: int, instances: int) -> Result:
    """What a row costs, and the diffusion over the busiest part; the headline is the case with most of that.

    What is rare, as thinking choices over, counts with its share: means over all batches but the first few,
    in which code is compiled.
    """
    figures, notes, shares, each_us = [], [], {}, {}
    for label, one in runs.items():
        warm = {name: steady(values) for name, values in one.items()}
        each_us[label] = 1e6 * float(np.mean(warm["diffusion"])) / rows
        shares[label] = float(np.mean(warm["diffusion"]) / np.mean(warm["busiest"]))
        figures += [
            Figure(label=f"{label}: a row", value=each_us[label], unit="µs", limit=MOST_US),
            Figure(
                label=f"{label}: diffusion over the busiest part",
                value=shares[label],
                unit="times",
                limit=1.0,
            ),
        ]
        packing = 1e6 * float(np.mean(warm["packing"])) / rows
        notes.append(
            f"{label}: {np.mean(warm['copies']) / rows:.1f} copies of a row; of {each_us[label]:.1f} µs "
            f"{packing:.1f} make bytes ready; CPU a batch: diffusion {np.mean(warm['diffusion']):.3f} s, "
            f"busiest part {np.mean(warm['busiest']):.3f} s, mean part {np.mean(warm['mean']):.3f} s"
        )
    worst = max(shares, key=lambda label: shares[label])
    ours, parts = steady(runs[worst]["diffusion"]), steady(runs[worst]["busiest"])
    return Result(
        name=NAME,
        ours=Figure(label=f"{worst}, diffusion, CPU a batch", value=median(ours), unit="s"),
        baseline=Figure(label="the busiest part", value=median(parts), unit="s"),
        ratio=1 / shares[worst],
        spread=spread_of([b / a for a, b in zip(ours, parts, strict=True)]),
        figures=figures,
        notes=[f"{instances} instances, batches of {rows:,} rows, {len(ours)} counted", *notes],
        details=dict(runs),
    )
