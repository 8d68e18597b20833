"""Where rows leave: outputs, dead letters, and sinks that must not be shared."""

from __future__ import annotations

from typing import Any

from levelwind.frontend.document import KeyPath
from levelwind.frontend.draft import Sketch, value_of
from levelwind.frontend.graph import find_port
from levelwind.frontend.report import BAD, Report
from levelwind.frontend.streams import build_connector
from levelwind.model import ErrorPolicy, Output, Port
from levelwind.model.frozen import frozen_mapping


def build_outputs(values: Any, sketch: Sketch) -> dict[str, Output]:
    """All outputs by name."""
    # What only outputs read counts as unread: nobody downstream depends on its selectivity.
    read_before = set(sketch.read_operators)
    found = {}
    for name, output in (values or {}).items():
        if output is BAD:
            continue
        text = value_of(output, "input")
        port = find_port(text, ("outputs", name, "input"), sketch) if text else None
        found[name] = Output(
            name=name,
            input=port or Port(source=""),  # never seen: without a port there is a problem
            sink=build_connector(value_of(output, "sink"), sketch.report),
            node=value_of(output, "node"),
        )
    sketch.read_operators = read_before
    return found


def build_errors(values: Any, report: Report) -> ErrorPolicy:
    """What becomes of rows in error."""
    values = values or {}
    sink = build_connector(value_of(values, "sink"), report)
    return ErrorPolicy(on_error=value_of(values, "on_error", "dead_letter"), sink=sink or frozen_mapping())


def check_sinks(outputs: dict[str, Output], errors: ErrorPolicy, report: Report) -> None:
    """Two sinks on one path would mix their rows and overwrite each other's commits."""
    sinks: list[tuple[KeyPath, Any]] = [
        (("outputs", name, "sink"), out.sink) for name, out in outputs.items()
    ]
    sinks.append((("errors", "sink"), errors.sink))
    owners: dict[str, KeyPath] = {}
    for path, sink in sinks:
        place = sink.get("path") if sink else None
        if not isinstance(place, str):
            continue
        place = place.rstrip("/")
        if place in owners:
            owner = ".".join(str(part) for part in owners[place][:2])
            rule, where = "every sink must have a path of its own", (*path, "path")
            report.add(where, rule, report.document.at(where), f"{owner} has it already")
        owners.setdefault(place, path)
