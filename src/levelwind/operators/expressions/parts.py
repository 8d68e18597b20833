"""Compiled parts of an expression: a value, and the checks that tell which rows fail and why.

A part computes its value for every row, also in branches that Spark would not evaluate there; it never
raises, but gives null where the row fails. Whether such a row failed is asked of the checks, which carry
the conditions under which Spark would have evaluated the part.

Checks are dear, and failures are rare. So they are only asked if some value is null that would be null in
case of a failure: the part's own value, and those in ``hidden``, whose nulls the own value does not show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any, NoReturn

import polars as pl

from levelwind.errors import input_error


@dataclass(frozen=True, slots=True)
class Check:
    """Where rows fail, as a boolean expression (null counts as sound), and the reason as a string."""

    failed: pl.Expr
    reason: pl.Expr


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an expression.

    ``constant`` is its value in Python, if it is the same for all rows; ``is_constant`` tells None apart
    from no constant. ``is_literal`` says that it is written as a number: Spark gives a literal next to a
    decimal just the digits it has.
    """

    value: pl.Expr
    type: str
    checks: tuple[Check, ...] = ()
    hidden: tuple[pl.Expr, ...] = ()
    is_constant: bool = False
    constant: Any = None
    is_literal: bool = False

    @property
    def never_null(self) -> bool:
        """Whether it is a constant other than null."""
        return self.is_constant and self.constant is not None


def guarded(checks: Iterable[Check], condition: pl.Expr | None) -> tuple[Check, ...]:
    """Checks that only count where a condition holds."""
    if condition is None:
        return tuple(checks)
    return tuple(replace(check, failed=condition & check.failed) for check in checks)


def all_of(conditions: Sequence[pl.Expr]) -> pl.Expr | None:
    """That all conditions hold; None if there are none."""
    return reduce(and_, conditions) if conditions else None


def present(parts: Iterable[Part]) -> list[pl.Expr]:
    """Conditions that say that none of the parts is null."""
    return [part.value.is_not_null() for part in parts if not part.never_null]


def strict(
    parts: Sequence[Part],
    value: pl.Expr,
    kind: str,
    reason: str | pl.Expr | None = None,
    *,
    failed: pl.Expr | None = None,
) -> Part:
    """A part that is null if one of its arguments is; they are evaluated in order, up to a null.

    Parameters
    ----------
    reason
        Why a row fails if its value is null and no argument is; None if that is no failure.
    failed
        Where rows fail, if that is not just where the value is null.
    """
    checks: list[Check] = []
    for index, part in enumerate(parts):
        if part.checks:
            checks += guarded(part.checks, all_of(present(parts[:index])))
    if reason is not None:
        own = value.is_null() if failed is None else failed
        text = pl.lit(reason) if isinstance(reason, str) else reason
        checks += guarded([Check(own, text)], all_of(present(parts)))
    return Part(value, kind, tuple(checks), hidden_of(parts))


def unless_missing(parts: Sequence[Part], value: pl.Expr) -> pl.Expr:
    """A value that is null where one of its arguments is, if Polars does not see to that."""
    missing = all_of(present(parts))
    return value if missing is None else pl.when(missing).then(value)


def eager(parts: Sequence[Part], value: pl.Expr, kind: str) -> Part:
    """A part that evaluates all its arguments and does not pass their nulls on."""
    checks = tuple(check for part in parts for check in part.checks)
    return Part(value, kind, checks, unseen(parts))


def hidden_of(parts: Iterable[Part]) -> tuple[pl.Expr, ...]:
    """What does not show in the values of the parts."""
    return tuple(value for part in parts for value in part.hidden)


def unseen(parts: Iterable[Part]) -> tuple[pl.Expr, ...]:
    """What does not show in a value that does not pass on the nulls of the parts."""
    found: list[pl.Expr] = []
    for part in parts:
        found += part.hidden
        if part.checks:
            found.append(part.value)
    return tuple(found)


def refuse(rule: str, value: object = None, hint: str | None = None) -> NoReturn:
    """Raise an error for what Spark's analyser would refuse, or what cannot be computed exactly."""
    raise input_error(rule, value=value, hint=hint) from None
