"""``levelwind size``: how many nodes bear given rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from levelwind.cli.errors import DONE, NO
from levelwind.cli.figures import number, plain_table
from levelwind.cli.inputs import parse_rates, parse_settings, read_network
from levelwind.cli.options import FormatOption, NetworkFile, PlannerName, Seed, Settings
from levelwind.cli.output import answer
from levelwind.errors import input_error

if TYPE_CHECKING:
    from rich.console import RenderableType

    from levelwind.planning import Sizing

Rates = Annotated[
    list[str] | None,
    typer.Option(
        "--rates",
        metavar="STREAM=ROWS,…",
        help="Rows per second of the streams. Those left out are as the network file says.",
        show_default=False,
    ),
]
Cpu = Annotated[
    float, typer.Option("--cpu", metavar="X", help="CPU seconds that each node can spend per second.")
]


def size(
    network_file: NetworkFile,
    rates: Rates = None,
    planner: PlannerName = "rod",
    settings: Settings = None,
    cpu: Cpu = 1.0,
    seed: Seed = 0,
    format: FormatOption = None,
) -> int:
    """Find how many equal nodes bear given rates.

    Also tells by how much the rates could still grow. Ends with exit code 1 if no number of nodes is enough.

    Example:
      levelwind size examples/worked.yaml --rates I1=0.04,I2=0.05
    """
    options = parse_settings(settings)
    if not 0.0 < cpu < float("inf"):
        rule = "must be a number above 0"
        raise input_error(rule, key="--cpu", value=cpu)
    network = read_network(network_file)
    stated = parse_rates(rates, network)
    from levelwind import planning

    found = planning.size(network, stated, planner=planner, options=options, cpu=cpu, seed=seed)
    whole = _as_dict(found)
    answer(format, lambda: whole, lambda: _text(found), remarks=whole["notes"])
    return NO if found.nodes is None else DONE


def _as_dict(found: Sizing) -> dict[str, Any]:
    return {
        "nodes": found.nodes,
        "margin": found.margin,
        "loads": dict(found.loads),
        "plan": found.plan.as_dict() if found.plan else None,
        "notes": [*found.notes, *(found.plan.notes if found.plan else ())],
    }


def _text(found: Sizing) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    if found.nodes is None:
        return Text("no number of nodes bears these rates")
    head = "1 node bears these rates" if found.nodes == 1 else f"{found.nodes} nodes bear these rates"
    if found.plan is not None:
        head += f" as {found.plan.planner} places them"
    if found.margin is not None:
        head += f"; all together could grow to {number(found.margin)} times that"
    table = plain_table()
    table.add_column("node")
    table.add_column("load", justify="right")
    for node, load in found.loads.items():
        table.add_row(node, number(load))
    return Group(Text(head), Text(), table)
