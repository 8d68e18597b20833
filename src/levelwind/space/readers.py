"""Readers for measured and generated networks, in the forms in which others publish them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl

from levelwind.errors import did_you_mean, input_error
from levelwind.loads.arrays import Floats
from levelwind.model import Link, Topology

# Light in glass, one way.
KM_PER_MS = 200.0


def read_gtitm(path: Path, *, scale: float = 1.0) -> Topology:
    """A graph in GT-ITM's alternate format (``.alt``): vertices, then edges with length and routing weight.

    ``scale`` is milliseconds per unit of length, which has no unit of its own. Of links that the file
    repeats, routes take the better one.
    """
    names: dict[str, str] = {}
    links = []
    section = ""
    for line in _text(path).splitlines():
        cells = line.split()
        if not cells:
            continue
        if cells[0] in ("GRAPH", "VERTICES", "EDGES"):
            section = cells[0]
        elif section == "VERTICES":
            names[cells[0]] = cells[0]
        elif section == "EDGES":
            if len(cells) < 3 or cells[0] not in names or cells[1] not in names:
                rule = "an edge must join two vertices and have a length"
                raise input_error(rule, key=str(path), value=line)
            weight = float(cells[3]) if len(cells) > 3 else None
            links.append(
                Link(source=cells[0], target=cells[1], latency_ms=float(cells[2]) * scale, weight=weight)
            )
    if not names:
        rule = "must be a graph of GT-ITM with vertices and edges"
        raise input_error(rule, key=str(path))
    return Topology(nodes=tuple(names), links=tuple(links), path=str(path))


def read_topology_zoo(nodes: Path, links: Path, name: str) -> Topology:
    """One network of the Internet Topology Zoo, from tables of nodes and links of many.

    Nodes are named by their place and number; latency is the great circle at 200 km a millisecond.
    """
    places = pl.read_csv(nodes, schema_overrides={"topology": pl.String, "name": pl.String})
    lines = pl.read_csv(links, schema_overrides={"topology": pl.String})
    own = _one_of(places, "topology", name, nodes)
    label = {int(node): f"{place} {node}" for node, place in own.select("node", "name").iter_rows()}
    return Topology(
        nodes=tuple(label.values()),
        links=tuple(
            Link(source=label[a], target=label[b], latency_ms=km / KM_PER_MS)
            for a, b, km in lines.filter(pl.col("topology") == name)
            .select("source", "target", "dist_km")
            .iter_rows()
        ),
        path=str(links),
    )


def read_rocketfuel(path: Path, asn: int) -> Topology:
    """One provider's backbone from Rocketfuel's inferred latencies and weights: its largest connected part.

    A link that has a row for each direction is one link, with the mean of both.
    """
    rows = _one_of(pl.read_csv(path), "asn", asn, path)
    both: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for source, target, latency, weight in rows.select(
        "source", "target", "latency_ms", "weight"
    ).iter_rows():
        pair = (source, target) if source <= target else (target, source)
        both.setdefault(pair, []).append((latency, weight))
    kept = _largest_part(list(both))
    links = tuple(
        Link(source=a, target=b, latency_ms=latency, weight=weight)
        for (a, b), (latency, weight) in ((pair, np.mean(both[pair], axis=0).tolist()) for pair in both)
        if a in kept
    )
    return Topology(nodes=tuple(sorted(kept)), links=links, path=str(path))


def read_rtt_matrix(path: Path) -> Floats:
    """One-way milliseconds from a square CSV of round trips in milliseconds, with a header; gzip or plain."""
    matrix = np.loadtxt(BytesIO(_bytes(path)), delimiter=",", skiprows=1, ndmin=2)
    if matrix.shape[0] != matrix.shape[1]:
        rule = "a matrix of round trips must be square"
        raise input_error(rule, key=str(path), value=f"{matrix.shape[0]} rows, {matrix.shape[1]} columns")
    return matrix / 2.0


def read_rtt_slices(path: Path) -> Iterator[Floats]:
    """One-way milliseconds at successive times, from rows ``slice``, ``src``, ``dst``, ``rtt_s`` (seconds).

    What was not measured is NaN; a node is at 0 from itself.
    """
    rows = pl.read_parquet(path).sort("slice")
    count = int(max(rows["src"].max(), rows["dst"].max())) + 1  # type: ignore[arg-type, type-var]
    first = int(min(rows["src"].min(), rows["dst"].min()))  # type: ignore[arg-type, type-var]
    for part in rows.partition_by("slice", maintain_order=True):
        matrix = np.full((count - first, count - first), np.nan)
        source, target = part["src"].to_numpy() - first, part["dst"].to_numpy() - first
        matrix[source, target] = part["rtt_s"].to_numpy() * 500.0
        np.fill_diagonal(matrix, 0.0)
        yield matrix


def _largest_part(pairs: list[tuple[str, str]]) -> set[str]:
    """Nodes of the largest connected part. O(links)."""
    near: dict[str, list[str]] = {}
    for a, b in pairs:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    best: set[str] = set()
    seen: set[str] = set()
    for start in near:
        if start in seen:
            continue
        part, waiting = {start}, [start]
        while waiting:
            fresh = [other for other in near[waiting.pop()] if other not in part]
            part.update(fresh)
            waiting += fresh
        seen |= part
        best = max(best, part, key=len)
    return best


def _one_of(table: pl.DataFrame, column: str, value: object, path: Path) -> pl.DataFrame:
    found = table.filter(pl.col(column) == value)
    if not len(found):
        known = [str(each) for each in table[column].unique(maintain_order=True)]
        rule = f"must be a {column} of {path.name}"
        raise input_error(rule, key=column, value=value, hint=did_you_mean(str(value), known))
    return found


def _bytes(path: Path) -> bytes:
    raw = path.read_bytes()
    return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw


def _text(path: Path) -> str:
    return _bytes(path).decode("utf-8")
