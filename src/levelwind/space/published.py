"""Published networks as clusters: whatever form a file has, the nodes in it and what lies between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from levelwind.errors import InputError, Problem
from levelwind.loads.arrays import Floats
from levelwind.model import Cluster, Node, Topology
from levelwind.space.latency import with_latency
from levelwind.space.readers import (
    read_gtitm,
    read_rocketfuel,
    read_rtt_matrix,
    read_rtt_slices,
    read_topology_zoo,
)
from levelwind.space.tables import raw_text

KINDS = ("gtitm", "rocketfuel", "rtt_matrix", "rtt_slices", "topology_zoo")
CLUSTER_FILE, LATENCY_FILE, TOPOLOGY_FILE = "cluster.yaml", "latency.csv", "topology.graphml"
# A microsecond is finer than anything that was measured.
DIGITS = 3


def kind_of(path: Path) -> str:
    """The form of a file, by its content: one of ``KINDS``."""
    if path.suffix == ".parquet":
        return "rtt_slices"
    lines = raw_text(path).lstrip().splitlines()
    header = lines[0] if lines else ""
    if header.startswith("GRAPH"):
        return "gtitm"
    columns = {cell.strip() for cell in header.split(",")}
    if "asn" in columns:
        return "rocketfuel"
    return "topology_zoo" if "topology" in columns else "rtt_matrix"


def read_published(
    path: Path, *, name: str | None = None, places: Path | None = None, scale: float = 1.0
) -> Cluster:
    """A cluster of equal nodes, one per node of the network, with latencies and, where there are any, links.

    Parameters
    ----------
    name
        Which network, of a file that has several: an ``asn`` of Rocketfuel, a ``topology`` of the Zoo.
    places
        The Zoo's table of nodes; ``nodes.csv`` or ``nodes.csv.gz`` beside the links without it.
    scale
        Milliseconds per unit of length, for GT-ITM, whose lengths have no unit.

    Notes
    -----
    O(nodes × links × log nodes) for routes, O(nodes²) for a matrix. Of round trips at several times the
    median counts; a pair that was never measured has the median of all.
    """
    kind = kind_of(path)
    if kind == "rtt_matrix":
        matrix = read_rtt_matrix(path)
        return _apart(raw_text(path).splitlines()[0].split(","), matrix)
    if kind == "rtt_slices":
        usual = usual_latency(np.array(list(read_rtt_slices(path))))
        return _apart([f"n{number}" for number in range(len(usual))], usual)
    if kind == "gtitm":
        topology = read_gtitm(path, scale=scale)
    elif kind == "rocketfuel":
        topology = read_rocketfuel(path, _one(name, "asn", path))
    else:
        topology = read_topology_zoo(_beside(path, places), path, _one(name, "topology", path))
    named = _renamed(topology)
    nodes = tuple(Node(name=each) for each in named.nodes)
    return with_latency(Cluster(nodes=nodes, topology=named))


def usual_latency(slices: Floats) -> Floats:
    """The median of each pair over time (slices × nodes × nodes); of a pair without one, that of all."""
    known = np.isfinite(slices).any(axis=0)
    usual = np.full(known.shape, np.nan)
    usual[known] = np.nanmedian(slices[:, known], axis=0)
    return np.where(known, usual, np.nanmedian(usual))


def cluster_files(cluster: Cluster) -> dict[str, str]:
    """The files that describe a cluster, text by name: cluster file, matrix, and topology if it has one."""
    assert cluster.latency_ms is not None
    rows = [",".join(f"{ms:.{DIGITS}f}".rstrip("0").rstrip(".") for ms in row) for row in cluster.latency_ms]
    head = ["nodes:", *(f'  - {{name: "{name}"}}' for name in cluster.names), f"latency: {LATENCY_FILE}"]
    files = {LATENCY_FILE: "\n".join([",".join(cluster.names), *rows]) + "\n"}
    if cluster.topology is not None:
        head.append(f"topology: {TOPOLOGY_FILE}")
        files[TOPOLOGY_FILE] = graphml(cluster.topology)
    return {CLUSTER_FILE: "\n".join(head) + "\n", **files}


def graphml(topology: Topology) -> str:
    """A topology in GraphML, as the cluster file names it."""
    lines = [
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        '<key id="l" for="edge" attr.name="latency_ms" attr.type="double"/>',
        '<key id="w" for="edge" attr.name="weight" attr.type="double"/>',
        '<graph edgedefault="undirected">',
        *(f"<node id={quoteattr(name)}/>" for name in topology.nodes),
    ]
    for link in topology.links:
        weight = "" if link.weight is None else f'<data key="w">{link.weight!r}</data>'
        ends = f"source={quoteattr(link.source)} target={quoteattr(link.target)}"
        lines.append(f'<edge {ends}><data key="l">{link.latency_ms!r}</data>{weight}</edge>')
    return "\n".join([*lines, "</graph>", "</graphml>", ""])


def _apart(names: Sequence[str], latency_ms: Floats) -> Cluster:
    """Nodes with these latencies and no links between them."""
    nodes = tuple(Node(name=name) for name in plain_names(names))
    return Cluster(nodes=nodes, latency_ms=tuple(map(tuple, latency_ms.tolist())))


def _renamed(topology: Topology) -> Topology:
    """The topology under names that a cluster file may have."""
    named = dict(zip(topology.nodes, plain_names(topology.nodes), strict=True))
    links = tuple(
        replace(link, source=named[link.source], target=named[link.target]) for link in topology.links
    )
    return Topology(nodes=tuple(named.values()), links=links, path=topology.path)


def plain_names(names: Sequence[str]) -> list[str]:
    """Names of letters, digits, ``_`` and ``-`` that begin with a letter, each once, like those given."""
    taken: dict[str, None] = {}
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_") or "node"
        plain = plain if plain[0].isalpha() else f"n{plain}"
        fresh, number = plain, 2
        while fresh in taken:
            fresh, number = f"{plain}_{number}", number + 1
        taken[fresh] = None
    return list(taken)


def _one(name: str | None, what: str, path: Path) -> str:
    if name is not None:
        return name
    rule, hint = f"the file has several networks: one {what} must be named", "give --name"
    raise InputError([Problem(rule=rule, key=what, file=str(path), hint=hint)])


def _beside(path: Path, places: Path | None) -> Path:
    """The Zoo's table of nodes."""
    if places is not None:
        return places
    for name in ("nodes.csv", "nodes.csv.gz"):
        if (found := path.with_name(name)).exists():
            return found
    rule, hint = (
        "the table of nodes must be beside that of links, as nodes.csv or nodes.csv.gz",
        "give --places",
    )
    raise InputError([Problem(rule=rule, file=str(path), hint=hint)])
