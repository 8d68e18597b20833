"""``levelwind reproduce``: the papers' tables and figures, measured again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levelwind.cli.batch import Names, batch, list_table
from levelwind.cli.errors import DONE
from levelwind.cli.figures import number, plain_table
from levelwind.cli.options import FormatOption, Seed
from levelwind.cli.output import answer
from levelwind.errors import input_error

if TYPE_CHECKING:
    from rich.table import Table

_LONGEST = 200  # characters of numbers that a cell of the table holds

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

Minutes = Annotated[
    float | None,
    typer.Option(
        "--minutes",
        min=0.0,
        help="On a cluster, begin no further run after this; the same command goes on later.",
        show_default=False,
    ),
]


def reproduce(
    wanted: Names = None,
    only_list: OnlyList = False,
    quick: Quick = False,
    out: OutFolder = None,
    master: Master = None,
    minutes: Minutes = None,
    seed: Seed = 0,
    format: FormatOption = None,
) -> int:
    """Measure the papers' tables and figures again.

    Says which of their claims hold. A claim that does not hold is a result, not a failure:
    the exit code is 0. Experiments on a cluster of their own (figure_6_12, dcape for all of
    seed 003) take minutes to hours and run only when they are named. The figures of seed 003
    share their runs: those that are made are kept in the folder, and a pass that was
    interrupted goes on where it stopped.

    Examples:
      levelwind reproduce --list
      levelwind reproduce --quick
      levelwind reproduce dcape --minutes 150
    """
    registry = import_module("levelwind.reproduce.registry")
    names = registry.select(wanted)
    if only_list:
        listed = names if wanted else registry.names()
        found = [item for item in registry.describe() if item["name"] in listed]
        answer(format, lambda: found, lambda: list_table(found))
        return DONE
    if out is not None and out.exists() and not out.is_dir():
        rule = "must be a directory"
        raise input_error(rule, key="--out", value=out)
    with batch(len(names)) as progress:
        results = registry.run(
            names, quick=quick, seed=seed, out=out, master=master, minutes=minutes, progress=progress
        )
    remarks = [f"{result['name']}: {result['why']}" for result in results if result.get("why")]
    remarks += _unlike(results)
    answer(format, lambda: results, lambda: _table(results), remarks=remarks)
    return DONE


def _unlike(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was run otherwise than in the paper, each thing once, with those that it holds for."""
    names: dict[str, list[str]] = {}
    for result in results:
        for what in result.get("set_up", ()):
            names.setdefault(what, []).append(result["name"])
    return [f"{', '.join(own)}: unlike the paper, {what}" for what, own in names.items()]


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
