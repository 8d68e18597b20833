"""``levelwind plan``: decide where every operator runs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levelwind.cli.errors import DONE, NO
from levelwind.cli.figures import measure_table, number, plain_table
from levelwind.cli.inputs import parse_settings, read_both, read_current, writable
from levelwind.cli.options import (
    ClusterFile,
    FormatOption,
    FromFile,
    NetworkFile,
    NodeCount,
    PlannerName,
    Seed,
    Settings,
)
from levelwind.cli.output import answer, json_text, note

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from levelwind.model import Cluster, Network, Plan

# Above this many operators nobody reads their names: counts by kind say more.
_MOST_NAMES = 60
_MOST_SHARED = 8

OutputFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="Write the plan to this file too, as JSON. Nothing is written if there is no plan.",
        show_default=False,
    ),
]


Reuse = Annotated[
    bool,
    typer.Option(
        "--reuse",
        help="Let queries use each other's equal operators where that does not raise network usage.",
    ),
]


def plan(
    network_file: NetworkFile,
    cluster_file: ClusterFile = None,
    nodes: NodeCount = None,
    planner: PlannerName = "rod",
    settings: Settings = None,
    from_file: FromFile = None,
    output_file: OutputFile = None,
    reuse: Reuse = False,
    seed: Seed = 0,
    format: FormatOption = None,
) -> int:
    """Decide where every operator runs.

    With --reuse, operators that do the same to the same rows are one wherever that does not raise network
    usage; the answer says who is served by whom, and which operators have a multicast operator behind
    them that passes their rows on. levelwind measure and explain take such a plan as it is.

    Ends with exit code 1 if there is no plan that keeps all rules.

    Examples:
      levelwind plan examples/worked.yaml --nodes 2
      levelwind plan examples/traffic.yaml --nodes 5 --planner rod
      levelwind plan examples/traffic.yaml --cluster examples/cluster.yaml --planner llf --format text
    """
    options = parse_settings(settings)
    writable(output_file, option="--output")
    network, cluster = read_both(network_file, cluster_file, nodes)
    before = read_current(from_file, network, cluster)
    from levelwind import planning
    from levelwind.model import PlanStatus

    served: dict[str, Any] = {}
    if reuse:
        from levelwind.sharing import plan_shared, usage_alone

        wide = planning.cluster_of(cluster)
        found = plan_shared(network, wide, planner, options=options, seed=seed, current=before)
        alone = usage_alone(network, wide, planner, options=options, seed=seed)
        made, network = found.plan, found.network
        served = {
            "shared": dict(found.served_by),
            "multicast": list(found.multicast),
            "usage_apart": found.usage_apart,
            "usage_alone": alone,
        }
    else:
        made = planning.plan(network, cluster, planner, options=options, seed=seed, current=before)
    placed = made.status is PlanStatus.PLACED
    if output_file is not None and placed:
        _replace(output_file, json_text({**made.as_dict(), **served}))
    elif output_file is not None:
        note(f"there is no plan to write to {output_file}")
    whole = {**made.as_dict(), **served}
    remarks = [*whole["notes"], *_sharing(served)]
    answer(format, lambda: whole, lambda: plan_text(made, network, cluster), remarks=remarks)
    return DONE if placed else NO


def _sharing(served: Mapping[str, Any]) -> list[str]:
    """What reuse did, in words."""
    if not served:
        return []
    pairs = [f"{name} by {by}" for name, by in served["shared"].items()]
    some = ", ".join(pairs[:_MOST_SHARED]) + (" …" if len(pairs) > _MOST_SHARED else "")
    said = [f"{plural(len(pairs), 'operator')} served by others: {some}" if pairs else "nothing is shared"]
    if served["multicast"]:
        said.append(f"rows passed on by a multicast operator: those of {', '.join(served['multicast'])}")
    for key, which in (("usage_apart", "without shared operators"), ("usage_alone", "each query by itself")):
        if served[key] is not None:
            said.append(f"network usage {which}: {number(served[key])}")
    return said


def plan_text(made: Plan, network: Network, cluster: Cluster) -> RenderableType:
    """A plan for people: what it is worth, and what stands where."""
    from rich.console import Group
    from rich.text import Text

    count, width = len(made.placement), len(cluster.nodes)
    head = f"{network.name} by {made.planner}: {made.status.value}"
    if not made.placement:
        return Text(head)
    head += f", {plural(count, 'operator')} on {plural(width, 'node')}"
    parts: list[RenderableType] = [Text(head), Text()]
    if made.measures is not None:
        parts += [measure_table(made.measures), Text()]
    return Group(*parts, node_table(made, network, cluster))


def node_table(made: Plan, network: Network, cluster: Cluster) -> Table:
    """The nodes with their load at the stated rates (if all are stated) and their operators."""
    from levelwind.loads.problem import make_problem
    from levelwind.placement import node_loads

    problem = make_problem(network, cluster)
    known = not problem.rates.missing
    loads = node_loads(problem, problem.assignment(made.placement)) if known else None
    kinds = {operator.name: operator.logical.kind for operator in problem.physical.operators}
    table = plain_table()
    table.add_column("node", overflow="fold")
    if loads is not None:
        table.add_column("load", justify="right")
    table.add_column("count", justify="right")
    table.add_column("operators", overflow="fold")
    for i, node in enumerate(cluster.names):
        here = [name for name, place in made.placement.items() if place == node]
        listed = " ".join(here)
        if len(made.placement) > _MOST_NAMES:
            by_kind = Counter(kinds[name] for name in here)
            listed = ", ".join(f"{count} {kind}" for kind, count in by_kind.most_common())
        load = [] if loads is None else [number(float(loads[i]))]
        table.add_row(node, *load, str(len(here)), listed)
    return table


def plural(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _replace(file: Path, text: str) -> None:
    """Write a file whole or not at all; what is no plain file (a device, a link) is written through."""
    if file.exists() and (file.is_symlink() or not file.is_file()):
        file.write_text(text, encoding="utf-8")
        return
    draft = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
