"""``levelwind schema``: JSON Schema for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from levelwind.cli.errors import DONE
from levelwind.cli.options import FormatOption
from levelwind.cli.output import print_json
from levelwind.errors import input_error

OfCluster = Annotated[bool, typer.Option("--cluster", help="The schema of the cluster file instead.")]

OfScenario = Annotated[bool, typer.Option("--scenario", help="The schema of the scenario file instead.")]


def schema(cluster: OfCluster = False, scenario: OfScenario = False, format: FormatOption = None) -> int:
    """Print the JSON Schema of the network file.

    With it editors complete and check the file. A schema is JSON in either format.

    Examples:
      levelwind schema
      levelwind schema --cluster
    """
    if cluster and scenario:
        rule = "a schema is of one file"
        raise input_error(rule, key="--scenario", hint="leave one of --cluster and --scenario out")
    if scenario:
        from levelwind.sim.scenario_keys import scenario_schema

        print_json(scenario_schema())
        return DONE
    from levelwind.frontend import cluster_schema, network_schema

    print_json(cluster_schema() if cluster else network_schema())
    return DONE
