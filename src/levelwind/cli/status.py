"""``levelwind status``: how a run fares."""

from __future__ import annotations

from levelwind.cli.errors import DONE, NO
from levelwind.cli.options import FormatOption
from levelwind.cli.output import answer
from levelwind.cli.runs import RunArgument, find_run, run_view


def status(run_directory: RunArgument, format: FormatOption = None) -> int:
    """Show how a run fares.

    Its state, its nodes and their loads, its last batch. Ends with exit code 1 if the run has failed.

    Example:
      levelwind status runs/traffic-20260101T120000Z
    """
    found = find_run(run_directory)
    told, current = found.read(), found.status()
    answer(
        format,
        lambda: {"run": str(found.path.absolute()), "name": told.get("name"), **current},
        lambda: run_view(current, name=told.get("name", ""), directory=found.path.absolute()),
    )
    return NO if current.get("state") == "failed" else DONE
