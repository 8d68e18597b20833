"""Kinds that hold other kinds: lists, mappings of names, and records of declared keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from levelwind.frontend.declared import NAME_PATTERN, NAME_RULE, JsonSchema, Kind, Name
from levelwind.frontend.document import KeyPath
from levelwind.frontend.report import BAD, Report


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of one kind; bad items are left out after they have been noted."""

    item: Kind
    least: int = 0

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The items as a tuple."""
        if not isinstance(value, list):
            return report.refuse(path, "must be a list", value)
        if len(value) < self.least:
            return report.refuse(path, f"must be a list of at least {self.least}", value)
        before = report.count
        read = self.item.read
        items = tuple([read(item, (*path, i), report) for i, item in enumerate(value)])
        return items if report.count == before else BAD

    def schema(self) -> JsonSchema:
        """An array."""
        schema: JsonSchema = {"type": "array", "items": self.item.schema()}
        return {**schema, "minItems": self.least} if self.least else schema


@dataclass(frozen=True, slots=True)
class OneOrMore:
    """One value, or a list of them."""

    item: Kind

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The items as a tuple."""
        if isinstance(value, list):
            return ListOf(self.item, least=1).read(value, path, report)
        item = self.item.read(value, path, report)
        return BAD if item is BAD else (item,)

    def schema(self) -> JsonSchema:
        """An item or an array."""
        return {"anyOf": [self.item.schema(), ListOf(self.item, least=1).schema()]}


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping whose keys the user chooses: streams, routes, columns.

    With ``keep_bad``, entries stay in although their value was refused, so that what refers to them
    does not look wrong as well.
    """

    item: Kind
    least: int = 0
    keep_bad: bool = False
    names: bool = True

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The entries in the written order."""
        if not isinstance(value, dict):
            return report.refuse(path, "must be a mapping", value)
        if len(value) < self.least:
            return report.refuse(path, f"must have at least {self.least} entry", value)
        before = report.count
        name = Name()
        entries: dict[str, Any] = {}
        for key, item in value.items():
            where = (*path, key)
            if self.names and name.read(key, where, report) is BAD:
                continue
            entries[key] = self.item.read(item, where, report)
        return entries if self.keep_bad or report.count == before else BAD

    def schema(self) -> JsonSchema:
        """An object whose values have one schema."""
        schema: JsonSchema = {"type": "object", "additionalProperties": self.item.schema()}
        if self.names:
            schema["propertyNames"] = {"pattern": NAME_PATTERN, "description": NAME_RULE}
        return {**schema, "minProperties": self.least} if self.least else schema


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a record: what it holds and one line on what it means."""

    kind: Kind
    about: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping with declared keys.

    Parameters
    ----------
    what
        Words for messages, such as ``a stream``.
    keys
        The keys it knows. All others are problems, unless it is ``open``.
    one_of
        Groups of keys of which exactly one must be there.
    open
        Whether further keys are let through, as options for somebody else.
    may_be_empty
        Whether nothing at all stands for an empty mapping.
    elsewhere
        Keys that similar records know, with the words to say where.
    """

    what: str
    keys: Mapping[str, Key]
    one_of: tuple[tuple[str, ...], ...] = ()
    open: bool = False
    may_be_empty: bool = False
    elsewhere: Mapping[str, str] | None = None

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The values of the keys that are there; those refused are `BAD`."""
        if value is None and self.may_be_empty:
            value = {}
        if not isinstance(value, dict):
            return report.refuse(path, f"{self.what} must be a mapping", value)
        values: dict[str, Any] = {}
        keys = self.keys
        for name, item in value.items():
            key = keys.get(name)
            if key is not None:
                values[name] = key.kind.read(item, (*path, name), report)
            elif self.open:
                values[name] = item
            else:
                self._unknown(name, path, report)
        for name, key in keys.items():
            if key.required and name not in values:
                report.add((*path, name), f"{self.what} must have {name!r}", hint=key.about)
        for group in self.one_of:
            present = [name for name in group if name in values]
            if len(present) != 1:
                rule = f"{self.what} must have exactly one of {', '.join(group)}"
                report.add((*path, present[-1]) if present else path, rule, ", ".join(present) or None)
        return values

    def _unknown(self, name: str, path: KeyPath, report: Report) -> None:
        belongs = (self.elsewhere or {}).get(name)
        hint = f"{name!r} belongs to {belongs}" if belongs else report.suggest(name, self.keys)
        report.add((*path, name), f"{self.what} has no such key", name, hint)

    def schema(self) -> JsonSchema:
        """An object with its properties."""
        schema: JsonSchema = {
            "type": ["object", "null"] if self.may_be_empty else "object",
            "properties": {
                name: {"description": key.about, **key.kind.schema()} for name, key in self.keys.items()
            },
        }
        required = [name for name, key in self.keys.items() if key.required]
        if required:
            schema["required"] = required
        if not self.open:
            schema["additionalProperties"] = False
        groups = [{"oneOf": [{"required": [name]} for name in group]} for group in self.one_of]
        if groups:
            schema["allOf"] = groups
        return schema
