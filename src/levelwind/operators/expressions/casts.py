"""Casts between types: which there are in ANSI mode, and where a row fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import polars as pl

from levelwind.frontend.columntypes import INTEGERS, normal_type
from levelwind.operators.expressions import numbercasts, textcasts, timecasts
from levelwind.operators.expressions.builder import Builder, Rule, folded, null
from levelwind.operators.expressions.parts import Part, refuse, strict
from levelwind.operators.expressions.sparktypes import FLOATS, VOID, decimal_of, is_decimal, is_numeric

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Convert = Callable[[pl.Expr, str, str], pl.Expr]
# What a type is to the table of casts.
_FAMILIES = {**dict.fromkeys(INTEGERS, "integer"), **dict.fromkeys(FLOATS, "float")}


def _unchanged(value: pl.Expr, source: str, target: str) -> pl.Expr:
    return value


# By families: how, and whether a value may have no counterpart (which is a failure of the row).
_TABLE: Mapping[tuple[str, str], tuple[Convert, bool]] = {
    ("integer", "integer"): (numbercasts.between_integers, True),
    ("integer", "float"): (numbercasts.plain, False),
    ("integer", "decimal"): (numbercasts.integer_to_decimal, True),
    ("integer", "boolean"): (numbercasts.to_boolean, False),
    ("integer", "string"): (numbercasts.plain, False),
    ("integer", "timestamp"): (timecasts.seconds_to_timestamp, False),
    ("float", "integer"): (numbercasts.float_to_integer, True),
    ("float", "float"): (numbercasts.plain, False),
    ("float", "decimal"): (numbercasts.float_to_decimal, True),
    ("float", "boolean"): (numbercasts.to_boolean, False),
    ("float", "string"): (textcasts.float_to_text, False),
    ("float", "timestamp"): (timecasts.float_to_timestamp, True),
    ("decimal", "integer"): (numbercasts.decimal_to_integer, True),
    ("decimal", "float"): (numbercasts.decimal_to_float, False),
    ("decimal", "decimal"): (numbercasts.between_decimals, True),
    ("decimal", "boolean"): (numbercasts.decimal_to_boolean, False),
    ("decimal", "string"): (numbercasts.plain, False),
    ("decimal", "timestamp"): (timecasts.decimal_to_timestamp, False),
    ("boolean", "integer"): (numbercasts.plain, False),
    ("boolean", "float"): (numbercasts.plain, False),
    ("boolean", "decimal"): (numbercasts.boolean_to_decimal, True),
    ("boolean", "string"): (numbercasts.plain, False),
    ("string", "integer"): (textcasts.text_to_integer, True),
    ("string", "float"): (textcasts.text_to_float, True),
    ("string", "decimal"): (textcasts.text_to_decimal, True),
    ("string", "boolean"): (textcasts.text_to_boolean, True),
    ("string", "binary"): (numbercasts.plain, False),
    ("string", "date"): (timecasts.text_to_date, True),
    ("string", "timestamp"): (timecasts.text_to_timestamp, True),
    ("string", "timestamp_ntz"): (timecasts.text_to_local_timestamp, True),
    ("binary", "string"): (textcasts.binary_to_text, False),
    ("date", "string"): (timecasts.date_to_text, False),
    ("date", "timestamp"): (timecasts.between_times, False),
    ("date", "timestamp_ntz"): (timecasts.between_times, False),
    ("timestamp", "integer"): (timecasts.timestamp_to_integer, True),
    ("timestamp", "float"): (timecasts.timestamp_to_float, False),
    ("timestamp", "decimal"): (timecasts.timestamp_to_decimal, True),
    ("timestamp", "string"): (timecasts.timestamp_to_text, False),
    ("timestamp", "date"): (timecasts.between_times, False),
    ("timestamp", "timestamp_ntz"): (timecasts.between_times, False),
    ("timestamp_ntz", "string"): (timecasts.timestamp_to_text, False),
    ("timestamp_ntz", "date"): (timecasts.between_times, False),
    ("timestamp_ntz", "timestamp"): (timecasts.between_times, False),
}


def _family(kind: str) -> str:
    return "decimal" if is_decimal(kind) else _FAMILIES.get(kind, kind)


def can_cast(source: str, target: str) -> bool:
    """Whether ANSI mode has a cast between two types."""
    return source in (target, VOID) or (_family(source), _family(target)) in _TABLE


def cast(part: Part, target: str, *, safe: bool = False) -> Part:
    """A part brought to another type.

    Parameters
    ----------
    safe
        Whether a value without counterpart becomes null, as in ``try_cast``, and does not fail the row.
    """
    source = part.type
    if source == target:
        return part
    if source == VOID:
        return null(target)
    found = _TABLE.get((_family(source), _family(target)))
    if found is None:
        refuse(f"{source} cannot be cast to {target} in ANSI mode", part.constant)
    made = _converted(part, target, *found, safe=safe)
    return folded(made) if part.is_constant else made


def _converted(part: Part, target: str, convert: Convert, may_fail: bool, *, safe: bool) -> Part:
    source = part.type
    value = convert(part.value, source, target)
    if not may_fail or safe or _always_fits(source, target):
        return strict([part], value, target)
    if is_numeric(target) and source != "string":
        # NaN and infinity have no decimal: Spark gives null for them, and no failure.
        failed = value.is_null() & part.value.is_finite() if _no_decimal(source, target) else None
        return strict([part], value, target, f"{target} overflow", failed=failed)
    text = pl.format(f"cannot cast '{{}}' to {target}", part.value.cast(pl.String))
    return strict([part], value, target, text)


def _no_decimal(source: str, target: str) -> bool:
    return source in FLOATS and is_decimal(target)


def _always_fits(source: str, target: str) -> bool:
    """Whether every value has a counterpart, of two kinds of whole or decimal numbers."""
    if source in INTEGERS and target in INTEGERS:
        return INTEGERS.index(source) <= INTEGERS.index(target)
    digits = decimal_of(target)
    if digits is None:
        return False
    if source in INTEGERS:
        return digits[0] - digits[1] >= numbercasts.INTEGER_LENGTHS[source]
    given = decimal_of(source)
    return given is not None and given[1] <= digits[1] and given[0] - given[1] <= digits[0] - digits[1]


def _cast(node: Expr, build: Builder) -> Part:
    written = node.args["to"].sql(dialect="spark")
    target = normal_type(written)
    if target is None or normal_type(target) not in (target, None) or "<" in target:
        refuse("a cast must be to a simple type", written)
    return cast(build.part(node.this), target, safe=bool(node.args.get("safe")))


def _named(name: str) -> Rule:
    return lambda node, build: cast(build.part(node.expressions[0]), name)


RULES: Mapping[str, Rule] = {
    "Cast": _cast,
    "TryCast": _cast,
    "tinyint": _named("tinyint"),
    "smallint": _named("smallint"),
    "bigint": _named("bigint"),
}
