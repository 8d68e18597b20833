"""One error tree: what went wrong, where, by which rule, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from difflib import get_close_matches


class LevelwindError(Exception):
    """Root of every error that Levelwind raises on purpose."""


class RunError(LevelwindError):
    """A run could not go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with an input: where it stands, the rule it breaks, what came.

    ``line`` counts from 1; it is None where the input has no lines (an option, an object built in Python).
    ``key`` is the path inside the file, such as ``operators[3].window.size``.
    """

    rule: str
    key: str = ""
    file: str | None = None
    line: int | None = None
    value: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        text = f"{place}: " if place else ""
        text += f"{self.key}: {self.rule}" if self.key else self.rule
        if self.value is not None:
            text += f" (got {self.value})"
        if self.hint:
            text += f". Hint: {self.hint}"
        return text

    def as_dict(self) -> dict[str, str | int | None]:
        """The problem as the JSON object of the contract."""
        fields = asdict(self)
        return {name: fields[name] for name in ("file", "line", "key", "rule", "value", "hint")}


class InputError(LevelwindError, ValueError):
    """Bad input: carries every problem that was found, not just the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def input_error(rule: str, *, key: str = "", value: object = None, hint: str | None = None) -> InputError:
    """An `InputError` with a single problem that has no place in a file."""
    shown = None if value is None else str(value)
    return InputError([Problem(rule=rule, key=key, value=shown, hint=hint)])


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to ``name``, or None if nothing is near."""
    found = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the nearest known one, else all of them."""
    names = list(known)
    near = nearest(name, names)
    if near is not None:
        return f"did you mean {near!r}?"
    return "known: " + ", ".join(names) if names else "there are none"


def chosen_names(wanted: Iterable[str] | None, known: Iterable[str], rule: str) -> tuple[str, ...]:
    """The wanted names without repetition, all known ones if there are none; unknown ones all at once."""
    names, asked = tuple(known), tuple(wanted or ())
    problems = [
        Problem(rule=rule, key="NAME", value=name, hint=did_you_mean(name, names))
        for name in asked
        if name not in names
    ]
    if problems:
        raise InputError(problems)
    return tuple(dict.fromkeys(asked)) or names
