"""Statistics of a run as parquet: a row per operator and step, and a row per step."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from levelwind.runtime.coordinator import Step
from levelwind.runtime.sent import Received

OPERATORS, STEPS = "operators", "steps"
# Rows are gathered this long, so that a fast run does not leave thousands of small files.
FLUSH_S = 5.0


class Recorder:
    """Gathers statistics and writes them now and then.

    What was gathered since the last write is lost if the process is killed: statistics are for people and
    planners, not part of any result.
    """

    def __init__(self, directory: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._clock = clock
        self._operators: list[dict[str, Any]] = []
        self._steps: list[dict[str, Any]] = []
        self._written = clock()
        # Steps go on counting after a restart; this tells the starts apart.
        self._session = time.time()

    def add(self, step: Step) -> None:
        """Take in one step."""
        names = [box.name for box in step.program.layout.boxes]
        nodes = step.program.nodes
        for report, box in step.boxes:
            self._operators.append(
                {
                    "session": self._session,
                    "step": step.commit.step,
                    "time": step.started,
                    "operator": names[box.box],
                    "node": nodes[report.node],
                    "host": report.host,
                    "cpu_s": box.cpu_s,
                    "rows_in": box.rows_in,
                    "rows_out": box.rows_out,
                    "rejected": box.rejected,
                    "shed": box.shed,
                    "state_bytes": box.state_bytes,
                    "out_bytes": box.out_bytes,
                    "away_bytes": box.away_bytes,
                    "away_s": box.away_s,
                }
            )
        seen = step.seen
        received = sum(
            (Received(report.received_bytes, report.received_s) for report in step.reports), Received()
        )
        for name in step.program.layout.network.streams:
            self._steps.append(
                {
                    "session": self._session,
                    "step": step.commit.step,
                    "time": step.started,
                    "wall_s": step.wall_s,
                    "run_s": step.run_s,
                    "stream": name,
                    "rows": seen.get(name, 0),
                    "watermark": step.commit.streams[name],
                    "closing": step.commit.closed,
                    "received_bytes": received.bytes,
                    "received_s": received.cpu_s,
                }
            )
        if self._clock() - self._written >= FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Write what was gathered."""
        for name, rows in ((OPERATORS, self._operators), (STEPS, self._steps)):
            if rows:
                path = self._directory / f"{name}-{rows[0]['step']:09d}.parquet"
                self._directory.mkdir(parents=True, exist_ok=True)
                aside = path.with_name(f".{path.name}")
                pl.DataFrame(rows).write_parquet(aside)
                aside.replace(path)
                rows.clear()
        self._written = self._clock()


def read_statistics(directory: Path, name: str) -> pl.DataFrame | None:
    """All that was written so far, in order of steps; None if there is nothing yet."""
    files = sorted(directory.glob(f"{name}-*.parquet"))
    return pl.concat([pl.read_parquet(file) for file in files], how="diagonal") if files else None
