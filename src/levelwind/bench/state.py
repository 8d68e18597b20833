"""Large state, small changes: bytes that a checkpoint writes, against the bytes of what has changed.

A million open windows: as many keys in one window of an hour, filled in a few batches, on an aggregate that
is split in two. Then batches of 20,000 rows, each of another key. What a checkpoint writes must follow
the change and not the size; it may be more than the change, since segments are merged now and then. A
changed window counts with what one takes in the state on the average. The run is then stopped with everything
open and started anew, in a new process: how long until the state is there again?
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.bench.runtime_worlds import CORES, batch_seconds, file_source, watch, write_files
from levelwind.runtime.coordinator import Step
from levelwind.runtime.storage import STATE
from levelwind.testing.sides import answer, network_of, ours

NAME = "state"
MODULE = "levelwind.bench.state"
WINDOWS, CHANGED = 1_000_000, 20_000
FILL_BATCHES = 5
BATCHES, FULL_BATCHES = 30, 150
WRITTEN_LIMIT, RESTART_LIMIT_S = 3.0, 5.0
START_US = 1_767_225_600_000_000
SCHEMA = {"ts": "timestamp", "key": "bigint", "value": "double"}


def document(folder: Path) -> dict[str, Any]:
    """The aggregate on the files."""
    return {
        "name": NAME,
        "streams": {"rows": {"schema": SCHEMA, "time": "ts", "source": file_source(folder)}},
        "operators": [
            {
                "name": "means", "kind": "aggregate", "input": "rows", "by": ["key"],
                "window": {"size": "1h"}, "compute": {"n": "count(*)", "mean": "avg(value)"},
                "split": {"into": CORES, "by": "key"}, "cost": "1us", "selectivity": 0.001,
            }
        ],
    }  # fmt: skip


def tables(windows: int, changed: int, batches: int, seed: int) -> Iterator[pa.Table]:
    """Every key once, in a few batches; then batches of as many keys as change, each one once."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(windows)
    parts = [*np.array_split(order, FILL_BATCHES)]
    parts += [rng.choice(windows, changed, replace=False) for _ in range(batches)]
    for number, keys in enumerate(parts):
        # A second of event time each: the window of an hour stays open.
        times = START_US + number * 1_000_000 + np.arange(len(keys)) * 1_000_000 // len(keys)
        yield pa.table(
            {
                "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
                "key": pa.array(keys, pa.int64()),
                "value": pa.array(rng.random(len(keys))),
            }
        )


def levelwind_side(data: str, folder: str, batches: int) -> dict[str, Any]:
    """A run, or the next one in the same folder, that stops after some batches and leaves all open."""
    written: list[int] = []
    checkpoint = Path(folder, "checkpoint")

    def weigh(step: Step) -> None:
        files = (checkpoint / STATE).glob(f"{step.commit.step:09d}-*")
        written.append(sum(path.stat().st_size for path in files))

    placement = {f"means[{number}]": f"n{number + 1}" for number in range(CORES)}
    network = network_of(document(Path(data)))
    seen = watch(network, folder=Path(folder), placement=placement, batches=batches, on_step=weigh)
    loads = [[box for _, box in each.step.boxes] for each in seen]
    return {
        "written_bytes": written,
        "state_bytes": [sum(box.state_bytes for box in boxes) for boxes in loads],
        "loaded_bytes": [sum(box.loaded_bytes for box in boxes) for boxes in loads],
        "loaded_s": [max(box.loaded_s for box in boxes) for boxes in loads],
        "rows_out": sum(box.rows_out for boxes in loads for box in boxes),
        "step_s": [each.step.wall_s for each in seen],
        "batch_s": batch_seconds(seen),
        "commit_bytes": _last_commit(checkpoint).stat().st_size,
        "segments": sum(
            len(table.segments)
            for record in seen[-1].step.commit.boxes.values()
            for table in record.tables.values()
        ),
    }


def _last_commit(checkpoint: Path) -> Path:
    return max((checkpoint / "commits").iterdir())


def run(
    settings: Settings, *, windows: int = WINDOWS, changed: int = CHANGED, batches: int | None = None
) -> Result:
    """Fill, change, stop; start again and change once more."""
    batches = batches or (FULL_BATCHES if settings.full else BATCHES)
    first = FILL_BATCHES + batches
    with TemporaryDirectory(ignore_cleanup_errors=True) as base:
        settings.step("files")
        write_files(Path(base, "rows"), tables(windows, changed, batches + 3, settings.seed))
        arguments = {"data": str(Path(base, "rows")), "folder": str(Path(base, "run"))}
        settings.step(f"{windows:,} windows, then {batches} batches of {changed:,} rows")
        found = ours(MODULE, "ours", batches=first, **arguments)
        settings.step("restart")
        again = ours(MODULE, "ours", batches=2, **arguments)
    return _result(windows, changed, found, again)


def _result(windows: int, changed: int, found: dict[str, Any], again: dict[str, Any]) -> Result:
    # What one open window takes, as the state was when every window had been written once.
    each = found["state_bytes"][FILL_BATCHES - 1] / windows
    change = each * changed
    written = found["written_bytes"][FILL_BATCHES:]
    shares = [size / change for size in written]
    small = found["batch_s"][FILL_BATCHES:]
    unmoved = found["loaded_bytes"][FILL_BATCHES:]
    return Result(
        name=NAME,
        ours=Figure(label="written to the state a batch, mean", value=mean(written) / 1e3, unit="kB"),
        baseline=Figure(label=f"{changed:,} changed windows", value=change / 1e3, unit="kB"),
        ratio=change / mean(written),
        spread=spread_of(shares),
        figures=[
            Figure(label="written over changed, mean", value=mean(shares), unit="times", limit=WRITTEN_LIMIT),
            Figure(label="written over changed, most in a batch", value=max(shares), unit="times"),
            Figure(
                label="state read back after a restart",
                value=again["loaded_s"][0],
                unit="s",
                limit=RESTART_LIMIT_S,
            ),
            Figure(label="first batch after a restart", value=again["step_s"][0], unit="s"),
            Figure(label=f"a batch with {windows:,} windows open", value=median(small), unit="s"),
        ],
        notes=(
            f"state of {found['state_bytes'][FILL_BATCHES - 1] / 1e6:.1f} MB, {each:.0f} bytes a window; "
            f"after all batches {found['state_bytes'][-1] / 1e6:.1f} MB in {found['segments']} segments",
            f"after the restart {again['loaded_bytes'][0] / 1e6:.1f} MB were read, by "
            f"{CORES} nodes at once; files are mapped and were in the system's cache, so pages count "
            "where they are first touched: in the batch, of which the workers' start is most",
            f"a commit itself is {found['commit_bytes'] / 1e3:.1f} kB and is not counted",
            f"without a restart or a move, state was read again in {sum(map(bool, unmoved))} of "
            f"{len(unmoved)} batches: a local master does not bind a node to one worker process",
            f"{found['rows_out']} windows were put out: none was to be",
        ),
        details={"run": found, "restart": again},
    )


if __name__ == "__main__":
    answer({"ours": levelwind_side})
