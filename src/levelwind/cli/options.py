"""Options that several commands share, described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from levelwind.cli.output import Format

NetworkFile = Annotated[
    Path, typer.Argument(metavar="NETWORK", help="The network file, YAML or JSON.", show_default=False)
]
ClusterFile = Annotated[
    Path | None,
    typer.Option("--cluster", metavar="FILE", help="The cluster file: the nodes to use.", show_default=False),
]
NodeCount = Annotated[
    int | None,
    typer.Option(
        "--nodes", metavar="N", help="Instead of a cluster file: N equal nodes n1 … nN.", show_default=False
    ),
]
FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="text for people, json for programs. Default: text on a terminal, json in a pipe or file.",
        metavar="text|json",
        show_default=False,
    ),
]
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, metavar="N", help="Start of the random numbers: same seed, same answer."),
]
PlannerName = Annotated[
    str, typer.Option("--planner", metavar="NAME", help="Who decides; see levelwind planners.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="An option of the planner. May be repeated; see levelwind planners.",
        show_default=False,
    ),
]
PlacementFile = Annotated[
    Path,
    typer.Option(
        "--placement",
        metavar="FILE",
        help="What levelwind plan put out, or a mapping of operators to nodes. - reads standard input.",
        show_default=False,
    ),
]
FromFile = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="Where the operators stand now, in the same form: tells how much load moves.",
        show_default=False,
    ),
]
