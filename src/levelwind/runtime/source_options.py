"""Options of a source, read once: as a file gives them, or as the text that Spark passes on."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from levelwind.errors import InputError, Problem, did_you_mean
from levelwind.frontend.units import parse_duration
from levelwind.model import Schema

US_PER_S = 1_000_000
# Present in a network file's source, but said to Spark in another way.
SAID_ELSEWHERE = frozenset({"format"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIMPLE = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}
_OUTER = re.compile(r"(array|map|struct)<(.+)>")


def as_text(options: Mapping[str, object]) -> dict[str, str]:
    """Options in the form a Spark reader takes: all of them text, lists and mappings as JSON.

    Examples
    --------
    >>> as_text({"rate": 10, "columns": {"src": {"kind": "zipf"}}})
    {'rate': '10', 'columns': '{"src": {"kind": "zipf"}}'}
    """
    return {name: _text(value) for name, value in options.items() if value is not None}


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, date):
        return value.isoformat()
    return json.dumps(_plain(value))


def _plain(value: object) -> object:
    """Read-only mappings and tuples as the dicts and lists that JSON knows."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.isoformat() if isinstance(value, date) else value


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow types by which Spark takes in the rows of a stream."""
    return pa.schema([(column.name, arrow_type(column.type)) for column in schema])


def arrow_type(text: str) -> pa.DataType:
    """The Arrow type of a Spark SQL type in its one spelling (see `frontend.columntypes.normal_type`)."""
    if text in _SIMPLE:
        return _SIMPLE[text]
    if text.startswith("decimal("):
        precision, _, scale = text[len("decimal(") : -1].partition(",")
        return pa.decimal128(int(precision), int(scale or 0))
    match = _OUTER.fullmatch(text)
    if match is None:
        message = f"not a Spark SQL type: {text}"
        raise ValueError(message)
    parts = _parts(match[2])
    if match[1] == "array":
        return pa.list_(pa.field("element", arrow_type(parts[0])))
    if match[1] == "map":
        return pa.map_(arrow_type(parts[0]), arrow_type(parts[1]))
    fields = [part.partition(":") for part in parts]
    return pa.struct([(name, arrow_type(kind)) for name, _, kind in fields])


def _parts(text: str) -> list[str]:
    """The parts between commas that are not inside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def microseconds(moment: datetime) -> int:
    """Microseconds since the epoch; a time without a zone is in UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * US_PER_S + since.microseconds


class OptionReader:
    """Takes options one by one and collects what is wrong with them, so that all is said at once.

    ``at`` is the path of the options inside the file, for the problems' keys.
    """

    def __init__(self, options: Mapping[str, Any], at: str = "source") -> None:
        self.problems: list[Problem] = []
        self._options = options
        self._at = at

    def __contains__(self, name: str) -> bool:
        return self._options.get(name) is not None

    def refuse(self, name: str, rule: str, value: object = None, hint: str | None = None) -> None:
        """Note a problem with an option."""
        key = f"{self._at}.{name}" if self._at else name
        shown = None if value is None else str(value)
        self.problems.append(Problem(rule=rule, key=key, value=shown, hint=hint))

    def only(self, known: Collection[str], what: str) -> None:
        """Refuse every option that is not among the known ones."""
        for name in self._options:
            if name not in known and name not in SAID_ELSEWHERE:
                self.refuse(name, f"is not an option of {what}", hint=did_you_mean(name, known))

    def raw(self, name: str) -> Any:
        """The option as it came."""
        return self._options.get(name)

    def text(self, name: str, default: str | None = None) -> str | None:
        """The option as text; required if there is no default."""
        value = self._options.get(name)
        if value is None:
            if default is None:
                self.refuse(name, "is missing")
            return default
        return str(value).strip()

    def choice(self, name: str, known: Collection[str], default: str | None = None) -> str | None:
        """One of a few words; required if there is no default."""
        value = self.text(name, default)
        if value is not None and value not in known:
            self.refuse(name, f"must be one of {', '.join(known)}", value, did_you_mean(value, known))
            return default
        return value

    def number(
        self, name: str, default: float | None = None, *, least: float = 0.0, above: bool = False
    ) -> float:
        """A finite number not below ``least`` (above it, if asked); required if there is no default."""
        value = self._options.get(name)
        if value is None:
            if default is None:
                self.refuse(name, "is missing: a number")
            return least if default is None else default
        try:
            found = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            found = math.nan
        if not math.isfinite(found) or found < least or (above and found == least):
            bound = "" if least == -math.inf else f" {'above' if above else 'of at least'} {least:g}"
            self.refuse(name, f"must be a number{bound}", value)
            return least if default is None else default
        return found

    def numbers(self, name: str) -> tuple[float, ...]:
        """One number or more, none below 0, as a list or its JSON text."""
        value = self._options.get(name)
        try:
            listed = json.loads(value) if isinstance(value, str) else list(value or ())
            found = tuple(float(item) for item in listed)
        except (TypeError, ValueError):
            found = ()
        if not found or not all(math.isfinite(item) and item >= 0 for item in found):
            self.refuse(name, "must be a list of numbers of at least 0", value)
            return (0.0,)
        return found

    def integer(self, name: str, default: int, *, least: int = 1) -> int:
        """A whole number of at least ``least``."""
        value = self._options.get(name)
        if value is None:
            return default
        try:
            found = float("nan") if isinstance(value, bool) else float(value)
            whole = int(value) if isinstance(value, int | str) else int(found)
        except (TypeError, ValueError, OverflowError):
            whole, found = least - 1, math.nan
        if whole != found or whole < least:
            self.refuse(name, f"must be a whole number of at least {least}", value)
            return default
        return whole

    def duration_us(self, name: str, default: int | None = None, *, least_us: int = 1) -> int:
        """A duration in microseconds; required if there is no default."""
        value = self._options.get(name)
        if value is None:
            if default is None:
                self.refuse(name, "is missing: a duration, such as 500ms, 2s, 10m, 1h")
            return least_us if default is None else default
        try:
            found = round(parse_duration(value) * US_PER_S)
        except ValueError as error:
            self.refuse(name, str(error), value)
        else:
            if found >= least_us:
                return found
            self.refuse(name, f"must be at least {least_us / 1000:g}ms", value)
        return least_us if default is None else default

    def moment_us(self, name: str, default: int | None = None) -> int | None:
        """A timestamp in microseconds since the epoch."""
        value = self._options.get(name)
        if value is None:
            return default
        try:
            return microseconds(datetime.fromisoformat(_text(value).strip()))
        except (ValueError, OverflowError):
            self.refuse(name, "must be a timestamp, such as 2026-01-01T00:00:00Z", value)
            return default

    def speed(self) -> float | None:
        """How many seconds of event time pass in one second; None is as fast as it can."""
        if str(self._options.get("speed")).strip() == "max":
            return None
        before = len(self.problems)
        found = self.number("speed", 1.0, above=True)
        if len(self.problems) > before:
            del self.problems[before:]
            self.refuse("speed", "must be a number above 0, or max", self._options["speed"])
        return found

    def mapping(self, name: str) -> dict[str, Any]:
        """A mapping, or its JSON text; empty if there is none."""
        value = self._options.get(name)
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                self.refuse(name, "must be a mapping (as JSON, where options are text)", value)
                return {}
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.refuse(name, "must be a mapping", value)
            return {}
        return {str(key): inner for key, inner in value.items()}

    def time_column(self, schema: Schema, time: str | None) -> str:
        """The event-time column: the stream's, which reaches Spark as the option ``time``."""
        name = str(time or self._options.get("time") or "")
        types = {column.name: column.type for column in schema}
        if not name:
            self.refuse("time", "is missing: the stream must say which column is its event time")
        elif name not in types:
            self.refuse("time", "the time column must be in the schema", name, did_you_mean(name, types))
        elif types[name] != "timestamp":
            self.refuse("time", "the time column must be of type timestamp", f"{name}: {types[name]}")
        return name

    def done(self) -> None:
        """Raise everything that was found wrong.

        Raises
        ------
        InputError
            If anything was.
        """
        if self.problems:
            raise InputError(self.problems)
