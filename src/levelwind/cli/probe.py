"""``levelwind probe``: measure the latencies between the hosts of a Spark cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from levelwind.cli.errors import DONE, NO
from levelwind.cli.figures import plain_table
from levelwind.cli.inputs import parse_settings, read_cluster, writable
from levelwind.cli.options import ClusterFile, FormatOption, NodeCount
from levelwind.cli.output import answer, note
from levelwind.cli.run import Conf, Master, check_master
from levelwind.errors import input_error

if TYPE_CHECKING:
    from rich.table import Table

MatrixFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="Write the matrix to this file too, as the CSV that a cluster file names as `latency`.",
        show_default=False,
    ),
]
Samples = Annotated[
    int, typer.Option("--samples", metavar="N", help="Round trips that are measured between two hosts.")
]


def probe(
    cluster_file: ClusterFile = None,
    nodes: NodeCount = None,
    master: Master = "local[*]",
    output_file: MatrixFile = None,
    samples: Samples = 50,
    conf: Conf = None,
    format: FormatOption = None,
) -> int:
    """Measure round trips between the hosts of a Spark cluster.

    Tells the one-way latency between all nodes, half of the 20th percentile of the round trips of their
    hosts. Nodes of one host are at 0. Ends with exit code 1 if a node's host has no executor, 2 if none has.

    Example:
      levelwind probe --cluster cluster.yaml --master spark://host:7077 --output latency.csv
    """
    check_master(master)
    writable(output_file, option="--output")
    if samples < 1:
        rule = "must be at least 1"
        raise input_error(rule, key="--samples", value=samples)
    settings = parse_settings(conf, option="--conf")
    cluster = read_cluster(cluster_file, nodes)
    from levelwind.spark.hosts import Binding
    from levelwind.spark.probe import latency_matrix, round_trips_ms
    from levelwind.spark.session import start_session

    session = start_session(master, settings)
    try:
        binding = Binding(session.sparkContext, cluster)
        binding.wait()
        binding.refuse_nowhere()
        trips = round_trips_ms(session.sparkContext, samples=samples)
        hosts = list(binding.hosts)
    finally:
        session.stop()
    matrix = latency_matrix(cluster, hosts, trips)
    lost = sorted({str(hosts[i]) for i, row in enumerate(matrix) if None in row and len(set(hosts)) > 1})
    missing = any(None in row for row in matrix)
    found: dict[str, Any] = {
        "nodes": list(cluster.names),
        "hosts": hosts,
        "latency_ms": matrix,
        "notes": [f"no round trip was measured for some of: {', '.join(lost)}"] if missing else [],
    }
    if output_file is not None and not missing:
        rows = [
            ",".join(cluster.names),
            *(",".join(f"{ms:g}" for ms in row if ms is not None) for row in matrix),
        ]
        output_file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    elif output_file is not None:
        note(f"nothing is written to {output_file}: the matrix is not whole")
    answer(format, lambda: found, lambda: _table(found), remarks=found["notes"])
    return NO if missing else DONE


def _table(found: dict[str, Any]) -> Table:
    table = plain_table()
    table.add_column("one-way ms from")
    for name in found["nodes"]:
        table.add_column(name, justify="right")
    for name, row in zip(found["nodes"], found["latency_ms"], strict=True):
        table.add_row(name, *("" if ms is None else f"{ms:g}" for ms in row))
    return table
