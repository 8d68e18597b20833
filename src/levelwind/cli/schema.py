"""``levelwind schema``: JSON Schema for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from levelwind.cli.errors import DONE
from levelwind.cli.options import FormatOption
from levelwind.cli.output import print_json

OfCluster = Annotated[bool, typer.Option("--cluster", help="The schema of the cluster file instead.")]


def schema(cluster: OfCluster = False, format: FormatOption = None) -> int:
    """Print the JSON Schema of the network file.

    With it editors complete and check the file. A schema is JSON in either format.

    Examples:
      levelwind schema
      levelwind schema --cluster
    """
    from levelwind.frontend import cluster_schema, network_schema

    print_json(cluster_schema() if cluster else network_schema())
    return DONE
