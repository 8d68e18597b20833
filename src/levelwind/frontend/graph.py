"""Who reads whom: names that exist, routes, circles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from levelwind.frontend.document import KeyPath
from levelwind.frontend.draft import QUERY, Draft, Sketch
from levelwind.frontend.report import Said
from levelwind.model import Operator, Port
from levelwind.model.network import topological_order

_MOST_CIRCLES = 10


def claim_names(sketch: Sketch) -> None:
    """Gives each operator its name; a name that is taken is a problem, and its first owner keeps it."""
    for draft in sketch.all_drafts:
        path = (*draft.path, "name")
        if not draft.name:
            continue
        if draft.name in sketch.operators:
            first = sketch.operators[draft.name].path[1]
            hint = f"operators[{first}] has it already"
            sketch.report.add(path, "operator names must be unique", draft.name, hint)
        elif draft.name in sketch.streams:
            sketch.report.add(path, "an operator must not have the name of a stream", draft.name)
        else:
            sketch.operators[draft.name] = draft


def connect(sketch: Sketch) -> list[Draft]:
    """Resolves what operators read; returns them and the queries, every reader after what it reads.

    Operators in a circle, or without a name of their own, come last; their inputs' rows stay unknown.
    """
    for draft in sketch.all_drafts:
        if draft.kind == QUERY:
            continue
        draft.inputs = tuple(
            [port for text, path in _written(draft) if (port := find_port(text, path, sketch))]
        )
        for stream in draft.get("load") or ():
            _check_load(stream, (*draft.path, "load", stream), sketch)
    return _ordered(sketch)


def _written(draft: Draft) -> Iterator[tuple[str, KeyPath]]:
    """The inputs as written, each with its place."""
    single = draft.get("input")
    if single is not None:
        yield single, (*draft.path, "input")
    several = draft.get("inputs")
    if isinstance(several, Mapping):
        for alias, text in several.items():
            yield text, (*draft.path, "inputs", alias)
    elif several:
        for index, text in enumerate(several):
            yield text, (*draft.path, "inputs", index)


def find_port(text: str, path: KeyPath, sketch: Sketch) -> Port | None:
    """The stream, operator, query or route that a name stands for; notes what is wrong if there is none."""
    if text in sketch.streams:
        sketch.read_streams.add(text)
        return Port(source=text)
    source, dot, route = text.partition(".")
    draft = sketch.operators.get(source)
    if draft is not None:
        sketch.read_operators.add(source)
        return _route(draft, route if dot else None, path, sketch)
    if source in sketch.streams:
        sketch.report.add(path, "a stream has no routes", text, f"read {source!r}")
        return None
    known = [*sketch.streams, *sketch.operators]
    rule = "must be the name of a stream or operator"
    sketch.report.add(path, rule, text, sketch.report.suggest(source, known))
    return None


def _route(draft: Draft, route: str | None, path: KeyPath, sketch: Sketch) -> Port | None:
    if route is None and not draft.routes:
        return Port(source=draft.name)
    if route in draft.routes:
        return Port(source=draft.name, route=route)
    if draft.kind is None or ("routes" in draft.values and not draft.routes):
        return None  # the operator is broken: its routes are not known
    if not draft.routes:
        sketch.report.add(
            path, f"{draft.name!r} has no routes", f"{draft.name}.{route}", f"read {draft.name!r}"
        )
    elif route is None:
        ways = " or ".join(f"{draft.name}.{name}" for name in draft.routes[:4])
        sketch.report.add(path, "a filter with routes must be read by route", draft.name, f"read {ways}")
    else:
        hint = sketch.report.suggest(route, draft.routes)
        sketch.report.add(path, "a route must exist", f"{draft.name}.{route}", hint)
    return None


def _check_load(stream: str, path: KeyPath, sketch: Sketch) -> None:
    if stream in sketch.streams:
        sketch.read_streams.add(stream)
    else:
        hint = sketch.report.suggest(stream, sketch.streams)
        sketch.report.add(path, "load must be stated for streams that exist", stream, hint)


def _ordered(sketch: Sketch) -> list[Draft]:
    left = dict(sketch.operators)
    for _ in range(_MOST_CIRCLES):
        # The order needs nothing of an operator but its inputs, which drafts have too.
        order, circle = topological_order(cast("Mapping[str, Operator]", left))
        if not circle:
            break
        first = left[circle[0]]
        key = ("input" if "input" in first.values else "inputs",) if first.kind != QUERY else ()
        path = (*first.path, *key)
        sketch.report.add(path, "operators must not feed each other in a circle", Said(" → ".join(circle)))
        for name in circle[1:]:
            left.pop(name, None)
    placed = [left[name] for name in order]
    done = {id(draft) for draft in placed}
    return placed + [draft for draft in sketch.all_drafts if id(draft) not in done]
