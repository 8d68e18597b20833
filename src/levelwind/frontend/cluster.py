"""Cluster files: nodes and what lies between them."""

from __future__ import annotations

import os
from typing import Any

from levelwind.frontend.cluster_keys import CLUSTER
from levelwind.frontend.document import read_document
from levelwind.frontend.draft import value_of
from levelwind.frontend.latency import read_latency
from levelwind.frontend.report import BAD, Report
from levelwind.frontend.series import resolve_path
from levelwind.frontend.topology import read_topology
from levelwind.model import Cluster, Node
from levelwind.model.frozen import frozen_mapping


def load_cluster(path: str | os.PathLike[str]) -> Cluster:
    """Reads a cluster file, YAML or JSON, and the latency matrix and the topology that it names.

    Raises
    ------
    InputError
        With every problem of all these files.
    """
    report = Report(read_document(path, what="a cluster file"))
    values = CLUSTER.read(report.document.value, (), report)
    if values is BAD:
        report.raise_problems()
    nodes = _nodes(value_of(values, "nodes"), report)
    latency = value_of(values, "latency")
    matrix = None
    if latency is not None:
        file = resolve_path(latency, report.document.base)
        matrix = read_latency(file, [node.name for node in nodes], ("latency",), report)
    topology = None
    if value_of(values, "topology") is not None:
        file = resolve_path(value_of(values, "topology"), report.document.base)
        topology = read_topology(file, [node.name for node in nodes], ("topology",), report)
    report.raise_problems()
    return Cluster(
        nodes=tuple(nodes),
        latency_ms=matrix,
        topology=topology,
        network_bandwidth_bytes_per_s=values.get("network_bandwidth"),
    )


def _nodes(values: Any, report: Report) -> list[Node]:
    """The nodes, of which each has a name of its own."""
    nodes: list[Node] = []
    first: dict[str, int] = {}
    for index, value in enumerate(values or ()):
        name = value_of(value, "name", "")
        if name in first:
            hint = f"nodes[{first[name]}] has it already"
            report.add(("nodes", index, "name"), "node names must be unique", name, hint)
        first.setdefault(name, index)
        nodes.append(
            Node(
                name=name,
                cpu=value_of(value, "cpu", 1.0),
                memory_bytes=value_of(value, "memory"),
                bandwidth_bytes_per_s=value_of(value, "bandwidth"),
                host=value_of(value, "host"),
                properties=frozen_mapping(value_of(value, "properties")),
            )
        )
    return nodes
