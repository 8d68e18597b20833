"""Comparisons, and what is made of them: in, between, greatest, least, nullif.

Spark holds NaN equal to itself and larger than any number, and 0.0 equal to -0.0; so does Polars.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import polars as pl

from levelwind.operators.expressions import decimals
from levelwind.operators.expressions.builder import Builder, Rule
from levelwind.operators.expressions.casts import cast
from levelwind.operators.expressions.coercion import common_type
from levelwind.operators.expressions.logic import conjunction
from levelwind.operators.expressions.parts import Part, eager, guarded, refuse, strict, unseen
from levelwind.operators.expressions.sparktypes import FLOATS, VOID, decimal_of, is_decimal

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Compare = Callable[[pl.Expr, pl.Expr], pl.Expr]
# More values than this are looked up in a set rather than compared one by one.
_FEW = 4


def agreed(parts: Sequence[Part], what: str, *, strings: bool = True) -> list[Part]:
    """Parts brought to their common type."""
    kinds = [part.type for part in parts]
    kind = common_type(kinds, strings=strings)
    if kind is None:
        refuse(f"{what} must have values of one type", ", ".join(dict.fromkeys(kinds)))
    return [cast(part, kind) for part in parts]


def comparable(left: Part, right: Part, what: str = "a comparison") -> tuple[Part, Part]:
    """Both sides as values that Polars compares as Spark would."""
    if is_decimal(left.type) and is_decimal(right.type):
        return decimals.comparable(left, right)
    left, right = agreed([left, right], what)
    if left.type.startswith("map"):
        refuse(f"{what} must not have maps", left.type)
    if decimal_of(left.type) is not None:
        return decimals.comparable(left, right)
    return left, right


def _comparison(compare: Compare) -> Rule:
    def rule(node: Expr, build: Builder) -> Part:
        left, right = comparable(build.part(node.this), build.part(node.expression))
        return strict([left, right], compare(left.value, right.value), "boolean")

    return rule


def _same(node: Expr, build: Builder) -> Part:
    """``<=>``: null equals null."""
    left, right = comparable(build.part(node.this), build.part(node.expression))
    return eager([left, right], left.value.eq_missing(right.value), "boolean")


def _distinct(node: Expr, build: Builder) -> Part:
    left, right = comparable(build.part(node.this), build.part(node.expression))
    return eager([left, right], left.value.ne_missing(right.value), "boolean")


def _between(node: Expr, build: Builder) -> Part:
    part = build.part(node.this)
    low, high = build.part(node.args["low"]), build.part(node.args["high"])
    above, least = comparable(part, low, "between")
    below, most = comparable(part, high, "between")
    return conjunction(
        [
            strict([above, least], above.value >= least.value, "boolean"),
            strict([below, most], below.value <= most.value, "boolean"),
        ]
    )


def _within(node: Expr, build: Builder) -> Part:
    part, *others = agreed([build.part(child) for child in (node.this, *node.expressions)], "in")
    if part.type == VOID:
        return Part(pl.lit(None, dtype=pl.Boolean), "boolean")
    if all(other.is_constant for other in others):
        return strict([part], _among(part, others), "boolean")
    return _first_match(part, others)


def _among(part: Part, others: Sequence[Part]) -> pl.Expr:
    """Whether a value is one of some constants; null if it is none of them and one is null."""
    known = [other for other in others if other.constant is not None]
    if len(known) <= _FEW or part.type in FLOATS or is_decimal(part.type):
        found = [part.value == other.value for other in known]
        if len(known) < len(others):
            found.append(pl.lit(None, dtype=pl.Boolean))
        return found[0] if len(found) == 1 else pl.any_horizontal(found)
    values = pl.concat([pl.select(other.value.alias("value")) for other in known]).to_series()
    found_in = part.value.is_in(values.implode())
    if len(known) == len(others):
        return found_in
    return pl.when(found_in).then(True)


def _first_match(part: Part, others: Sequence[Part]) -> Part:
    """Values are looked at in order, up to the first that is equal."""
    matches = [part.value == other.value for other in others]
    checks, tried = list(part.checks), part.value.is_not_null()
    for other, match in zip(others, matches, strict=True):
        checks += guarded(other.checks, tried)
        tried = tried & ~match.fill_null(False)
    value = pl.when(part.value.is_not_null()).then(pl.any_horizontal(matches))
    return Part(value, "boolean", tuple(checks), unseen([part, *others]))


def _extreme(name: str, pick: Compare) -> Rule:
    """``greatest`` and ``least``, which skip nulls."""

    def rule(node: Expr, build: Builder) -> Part:
        parts = agreed([build.part(child) for child in (node.this, *node.expressions)], name, strings=False)
        kind = parts[0].type
        return eager(parts, reduce(pick, [part.value for part in parts]), kind)

    return rule


def _larger(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    return pl.when((right > left) | left.is_null()).then(right).otherwise(left)


def _smaller(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    return pl.when((right < left) | left.is_null()).then(right).otherwise(left)


def _nullif(node: Expr, build: Builder) -> Part:
    part, other = build.part(node.this), build.part(node.expression)
    left, right = comparable(part, other, "nullif")
    equal = strict([left, right], left.value == right.value, "boolean")
    value = pl.when(~equal.value.fill_null(False)).then(part.value)
    return Part(value, part.type, equal.checks, unseen([equal, part]))


RULES: Mapping[str, Rule] = {
    "EQ": _comparison(lambda a, b: a == b),
    "NEQ": _comparison(lambda a, b: a != b),
    "LT": _comparison(lambda a, b: a < b),
    "LTE": _comparison(lambda a, b: a <= b),
    "GT": _comparison(lambda a, b: a > b),
    "GTE": _comparison(lambda a, b: a >= b),
    "NullSafeEQ": _same,
    "NullSafeNEQ": _distinct,
    "Between": _between,
    "In": _within,
    "Greatest": _extreme("greatest", _larger),
    "Least": _extreme("least", _smaller),
    "Nullif": _nullif,
}
