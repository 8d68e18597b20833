"""The trace as a file: a line per event, the same to the byte for the same seed."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from levelwind.loads.problem import Problem
from levelwind.sim.layout import Plumbing
from levelwind.sim.tables import Table, TraceKind

_NAMED_BY = {
    TraceKind.ARRIVED: "source",
    TraceKind.RESULT: "flow",
    TraceKind.LOST: "node",
}


class TraceFile:
    """Writes pieces of a trace to a CSV file: ``at_s,event,name,node,latency_s``.

    ``name`` is the stream, operator, output's origin or node that the event is about. Names are given by
    `name`, once the network is known. O(rows) without a Python loop over them.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._names: dict[str, NDArray[np.str_]] = {}
        self._begun = False

    def name(self, problem: Problem, plumbing: Plumbing, nodes: list[str]) -> None:
        """Tell the names behind the numbers; the last of each list stands for none."""
        self._names = {
            "source": np.array([*plumbing.sources, ""]),
            "flow": np.array([*plumbing.flows, ""]),
            "operator": np.array([*problem.physical.names, ""]),
            "node": np.array([*nodes, ""]),
        }

    def __call__(self, rows: Table) -> None:
        """Write a piece."""
        names = np.empty(len(rows), dtype=object)
        for kind in TraceKind:
            here = rows["kind"] == kind
            names[here] = self._names[_NAMED_BY.get(kind, "operator")][rows["what"][here]]
        events = np.array([kind.name.lower() for kind in TraceKind])[rows["kind"]]
        latency = np.where(rows["kind"] == TraceKind.RESULT, rows["latency_s"], np.nan)
        frame = pl.DataFrame(
            {
                "at_s": rows["at_s"],
                "event": events,
                "name": names.astype(str),
                "node": self._names["node"][rows["node"]],
                "latency_s": pl.Series(latency).fill_nan(None),
            }
        )
        frame.write_csv(self._file, include_header=not self._begun)
        self._begun = True

    def __enter__(self) -> TraceFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
