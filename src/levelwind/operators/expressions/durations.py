"""Intervals, and times moved by them.

An interval of days and shorter is a duration; one of months and years is known only as a constant, and
moves the calendar: the last day of a month stays within it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

from levelwind.operators.expressions.builder import Builder, Rule
from levelwind.operators.expressions.casts import cast
from levelwind.operators.expressions.parts import Part, refuse, strict
from levelwind.operators.expressions.sparktypes import VOID, dtype_of

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

MONTHS = "interval months"
DURATION = "interval"
_TIMES = ("date", "timestamp", "timestamp_ntz")
_UNIT_US = {
    "WEEK": 604_800_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}
_UNIT_MONTHS = {"YEAR": 12, "MONTH": 1}
_OVERFLOW = "timestamp overflow"


def concerned(left: Part, right: Part) -> bool:
    """Whether a sum or difference is one of times or intervals."""
    return bool({left.type, right.type} & {DURATION, MONTHS, *_TIMES})


def combine(operation: str, left: Part, right: Part) -> Part:
    """A sum or difference with a time or an interval in it."""
    kinds = f"{left.type} {'+' if operation == 'Add' else '-'} {right.type}"
    if operation == "Add" and left.type not in _TIMES and right.type in _TIMES:
        left, right = right, left
    if left.type in _TIMES and right.type in _TIMES and operation == "Sub":
        return _between(left, right)
    if left.type in _TIMES and right.type == DURATION:
        return _moved(left, right, operation)
    if left.type in _TIMES and right.type == MONTHS:
        return _moved_by_months(left, right, operation)
    if left.type == "date" and right.type in ("int", "smallint", "tinyint"):
        return _moved_by_days(left, right, operation)
    if left.type == right.type == DURATION:
        value = left.value + right.value if operation == "Add" else left.value - right.value
        return strict([left, right], value, DURATION)
    if left.type == right.type == MONTHS:
        sign = 1 if operation == "Add" else -1
        return _months(left.constant + sign * right.constant)
    if VOID in (left.type, right.type):
        refuse("a time must not be moved by NULL", kinds)
    refuse("'+' and '-' must have numbers, or a time and an interval", kinds)


def negated(part: Part) -> Part:
    """The other way."""
    if part.type == MONTHS:
        return _months(-part.constant)
    return strict([part], 0 - part.value, DURATION)


def _micros(part: Part) -> pl.Expr:
    return part.value.to_physical().cast(pl.Int128)


def _between(left: Part, right: Part) -> Part:
    """The time that passes from one to another."""
    kind = "timestamp"
    left, right = cast(left, kind), cast(right, kind)
    difference = (_micros(left) - _micros(right)).cast(pl.Int64, strict=False)
    return strict([left, right], difference.cast(pl.Duration("us")), DURATION, "interval overflow")


def _moved(left: Part, right: Part, operation: str) -> Part:
    kind = left.type
    whole_days = right.is_constant and right.constant is not None
    if kind == "date":
        day = _UNIT_US["DAY"]
        if whole_days and _constant_us(right) % day == 0:
            shift = _constant_us(right) // day * (1 if operation == "Add" else -1)
            return strict([left], (left.value.to_physical() + shift).cast(pl.Date), "date")
        left, kind = cast(left, "timestamp"), "timestamp"
    shift_us = _micros(right)
    moved = _micros(left) + shift_us if operation == "Add" else _micros(left) - shift_us
    value = moved.cast(pl.Int64, strict=False).cast(_dtype(kind))
    return strict([left, right], value, kind, _OVERFLOW)


def _constant_us(part: Part) -> int:
    return int(part.constant.total_seconds() * 1_000_000 + 0.5) if part.constant is not None else 0


def _moved_by_days(left: Part, right: Part, operation: str) -> Part:
    """In 32 bits, which wrap around in Java too."""
    days, shift = left.value.to_physical(), right.value.cast(pl.Int32)
    moved = days + shift if operation == "Add" else days - shift
    return strict([left, right], moved.cast(pl.Date), "date")


def _moved_by_months(left: Part, right: Part, operation: str) -> Part:
    months = right.constant if operation == "Add" else -right.constant
    naive = left.value if left.type == "date" else left.value.to_physical().cast(pl.Datetime("us"))
    moved = naive.dt.offset_by(f"{months}mo")
    value = moved if left.type == "date" else moved.to_physical().cast(_dtype(left.type))
    return strict([left], value, left.type)


def _dtype(kind: str) -> pl.DataType:
    found = dtype_of(kind)
    assert found is not None
    return found


def _months(count: int) -> Part:
    return Part(pl.lit(count, dtype=pl.Int32), MONTHS, is_constant=True, constant=count)


def _duration(micros: int) -> Part:
    return Part(pl.lit(micros, dtype=pl.Int64).cast(pl.Duration("us")), DURATION)


def _interval(node: Expr, build: Builder) -> Part:
    """``interval 5 minutes``, ``interval '1 02:03:04' day to second``, ``interval '1 day 2 hours'``."""
    if node.this is None or type(node.this).__name__ != "Literal":
        refuse("an interval must be a constant", node.sql(dialect="spark"))
    text, unit = node.this.name.strip(), node.args.get("unit")
    if unit is None:
        pairs = re.findall(r"([+-]?[0-9.]+)\s+([A-Za-z]+)", text)
        if not pairs or "".join("".join(pair) for pair in pairs) != re.sub(r"\s+", "", text):
            refuse("an interval must be made of numbers and units", text)
        return _sum([_quantity(number, name) for number, name in pairs], text)
    if type(unit).__name__ == "IntervalSpan":
        return _span(text, unit.this.name.upper(), unit.expression.name.upper())
    return _quantity(text, unit.name)


def _sum(parts: list[Part], text: str) -> Part:
    total, *rest = parts
    for part in rest:
        if part.type != total.type:
            refuse("an interval must not mix months with days", text)
        total = combine("Add", total, part)
    return total


def _quantity(number: str, unit: str) -> Part:
    name = unit.upper().removesuffix("S")
    try:
        amount = Decimal(number)
    except ArithmeticError:
        refuse("an interval must have a number", number)
    if name in _UNIT_MONTHS and amount == int(amount):
        return _months(int(amount) * _UNIT_MONTHS[name])
    if name in _UNIT_US and (amount == int(amount) or name == "SECOND"):
        return _duration(int(amount * _UNIT_US[name]))
    refuse("an interval must be a number of known units", f"{number} {unit}")


def _span(text: str, first: str, last: str) -> Part:
    """``'1-2' year to month`` and ``'1 02:03:04' day to second``."""
    sign = -1 if text.startswith("-") else 1
    body = text.lstrip("+-")
    if (first, last) == ("YEAR", "MONTH") and (match := re.fullmatch(r"(\d+)-(\d{1,2})", body)):
        return _months(sign * (12 * int(match[1]) + int(match[2])))
    units = ["DAY", "HOUR", "MINUTE", "SECOND"]
    if first in units and last in units:
        wanted = units[units.index(first) : units.index(last) + 1]
        numbers = re.split(r"[ :]", body)
        if len(numbers) == len(wanted) and all(re.fullmatch(r"\d+(\.\d{1,6})?", n) for n in numbers):
            total = sum(Decimal(n) * _UNIT_US[unit] for n, unit in zip(numbers, wanted, strict=True))
            return _duration(sign * int(total))
    refuse("an interval must fit its units", f"'{text}' {first.lower()} to {last.lower()}")


RULES: Mapping[str, Rule] = {"Interval": _interval}
