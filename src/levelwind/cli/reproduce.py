"""``levelwind reproduce``: the papers' tables and figures, measured again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levelwind.cli.errors import DONE, RunFailedError
from levelwind.cli.figures import number, plain_table
from levelwind.cli.options import FormatOption, Seed
from levelwind.cli.output import answer, console, note
from levelwind.errors import InputError, LevelwindError, Problem, did_you_mean, input_error

if TYPE_CHECKING:
    from rich.table import Table

Progress = Callable[[int, int, str], None]
_LONGEST = 200  # characters of numbers that a cell of the table holds

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...", help="Which ones; all without any. --list names them.", show_default=False
    ),
]
OnlyList = Annotated[bool, typer.Option("--list", help="Only name what can be reproduced.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer repetitions: a first look, less certain.")]
OutFolder = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Write data and pictures here instead of to ./reproduced.",
        show_default=False,
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master", metavar="URL", help="Share the work out over this Spark cluster.", show_default=False
    ),
]


def reproduce(
    wanted: Names = None,
    only_list: OnlyList = False,
    quick: Quick = False,
    out: OutFolder = None,
    master: Master = None,
    seed: Seed = 0,
    format: FormatOption = None,
) -> int:
    """Measure the papers' tables and figures again.

    Says which of their claims hold. A claim that does not hold is a result, not a failure:
    the exit code is 0.

    Examples:
      levelwind reproduce --list
      levelwind reproduce --quick
    """
    registry = import_module("levelwind.reproduce.registry")
    known = list(registry.names())
    names = _chosen(wanted, known)
    if only_list:
        found = [item for item in registry.describe() if item["name"] in names]
        answer(format, lambda: found, lambda: _list_table(found))
        return DONE
    if out is not None and out.exists() and not out.is_dir():
        rule = "must be a directory"
        raise input_error(rule, key="--out", value=out)
    try:
        with _progress(len(names)) as progress:
            results = registry.run(names, quick=quick, seed=seed, out=out, master=master, progress=progress)
    except LevelwindError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise RunFailedError(message) from error
    remarks = [f"{result['name']}: {result['why']}" for result in results if result.get("why")]
    answer(format, lambda: results, lambda: _table(results), remarks=remarks)
    return DONE


def _chosen(wanted: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    problems = [
        Problem(rule="must be something to reproduce", key="NAME", value=name, hint=did_you_mean(name, known))
        for name in wanted or ()
        if name not in known
    ]
    if problems:
        raise InputError(problems)
    return list(dict.fromkeys(wanted)) if wanted else list(known)


def _list_table(found: Sequence[Mapping[str, str]]) -> Table:
    table = plain_table()
    table.add_column("name", no_wrap=True)
    table.add_column("what it is")
    for item in found:
        table.add_row(item["name"], item["title"])
    return table


def _table(results: Sequence[Mapping[str, Any]]) -> Table:
    table = plain_table()
    table.add_column("name", no_wrap=True)
    table.add_column("paper", ratio=3)
    table.add_column("ours", ratio=3)
    table.add_column("holds", justify="center")
    table.add_column("seconds", justify="right")
    for result in results:
        holds = "✓" if result["holds"] else "✗"
        table.add_row(
            result["name"],
            _told(result["paper"]),
            _short(_told(result["ours"])),
            holds,
            number(result["seconds"]),
        )
    return table


def _short(text: str) -> str:
    """The beginning of a long list of numbers, cut between two of them; the JSON has them all."""
    if len(text) <= _LONGEST:
        return text
    return text[:_LONGEST].rpartition(", ")[0] + ", …"


def _told(value: Any) -> str:
    """What a result says, whatever its shape: numbers short, pairs by name."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_told(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return " ".join(_told(item) for item in value)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return number(value) if isinstance(value, int | float) else str(value)


@contextmanager
def _progress(total: int) -> Iterator[Progress]:
    """How far the work is: a bar on a terminal; elsewhere nothing, so that logs stay short."""
    if not sys.stderr.isatty():
        note(f"reproducing {total}; this can take minutes")
        yield lambda *_: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(done: int, of: int, name: str) -> None:
            bar.update(task, completed=done, total=of, description=name)

        yield show
