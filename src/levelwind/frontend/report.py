"""Collects everything that is wrong with a document before anything is raised."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

from levelwind.errors import InputError, Problem, nearest
from levelwind.frontend.document import Document, KeyPath, key_text

_UNSET: Any = object()
_SHOWN_NAMES = 8
# Finding the nearest of n names takes about 10 µs × n: a broken file with thousands of unknown names
# among thousands of known ones would take hours, so hints stop when this many names have been compared.
_COMPARISONS = 300_000


class Bad:
    """Stands for a value that was refused, so that later checks do not complain about it again."""

    def __repr__(self) -> str:
        return "BAD"

    def __bool__(self) -> bool:
        return False


BAD: Any = Bad()


class Said(str):
    """A value in our words: shown without quotes."""

    __slots__ = ()


class Report:
    """The problems and warnings of one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.warnings: list[str] = []
        self._problems: list[Problem] = list(document.problems)
        self._said: set[Problem] = set(self._problems)
        self._comparisons_left = _COMPARISONS

    def add(self, path: KeyPath, rule: str, value: Any = _UNSET, hint: str | None = None) -> None:
        """Notes that what stands at ``path`` breaks ``rule``; what has been said once is not said again."""
        problem = Problem(
            rule=rule,
            key=key_text(path),
            file=self.document.file,
            line=self.document.line(path),
            value=None if value is _UNSET else show(value),
            hint=hint,
        )
        if problem not in self._said:
            self._said.add(problem)
            self._problems.append(problem)

    def refuse(self, path: KeyPath, rule: str, value: Any = _UNSET, hint: str | None = None) -> Any:
        """As `add`; returns `BAD` for the caller to hand on."""
        self.add(path, rule, value, hint)
        return BAD

    def add_all(self, problems: Iterable[Problem]) -> None:
        """Notes problems found elsewhere, such as in a file that this one names."""
        self._problems += problems

    def suggest(self, name: str, known: Collection[str]) -> str:
        """A hint for an unknown name: the nearest known one, else the first few."""
        self._comparisons_left -= len(known)
        near = nearest(name, known) if self._comparisons_left > 0 else None
        if near is not None:
            return f"did you mean {near!r}?"
        return name_list(known, "known: ", "there are none")

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems in the order of their lines; those of other files come last."""
        own = self.document.file
        return tuple(sorted(self._problems, key=lambda p: (p.file != own, p.line or 0)))

    @property
    def count(self) -> int:
        """How many problems there are so far."""
        return len(self._problems)

    def raise_problems(self) -> None:
        """Raises an `InputError` if there are any problems."""
        if self._problems:
            raise InputError(self.problems)


def name_list(names: Collection[str], before: str, if_none: str) -> str:
    """The first few of some names, and how many more there are."""
    if not names:
        return if_none
    shown = list(names)[:_SHOWN_NAMES]
    more = len(names) - len(shown)
    return before + ", ".join(shown) + (f" and {more} more" if more else "")


def show(value: Any) -> str:
    """A value as it would stand in the file, kept short."""
    if value is None:
        return "nothing"
    if isinstance(value, Said):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinity" if value > 0 else "-infinity"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a very large integer"  # Python refuses to print some of them
    text = repr(value) if isinstance(value, str | int | float) else f"{type(value).__name__} object"
    return text if len(text) <= 80 else f"{text[:78]}…"
