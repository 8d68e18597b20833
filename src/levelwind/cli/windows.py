"""``levelwind windows``: other windows for a multijoin of a live run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from levelwind.cli.options import FormatOption
from levelwind.cli.runs import RunArgument, Timeout, change_run, find_running, new_id
from levelwind.errors import InputError, Problem

JoinName = Annotated[
    str, typer.Argument(metavar="JOIN", help="The multijoin whose windows change.", show_default=False)
]
NewWindows = Annotated[
    list[str],
    typer.Argument(metavar="INPUT=SIZE...", help="Inputs with their new windows.", show_default=False),
]


def windows(
    run_directory: RunArgument,
    join: JoinName,
    sizes: NewWindows,
    timeout: Timeout = 60.0,
    format: FormatOption = None,
) -> int:
    """Change windows of a multijoin in a live run.

    Groups whose last member comes from the next batch on go by them; rows that the old windows gave up do
    not come back. Waits until that is committed: from then on a restart goes on with them. Ends with exit
    code 1 if it does not happen in time.

    Example:
      levelwind windows runs/prices-20260101T120000Z trio n=10s e=1m
    """
    found = find_running(run_directory)
    from levelwind.frontend import load_network
    from levelwind.rewrite.windows import with_windows
    from levelwind.runtime.changes import WINDOWS
    from levelwind.runtime.rundir import Command

    told = _read(sizes)
    with_windows(load_network(found.network_file).network, join, told)
    return change_run(
        found, Command(WINDOWS, operators=(join,), windows_s=told, id=new_id()), timeout, format
    )


def _read(sizes: Sequence[str]) -> dict[str, float]:
    from levelwind.frontend.units import parse_duration

    told: dict[str, float] = {}
    problems = []
    for text in sizes:
        alias, equals, size = text.partition("=")
        try:
            if not alias or not equals:
                raise ValueError
            told[alias] = parse_duration(size)
        except ValueError:
            rule = "must be an input and a span of time"
            problems.append(Problem(rule=rule, key="WINDOW", value=text, hint="for example n=10s"))
    if problems:
        raise InputError(problems)
    return told
