"""``levelwind add``: further queries for a live run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from levelwind.cli.inputs import told_with
from levelwind.cli.options import FormatOption
from levelwind.cli.runs import RunArgument, Timeout, change_run, find_running, new_id
from levelwind.errors import InputError

AddedFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A network file with what is to be added; it may read what the run has.",
        show_default=False,
    ),
]


def add(
    run_directory: RunArgument, added_file: AddedFile, timeout: Timeout = 60.0, format: FormatOption = None
) -> int:
    """Add operators, queries, outputs, and streams of our own sources to a live run.

    They run from the next batch on; what runs already is left as it is. Waits until they are committed: from
    then on a restart goes on with them. Names must be new to the run. Whatever is wrong with the file is told
    at once, and nothing is changed. Ends with exit code 1 if it does not happen in time.

    Example:
      levelwind add runs/traffic-20260101T120000Z more.yaml
    """
    found = find_running(run_directory)
    from levelwind.control.roster import make_roster
    from levelwind.frontend import load_network
    from levelwind.frontend.addition import extended, read_addition
    from levelwind.model import Cluster, Node
    from levelwind.runtime.changes import ADD, refused_streams
    from levelwind.runtime.rundir import Command
    from levelwind.spark.checks import check_network

    network = load_network(found.network_file).network
    nodes = tuple(Node(name=name, cpu=cpu) for name, cpu in found.read()["cpu"].items())
    cluster = Cluster(nodes=nodes)
    with told_with(added_file):
        after = extended(network, added_file, cluster=cluster)
        if problems := refused_streams(network, after):
            raise InputError(problems)
        given = [name for name, stream in network.streams.items() if stream.source is None]
        check_network(after, given, until_idle=False)
        make_roster(after, cluster)
    base = str(added_file.absolute().parent)
    asked = Command(ADD, added=read_addition(added_file), base=base, id=new_id())
    return change_run(found, asked, timeout, format)
