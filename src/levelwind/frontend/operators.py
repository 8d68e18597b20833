"""Operators: from the values that were read to the specification of each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from levelwind.frontend.document import KeyPath
from levelwind.frontend.draft import Draft, Values
from levelwind.frontend.report import BAD, Report
from levelwind.frontend.rows import columns
from levelwind.frontend.series import read_series
from levelwind.model import (
    Aggregate,
    Custom,
    Diffuse,
    Filter,
    Join,
    Map,
    Model,
    Multijoin,
    Operator,
    PairFunction,
    RowWindow,
    Split,
    SqlRead,
    SqlWrite,
    TimeWindow,
    Union,
)
from levelwind.model.frozen import frozen_mapping
from levelwind.model.operator import Spec

_IMMOVABLE = ("sql_read", "sql_write")


def build_drafts(values: Any, report: Report, lengths: dict[KeyPath, int]) -> list[Draft]:
    """A draft for each operator that could be read at all, in the written order."""
    drafts = []
    for index, operator in enumerate(values or ()):
        if operator is BAD:
            continue
        path: KeyPath = ("operators", index)
        name = operator.get("name", BAD)
        draft = Draft("" if name is BAD else name, operator.get("kind"), path, operator)
        before = report.count
        spec = _SPECS[draft.kind](draft, report) if draft.kind else None
        if report.count == before and BAD not in operator.values():
            draft.spec = spec
        if isinstance(spec, Model) and spec.series is not None:
            lengths[(*path, "series")] = len(spec.series)
        drafts.append(draft)
    return drafts


def build_operator(draft: Draft) -> Operator:
    """The finished operator of a draft without faults."""
    values = draft.values
    selectivity = values.get("selectivity")
    split: Values | None = values.get("split")
    assert draft.spec is not None
    return Operator(
        name=draft.name,
        spec=draft.spec,
        inputs=draft.inputs,
        cost_s=values.get("cost"),
        selectivity=None if isinstance(selectivity, dict) else selectivity,
        route_selectivity=frozen_mapping(selectivity) if isinstance(selectivity, dict) else None,
        varying=values.get("varying", False),
        movable=values.get("movable", draft.kind not in _IMMOVABLE),
        pinned=values.get("pinned"),
        table=values.get("table"),
        reusable=values.get("reusable", True),
        priority=values.get("priority", 0.0),
        properties=frozen_mapping(values.get("properties")),
        bytes=values.get("bytes"),
        transfer_cost_s=values.get("transfer_cost", 0.0),
        split=Split(into=split["into"], by=split.get("by", ())) if split else None,
        schema=draft.rows.schema,
    )


def _filter(draft: Draft, report: Report) -> Spec:
    routes = draft.get("routes") or {}
    draft.routes = tuple(routes)
    selectivity = draft.get("selectivity")
    if isinstance(selectivity, dict) and "routes" not in draft.values:
        rule = "selectivity by route must go with routes"
        report.add((*draft.path, "selectivity"), rule, selectivity, "state one number")
    elif isinstance(selectivity, dict) and routes:
        for route in selectivity.keys() - routes.keys():
            path = (*draft.path, "selectivity", route)
            report.add(path, "a route must exist", route, report.suggest(route, routes))
        for route in routes.keys() - selectivity.keys():
            report.add((*draft.path, "selectivity"), "every route must have its selectivity", route)
    return Filter(where=draft.get("where"), routes=frozen_mapping(routes))


def _map(draft: Draft, report: Report) -> Spec:
    return Map(select=frozen_mapping(draft.get("select")))


def _union(draft: Draft, report: Report) -> Spec:
    return Union()


def _aggregate(draft: Draft, report: Report) -> Spec | None:
    window = _window(draft.get("window"), (*draft.path, "window"), report)
    by = draft.get("by", ())
    for name in dict.fromkeys(name for name in by if by.count(name) > 1):
        report.add((*draft.path, "by"), "a column must stand only once", name)
    if window is None:
        return None
    return Aggregate(
        window=window, compute=frozen_mapping(draft.get("compute")), by=by, timeout_s=draft.get("timeout")
    )


def _window(window: Values | None, path: KeyPath, report: Report) -> TimeWindow | RowWindow | None:
    if window is None or BAD in window.values() or ("size" in window) == ("rows" in window):
        return None
    in_rows = "rows" in window
    size: Any = window["rows" if in_rows else "size"]
    slide: Any = window.get("slide", size)
    if in_rows != isinstance(slide, int):
        rule = f"slide must be {'a number of rows' if in_rows else 'a duration'}, as the window is"
        report.add((*path, "slide"), rule, report.document.at((*path, "slide")))
        return None
    if slide > size:
        rule = "slide must not be more than the window's size: rows would be lost"
        report.add((*path, "slide"), rule, report.document.at((*path, "slide")))
        return None
    return RowWindow(rows=size, slide=slide) if in_rows else TimeWindow(size_s=size, slide_s=slide)


def _aliases(draft: Draft, report: Report) -> None:
    """What a join's inputs are called in its columns: their alias, or else their name."""
    inputs = draft.get("inputs") or ()
    draft.aliases = tuple(inputs)
    for name in dict.fromkeys(name for name in draft.aliases if draft.aliases.count(name) > 1):
        hint = f"give aliases: inputs: {{a: {name}, b: {name}}}"
        report.add((*draft.path, "inputs"), "a join's inputs must have distinct names", name, hint)


def _join(draft: Draft, report: Report) -> Spec:
    _aliases(draft, report)
    if len(draft.aliases) > 2:
        path = (*draft.path, "inputs")
        report.add(path, "a join must have exactly two inputs", len(draft.aliases), "use a multijoin")
    return Join(aliases=draft.aliases, within_s=draft.get("within", 0.0), where=draft.get("where"))


def _multijoin(draft: Draft, report: Report) -> Spec:
    _aliases(draft, report)
    windows: Mapping[str, float] = draft.get("windows") or {}
    path = (*draft.path, "windows")
    if windows and draft.aliases:
        for name in windows:
            if name not in draft.aliases:
                hint = report.suggest(name, draft.aliases)
                report.add((*path, name), "a window must be for one of the inputs", name, hint)
        for name in dict.fromkeys(draft.aliases):
            if name not in windows:
                report.add(path, "every input must have a window", name)
    diffuse = draft.get("diffuse")
    spread = None
    if diffuse is not None and draft.get("split") is not None:
        rule = "a join that is spread must not be split too"
        hint = "leave one out: diffuse spreads any join, split one whose inputs share a key"
        report.add((*draft.path, "split"), rule, report.document.at((*draft.path, "split")), hint)
    if diffuse is not None and BAD not in diffuse.values():
        spread = Diffuse(
            method=diffuse.get("method", "auto"),
            instances=diffuse.get("instances", 1),
            segment_s=diffuse.get("segment"),
            weights=_weights(diffuse.get("weights"), draft, report),
        )
    shed = draft.get("shed")
    return Multijoin(
        aliases=draft.aliases,
        windows_s=frozen_mapping({name: windows[name] for name in draft.aliases if name in windows}),
        where=draft.get("where"),
        pairs=_pairs(draft, report),
        shed_rows=None if shed is None or BAD in shed.values() else shed["rows"],
        diffuse=spread,
    )


def _weights(told: Mapping[str, Any] | None, draft: Draft, report: Report) -> tuple[float, float, float]:
    """Weights of CPU, memory and bandwidth, made to add up to 1."""
    if told is None or BAD in told.values():
        return (1.0, 0.0, 0.0)
    cpu, memory, bandwidth = (float(told.get(name, 0.0)) for name in ("cpu", "memory", "bandwidth"))
    total = cpu + memory + bandwidth
    if total <= 0:
        path = (*draft.path, "diffuse", "weights")
        report.add(path, "one of the weights must be more than 0", "0")
        return (1.0, 0.0, 0.0)
    if abs(total - 1) < 1e-9:  # so that what is written and read again stays the same
        return (cpu, memory, bandwidth)
    return (cpu / total, memory / total, bandwidth / total)


def _pairs(draft: Draft, report: Report) -> tuple[PairFunction, ...]:
    found = []
    for index, pair in enumerate(draft.get("pairs") or ()):
        if pair is BAD or BAD in pair.values():
            continue
        path = (*draft.path, "pairs", index)
        inputs, function = pair["inputs"], pair["function"]
        _check_function(function, (*path, "function"), report)
        for name in inputs:
            if draft.aliases and name not in draft.aliases:
                hint = report.suggest(name, draft.aliases)
                report.add((*path, "inputs"), "must name one of the inputs", name, hint)
        if len(inputs) != 2 or inputs[0] == inputs[1]:
            report.add((*path, "inputs"), "a condition on pairs must be about two inputs", ", ".join(inputs))
            continue
        found.append(PairFunction(inputs=(inputs[0], inputs[1]), function=function))
    return tuple(found)


def _check_function(function: str, path: KeyPath, report: Report) -> None:
    module, colon, name = function.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if function and not (colon and all(part.isidentifier() for part in parts)):
        report.add(path, "must be written module:function", function)


_SQL_OPTIONS = ("url", "table_name", "query", "key", "columns", "write_mode", "select")


def _sql_options(draft: Draft) -> dict[str, Any]:
    """The named options and those under ``options``, in one mapping."""
    return {
        **(draft.get("options") or {}),
        **{key: draft.get(key) for key in _SQL_OPTIONS if key in draft.values},
    }


def _sql_read(draft: Draft, report: Report) -> Spec:
    schema = draft.get("schema")
    return SqlRead(options=frozen_mapping(_sql_options(draft)), schema=columns(schema) if schema else None)


def _sql_write(draft: Draft, report: Report) -> Spec:
    return SqlWrite(options=frozen_mapping(_sql_options(draft)))


def _custom(draft: Draft, report: Report) -> Spec:
    function = draft.get("function", "")
    _check_function(function, (*draft.path, "function"), report)
    return Custom(function=function, schema=columns(draft.get("schema") or {}))


def _model(draft: Draft, report: Report) -> Spec:
    values = draft.values
    if "input" in values and "inputs" in values:
        report.add((*draft.path, "inputs"), "a model operator must have input or inputs, not both")
    if not values.keys() & {"input", "inputs", "load", "series"}:
        rule = "an operator must read something"
        report.add(draft.path, rule, draft.name or None, "give it an input, or state 'load' or 'series'")
    load = draft.get("load")
    return Model(
        load=frozen_mapping(load) if load else None,
        series=read_series(values.get("series"), (*draft.path, "series"), report),
    )


_SPECS: Mapping[str, Callable[[Draft, Report], Spec | None]] = {
    "filter": _filter,
    "map": _map,
    "union": _union,
    "aggregate": _aggregate,
    "join": _join,
    "multijoin": _multijoin,
    "sql_read": _sql_read,
    "sql_write": _sql_write,
    "custom": _custom,
    "model": _model,
}
