"""``levelwind remove``: take queries out of a live run."""

from __future__ import annotations

from typing import Annotated

import typer

from levelwind.cli.options import FormatOption
from levelwind.cli.runs import RunArgument, Timeout, change_run, find_running, new_id

QueryNames = Annotated[
    list[str],
    typer.Argument(metavar="QUERY...", help="Outputs or SQL queries that are to go.", show_default=False),
]


def remove(
    run_directory: RunArgument, queries: QueryNames, timeout: Timeout = 60.0, format: FormatOption = None
) -> int:
    """Take outputs or SQL queries out of a live run.

    Operators that no other output uses go with them, and so does their state; rows that were put out stay.
    Waits until that is committed. Ends with exit code 1 if it does not happen in time.

    Example:
      levelwind remove runs/traffic-20260101T120000Z alerts
    """
    found = find_running(run_directory)
    from levelwind.frontend import load_network
    from levelwind.rewrite.removal import without
    from levelwind.runtime.changes import REMOVE
    from levelwind.runtime.rundir import Command

    without(load_network(found.network_file).network, queries)
    asked = Command(REMOVE, queries=tuple(queries), id=new_id())
    return change_run(found, asked, timeout, format)
