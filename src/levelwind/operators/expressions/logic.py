"""Three-valued logic and branches; what Spark would not evaluate for a row cannot fail there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from levelwind.operators.expressions.builder import Builder, Rule
from levelwind.operators.expressions.casts import cast
from levelwind.operators.expressions.coercion import common_type
from levelwind.operators.expressions.parts import Check, Part, eager, guarded, refuse, strict, unseen
from levelwind.operators.expressions.sparktypes import VOID, dtype_of

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


def condition(part: Part, what: str, *, strings: bool = True) -> Part:
    """A boolean; NULL and, where Spark allows it, a string are read as one."""
    if part.type == VOID or (strings and part.type == "string"):
        return cast(part, "boolean")
    if part.type != "boolean":
        refuse(f"{what} must have conditions", part.type)
    return part


def conjunction(parts: Sequence[Part]) -> Part:
    """``and``: a row is not looked at further once a condition is false."""
    return _chain(parts, stops_at=False)


def disjunction(parts: Sequence[Part]) -> Part:
    """``or``: a row is not looked at further once a condition is true."""
    return _chain(parts, stops_at=True)


def _chain(parts: Sequence[Part], *, stops_at: bool) -> Part:
    checks: list[Check] = []
    for index, part in enumerate(parts):
        if part.checks:
            checks += guarded(part.checks, _reached(parts[:index], stops_at))
    values = [part.value for part in parts]
    if len(parts) == 2:
        value = values[0] | values[1] if stops_at else values[0] & values[1]
    else:
        value = pl.any_horizontal(values) if stops_at else pl.all_horizontal(values)
    return Part(value, "boolean", tuple(checks), unseen(parts))


def _reached(before: Sequence[Part], stops_at: bool) -> pl.Expr | None:
    """Where no condition before has settled the matter; null has not."""
    if not before:
        return None
    going_on = [part.value.ne_missing(pl.lit(stops_at)) for part in before]
    return going_on[0] if len(going_on) == 1 else pl.all_horizontal(going_on)


def _connective(kind: str) -> Rule:
    combine = conjunction if kind == "And" else disjunction

    def rule(node: Expr, build: Builder) -> Part:
        parts = [condition(build.part(child), f"'{kind.lower()}'") for child in _operands(node, kind)]
        return combine(parts)

    return rule


def _operands(node: Expr, kind: str) -> list[Expr]:
    """The operands of a chain of equal connectives, in order; without recursion, as chains may be long."""
    found, stack = [], [node]
    while stack:
        current = stack.pop()
        inner = current
        while type(inner).__name__ == "Paren":
            inner = inner.this
        if type(inner).__name__ == kind:
            stack += [inner.expression, inner.this]
        else:
            found.append(inner)
    return found


def _negation(node: Expr, build: Builder) -> Part:
    part = condition(build.part(node.this), "'not'")
    return strict([part], ~part.value, "boolean")


def _is(node: Expr, build: Builder) -> Part:
    """``is null``, ``is true``, ``is false``."""
    part, what = build.part(node.this), node.expression
    if type(what).__name__ == "Null":
        return is_null(part)
    if type(what).__name__ == "Boolean":
        part = condition(part, "'is'")
        return eager([part], part.value.eq_missing(pl.lit(bool(what.this))), "boolean")
    refuse("'is' must be followed by null, true or false", what.sql(dialect="spark"))


def is_null(part: Part) -> Part:
    """Whether a value is null."""
    return eager([part], part.value.is_null(), "boolean")


def _is_null(node: Expr, build: Builder) -> Part:
    return is_null(build.part(node.expressions[0]))


def _is_not_null(node: Expr, build: Builder) -> Part:
    part = build.part(node.expressions[0])
    return eager([part], part.value.is_not_null(), "boolean")


def branches(conditions: Sequence[Part], values: Sequence[Part], what: str) -> Part:
    """The value of the first condition that holds; the last value is that of no condition."""
    kind = common_type([value.type for value in values])
    if kind is None:
        refuse(f"{what} must have values of one type", ", ".join(value.type for value in values))
    conditions, values = _reachable(conditions, [cast(value, kind) for value in values])
    checks: list[Check] = []
    reached: pl.Expr | None = None
    chosen = otherwise = values[-1].value
    for test, value in zip(conditions, values, strict=False):
        checks += guarded(test.checks, reached)
        holds = test.value if reached is None else reached & test.value
        checks += guarded(value.checks, holds)
        fails = test.value.ne_missing(pl.lit(True))
        reached = fails if reached is None else reached & fails
    checks += guarded(values[-1].checks, reached)
    for test, value in zip(reversed(conditions), reversed(values[:-1]), strict=True):
        chosen = pl.when(test.value).then(value.value).otherwise(otherwise)
        otherwise = chosen
    if (dtype := dtype_of(kind)) is not None and all(value.is_constant for value in values):
        chosen = chosen.cast(dtype)
    return Part(chosen, kind, tuple(checks), unseen([*conditions, *values]))


def _reachable(conditions: Sequence[Part], values: Sequence[Part]) -> tuple[Sequence[Part], Sequence[Part]]:
    """Without the branches that no row takes, nor those after one that every row takes."""
    kept: list[tuple[Part, Part]] = []
    for test, value in zip(conditions, values, strict=False):
        if test.is_constant and test.constant is True:
            return [test for test, _ in kept], [*(value for _, value in kept), value]
        if not test.is_constant:
            kept.append((test, value))
    return [test for test, _ in kept], [*(value for _, value in kept), values[-1]]


def _if(node: Expr, build: Builder) -> Part:
    test = condition(build.part(node.this), "if", strings=False)
    then, other = build.part(node.args["true"]), node.args.get("false")
    last = build.part(other) if other is not None else Part(pl.lit(None), VOID, is_constant=True)
    return branches([test], [then, last], "if")


def _case(node: Expr, build: Builder) -> Part:
    from levelwind.operators.expressions.comparison import comparable

    subject = build.part(node.this) if node.this is not None else None
    conditions, values = [], []
    for branch in node.args["ifs"]:
        test = build.part(branch.this)
        if subject is None:
            conditions.append(condition(test, "case", strings=False))
        else:
            left, right = comparable(subject, test, "case")
            conditions.append(strict([left, right], left.value == right.value, "boolean"))
        values.append(build.part(branch.args["true"]))
    default = node.args.get("default")
    values.append(build.part(default) if default is not None else Part(pl.lit(None), VOID, is_constant=True))
    return branches(conditions, values, "case")


def _coalesce(node: Expr, build: Builder) -> Part:
    """The first value that is not null; those after it are not evaluated."""
    parts = [build.part(child) for child in (node.this, *node.expressions)]
    kind = common_type([part.type for part in parts])
    if kind is None:
        refuse("coalesce must have values of one type", ", ".join(part.type for part in parts))
    parts = [cast(part, kind) for part in parts]
    checks: list[Check] = []
    for index, part in enumerate(parts):
        if part.checks:
            missing = [before.value.is_null() for before in parts[:index]]
            checks += guarded(part.checks, pl.all_horizontal(missing) if missing else None)
    value = pl.coalesce([part.value for part in parts]) if len(parts) > 1 else parts[0].value
    return Part(value, kind, tuple(checks), unseen(parts))


RULES: Mapping[str, Rule] = {
    "And": _connective("And"),
    "Or": _connective("Or"),
    "Not": _negation,
    "Is": _is,
    "isnull": _is_null,
    "isnotnull": _is_not_null,
    "If": _if,
    "Case": _case,
    "Coalesce": _coalesce,
}
