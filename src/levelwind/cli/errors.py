"""How the command ends: exit codes, and bad input told to a person or a program, never as a traceback."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import typer

from levelwind.cli.output import Format, chosen_format, print_json
from levelwind.errors import LevelwindError, Problem, did_you_mean, nearest

DONE = 0
NO = 1
BAD_INPUT = 2
FAILED = 3
INTERRUPTED = 130

TRACEBACK_VARIABLE = "LEVELWIND_TRACEBACK"

# Newer typers carry their own copy of click, older ones import it; the one error that both export under the
# same name leads to the class of all usage errors in either.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

# What a value must be, in our words: typer's differ from release to release and leave out what came.
_RULES = {
    "--format": "must be text or json",
    "--nodes": "must be a whole number from 1 to 100000",
    "--seed": "must be a whole number, zero or more",
    "--cpu": "must be a number above 0",
}


class RunFailedError(LevelwindError):
    """Something was started and did not come to its end: exit 3."""


def report_problems(problems: Sequence[Problem], arguments: Sequence[str]) -> int:
    """Tell of bad input. As JSON the list is the answer, on stdout; for people all lines are on stderr.

    Who asked for JSON by name gets a single line on stderr. Who only pipes the output gets both in full: the
    pipe's reader may be a program, and in front of the screen sits a person.
    """
    asked = stated_format(arguments)
    if chosen_format(asked) is Format.JSON:
        print_json([problem.as_dict() for problem in problems])
    if asked is Format.JSON:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        print(f"error: {one_line(problems[0])}{more}", file=sys.stderr)
    else:
        print(problem_text(problems), file=sys.stderr)
    return BAD_INPUT


def problem_text(problems: Sequence[Problem]) -> str:
    """One message per file, a line per problem."""
    by_file: dict[str | None, list[Problem]] = {}
    for problem in problems:
        by_file.setdefault(problem.file, []).append(problem)
    lines = []
    for file, group in by_file.items():
        if len(group) == 1:
            lines.append(f"error: {one_line(group[0])}")
        else:
            lines.append(f"error: {len(group)} problems{f' in {file}' if file else ''}")
            lines += [f"  {one_line(problem)}" for problem in group]
    return "\n".join(lines)


def one_line(problem: Problem) -> str:
    """A problem on one line, whatever stood in the value."""
    return " ".join(str(problem).split())


def report_failure(error: BaseException) -> int:
    """Tell of a fault of ours or of the machine, without a traceback unless one is asked for."""
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(error)
    said = str(error) or type(error).__name__
    if not isinstance(error, LevelwindError):
        said = f"{type(error).__name__}: {said}" if str(error) else said
    print(f"failed: {said} (set {TRACEBACK_VARIABLE}=1 to see where)", file=sys.stderr)
    return FAILED


def stated_format(arguments: Sequence[str]) -> Format | None:
    """The ``--format`` among raw arguments: they may be wrong in a way that keeps them from being read."""
    value = stated_value("--format", arguments)
    return next((form for form in Format if form.value == value), None)


def stated_value(option: str, arguments: Sequence[str]) -> str | None:
    """What stands after an option among raw arguments, the last time it is given."""
    found = None
    for i, argument in enumerate(arguments):
        if argument == "--":
            break
        name, sign, value = argument.partition("=")
        if name == option:
            found = value if sign else next(iter(arguments[i + 1 :]), None)
    return found


def usage_problem(error: Any, arguments: Sequence[str]) -> Problem:
    """A usage error of typer (a click error, in effect) as a problem with key, rule, value and hint."""
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    command = context.command_path if context is not None else "levelwind"
    rule = one_sentence(error.message or error.format_message())
    see = f"see {command} --help"
    option = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        known = [name for p in context.command.params for name in p.opts] if context is not None else []
        hint = did_you_mean(option, known) if nearest(option, known) else see
        return Problem(rule=f"must be an option of {command}", key=option, value=option, hint=hint)
    if parameter is None:
        return Problem(rule=rule, key=option or "", hint=see)
    named = parameter.param_type_name == "option"
    key = parameter.opts[0] if named else parameter.metavar or parameter.name
    if type(error).__name__ == "MissingParameter":
        return Problem(rule="must be given", key=key, hint=see)
    return Problem(rule=_RULES.get(key, rule), key=key, value=stated_value(key, arguments))


def one_sentence(text: str) -> str:
    """A message as a rule: one line, no full stop, no capital at the start."""
    flat = " ".join(text.split()).rstrip(".")
    return flat[:1].lower() + flat[1:]
