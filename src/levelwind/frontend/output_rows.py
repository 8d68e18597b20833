"""What each operator puts out, kind by kind: columns, event time, and every expression checked on the way.

The event time travels with the rows: a stream's own column until an aggregate (``window_time``)
or a join (``join_time``) makes a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from levelwind.frontend.columntypes import UNKNOWN
from levelwind.frontend.draft import Draft, Sketch
from levelwind.frontend.expressions import parse_expression
from levelwind.frontend.report import Report, Said
from levelwind.frontend.rows import NOTHING_KNOWN, Rows, check_aggregate, check_column, check_scalar, columns
from levelwind.model import Column

WINDOW_COLUMNS = ("window_start", "window_end", "window_time")
JOIN_TIME = "join_time"


def compute_rows(draft: Draft, sketch: Sketch) -> None:
    """Checks one operator against what it reads, and notes what it puts out."""
    written = draft.get("inputs")
    expected = len(written) if written else 1
    inputs = [sketch.rows_of(port) for port in draft.inputs]
    if draft.kind is None or draft.kind == "model":
        return
    if len(inputs) < expected:  # some input is broken: nothing is known of what it would have brought
        inputs = [NOTHING_KNOWN] * expected
    if draft.kind in _NEEDS_TIME and not _is_row_window(draft):
        _check_time(draft, inputs, sketch)
    rows = _KINDS[draft.kind](draft, inputs, sketch.report)
    draft.rows = rows if draft.spec is not None else NOTHING_KNOWN
    check_split(draft, inputs, sketch.report)


def _is_row_window(draft: Draft) -> bool:
    return "rows" in (draft.get("window") or {})


_NEEDS_TIME = ("aggregate", "join", "multijoin")


def _check_time(draft: Draft, inputs: list[Rows], sketch: Sketch) -> None:
    for port, rows in zip(draft.inputs, inputs, strict=False):
        stream = sketch.streams.get(port.source)
        if rows.schema is not None and rows.time is None and (stream is None or stream.source is None):
            rule = f"what a {draft.kind} reads must have an event-time column"
            hint = f"state 'time' for the stream {port.source!r}" if stream else None
            sketch.report.add(draft.path, rule, str(port), hint)


def _filter(draft: Draft, inputs: list[Rows], report: Report) -> Rows:
    where = draft.get("where")
    if where is not None:
        check_scalar(where, inputs[0], (*draft.path, "where"), report, boolean=True)
    for route, text in (draft.get("routes") or {}).items():
        check_scalar(text, inputs[0], (*draft.path, "routes", route), report, boolean=True)
    return inputs[0]


def _map(draft: Draft, inputs: list[Rows], report: Report) -> Rows:
    rows = inputs[0]
    types: dict[str, str] = {}
    for name, text in (draft.get("select") or {}).items():
        path = (*draft.path, "select", name)
        types[name] = check_scalar(text, rows, path, report)
        if name == rows.time and parse_expression(text).outside != (name,) and types[name] != UNKNOWN:
            rule = "a map carries the time column along; it must not be redefined"
            report.add(path, rule, text, "choose another name for the new column")
    if rows.schema is None:
        return NOTHING_KNOWN
    if rows.time is not None:
        types.setdefault(rows.time, "timestamp")
    return Rows(columns(types), rows.time)


def _union(draft: Draft, inputs: list[Rows], report: Report) -> Rows:
    first = inputs[0]
    for index, (port, rows) in enumerate(zip(draft.inputs, inputs, strict=False)):
        if rows.schema is None or first.schema is None:
            continue
        difference = _difference(first, rows)
        if difference is not None:
            rule = f"all inputs of a union must have one schema, that of {draft.inputs[0]}"
            report.add(
                (*draft.path, "inputs", index),
                rule,
                Said(f"{port}: {difference}"),
                "bring it in line with a map",
            )
    return first if all(rows.schema is not None for rows in inputs) else NOTHING_KNOWN


def _difference(first: Rows, other: Rows) -> str | None:
    """The first column in which two schemas differ. Their order does not matter: columns go by name."""
    wanted, have = first.types, other.types
    for name, kind in wanted.items():
        if name not in have:
            return f"no column {name}"
        if UNKNOWN not in (kind, have[name]) and kind != have[name]:
            return f"column {name} is {have[name]}, not {kind}"
    for name in have:
        if name not in wanted:
            return f"column {name} is one too many"
    return f"its time column is {other.time}, not {first.time}" if first.time != other.time else None


def _aggregate(draft: Draft, inputs: list[Rows], report: Report) -> Rows:
    rows = inputs[0]
    by = draft.get("by", ())
    known = rows.types
    types: dict[str, str] = {}
    for name in by:
        check_column(name, rows, (*draft.path, "by"), report)
        types[name] = known.get(name, UNKNOWN)
    for name, text in (draft.get("compute") or {}).items():
        path = (*draft.path, "compute", name)
        if name in types:
            report.add(path, "a computed column must not have the name of a column in 'by'", name)
        types[name] = check_aggregate(text, rows, by, path, report)
    for name in types:
        if name in WINDOW_COLUMNS:
            place = "by" if name in by else "compute"
            rule = "an aggregate adds window_start, window_end and window_time itself"
            report.add((*draft.path, place), rule, name, "rename it with a map before")
    # by and compute are known by name even if the input is not, but their types would all be unknown
    if rows.schema is None:
        return NOTHING_KNOWN
    return Rows(columns({**types, **dict.fromkeys(WINDOW_COLUMNS, "timestamp")}), "window_time")


def _join(draft: Draft, inputs: list[Rows], report: Report) -> Rows:
    """Of join and multijoin: all columns of all inputs behind their aliases, and the latest member's time."""
    joined = NOTHING_KNOWN
    if all(rows.schema is not None for rows in inputs):
        found = [
            Column(name=f"{alias}.{column.name}", type=column.type)
            for alias, rows in zip(draft.aliases, inputs, strict=False)
            for column in rows.schema or ()
        ]
        joined = Rows((*found, Column(name=JOIN_TIME, type="timestamp")), JOIN_TIME)
        _check_collisions(draft, joined, report)
    where = draft.get("where")
    if where is not None:
        reads = Rows(joined.schema[:-1]) if joined.schema else NOTHING_KNOWN
        check_scalar(where, reads, (*draft.path, "where"), report, boolean=True)
    return joined


def _check_collisions(draft: Draft, joined: Rows, report: Report) -> None:
    """Sinks write ``_`` for the dot; two columns must not become one by that."""
    written: dict[str, str] = {}
    for column in joined.schema or ():
        flat = column.name.replace(".", "_")
        if flat in written and written[flat] != column.name:
            rule = f"two columns must not both be written {flat}"
            hint = "give an input another alias: inputs: {alias: input, …}"
            report.add((*draft.path, "inputs"), rule, Said(f"{written[flat]} and {column.name}"), hint)
        written[flat] = column.name


def _declared(draft: Draft, inputs: list[Rows], report: Report) -> Rows:
    """Of custom and sql_read: what they declare, and the time column if they do not declare it."""
    schema: Mapping[str, str] | None = draft.get("schema")
    time = inputs[0].time
    if schema is None or inputs[0].schema is None:  # without the input's time column it is not the whole
        return NOTHING_KNOWN
    types = dict(schema)
    if time is not None and types.setdefault(time, "timestamp") != "timestamp":
        rule = "the time column must stay of type timestamp"
        report.add((*draft.path, "schema", time), rule, types[time])
    return Rows(columns(types), time)


def _sql_write(draft: Draft, inputs: list[Rows], report: Report) -> Rows:
    """Passes its rows on; what it writes is computed from them."""
    for name, text in (draft.get("select") or {}).items():
        check_scalar(text, inputs[0], (*draft.path, "select", name), report)
    return inputs[0]


_KINDS: Mapping[str, Callable[[Draft, list[Rows], Report], Rows]] = {
    "filter": _filter,
    "map": _map,
    "union": _union,
    "aggregate": _aggregate,
    "join": _join,
    "multijoin": _join,
    "sql_read": _declared,
    "sql_write": _sql_write,
    "custom": _declared,
}


def check_split(draft: Draft, inputs: list[Rows], report: Report) -> None:
    """The columns a split goes by must exist; an aggregate's groups must not be torn apart."""
    split = draft.get("split")
    if not split:
        return
    path = (*draft.path, "split", "by")
    by = split.get("by") or ()
    reads = draft.rows if draft.kind in ("join", "multijoin") else inputs[0]
    sound = [name for name in by if check_column(name, reads, path, report)]
    if draft.kind != "aggregate":
        return
    groups = draft.get("by", ())
    if "by" not in draft.values:
        rule = "an aggregate that is split must have groups"
        report.add(path[:-1], rule, hint="give it a 'by', or do not split it")
    elif groups:
        for name in sound:
            if name not in groups:
                rule = "an aggregate must be split by columns of its groups"
                report.add(path, rule, name, f"its groups: {', '.join(groups)}")
