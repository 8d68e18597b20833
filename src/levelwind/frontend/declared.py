"""Kinds of values that a file may hold: each can read one and describe itself in JSON Schema.

A file format is written down once, as `Record` objects of these kinds (`network_keys`, `cluster_keys`);
the checker and the schema for editors both come from that one declaration, so they cannot drift apart.
``read`` returns the value in the form the model wants, or notes the problem and returns `BAD`.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from levelwind.errors import nearest
from levelwind.frontend import units
from levelwind.frontend.document import KeyPath
from levelwind.frontend.report import Report, show

JsonSchema = dict[str, Any]
NAME_PATTERN = r"^[^.\[\]\s](?:[^.\[\]]*[^.\[\]\s])?$"
NAME_RULE = "a name must be text without '.', '[' or ']'"
_NAME = re.compile(NAME_PATTERN)


class Kind(Protocol):
    """What a declared key may hold."""

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The checked value, or `BAD` after noting what is wrong."""
        ...

    def schema(self) -> JsonSchema:
        """The same rule in JSON Schema."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """Any text that is not empty."""

    what: str = "text"

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The text."""
        if isinstance(value, str) and value.strip():
            return value
        hint = "put it in quotes" if isinstance(value, int | float) else None
        return report.refuse(path, f"must be {self.what}", value, hint)

    def schema(self) -> JsonSchema:
        """A string of at least one character."""
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class Name:
    """A name that others may refer to: dots and brackets are kept for routes and instances."""

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The name."""
        if isinstance(value, str) and _NAME.match(value):
            return value
        hint = "put it in quotes" if isinstance(value, int | float) else None
        return report.refuse(path, NAME_RULE, value, hint)

    def schema(self) -> JsonSchema:
        """A string without the reserved characters."""
        return {"type": "string", "pattern": NAME_PATTERN}


@dataclass(frozen=True, slots=True)
class Flag:
    """``true`` or ``false``."""

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The flag."""
        return value if isinstance(value, bool) else report.refuse(path, "must be true or false", value)

    def schema(self) -> JsonSchema:
        """A boolean."""
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number, by default not negative."""

    least: float | None = 0.0
    above: float | None = None

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The number as a float."""
        if type(value) is float:  # the common case first: files hold thousands of these
            number = value
        elif isinstance(value, numbers.Real) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
        else:
            return report.refuse(path, f"must be {self._rule()}", value)
        if not math.isfinite(number):
            return report.refuse(path, f"must be {self._rule()}, and finite", value)
        if (self.least is not None and number < self.least) or (
            self.above is not None and number <= self.above
        ):
            return report.refuse(path, f"must be {self._rule()}", value)
        return number

    def schema(self) -> JsonSchema:
        """A number with its bound."""
        if self.above is not None:
            return {"type": "number", "exclusiveMinimum": self.above}
        return {"type": "number"} if self.least is None else {"type": "number", "minimum": self.least}

    def _rule(self) -> str:
        if self.above is not None:
            return f"a number above {self.above:g}"
        return "a number" if self.least is None else f"a number of at least {self.least:g}"


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number of at least ``least``."""

    least: int = 1

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The integer."""
        if isinstance(value, int) and not isinstance(value, bool) and self.least <= value < 2**63:
            return value
        return report.refuse(path, f"must be a whole number of at least {self.least}", value)

    def schema(self) -> JsonSchema:
        """An integer with its bound."""
        return {"type": "integer", "minimum": self.least}


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    options: tuple[str, ...]

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The word."""
        if isinstance(value, str) and value in self.options:
            return value
        near = nearest(value, self.options) if isinstance(value, str) else None
        hint = f"did you mean {near!r}?" if near else None
        return report.refuse(path, f"must be one of {', '.join(self.options)}", value, hint)

    def schema(self) -> JsonSchema:
        """An enumeration."""
        return {"enum": list(self.options)}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with a unit, read by one of the functions in `units`."""

    parse: Callable[[object], float]
    pattern: str
    positive: bool = False
    bare_number: bool = False

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The amount in base units (seconds, bytes, bytes per second)."""
        if self.bare_number and not isinstance(value, str):
            return Number(above=0.0 if self.positive else None).read(value, path, report)
        try:
            amount = self.parse(value)
        except ValueError as error:
            hint = None
            if "needs a unit" in str(error):
                hint = f"write the unit, for example {show(value)}{'Mbps' if 'bps' in self.pattern else 's'}"
            return report.refuse(path, str(error), value, hint)
        if self.positive and amount <= 0:
            return report.refuse(path, "must be more than 0", value)
        return amount

    def schema(self) -> JsonSchema:
        """A string with a pattern, and a number if that will do."""
        text: JsonSchema = {"type": "string", "pattern": self.pattern}
        if not self.bare_number:
            return text
        return {"anyOf": [Number(above=0.0 if self.positive else None).schema(), text]}


DURATION = Quantity(units.parse_duration, units.DURATION_PATTERN)
POSITIVE_DURATION = Quantity(units.parse_duration, units.DURATION_PATTERN, positive=True)
CPU_SECONDS = Quantity(units.parse_duration, units.DURATION_PATTERN, bare_number=True)
BYTES = Quantity(units.parse_bytes, units.BYTES_PATTERN, bare_number=True)
POSITIVE_BYTES = Quantity(units.parse_bytes, units.BYTES_PATTERN, positive=True, bare_number=True)
BANDWIDTH = Quantity(units.parse_bandwidth, units.BANDWIDTH_PATTERN, positive=True)


@dataclass(frozen=True, slots=True)
class Expression:
    """A piece of Spark SQL; a number or a truth value stands for itself."""

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The text of the expression."""
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float) and abs(value) < 1e30:  # not NaN, nor a number with 400 digits
            return repr(value)
        return report.refuse(path, "must be a Spark SQL expression", value)

    def schema(self) -> JsonSchema:
        """A string, boolean or number."""
        return {"type": ["string", "boolean", "number"]}


@dataclass(frozen=True, slots=True)
class Anything:
    """Left as it is: options that belong to somebody else."""

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The value."""
        return value

    def schema(self) -> JsonSchema:
        """No constraint."""
        return {}


@dataclass(frozen=True, slots=True)
class ByType:
    """Different kinds for different types of values: ``rate`` may be a number, a list, a path, a mapping."""

    what: str
    kinds: Mapping[type, Kind]

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """What the kind for this type of value makes of it."""
        kind = self.kinds.get(type(value))
        if kind is None and isinstance(value, numbers.Real) and not isinstance(value, bool):
            kind = self.kinds.get(float)
        if kind is None:
            return report.refuse(path, f"must be {self.what}", value)
        return kind.read(value, path, report)

    def schema(self) -> JsonSchema:
        """Any of the kinds' schemas."""
        return {"anyOf": [kind.schema() for kind in self.kinds.values()]}
