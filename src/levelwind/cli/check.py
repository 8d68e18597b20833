"""``levelwind check``: is a file right?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levelwind.cli.errors import DONE
from levelwind.cli.inputs import read_cluster
from levelwind.cli.options import FormatOption
from levelwind.cli.output import Format, answer, chosen_format, warning
from levelwind.errors import InputError

if TYPE_CHECKING:
    from levelwind.model import Cluster

CLUSTER, SCENARIO = "cluster", "scenario"

CheckedFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A network, cluster or scenario file.", show_default=False)
]
AgainstCluster = Annotated[
    Path | None,
    typer.Option(
        "--cluster",
        metavar="FILE",
        help="Also check that the nodes that the network names are in this cluster.",
        show_default=False,
    ),
]
AgainstNodes = Annotated[
    int | None,
    typer.Option("--nodes", metavar="N", help="The same for N equal nodes n1 … nN.", show_default=False),
]


def check(
    file: CheckedFile,
    cluster: AgainstCluster = None,
    nodes: AgainstNodes = None,
    format: FormatOption = None,
) -> int:
    """Check a network file, a cluster file or a scenario file.

    Which of them it is, its content tells. Every problem is told at once, with its line.
    Ends with exit code 2 if there are any.

    Examples:
      levelwind check examples/traffic.yaml
      levelwind check examples/worked.yaml --cluster examples/cluster.yaml
    """
    against = read_cluster(cluster, nodes) if cluster is not None or nodes is not None else None
    warnings: tuple[str, ...] = ()
    try:
        kind = "network"
        facts, warnings = _network_facts(file, against)
    except InputError:
        # Looked at only now: a network of ten thousand operators should be read once.
        other = _other_kind(file)
        if against is not None or other is None:
            raise
        kind = other
        facts, warnings = _cluster_facts(file) if kind == CLUSTER else _scenario_facts(file)
    result = {"ok": True, "file": str(file), "kind": kind, **facts, "warnings": warnings}
    answer(format, lambda: result, lambda: _text(file, kind, facts))
    if chosen_format(format) is Format.TEXT:
        for text in warnings:
            warning(f"{file}: {text}")
    return DONE


def _network_facts(file: Path, cluster: Cluster | None) -> tuple[dict[str, float], tuple[str, ...]]:
    """What is in a network file, in numbers, and its warnings."""
    from levelwind.frontend import load_network
    from levelwind.loads.spreading import linear_model
    from levelwind.rewrite import diffused

    loaded = load_network(file, cluster=cluster)
    network = loaded.network
    facts: dict[str, float] = {
        "streams": len(network.streams),
        "operators": len(network.operators),
        "variables": len(linear_model(diffused(network))[0].variables),
        "queries": len(network.queries),
        "outputs": len(network.outputs),
    }
    return facts, loaded.warnings


def _cluster_facts(file: Path) -> tuple[dict[str, float], tuple[str, ...]]:
    found = read_cluster(file, None)
    return {"nodes": len(found.nodes), "cpu": sum(node.cpu for node in found.nodes)}, ()


def _scenario_facts(file: Path) -> tuple[dict[str, float], tuple[str, ...]]:
    from levelwind.sim.scenario_file import load_scenario

    loaded = load_scenario(file)
    scenario = loaded.scenario
    return {"nodes": len(scenario.cluster.nodes), "seconds": scenario.duration_s}, loaded.warnings


def _other_kind(file: Path) -> str | None:
    """What the outermost keys say it is, if it is no network; None if they do not say."""
    from levelwind.frontend.document import read_document

    try:
        value = read_document(file, what="a file").value
    except InputError:
        return None
    if not isinstance(value, dict) or {"streams", "operators", "queries"} & set(value):
        return None
    if {"network", "generate", "workload"} & set(value):
        return SCENARIO
    return CLUSTER if "nodes" in value else None


def _text(file: Path, kind: str, facts: dict[str, float]) -> str:
    listed = ", ".join(f"{count:g} {name}" for name, count in facts.items() if count)
    return f"{file}: a {kind} without problems: {listed}"
