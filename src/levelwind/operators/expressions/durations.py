"""Intervals, and times moved by them."""

from __future__ import annotations

from levelwind.operators.expressions.parts import Part, refusal


def concerned(left: Part, right: Part) -> bool:
    """Whether a sum or difference is one of times."""
    return bool({left.type, right.type} & {"interval", "date", "timestamp", "timestamp_ntz"})


def combine(operation: str, left: Part, right: Part) -> Part:
    """Placeholder."""
    raise refusal("intervals are not supported yet")


def negated(part: Part) -> Part:
    """Placeholder."""
    raise refusal("intervals are not supported yet")
