"""Operators or nodes chosen by a list of names, patterns and ``property=value`` pairs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import translate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from levelwind.errors import nearest
from levelwind.frontend.yamltext import scalar

# Of more names than this none is looked for that is like a misspelt one: it would take seconds.
MOST_COMPARED = 2000


def choices(wanted: str) -> tuple[str, ...]:
    """The names, patterns and pairs of a list by comma."""
    return tuple(filter(None, (part.strip() for part in wanted.split(","))))


def chosen(wanted: str, names: Sequence[str], properties: Sequence[Mapping[str, Any]]) -> NDArray[np.bool_]:
    """Which of these a list chooses. O(names × choices)."""
    found = np.zeros(len(names), dtype=bool)
    for choice in choices(wanted):
        found |= matches(choice, names, properties)
    return found


def matches(choice: str, names: Sequence[str], properties: Sequence[Mapping[str, Any]]) -> NDArray[np.bool_]:
    """Which of these one choice means.

    A name is taken before a pattern, as brackets stand in both: ``busy[0]`` is the first instance of a split
    operator if there is one. The name of a split or spread operator, and a pattern of it, mean all its parts.
    Values are compared as YAML reads them.

    Examples
    --------
    >>> names, none = ["busy[0]", "busy[1]", "busy0"], [{}, {}, {}]
    >>> [matches(choice, names, none).tolist() for choice in ("busy[0]", "busy", "busy[0-9]")]
    [[True, False, False], [True, True, False], [False, False, True]]
    >>> matches("gpu=true", ["n1", "n2"], [{"gpu": True}, {"gpu": 1}]).tolist()
    [True, False]
    """
    part = f"{choice}["
    by_name = (name == choice or name.startswith(part) for name in names)
    named = np.fromiter(by_name, dtype=bool, count=len(names))
    if named.any():
        return named
    key, pair, value = (part.strip() for part in choice.partition("="))
    if pair:
        read = scalar(value)
        has = (key in own and _same(own[key], value, read) for own in properties)
        return np.fromiter(has, dtype=bool, count=len(names))
    fits = re.compile(translate(choice)).match
    like = (bool(fits(name) or ("[" in name and fits(name.partition("[")[0]))) for name in names)
    return np.fromiter(like, dtype=bool, count=len(names))


def _same(stated: Any, text: str, read: Any) -> bool:
    """Whether a property has the value that a text stands for; 1 is not true."""
    return str(stated) == text or (isinstance(stated, bool) == isinstance(read, bool) and stated == read)


def idle_choices(wanted: str, names: Sequence[str], properties: Sequence[Mapping[str, Any]]) -> list[str]:
    """The choices that mean nothing that is there, each with what may have been meant."""
    found = []
    for choice in choices(wanted):
        if matches(choice, names, properties).any():
            continue
        key, pair, _ = (part.strip() for part in choice.partition("="))
        known = {f"{one}={_written(value)}" for own in properties for one, value in own.items()}
        if not pair:
            known = {*names, *(name.partition("[")[0] for name in names)}
        elif any(key in own for own in properties):
            known = {one for one in known if one.startswith(f"{key}=")}
        near = nearest(choice, sorted(known)) if len(known) <= MOST_COMPARED else None
        found.append(choice if near is None else f"{choice} (did you mean {near!r}?)")
    return found


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
