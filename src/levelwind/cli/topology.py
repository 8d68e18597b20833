"""``levelwind topology``: a published network as the files of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from levelwind.cli.errors import DONE
from levelwind.cli.options import FormatOption
from levelwind.cli.output import answer
from levelwind.errors import input_error

PublishedFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A graph of GT-ITM, links of Rocketfuel or of the Topology Zoo, or round trips; .gz or plain.",
        show_default=False,
    ),
]
Folder = Annotated[
    Path, typer.Option("--output", metavar="DIR", help="Where the files go.", show_default=False)
]
NetworkName = Annotated[
    str | None,
    typer.Option(
        "--name", metavar="NAME", help="Which network, of a file that has several.", show_default=False
    ),
]
Places = Annotated[
    Path | None,
    typer.Option(
        "--places",
        metavar="FILE",
        help="The Topology Zoo's table of nodes, if it is not nodes.csv beside the links.",
        show_default=False,
    ),
]
Scale = Annotated[
    float, typer.Option("--scale", metavar="MS", help="Milliseconds per unit of length of a GT-ITM graph.")
]


def topology(
    published_file: PublishedFile,
    output: Folder,
    name: NetworkName = None,
    places: Places = None,
    scale: Scale = 1.0,
    format: FormatOption = None,
) -> int:
    """Make a cluster file out of a published network.

    Writes cluster.yaml, latency.csv and, if the network has links, topology.graphml. Every node of the
    network becomes a node of CPU 1. What form the file has is seen from its content. Of round trips, half
    counts as one way.

    Examples:
      levelwind topology ts1000.alt --output gtitm
      levelwind topology rocketfuel/links.csv.gz --name 1239 --output sprint
      levelwind topology rtt_ms.csv.gz --output planetlab
    """
    if not 0.0 < scale < float("inf"):
        rule = "must be a number above 0"
        raise input_error(rule, key="--scale", value=scale)
    if output.exists() and not output.is_dir():
        rule = "must be a directory"
        raise input_error(rule, key="--output", value=output)
    from levelwind.space.published import cluster_files, kind_of, read_published

    cluster = read_published(published_file, name=name, places=places, scale=scale)
    files = cluster_files(cluster)
    try:
        output.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (output / file).write_text(text, encoding="utf-8")
    except OSError as error:
        rule = "must be a directory that can be written to"
        raise input_error(rule, key="--output", value=f"{output}: {error.strerror}") from None
    longest = max((max(row) for row in cluster.latency_ms or ()), default=0.0)
    found: dict[str, Any] = {
        "kind": kind_of(published_file),
        "nodes": len(cluster.nodes),
        "links": 0 if cluster.topology is None else len(cluster.topology.links),
        "longest_ms": longest,
        "files": [str(output / file) for file in files],
    }
    told = (
        f"{found['kind']}: {found['nodes']} nodes, {found['links']} links, at most {longest:.4g} ms one way"
    )
    answer(format, lambda: found, lambda: "\n".join([told, *found["files"]]))
    return DONE
