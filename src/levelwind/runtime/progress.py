"""How a run fares: counted step by step, told as plain data for files, tables and pages."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from levelwind.model import Cluster, Network
from levelwind.operators.rows import BEGINNING, END
from levelwind.rewrite.diffuse import spread_name
from levelwind.runtime.changes import Change
from levelwind.runtime.coordinator import Step
from levelwind.runtime.sources import OWN_FORMATS
from levelwind.runtime.staging import DEAD_LETTERS

# What is read from these was written some time ago: how old its rows are says nothing of the run.
REPLAYED = (*OWN_FORMATS, "parquet", "csv", "json", "orc", "text", "avro", "xml", "delta", "binaryFile")
# Batch times that percentiles are taken of, and steps over which the rate of rows is.
KEPT_TIMES = 10_000
RECENT_STEPS = 20
SHOWN_CHANGES = 5
# Of how a join is spread, what may change while the method stays.
DETAILS = ("master", "segment_s")


@dataclass(kw_only=True)
class Progress:
    """What a run has done since its start."""

    steps: int = 0
    rows: int = 0
    outputs: dict[str, int] = field(default_factory=dict)
    shed: int = 0
    moves: int = 0
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT_TIMES))
    last: Step | None = None
    changes: list[Change] = field(default_factory=list)
    # How spread joins route their rows now, by name; and what was decided anew in the last step.
    spread: dict[str, dict[str, Any]] = field(default_factory=dict)
    decided: list[dict[str, Any]] = field(default_factory=list)
    _recent: deque[tuple[float, float, int]] = field(default_factory=lambda: deque(maxlen=RECENT_STEPS))

    def add(self, step: Step) -> None:
        """Count one step in."""
        rows = sum(step.seen.values())
        self.steps += 1
        self.rows += rows
        for entry in step.commit.outbox:
            self.outputs[entry.output] = self.outputs.get(entry.output, 0) + entry.rows
        self.shed += sum(box.shed for _, box in step.boxes)
        self.moves += len(step.commit.moves)
        self.seconds.append(step.wall_s)
        self._recent.append((step.started, step.started + step.wall_s, rows))
        self.last = step
        self.decided = list(self._hear(step))

    def _hear(self, step: Step) -> Iterator[dict[str, Any]]:
        """Take in how joins are spread; what is new of it, as records for the log of decisions."""
        boxes = step.program.layout.boxes
        for _, report in step.boxes:
            if report.said is None:
                continue
            name = spread_name(boxes[report.box].name)
            before, self.spread[name] = self.spread.get(name), report.said
            if before is None or before["decisions"] != report.said["decisions"]:
                old = None if before is None else {key: before[key] for key in ("method", *DETAILS)}
                yield {"what": "routed", "operator": name, **report.said, "before": old}

    @property
    def rejected(self) -> int:
        """Dead letters."""
        return self.outputs.get(DEAD_LETTERS, 0)

    @property
    def rows_per_second(self) -> float:
        """Rows read per second of wall time, of late."""
        if not self._recent:
            return 0.0
        span = self._recent[-1][1] - self._recent[0][0]
        return sum(rows for _, _, rows in self._recent) / max(span, 1e-9)

    @property
    def batch_seconds(self) -> dict[str, float | None]:
        """The usual and the rare batch time."""
        return {"p50": percentile(self.seconds, 0.5), "p99": percentile(self.seconds, 0.99)}


def percentile(values: Iterable[float], share: float) -> float | None:
    """The smallest value that at least ``share`` of all values do not exceed; None without values.

    Examples
    --------
    >>> percentile([4.0, 1.0, 3.0, 2.0], 0.5), percentile([], 0.5)
    (2.0, None)
    """
    ranked = sorted(values)
    if not ranked:
        return None
    rank = -int(-share * len(ranked) // 1)  # rounded up
    return ranked[max(rank, 1) - 1]


def status_of(
    progress: Progress, state: str, *, network: Network, cluster: Cluster, placement: Mapping[str, str]
) -> dict[str, Any]:
    """How a run fares, in plain data. Loads are shares of a node's CPU in the last batch."""
    status: dict[str, Any] = {
        "state": state,
        "steps": progress.steps,
        "rows": progress.rows,
        "outputs": {name: progress.outputs.get(name, 0) for name in network.outputs},
        "dead_letters": progress.rejected,
        "shed": progress.shed,
        "moves": progress.moves,
        "rows_per_second": progress.rows_per_second,
        "batch_seconds": {"last": None, **progress.batch_seconds},
        "placement": dict(placement),
        "spread": dict(progress.spread),
        "changes": [
            {
                "command": change.command,
                "step": change.step,
                "outputs": list(change.outputs),
                "operators": list(change.operators),
            }
            for change in progress.changes[-SHOWN_CHANGES:]
        ],
    }
    step = progress.last
    if step is not None:
        status["step"] = step.commit.step
        status["batch_seconds"]["last"] = step.wall_s
        status["nodes"] = node_loads(step, cluster)
        status |= _event_time(step, network)
    return status


def node_loads(step: Step, cluster: Cluster) -> dict[str, dict[str, Any]]:
    """For each node: CPU seconds of its operators in a step, as a share of what it could have spent."""
    wall = max(step.wall_s, 1e-9)
    found: dict[str, dict[str, Any]] = {
        node.name: {"load": 0.0, "cpu_s": 0.0, "operators": 0, "rows_in": 0, "rows_per_second": 0.0}
        for node in cluster.nodes
    }
    for report, box in step.boxes:
        entry = found[step.program.nodes[report.node]]
        entry["cpu_s"] += box.cpu_s
        entry["operators"] += 1
        entry["rows_in"] += box.rows_in
        entry["host"] = report.host
    for node in cluster.nodes:
        entry = found[node.name]
        entry["load"] = entry["cpu_s"] / wall / node.cpu
        entry["rows_per_second"] = entry["rows_in"] / wall
    return found


def _event_time(step: Step, network: Network) -> dict[str, Any]:
    """How far event time has come; how far that is behind the clock, for sources that follow the clock."""
    marks = {name: mark for name, mark in step.commit.streams.items() if BEGINNING < mark < END}
    live = [name for name in marks if _is_live(network.streams[name].source)]
    return {
        "watermarks": {name: _iso(marks.get(name)) for name in network.streams},
        "event_time": _iso(min(marks.values(), default=None)),
        "lag_seconds": time.time() - min(marks[name] for name in live) / 1e6 if live else None,
    }


def _is_live(source: Mapping[str, Any] | None) -> bool:
    return source is not None and source.get("format") not in REPLAYED


def _iso(mark: int | None) -> str | None:
    return None if mark is None else datetime.fromtimestamp(mark / 1e6, UTC).isoformat()
