"""What `bench` and `reproduce` share: names to choose from, a list of them, progress, failures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from levelwind.cli.errors import RunFailedError
from levelwind.cli.figures import plain_table
from levelwind.cli.output import console, note
from levelwind.errors import LevelwindError

if TYPE_CHECKING:
    from rich.table import Table

Progress = Callable[[int, int, str], None]
LOG_EVERY_S = 300.0
Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...", help="Which ones; all without any. --list names them.", show_default=False
    ),
]


def list_table(found: Sequence[Mapping[str, str]]) -> Table:
    """Names and what they are."""
    table = plain_table()
    table.add_column("name", no_wrap=True)
    table.add_column("what it is")
    for item in found:
        table.add_row(item["name"], item["title"])
    return table


@contextmanager
def batch(total: int) -> Iterator[Progress]:
    """Progress on a terminal, elsewhere a line now and then; a failure inside is a failed run, not bad input.

    The bar is drawn only when something changes: one that moves by itself would take time from what is
    being measured.
    """
    try:
        if sys.stderr.isatty():
            yield from _bar(total)
        else:
            note(f"running {total}; this can take minutes")
            yield _now_and_then()
    except LevelwindError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise RunFailedError(message) from error


def _now_and_then() -> Progress:
    """A line for logs, every few minutes at most."""
    last = monotonic()

    def show(done: int, of: int, what: str) -> None:
        nonlocal last
        if monotonic() >= last + LOG_EVERY_S:
            note(f"{done} of {of} done; {what}")
            last = monotonic()

    return show


def _bar(total: int) -> Iterator[Progress]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=console(sys.stderr), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("starting", total=total)

        def show(done: int, of: int, what: str) -> None:
            bar.update(task, completed=done, total=of, description=what, refresh=True)

        yield show
