"""``levelwind stats``: what a run has measured."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levelwind.cli.errors import DONE
from levelwind.cli.figures import number, plain_table
from levelwind.cli.inputs import writable
from levelwind.cli.options import FormatOption
from levelwind.cli.output import answer, note
from levelwind.cli.plan import _replace as replace_file
from levelwind.cli.runs import RunArgument, find_run, grouped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from levelwind.model import Network
    from levelwind.runtime.measured import Measured, MeasuredOperator

# Above this many operators only the heaviest are listed.
MOST_OPERATORS, HEAVIEST = 60, 40

NetworkOut = Annotated[
    Path | None,
    typer.Option(
        "--network-out",
        metavar="FILE",
        help="Write the network with measured costs (of sending, too), selectivities and rates, for plan.",
        show_default=False,
    ),
]


def stats(run_directory: RunArgument, network_out: NetworkOut = None, format: FormatOption = None) -> int:
    """Show what a run has measured.

    Rates are what the sources offer (rows per second of event time), and ideal loads what these call for;
    load is what was spent, in CPU seconds per second. Costs are per row in, of a join per pair. The first
    batches are left out.

    Examples:
      levelwind stats runs/traffic-20260101T120000Z
      levelwind stats runs/traffic-20260101T120000Z --network-out measured.yaml
    """
    writable(network_out, option="--network-out")
    found = find_run(run_directory)
    from levelwind.runtime.measured import measure_run

    network, measured = measure_run(found)
    if network_out is not None:
        _write_network(network_out, network, measured)
    run = str(found.path.absolute())
    answer(format, lambda: {"run": run, **_as_dict(measured)}, lambda: _as_text(measured))
    if network_out is not None:
        note(f"the network with what was measured is in {network_out}")
    return DONE


def _write_network(file: Path, network: Network, measured: Measured) -> None:
    from levelwind.frontend.writing import network_document, network_text
    from levelwind.runtime.measured import measured_network

    written = measured_network(network, measured)
    if file.suffix.lower() == ".json":
        replace_file(file, json.dumps(network_document(written), indent=1, ensure_ascii=False) + "\n")
    else:
        replace_file(file, network_text(written))


def _as_dict(measured: Measured) -> dict[str, Any]:
    told = asdict(measured)
    del told["costs"]
    return told


def _as_text(measured: Measured) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    head = (
        f"{measured.steps} batches in {number(measured.seconds)} s; {measured.left_out} left out at the start"
    )
    parts: list[RenderableType] = [Text(head)]
    for table in (
        _stream_table(measured),
        _operator_table(measured),
        _node_table(measured),
        _query_table(measured),
    ):
        if table.row_count:
            parts += [Text(), table]
    return Group(*parts)


def _table(name: str, *columns: str, texts: Sequence[str] = ()) -> Table:
    table = plain_table()
    table.add_column(name, overflow="fold")
    for text in texts:
        table.add_column(text, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _stream_table(measured: Measured) -> Table:
    table = _table("stream", "rows", "offered rows/s", "taken in rows/s")
    for stream in measured.streams.values():
        table.add_row(stream.name, grouped(stream.rows), number(stream.rate), number(stream.wall_rate))
    return table


def _operator_table(measured: Measured) -> Table:
    """The operators, the heaviest first; of many, the rest in one line."""
    table = _table(
        "operator", "µs/row", "selectivity", "rows/s", "load", "ideal", "state bytes", texts=("node",)
    )
    ranked = sorted(measured.operators.values(), key=lambda operator: -operator.load)
    listed = ranked if len(ranked) <= MOST_OPERATORS else ranked[:HEAVIEST]
    for operator in listed:
        table.add_row(operator.name, operator.node, *_figures(operator))
    rest = ranked[len(listed) :]
    if rest:
        sums = [sum(getattr(each, name) for each in rest) for name in ("load", "ideal_load")]
        state = grouped(sum(each.state_bytes for each in rest))
        table.add_row(f"{len(rest)} more", "", "", "", "", *(number(load) for load in sums), state)
    return table


def _figures(operator: MeasuredOperator) -> tuple[str, ...]:
    cost = None if operator.cost_s is None else operator.cost_s * 1e6
    return (
        number(cost),
        number(operator.selectivity),
        number(operator.rate),
        number(operator.load),
        number(operator.ideal_load),
        grouped(operator.state_bytes),
    )


def _node_table(measured: Measured) -> Table:
    table = _table("node", "operators", "load", "max", "std", "ideal")
    for node in measured.nodes.values():
        figures = (node.load, node.max, node.std, node.ideal_load)
        table.add_row(node.name, str(node.operators), *(number(figure) for figure in figures))
    return table


def _query_table(measured: Measured) -> Table:
    table = _table("output", "operators", "load", "ideal")
    for query in sorted(measured.queries.values(), key=lambda query: -query.load):
        table.add_row(query.name, str(query.operators), number(query.load), number(query.ideal_load))
    return table
