"""The common type of several values, by the rules of Spark's ANSI mode.

See https://spark.apache.org/docs/latest/sql-ref-ansi-compliance.html, "Type coercion".
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from levelwind.frontend.columntypes import INTEGERS
from levelwind.operators.expressions.sparktypes import (
    FLOATS,
    INTEGER_DIGITS,
    VOID,
    bounded_decimal,
    decimal_of,
    is_decimal,
    is_numeric,
)

_TIMES = ("date", "timestamp_ntz", "timestamp")


def common_type(kinds: Iterable[str], *, strings: bool = True) -> str | None:
    """The type that all of some types are brought to; None if there is none.

    Parameters
    ----------
    strings
        Whether a string next to another type is read as that type.
    """
    kinds = list(kinds)
    start: str | None = VOID
    if not strings:
        return reduce(_wider, kinds, start)
    # Spark folds strings in first: a string and an integer make a bigint whatever comes after.
    first = [kind for kind in kinds if kind == "string"][:1]
    return reduce(_wider_with_strings, [*first, *(kind for kind in kinds if kind != "string")], start)


def _wider_with_strings(left: str | None, right: str | None) -> str | None:
    if left is None or right is None or "string" not in (left, right):
        return _wider(left, right)
    return _with_string(right if left == "string" else left)


def _wider(left: str | None, right: str | None) -> str | None:
    if left is None or right is None:
        return None
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if left in INTEGERS and right in INTEGERS:
        return max(left, right, key=INTEGERS.index)
    if is_numeric(left) and is_numeric(right):
        if left in FLOATS or right in FLOATS:
            return "double"  # also of float and an integer
        return wider_decimal(_digits(left), _digits(right))
    if left in _TIMES and right in _TIMES:
        return max(left, right, key=_TIMES.index)
    return None


def _with_string(kind: str) -> str | None:
    if kind in INTEGERS:
        return "bigint"
    if kind in FLOATS or is_decimal(kind):
        return "double"
    if kind == VOID:
        return "string"
    return kind if kind in ("string", "boolean", "binary", *_TIMES) else None


def _digits(kind: str) -> tuple[int, int]:
    return decimal_of(kind) or (INTEGER_DIGITS[kind], 0)


def wider_decimal(left: tuple[int, int], right: tuple[int, int]) -> str:
    """The decimal that holds all values of two others, as far as 38 digits go."""
    (p1, s1), (p2, s2) = left, right
    scale = max(s1, s2)
    return bounded_decimal(max(p1 - s1, p2 - s2) + scale, scale)
