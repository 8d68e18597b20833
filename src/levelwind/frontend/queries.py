"""Queries written in SQL, from their text in the file to operators beside the written ones."""

from __future__ import annotations

from typing import Any

from levelwind.frontend.draft import QUERY, Draft, Sketch, Values, value_of
from levelwind.frontend.expressions import clip
from levelwind.frontend.output_rows import check_split
from levelwind.frontend.sql import parse_query, tables_read, translate
from levelwind.model import Aggregate, Port, Query


def claim_queries(values: Any, sketch: Sketch) -> None:
    """Gives each query a draft under its name, which stands for its operators until they are made."""
    for name, written in (values or {}).items():
        told: Values = {"sql": written} if isinstance(written, str) else written or {}
        sql: str | None = value_of(told, "sql")
        draft = Draft(name, None if sql is None else QUERY, ("queries", name), told)
        sketch.all_drafts.append(draft)
        if name in sketch.streams or name in sketch.operators:
            rule = "a query must not have the name of a stream or operator"
            sketch.report.add(draft.path, rule, name)
        else:
            sketch.operators[name] = draft
        if sql is not None:
            sketch.queries[name] = Query(name=name, sql=sql)
            _parse(draft, sketch)


def _parse(draft: Draft, sketch: Sketch) -> None:
    sql = draft.values["sql"]
    tree, faults = parse_query(sql)
    for fault in faults:
        sketch.report.add(draft.path, fault.rule, fault.value, fault.hint)
    if tree is None:
        return
    try:
        names = tables_read(tree)
    except ValueError as error:
        rule = "must be a SELECT that can be understood"
        sketch.report.add(draft.path, rule, clip(sql), str(error))
        return
    draft.tree = tree
    # Whether they exist is found out when the query is translated; the order needs only the names.
    sources = [name if name in sketch.streams else name.partition(".")[0] for name in names]
    draft.inputs = tuple([Port(source=source) for source in dict.fromkeys(sources)])


def build_query(draft: Draft, sketch: Sketch) -> None:
    """Puts a query's operators in the place of what stood for it; what it reads must be known by now."""
    if draft.tree is None:
        return
    try:
        made = translate(draft, draft.tree, sketch)
    except RecursionError:
        sketch.report.add(draft.path, "must not nest this deep", clip(draft.values["sql"]))
        return
    if sketch.report.count == 0 and any(not port.source for each in made for port in each.inputs):
        rule = "must be a SELECT that can be understood"
        sketch.report.add(draft.path, rule, clip(draft.values["sql"]))
    _state(draft, made, sketch)
    sketch.all_drafts += made
    if sketch.operators.get(draft.name) is draft:
        sketch.operators[draft.name] = made[-1]
        sketch.made[draft.name] = made


def _state(query: Draft, made: list[Draft], sketch: Sketch) -> None:
    """Gives the operators what the file states for them, and the name of their query as a property."""
    stated: dict[str, Values] = query.get("operators") or {}
    common = {} if query.get("priority") is None else {"priority": query.get("priority")}
    names = {draft.name for draft in made}
    for name in stated:
        if name not in names:
            hint = sketch.report.suggest(name, names)
            path = (*query.path, "operators", name)
            sketch.report.add(path, "must be the name of an operator of the query", name, hint)
    rows = {draft.name: draft.rows for draft in made}
    for draft in made:
        own = {**common, **(stated.get(draft.name) or {})}
        properties = {**(own.get("properties") or {}), "query": query.name}
        draft.values = {**own, "properties": properties}
        if own.get("split"):
            draft.path = (*query.path, "operators", draft.name)
            if isinstance(draft.spec, Aggregate) and draft.spec.by:
                draft.values["by"] = draft.spec.by
            reads = [rows.get(port.source, sketch.rows_of(port)) for port in draft.inputs]
            check_split(draft, reads, sketch.report)
