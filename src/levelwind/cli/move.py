"""``levelwind move``: move operators of a live run to another node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levelwind.cli.errors import DONE, NO
from levelwind.cli.figures import number, plain_table
from levelwind.cli.options import FormatOption
from levelwind.cli.output import answer, note
from levelwind.cli.runs import RunArgument, Timeout, find_running, grouped, wait_until
from levelwind.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from levelwind.runtime.rundir import RunDirectory

OperatorNames = Annotated[
    list[str],
    typer.Argument(
        metavar="OPERATOR...",
        help="What moves; the name of a split operator stands for all its instances.",
        show_default=False,
    ),
]
Target = Annotated[str, typer.Option("--to", metavar="NODE", help="The node to go to.", show_default=False)]
KEYS = {"operators": "OPERATOR", "to": "--to"}


def move(
    run_directory: RunArgument,
    operators: OperatorNames,
    target: Target,
    timeout: Timeout = 60.0,
    format: FormatOption = None,
) -> int:
    """Move operators of a live run to another node.

    They move between two batches, with nothing lost. Waits until they stand there, and says what each
    move has cost. Ends with exit code 1 if that does not happen in time.

    Example:
      levelwind move runs/traffic-20260101T120000Z busy pair --to n2
    """
    found = find_running(run_directory)
    names = _checked(found, operators, target)
    from levelwind.runtime.rundir import Command

    before = len(found.moves())
    away = [name for name in names if _placement(found).get(name) != target]
    if away:
        found.ask(Command("move", operators=tuple(away), target=target))
    arrived = wait_until(lambda: _is_over(found, away, target), timeout)
    placed = arrived and all(_placement(found).get(name) == target for name in away)
    records = [record for record in found.moves()[before:] if record["operator"] in away]
    if not away:
        note(f"all stand on {target} already")
    elif not placed:
        still = "not moved yet; a move waits for the next batch" if not arrived else "the run ended before"
        note(still)
    answer(
        format,
        lambda: {"run": str(found.path.absolute()), "to": target, "operators": names, "moves": records},
        lambda: _as_text(records),
    )
    return DONE if placed else NO


def _checked(found: RunDirectory, operators: Sequence[str], target: str) -> list[str]:
    """The operators as they are placed; every name that does not exist, and every rule that is broken."""
    from levelwind.frontend import load_network
    from levelwind.runtime.moves import check_move

    network = load_network(found.network_file).network
    asked = check_move(network, operators, target, found.read()["nodes"])
    if asked.problems:
        raise InputError(replace(problem, key=KEYS[problem.key]) for problem in asked.problems)
    return list(asked.operators)


def _placement(found: RunDirectory) -> Mapping[str, str]:
    placement: Mapping[str, str] = found.status().get("placement", {})
    return placement


def _is_over(found: RunDirectory, names: Sequence[str], target: str) -> bool:
    placement = _placement(found)
    return all(placement.get(name) == target for name in names) or not found.is_running()


def _as_text(records: Sequence[Mapping[str, Any]]) -> RenderableType:
    if not records:
        return "nothing was moved"
    table = plain_table()
    for name in ("operator", "from", "to"):
        table.add_column(name, overflow="fold")
    for name in ("bytes", "ms", "batch"):
        table.add_column(name, justify="right")
    for record in records:
        cost = (grouped(record.get("bytes", 0)), number(float(record.get("milliseconds", 0.0))))
        table.add_row(record["operator"], record["source"], record["target"], *cost, str(record["step"]))
    return table
