"""Which conditions cannot fail on any row, and which values can be compared by a hash.

Careful rather than clever: what is not listed may fail.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from levelwind.frontend.columntypes import INTEGERS, UNKNOWN
from levelwind.frontend.expressions import column_name
from levelwind.frontend.inference import infer_type

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_FLOATS = ("float", "double")
_SIMPLE = ("string", "boolean", "date", "timestamp", "timestamp_ntz", "binary")
_COMPARISONS = frozenset({"EQ", "NEQ", "GT", "GTE", "LT", "LTE", "NullSafeEQ"})
_DECIMAL = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
# So that bringing two decimals to one scale stays within 38 digits.
_MOST_DIGITS = 18
# Values are nested only so deep; anything deeper counts as one that may fail.
_DEEPEST = 20


def value_type(node: Expr, types: Mapping[str, str], depth: int = 0) -> str | None:
    """The Spark type of a value whose computation cannot fail, None if it can or the type is not known."""
    kind = type(node).__name__
    if depth > _DEEPEST:
        return None
    if kind in ("Column", "Dot"):
        found = types.get(column_name(node), UNKNOWN)
        return None if found == UNKNOWN else found
    if kind == "Literal":
        return infer_type(node, types)
    if kind == "Boolean":
        return "boolean"
    if kind == "Paren":
        return value_type(node.this, types, depth + 1)
    if kind == "Neg" and type(node.this).__name__ == "Literal" and not node.this.is_string:
        return infer_type(node, types)
    if kind in ("Lower", "Upper"):
        return "string" if value_type(node.this, types, depth + 1) == "string" else None
    if kind in ("Add", "Sub", "Mul"):
        both = {value_type(side, types, depth + 1) for side in (node.this, node.expression)}
        numbers = {*INTEGERS, *_FLOATS}
        return "double" if "double" in both and both <= numbers else None  # no overflow, no division
    return None


def never_fails(node: Expr, types: Mapping[str, str]) -> bool:
    """Whether a condition can be computed for every row. O(nodes), without recursion."""
    stack = [node]
    while stack:
        each = stack.pop()
        kind = type(each).__name__
        if kind in ("And", "Or"):
            stack += [each.this, each.expression]
        elif kind in ("Not", "Paren"):
            stack.append(each.this)
        elif not _leaf_never_fails(each, kind, types):
            return False
    return True


def _leaf_never_fails(node: Expr, kind: str, types: Mapping[str, str]) -> bool:
    if kind in _COMPARISONS:
        return _comparable(value_type(node.this, types), value_type(node.expression, types))
    if kind == "In":
        this = value_type(node.this, types)
        listed = node.expressions
        return bool(listed) and all(_comparable(this, value_type(each, types)) for each in listed)
    if kind == "Between":
        this = value_type(node.this, types)
        return all(_comparable(this, value_type(node.args[end], types)) for end in ("low", "high"))
    if kind == "Is":
        return type(node.expression).__name__ == "Null" and value_type(node.this, types) is not None
    return value_type(node, types) == "boolean"


def _comparable(left: str | None, right: str | None) -> bool:
    """Whether two types are compared without a cast that may fail."""
    if left is None or right is None:
        return False
    return (left == right and left in _SIMPLE) or (_is_tame(left) and _is_tame(right))


def _is_tame(kind: str) -> bool:
    """Whether a type is a number that can be brought to the type of another."""
    match = _DECIMAL.fullmatch(kind)
    if match is not None:
        return int(match[1]) <= _MOST_DIGITS
    return kind in (*INTEGERS, *_FLOATS)


def key_type(left: str, right: str) -> str | None:
    """The type in which Spark compares two values, None if that is not for a hash to do."""
    if left == right and (left in _SIMPLE or left.startswith("decimal")):
        return left
    if left in INTEGERS and right in INTEGERS:
        return max(left, right, key=INTEGERS.index)
    if left == right == "float":
        return "float"
    numbers = (*INTEGERS, *_FLOATS)
    return "double" if left in numbers and right in numbers else None
