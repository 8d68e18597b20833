"""Planners by name: the built-in ones, and those that other packages bring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from levelwind.errors import InputError, Problem, did_you_mean
from levelwind.placement.protocol import Planner

# Named by module, and imported when asked for: a planner that compiles its loops must not slow the others.
BUILT_IN = {
    "rod": "levelwind.placement.rod:RodPlanner",
    "resilient": "levelwind.placement.resilient:ResilientPlanner",
    "optimal": "levelwind.placement.optimal:OptimalPlanner",
    "llf": "levelwind.placement.llf:LargestLoadFirstPlanner",
    "max_rate": "levelwind.placement.llf:MaxRatePlanner",
    "connected": "levelwind.placement.connected:ConnectedPlanner",
    "correlation": "levelwind.placement.correlation:CorrelationPlanner",
    "random": "levelwind.placement.random:RandomPlanner",
}
ENTRY_POINTS = "levelwind.planners"


def planner_names() -> tuple[str, ...]:
    """Names of all planners, the built-in ones first."""
    others = sorted(point.name for point in entry_points(group=ENTRY_POINTS) if point.name not in BUILT_IN)
    return (*BUILT_IN, *others)


def planner_class(name: str) -> type[Any]:
    """The class of a planner; an unknown name is an input error that names the nearest."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        found: type[Any] = getattr(import_module(module), attribute)
        return found
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == name:
            loaded: type[Any] = point.load()
            return loaded
    raise InputError(
        [
            Problem(
                rule="must name a planner",
                key="planner",
                value=name,
                hint=did_you_mean(name, planner_names()),
            )
        ]
    )


def make_planner(name: str, options: Mapping[str, Any] | None = None) -> Planner:
    """A planner with options, given as values or as the text of ``--set key=value``."""
    kind = planner_class(name)
    known = {f.name: f for f in fields(kind)}
    values, problems = {}, []
    for key, value in (options or {}).items():
        place = f"{name}.{key}"
        if key not in known:
            hint = did_you_mean(key, known)
            problems.append(
                Problem(rule="must name an option of the planner", key=place, value=str(value), hint=hint)
            )
            continue
        try:
            values[key] = _convert(known[key], value)
        except ValueError as error:
            problems.append(Problem(rule=str(error), key=place, value=str(value)))
    if problems:
        raise InputError(problems)
    planner: Planner = kind(**values)
    return planner


def _convert(described: Field[Any], value: Any) -> Any:
    """The option's value in the type of its default, or a ValueError that states the rule."""
    choices, least = described.metadata.get("choices", ()), described.metadata.get("least")
    wanted: type[Any] = bool if described.default is None else type(described.default)
    if wanted is bool and isinstance(value, str):
        if value.lower() not in ("true", "false"):
            message = "must be true or false"
            raise ValueError(message)
        return value.lower() == "true"
    try:
        converted = wanted(value)
    except (TypeError, ValueError):
        message = f"must be a {'whole number' if wanted is int else 'number'}"
        raise ValueError(message) from None
    if choices and converted not in choices:
        message = "must be one of " + ", ".join(choices)
        raise ValueError(message)
    if least is not None and not converted >= least:
        message = f"must be at least {least:g}"
        raise ValueError(message)
    return converted
