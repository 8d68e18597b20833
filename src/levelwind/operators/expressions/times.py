"""Functions of dates and timestamps, all in UTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import polars as pl

from levelwind.frontend.expressions import spark
from levelwind.operators.expressions.arguments import argument, constant_of
from levelwind.operators.expressions.builder import Builder, Rule, null
from levelwind.operators.expressions.casts import cast
from levelwind.operators.expressions.parts import Part, refuse, strict
from levelwind.operators.expressions.timeformats import formatted_timestamp

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_SECOND_US = 1_000_000
_EVEN_US = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": _SECOND_US,
    "MINUTE": 60 * _SECOND_US,
    "HOUR": 3600 * _SECOND_US,
    "DAY": 86_400 * _SECOND_US,
    "DD": 86_400 * _SECOND_US,
}
_CALENDAR = {
    "WEEK": "1w",
    "MONTH": "1mo",
    "MON": "1mo",
    "MM": "1mo",
    "QUARTER": "1q",
    "YEAR": "1y",
    "YYYY": "1y",
    "YY": "1y",
}
_TIMESTAMP = pl.Datetime("us", "UTC")


def _of_date(name: str, compute: Callable[[pl.Expr], pl.Expr]) -> Rule:
    def rule(node: Expr, build: Builder) -> Part:
        part = argument(build.part(node.this), "date", name)
        return strict([part], compute(part.value).cast(pl.Int32), "int")

    return rule


def _of_time(name: str, compute: Callable[[pl.Expr], pl.Expr]) -> Rule:
    """Of the time of day, by whole seconds since midnight."""

    def rule(node: Expr, build: Builder) -> Part:
        part = build.part(node.this)
        if part.type != "timestamp_ntz":
            part = argument(part, "timestamp", name)
        seconds = part.value.to_physical() // _SECOND_US % 86_400
        return strict([part], compute(seconds).cast(pl.Int32), "int")

    return rule


def _to_date(node: Expr, build: Builder) -> Part:
    """What the parser puts around the argument of ``year`` and its like."""
    return argument(build.part(node.this), "date", "a function of dates")


def _truncated(node: Expr, build: Builder) -> Part:
    unit = node.args["unit"].name.upper()
    part = argument(build.part(node.this), "timestamp", "date_trunc")
    if unit in _EVEN_US:
        step = _EVEN_US[unit]
        value = ((part.value.to_physical() // step) * step).cast(_TIMESTAMP)
    elif unit in _CALENDAR:
        naive = part.value.to_physical().cast(pl.Datetime("us"))
        value = naive.dt.truncate(_CALENDAR[unit]).to_physical().cast(_TIMESTAMP)
    else:
        units = ", ".join([*_EVEN_US, *_CALENDAR]).lower()
        refuse("date_trunc must have a unit that is known", unit.lower(), f"one of {units}")
    return strict([part], value, "timestamp")


def _parsed(part: Part, node: Expr, build: Builder, name: str) -> Part:
    """A string read by a format; other times are taken as they are."""
    if part.type in ("date", "timestamp", "timestamp_ntz"):
        return cast(part, "timestamp")
    part = argument(part, "string", name)
    given = constant_of(build.part(node.args["format"]), name, "the format")
    if given is None:
        return null("timestamp")
    value = formatted_timestamp(part.value, _java_format(str(given))).cast(_TIMESTAMP)
    reason = pl.format("cannot read '{}' as a timestamp", part.value)
    return strict([part], value, "timestamp", reason)


def _java_format(text: str) -> str:
    """The format as it was written: the parser has turned Java's letters into C's."""
    from sqlglot.time import format_time

    dialect = spark()
    return format_time(text, dialect.INVERSE_TIME_MAPPING, dialect.INVERSE_TIME_TRIE) or ""


def _to_timestamp(node: Expr, build: Builder) -> Part:
    return _parsed(build.part(node.this), node, build, "to_timestamp")


def _unix_timestamp(node: Expr, build: Builder) -> Part:
    """Whole seconds since the epoch, cut toward it."""
    if type(node.this).__name__ == "CurrentTimestamp":
        refuse("unix_timestamp must have an argument")
    part = build.settled(_parsed(build.part(node.this), node, build, "unix_timestamp"))
    micros = part.value.to_physical()
    value = (micros.abs() // _SECOND_US) * micros.sign()
    return strict([part], value, "bigint")


RULES: Mapping[str, Rule] = {
    "TsOrDsToDate": _to_date,
    "Year": _of_date("year", lambda value: value.dt.year()),
    "Month": _of_date("month", lambda value: value.dt.month()),
    "Day": _of_date("day", lambda value: value.dt.day()),
    "DayOfMonth": _of_date("dayofmonth", lambda value: value.dt.day()),
    "DayOfWeek": _of_date("dayofweek", lambda value: value.dt.weekday() % 7 + 1),
    "Hour": _of_time("hour", lambda seconds: seconds // 3600),
    "Minute": _of_time("minute", lambda seconds: seconds // 60 % 60),
    "Second": _of_time("second", lambda seconds: seconds % 60),
    "TimestampTrunc": _truncated,
    "StrToTime": _to_timestamp,
    "StrToUnix": _unix_timestamp,
}
