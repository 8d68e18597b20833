"""Arguments of functions, brought to the type the function takes as ANSI mode does it unasked."""

from __future__ import annotations

from levelwind.operators.expressions.casts import can_cast, cast
from levelwind.operators.expressions.parts import Part, refuse
from levelwind.operators.expressions.sparktypes import VOID, is_numeric

_TIMES = ("date", "timestamp", "timestamp_ntz")
_TAKEN: dict[str, tuple[str, ...]] = {
    "date": ("string", *_TIMES),
    "timestamp": ("string", *_TIMES),
    "binary": ("string", "binary"),
}


def argument(part: Part, kind: str, function: str) -> Part:
    """An argument of a function that takes ``kind``."""
    if part.type in (kind, VOID) or _taken(part.type, kind):
        return cast(part, kind)
    refuse(f"{function} must have a value that can be read as {kind}", part.type)


def _taken(source: str, kind: str) -> bool:
    if kind == "string":
        return can_cast(source, "string")
    if is_numeric(kind):
        return is_numeric(source) or source == "string"
    return source in _TAKEN.get(kind, ())


def constant_of(part: Part, function: str, what: str) -> object:
    """The value of an argument that must be the same for all rows."""
    if not part.is_constant:
        refuse(f"{what} of {function} must be a constant")
    return part.constant
