"""Names of the operators that queries become."""

from __future__ import annotations

import re
from collections.abc import Collection

_NOT_IN_A_NAME = re.compile(r"[.\[\]\s]+")


def belongs_to(operator: str, query: str) -> bool:
    """Whether an operator of that name is one of a query's own."""
    return operator == query or operator.startswith(f"{query}.")


def inside(prefix: str, part: str) -> str:
    """The name of a part, such as a subquery, of something that has a name."""
    return f"{prefix}.{_NOT_IN_A_NAME.sub('_', part) or '_'}"


def unused(name: str, taken: Collection[str], sign: str = "") -> str:
    """A name that is not taken: itself, or else with the first number that makes it so."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}{sign}{number}"
    return found
