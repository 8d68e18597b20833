"""Durations as SQL writes them, in microseconds."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_UNIT_US = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_PART = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")
# Times are counted in 64 bits; nothing longer can ever be waited for.
_MOST_US = 2**62


def duration_us(node: Expr | None) -> int | None:
    """Microseconds in ``'10 seconds'`` or an INTERVAL; None if it is neither, or has no fixed length."""
    from sqlglot import expressions as exp

    if isinstance(node, exp.Literal) and node.is_string:
        return text_us(node.name)
    return interval_us(node)


def interval_us(node: Expr | None) -> int | None:
    """Microseconds in an INTERVAL; None if it is none, or its length is not fixed (months, years)."""
    from sqlglot import expressions as exp

    if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal):
        return None
    unit = node.args.get("unit")
    if unit is None:
        return text_us(node.this.name)
    return text_us(f"{node.this.name} {unit.name}") if isinstance(unit, exp.Var) else None


def text_us(text: str) -> int | None:
    """Microseconds in a text such as ``1 minute 30 seconds``.

    Examples
    --------
    >>> text_us("1 minute 30 seconds"), text_us("1 month")
    (90000000, None)
    """
    text = text.strip().lower().removeprefix("interval").strip()
    total, at = Fraction(0), 0
    while at < len(text):
        match = _PART.match(text, at)
        unit = _UNIT_US.get(match[2].removesuffix("s")) if match else None
        if match is None or unit is None:
            return None
        total += Fraction(match[1]) * unit
        at = match.end()
    whole = total.denominator == 1 and abs(total) < _MOST_US and text != ""
    return int(total) if whole else None
