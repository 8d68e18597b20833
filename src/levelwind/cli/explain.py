"""``levelwind explain``: why an operator stands where it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from levelwind.cli.errors import DONE
from levelwind.cli.figures import FIGURES, figure_columns, number, plain_table, signed
from levelwind.cli.inputs import read_both, read_plan
from levelwind.cli.options import ClusterFile, FormatOption, NetworkFile, NodeCount, PlacementFile, Seed
from levelwind.cli.output import answer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from levelwind.planning import Explanation

OperatorName = Annotated[
    str,
    typer.Option("--operator", metavar="NAME", help="The operator to explain.", show_default=False),
]
# The bound is the same wherever the operator stands; the others would only repeat what these say.
_COMPARED = (
    "feasible_ratio",
    "min_plane_distance",
    "max_load",
    "load_std",
    "network_usage",
    "delay",
    "cut_streams",
)


def explain(
    network_file: NetworkFile,
    placement_file: PlacementFile,
    operator: OperatorName,
    cluster_file: ClusterFile = None,
    nodes: NodeCount = None,
    seed: Seed = 0,
    format: FormatOption = None,
) -> int:
    """Tell why an operator stands where it does.

    Shows what every other node would mean as well: the measures for it are
    those of the placement with this one operator moved there.

    Example:
      levelwind plan examples/worked.yaml --nodes 2 |
        levelwind explain examples/worked.yaml --nodes 2 --placement - --operator o1
    """
    network, cluster = read_both(network_file, cluster_file, nodes)
    made, network = read_plan(placement_file, network, cluster)
    from levelwind import planning

    found = planning.explain(network, cluster, made, operator, seed=seed)
    whole = _as_dict(found, made.planner)
    answer(format, lambda: whole, lambda: _text(found, made.planner), remarks=whole["notes"])
    return DONE


def _as_dict(found: Explanation, planner: str) -> dict[str, Any]:
    return {
        "operator": found.operator,
        "node": found.node,
        "planner": planner or None,
        "reason": found.reason,
        "measures": found.here.as_dict(),
        "elsewhere": {node: measures.as_dict() for node, measures in found.elsewhere.items()},
        "notes": [*found.notes, *found.here.notes],
    }


def _text(found: Explanation, planner: str) -> RenderableType:
    """The reason, then a row per node: the measures here, and by how much each changes elsewhere."""
    from rich.console import Group
    from rich.text import Text

    by = f" ({planner})" if planner else ""
    columns = [f for f in FIGURES if f.name in _COMPARED and getattr(found.here, f.name) is not None]
    table = plain_table()
    table.add_column("node", overflow="fold")
    figure_columns(table, columns)
    table.add_row(
        f"{found.node} (here)", *(number(getattr(found.here, f.name)) for f in columns), style="bold"
    )
    for node, measures in found.elsewhere.items():
        changes = []
        for figure in columns:
            here, there = getattr(found.here, figure.name), getattr(measures, figure.name)
            changes.append(signed(None if there is None else there - here))
        table.add_row(node, *changes)
    return Group(Text(f"{found.operator} stands on {found.node}{by}: {found.reason}"), Text(), table)
