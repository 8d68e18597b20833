"""Literals: numbers, strings, booleans, NULL; brackets, which mean nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from levelwind.operators.expressions.builder import Builder, Rule, constant, null
from levelwind.operators.expressions.parts import Part, refuse
from levelwind.operators.expressions.sparktypes import MOST_DIGITS, decimal_type

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


def number(text: str, *, negative: bool = False) -> Part:
    """A number as Spark types it: int, else bigint, else decimal; with an exponent a double.

    The sign belongs to the literal: -2147483648 is an int although 2147483648 is not.
    """
    sign = "-" if negative else ""
    if text.isdigit():
        value = int(sign + text)
        for kind, bits in (("int", 31), ("bigint", 63)):
            if -(2**bits) <= value < 2**bits:
                return replace(constant(value, kind), is_literal=True)
    if "e" in text.lower():
        return constant(float(sign + text), "double")
    whole, _, part = text.partition(".")
    digits = max(len((whole + part).lstrip("0")), len(part), 1)
    if digits > MOST_DIGITS:
        refuse("a number must have at most 38 digits", text)
    return constant(Decimal(sign + text), decimal_type(digits, len(part)))


def _literal(node: Expr, _: Builder) -> Part:
    return constant(node.name, "string") if node.is_string else number(node.name)


RULES: Mapping[str, Rule] = {
    "Literal": _literal,
    "RawString": lambda node, build: constant(node.name, "string"),
    "Boolean": lambda node, build: constant(bool(node.this), "boolean"),
    "Null": lambda node, build: null(),
    "Paren": lambda node, build: build.part(node.this),
}
