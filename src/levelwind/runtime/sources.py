"""The sources that come with Levelwind, by the name of their Spark format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from levelwind.errors import Problem
from levelwind.model import Schema, Stream
from levelwind.runtime import traces, workloads
from levelwind.runtime.replay import Offset
from levelwind.runtime.source_options import as_text

TRACE, GENERATOR = "trace", "generator"
OWN_FORMATS = (TRACE, GENERATOR)
_CHECKS = {TRACE: traces.check_trace_options, GENERATOR: workloads.check_generator_options}
_ENDS = {TRACE: traces.end_offset, GENERATOR: workloads.end_offset}


def is_own(stream: Stream) -> bool:
    """Whether a stream is read by one of our sources."""
    return stream.source is not None and stream.source.get("format") in OWN_FORMATS


def check_source(
    source: Mapping[str, Any], schema: Schema, time: str | None, *, at: str = "source"
) -> list[Problem]:
    """Everything wrong with a source of a network file; nothing is said of formats that are not ours."""
    check = _CHECKS.get(str(source.get("format")))
    return check(source, schema, time, at=at) if check else []


def source_end(source: Mapping[str, Any], schema: Schema, time: str | None) -> Offset | None:
    """The offset after the last row of one of our sources; None if it has none, or is not ours."""
    end = _ENDS.get(str(source.get("format")))
    return end({**source, "time": time}, schema) if end else None


def reader_options(source: Mapping[str, Any], time: str | None) -> dict[str, str]:
    """The options for ``spark.readStream.format(…).options(…)``: as text, with the stream's time column."""
    options = {name: value for name, value in source.items() if name != "format"}
    if source.get("format") in OWN_FORMATS:
        options["time"] = time
    return as_text(options)
