"""The types a column may have: Spark SQL's names, each in one spelling."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from levelwind.frontend.declared import JsonSchema
from levelwind.frontend.document import KeyPath
from levelwind.frontend.report import Report

UNKNOWN = "unknown"
INTEGERS = ("tinyint", "smallint", "int", "bigint")
SIMPLE = (*INTEGERS, "float", "double", "string", "boolean", "date", "timestamp", "timestamp_ntz", "binary")
ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "bool": "boolean",
    "timestamp_ltz": "timestamp",
    "dec": "decimal",
    "numeric": "decimal",
}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric) ?\( ?([0-9]{1,2}) ?(?:, ?([0-9]{1,2}) ?)?\)")
_NESTED = re.compile(r"(array|map|struct) ?<(.+)>")
_TEXT = re.compile(r"(?:varchar|char) ?\( ?[0-9]{1,9} ?\)")


def normal_type(text: str) -> str | None:
    """The one spelling of a Spark SQL type, or None if it is not a type.

    Examples
    --------
    >>> normal_type("LONG"), normal_type("numeric(10, 2)"), normal_type("array<Integer>")
    ('bigint', 'decimal(10,2)', 'array<int>')
    """
    text = " ".join(text.lower().split())
    text = ALIASES.get(text, text)
    if text in SIMPLE:
        return text
    if text == "decimal":
        return "decimal(10,0)"
    if _TEXT.fullmatch(text):
        return "string"
    if match := _DECIMAL.fullmatch(text):
        precision, scale = int(match[1]), int(match[2] or 0)
        return f"decimal({precision},{scale})" if 0 < precision <= 38 and scale <= precision else None
    if match := _NESTED.fullmatch(text):
        return _nested(match[1], _split(match[2]))
    return None


def _nested(outer: str, parts: list[str]) -> str | None:
    """An array, map or struct, each part in its one spelling."""
    if outer == "struct":
        fields = [part.partition(":") for part in parts]
        inner = [normal_type(kind) for _, _, kind in fields]
        written = [f"{name.strip()}:{kind}" for (name, _, _), kind in zip(fields, inner, strict=True)]
    else:
        inner = [normal_type(part) for part in parts]
        written = [str(kind) for kind in inner]
        if len(parts) != (2 if outer == "map" else 1):
            return None
    return None if None in inner else f"{outer}<{','.join(written)}>"


def _split(text: str) -> list[str]:
    """The parts between commas that are not inside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A declared column's type."""

    def read(self, value: Any, path: KeyPath, report: Report) -> Any:
        """The type in its one spelling."""
        try:
            found = normal_type(value) if isinstance(value, str) else None
        except RecursionError:
            found = None
        if found is not None:
            return found
        known = [*SIMPLE, *ALIASES, "decimal(10,2)"]
        hint = report.suggest(value.lower(), known) if isinstance(value, str) else None
        return report.refuse(path, "must be a Spark SQL type", value, hint)

    def schema(self) -> JsonSchema:
        """A string, with the usual types for completion."""
        return {
            "type": "string",
            "minLength": 1,
            "examples": ["string", "int", "long", "double", "boolean", "timestamp", "decimal(10,2)"],
        }
