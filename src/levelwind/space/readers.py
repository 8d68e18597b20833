"""Readers for measured and generated networks, in the forms in which others publish them.

Whatever is wrong with a file is an `InputError` that names the file, the line and the rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl

from levelwind.errors import InputError, Problem
from levelwind.loads.arrays import Floats
from levelwind.model import Link, Topology
from levelwind.space.tables import part_of, raw_bytes, raw_text, read_table, refuse

# Light in glass, one way.
KM_PER_MS = 200.0
_SECTIONS = ("GRAPH", "VERTICES", "EDGES")
_SLICES = ("slice", "src", "dst", "rtt_s")


def read_gtitm(path: Path, *, scale: float = 1.0) -> Topology:
    """A graph in GT-ITM's alternate format (``.alt``): vertices, then edges with length and routing weight.

    ``scale`` is milliseconds per unit of length, which has no unit of its own. Of links that the file
    repeats, routes take the better one. O(links).
    """
    names: dict[str, None] = {}
    links, problems = [], []
    section = ""
    for number, line in enumerate(raw_text(path).splitlines(), start=1):
        cells = line.split()
        if not cells:
            continue
        if cells[0] in _SECTIONS:
            section = cells[0]
        elif section == "VERTICES":
            names[cells[0]] = None
        elif section == "EDGES":
            found = _gtitm_edge(cells, names)
            if isinstance(found, str):
                problems.append(Problem(rule=found, file=str(path), line=number, value=line.strip()))
            else:
                length, weight = found
                links.append(Link(source=cells[0], target=cells[1], latency_ms=length * scale, weight=weight))
    if not names:
        rule = "must be a graph of GT-ITM: a section VERTICES, then a section EDGES"
        problems.append(Problem(rule=rule, file=str(path)))
    refuse(problems)
    return Topology(nodes=tuple(names), links=tuple(links), path=str(path))


def _gtitm_edge(cells: list[str], names: dict[str, None]) -> tuple[float, float | None] | str:
    """Length and weight of an edge, or the rule that it breaks."""
    if len(cells) < 3 or cells[0] not in names or cells[1] not in names:
        return "an edge must join two vertices and have a length"
    try:
        numbers = [float(cell) for cell in cells[2:4]]
    except ValueError:
        numbers = [-1.0]
    if not all(0.0 <= number < float("inf") for number in numbers):
        return "an edge's length and weight must be numbers of at least 0"
    return numbers[0], numbers[1] if len(numbers) > 1 else None


def read_topology_zoo(nodes: Path, links: Path, name: str) -> Topology:
    """One network of the Internet Topology Zoo, from tables of nodes and links of many.

    Nodes are named by their place and number; latency is the great circle at 200 km a millisecond.
    """
    places = read_table(nodes, texts=("topology", "node", "name"), numbers=())
    lines = read_table(links, texts=("topology", "source", "target"), numbers=("dist_km",))
    own = part_of(places, "topology", name, nodes)
    label = {node: f"{place} {node}" for node, place in own.select("node", "name").iter_rows()}
    rows = list(
        lines.with_row_index("row")
        .filter(pl.col("topology") == name)
        .select("row", "source", "target", "dist_km")
        .iter_rows()
    )
    rule = "a link must join nodes of its network"
    refuse(
        Problem(rule=rule, file=str(links), line=2 + row, value=end)
        for row, *ends, _ in rows
        for end in ends
        if end not in label
    )
    return Topology(
        nodes=tuple(label.values()),
        links=tuple(
            Link(source=label[a], target=label[b], latency_ms=km / KM_PER_MS) for _, a, b, km in rows
        ),
        path=str(links),
    )


def read_rocketfuel(path: Path, asn: int | str) -> Topology:
    """One provider's backbone from Rocketfuel's inferred latencies and weights: its largest connected part.

    A link that has a row for each direction is one link, with the mean of both.
    """
    table = read_table(path, texts=("asn", "source", "target"), numbers=("latency_ms", "weight"))
    both: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _, source, target, latency, weight in part_of(table, "asn", asn, path).iter_rows():
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
    lines = raw_text(path).splitlines()
    try:
        matrix = np.loadtxt(lines[1:] or ["nan"], delimiter=",", ndmin=2)
    except ValueError:
        matrix = np.full((1, 1), np.nan)
    if matrix.shape[0] != matrix.shape[1]:
        rule = "a matrix of round trips must be square"
        value = f"{matrix.shape[0]} rows, {matrix.shape[1]} columns"
        raise InputError([Problem(rule=rule, file=str(path), value=value)])
    if not (np.isfinite(matrix) & (matrix >= 0)).all():
        refuse(_bad_cells(path, lines))
    return matrix / 2.0


def _bad_cells(path: Path, lines: list[str]) -> Iterator[Problem]:
    """What keeps a matrix from being one, line by line."""
    width = len(lines[0].split(",")) if lines else 0
    if width == 0 or len(lines) < 2:
        yield Problem(rule="a matrix of round trips must have a header and rows", file=str(path))
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split(",") if line.strip() else []
        if cells and len(cells) != width:
            rule, value = "a row must have as many cells as the header", f"{len(cells)} cells, not {width}"
            yield Problem(rule=rule, file=str(path), line=number, value=value)
        for cell in cells:
            try:
                known = 0.0 <= float(cell) < float("inf")
            except ValueError:
                known = False
            if not known:
                rule = "a round trip must be a number of milliseconds of at least 0"
                yield Problem(rule=rule, file=str(path), line=number, value=cell.strip() or "nothing")


def read_rtt_slices(path: Path) -> Iterator[Floats]:
    """One-way milliseconds at successive times, from rows ``slice``, ``src``, ``dst``, ``rtt_s`` (seconds).

    What was not measured is NaN; a node is at 0 from itself.
    """
    raw = raw_bytes(path)
    try:
        rows = pl.read_parquet(BytesIO(raw))
    except pl.exceptions.PolarsError as error:
        value = str(error).partition("\n")[0]
        raise InputError([Problem(rule="must be a Parquet file", file=str(path), value=value)]) from None
    rule = "must be a column of numbers"
    refuse(
        Problem(rule=rule, key=name, file=str(path))
        for name in _SLICES
        if name not in rows.columns or not rows[name].dtype.is_numeric()
    )
    return _slices(rows.sort("slice"))


def _slices(rows: pl.DataFrame) -> Iterator[Floats]:
    if not len(rows):
        return
    ends = rows.select(
        pl.min_horizontal("src", "dst").min(), pl.max_horizontal("src", "dst").max().alias("most")
    )
    first, last = (int(number) for number in ends.row(0))
    for part in rows.partition_by("slice", maintain_order=True):
        matrix = np.full((last + 1 - first, last + 1 - first), np.nan)
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
