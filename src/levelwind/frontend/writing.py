"""Networks back to files: the inverse of loading, so that a network that was changed can be written down."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from levelwind.frontend.sql.naming import belongs_to
from levelwind.frontend.units import format_duration
from levelwind.model import (
    Aggregate,
    Custom,
    Diffuse,
    Filter,
    Join,
    Map,
    Model,
    Multijoin,
    Network,
    Operator,
    Output,
    Query,
    Schema,
    SqlRead,
    SqlWrite,
    Stream,
    TimeWindow,
)
from levelwind.model.frozen import frozen_mapping

_SQL_KEYS = ("url", "table_name", "query", "key", "columns", "write_mode", "select")


def network_document(network: Network) -> dict[str, Any]:
    """A network as the plain mapping of a network file; loading it gives an equal network.

    Only what differs from the default is written. Paths are made absolute, since the file may come to lie
    elsewhere than the one that named them.
    """
    document: dict[str, Any] = {"name": network.name}
    if network.hops != "within":
        document["hops"] = network.hops
    if network.trigger_s is not None:
        document["trigger"] = format_duration(network.trigger_s)
    document["streams"] = {name: _stream(stream) for name, stream in network.streams.items()}
    made = {name: _made_of(query, network) for name, query in network.queries.items()}
    generated = {operator.name for operators in made.values() for operator in operators}
    document["operators"] = [
        _operator(operator) for operator in network.operators.values() if operator.name not in generated
    ]
    if network.queries:
        document["queries"] = {name: _query(query, made[name]) for name, query in network.queries.items()}
    if network.outputs:
        document["outputs"] = {name: _output(output) for name, output in network.outputs.items()}
    errors = network.errors
    if errors.on_error != "dead_letter" or errors.sink:
        document["errors"] = _stated(on_error=errors.on_error, sink=_connector(errors.sink or None))
    return document


def network_text(network: Network) -> str:
    """A network as the text of a YAML file."""
    import yaml

    return yaml.safe_dump(network_document(network), sort_keys=False, allow_unicode=True, width=110)


def _stated(**values: Any) -> dict[str, Any]:
    """The values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def _duration(seconds: float | None) -> str | None:
    return None if seconds is None else format_duration(seconds)


def _schema(schema: Schema | None) -> dict[str, str] | None:
    return None if schema is None else {column.name: column.type for column in schema}


def _series(samples: tuple[float, ...] | None) -> float | list[float] | None:
    if samples is None:
        return None
    return samples[0] if len(samples) == 1 else list(samples)


def _connector(options: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if options is None:
        return None
    plain: dict[str, Any] = _plain(options)
    path = plain.get("path")
    if isinstance(path, str) and "://" not in path:
        plain["path"] = os.path.abspath(path)
    return plain


def _plain(value: Any) -> Any:
    """Dictionaries and lists in the place of what cannot be changed."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _stream(stream: Stream) -> dict[str, Any]:
    return _stated(
        schema=_schema(stream.schema),
        time=stream.time,
        lateness=_duration(stream.lateness_s or None),
        idle_after=_duration(stream.idle_after_s),
        source=_connector(stream.source),
        rate=_series(stream.rate),
        min_rate=stream.min_rate or None,
        bytes=stream.bytes,
        node=stream.node,
    )


def _output(output: Output) -> dict[str, Any]:
    return _stated(input=str(output.input), sink=_connector(output.sink), node=output.node)


def _made_of(query: Query, network: Network) -> list[Operator]:
    """The operators that a query became."""
    return [operator for operator in network.operators.values() if belongs_to(operator.name, query.name)]


def _query(query: Query, made: list[Operator]) -> str | dict[str, Any]:
    """A query's text, and what is known of its operators that the text does not tell."""
    told: dict[str, dict[str, Any]] = {}
    for operator in made:
        properties = {key: value for key, value in operator.properties.items() if key != "query"}
        common = _common(replace(operator, properties=frozen_mapping(properties)))
        if common:
            told[operator.name] = common
    return {"sql": query.sql, "operators": told} if told else query.sql


def _operator(operator: Operator) -> dict[str, Any]:
    return {
        "name": operator.name,
        "kind": operator.kind,
        **_inputs(operator),
        **_SPECS[operator.kind](operator.spec),
        **_common(operator),
    }


def _common(operator: Operator) -> dict[str, Any]:
    """What operators of all kinds may state."""
    by_route = operator.route_selectivity
    split = operator.split
    fixed_by_nature = isinstance(operator.spec, SqlRead | SqlWrite)
    return _stated(
        cost=operator.cost_s,
        selectivity=operator.selectivity if by_route is None else dict(by_route),
        varying=operator.varying or None,
        movable=None if operator.movable is not fixed_by_nature else operator.movable,
        pinned=operator.pinned,
        table=operator.table,
        reusable=None if operator.reusable else False,
        priority=operator.priority or None,
        properties=_plain(operator.properties) or None,
        bytes=operator.bytes,
        transfer_cost=operator.transfer_cost_s or None,
        split=None if split is None else _stated(into=split.into, by=list(split.by) or None),
    )


def _inputs(operator: Operator) -> dict[str, Any]:
    ports = [str(port) for port in operator.inputs]
    if isinstance(operator.spec, Join | Multijoin):
        aliases = operator.spec.aliases
        return {"inputs": ports if list(aliases) == ports else dict(zip(aliases, ports, strict=True))}
    if operator.kind == "union" or len(ports) > 1:
        return {"inputs": ports}
    return {"input": ports[0]} if ports else {}


def _filter(spec: Filter) -> dict[str, Any]:
    return _stated(where=spec.where, routes=dict(spec.routes) or None)


def _map(spec: Map) -> dict[str, Any]:
    return {"select": dict(spec.select)}


def _union(_: Any) -> dict[str, Any]:
    return {}


def _aggregate(spec: Aggregate) -> dict[str, Any]:
    window = spec.window
    if isinstance(window, TimeWindow):
        size, slide = format_duration(window.size_s), format_duration(window.slide_s)
        told: dict[str, Any] = {"size": size, "slide": slide}
    else:
        told = {"rows": window.rows, "slide": window.slide}
    return _stated(
        by=list(spec.by) or None, window=told, compute=dict(spec.compute), timeout=_duration(spec.timeout_s)
    )


def _join(spec: Join) -> dict[str, Any]:
    return _stated(within=format_duration(spec.within_s), where=spec.where)


def _multijoin(spec: Multijoin) -> dict[str, Any]:
    spread = spec.diffuse
    diffuse = None
    if spread is not None:
        weights = dict(zip(("cpu", "memory", "bandwidth"), spread.weights, strict=True))
        diffuse = _stated(
            method=spread.method,
            instances=spread.instances,
            segment=_duration(spread.segment_s),
            weights=None if spread.weights == Diffuse().weights else weights,
        )
    windows = {alias: format_duration(size) for alias, size in spec.windows_s.items()}
    pairs = [{"inputs": list(pair.inputs), "function": pair.function} for pair in spec.pairs]
    return _stated(
        windows=windows,
        where=spec.where,
        pairs=pairs or None,
        shed=None if spec.shed_rows is None else {"rows": spec.shed_rows},
        diffuse=diffuse,
    )


def _sql(spec: SqlRead | SqlWrite) -> dict[str, Any]:
    options = _plain(spec.options)
    named = {key: options.pop(key) for key in _SQL_KEYS if key in options}
    schema = spec.schema if isinstance(spec, SqlRead) else None
    return {**named, **_stated(options=options or None, schema=_schema(schema))}


def _custom(spec: Custom) -> dict[str, Any]:
    return {"function": spec.function, "schema": _schema(spec.schema)}


def _model(spec: Model) -> dict[str, Any]:
    return _stated(load=None if spec.load is None else dict(spec.load), series=_series(spec.series))


_SPECS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "filter": _filter,
    "map": _map,
    "union": _union,
    "aggregate": _aggregate,
    "join": _join,
    "multijoin": _multijoin,
    "sql_read": _sql,
    "sql_write": _sql,
    "custom": _custom,
    "model": _model,
}
