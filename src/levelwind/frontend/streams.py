"""Streams: from the values that were read to the model, with the checks that span several keys."""

from __future__ import annotations

from typing import Any

from levelwind.frontend.document import KeyPath
from levelwind.frontend.draft import Values, value_of
from levelwind.frontend.report import BAD, Report, Said
from levelwind.frontend.rows import columns
from levelwind.frontend.series import read_series, resolve_path
from levelwind.model import Stream
from levelwind.model.frozen import FrozenMapping, frozen_mapping


def build_streams(values: Any, report: Report, lengths: dict[KeyPath, int]) -> dict[str, Stream]:
    """All streams by name; a broken one keeps its name so that its readers do not look wrong."""
    found = {}
    for name, stream in (values or {}).items():
        found[name] = _build(name, stream if isinstance(stream, dict) else {}, ("streams", name), report)
        rate = found[name].rate
        if rate is not None:
            lengths["streams", name, "rate"] = len(rate)
    return found


def _build(name: str, values: Values, path: KeyPath, report: Report) -> Stream:
    schema = value_of(values, "schema")
    time = value_of(values, "time")
    if time is not None and "schema" not in values:
        report.add((*path, "time"), "a stream with a time column must have a schema", time)
    elif time is not None and schema is not None:
        _check_time(time, schema, (*path, "time"), report)
    return Stream(
        name=name,
        schema=None if schema is None else columns(schema),
        time=time,
        lateness_s=value_of(values, "lateness", 0.0),
        idle_after_s=value_of(values, "idle_after"),
        source=build_connector(value_of(values, "source"), report),
        rate=read_series(values.get("rate"), (*path, "rate"), report),
        min_rate=value_of(values, "min_rate", 0.0),
        bytes=value_of(values, "bytes"),
        node=value_of(values, "node"),
    )


def _check_time(time: str, schema: dict[str, str], path: KeyPath, report: Report) -> None:
    if time not in schema:
        report.add(path, "the time column must be in the schema", time, report.suggest(time, schema))
    elif schema[time] != "timestamp":
        report.add(path, "the time column must be of type timestamp", Said(f"{time}: {schema[time]}"))


def build_connector(values: Values | None, report: Report) -> FrozenMapping | None:
    """A source's or sink's options; a relative ``path`` starts from the file that names it."""
    if values is None:
        return None
    options = {key: value for key, value in values.items() if value is not BAD}
    if isinstance(options.get("path"), str):
        options["path"] = resolve_path(options["path"], report.document.base)
    return frozen_mapping(options)
