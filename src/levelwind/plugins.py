"""What can be chosen by name: the built-in ones, and those that other packages bring.

A plug-in is a frozen dataclass; its fields are its options, made by `option`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from levelwind.errors import InputError, Problem, did_you_mean


def option(default: Any, text: str, *, choices: Sequence[str] = (), least: float | None = None) -> Any:
    """An option of a plug-in: its default, what it does, and what values it takes."""
    return field(default=default, metadata={"text": text, "choices": tuple(choices), "least": least})


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """Plug-ins of one kind.

    Parameters
    ----------
    kind
        What one of them is called, in messages: planner, policy.
    built_in
        ``module:class`` by name. Imported when asked for: one that compiles its loops must not slow others.
    entry_points
        The group under which other packages make theirs known.
    """

    kind: str
    built_in: Mapping[str, str]
    entry_points: str

    def names(self) -> tuple[str, ...]:
        """All names, the built-in ones first."""
        found = (point.name for point in entry_points(group=self.entry_points))
        return (*self.built_in, *sorted(name for name in found if name not in self.built_in))

    def find(self, name: str) -> type[Any]:
        """The class of that name; an unknown name is an input error that names the nearest."""
        if name in self.built_in:
            module, _, attribute = self.built_in[name].partition(":")
            found: type[Any] = getattr(import_module(module), attribute)
            return found
        for point in entry_points(group=self.entry_points):
            if point.name == name:
                loaded: type[Any] = point.load()
                return loaded
        hint = did_you_mean(name, self.names())
        raise InputError([Problem(rule=f"must name a {self.kind}", key=self.kind, value=name, hint=hint)])

    def make(self, name: str, options: Mapping[str, Any] | None = None) -> Any:
        """One with options, given as values or as the text of ``--set key=value``."""
        found = self.find(name)
        known = {f.name: f for f in fields(found)}
        values, problems = {}, []
        for key, value in (options or {}).items():
            place = f"{name}.{key}"
            if key not in known:
                rule, hint = f"must name an option of the {self.kind}", did_you_mean(key, known)
                problems.append(Problem(rule=rule, key=place, value=str(value), hint=hint))
                continue
            try:
                values[key] = _convert(known[key], value)
            except ValueError as error:
                problems.append(Problem(rule=str(error), key=place, value=str(value)))
        if problems:
            raise InputError(problems)
        return found(**values)


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
