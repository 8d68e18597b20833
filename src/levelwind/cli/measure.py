"""``levelwind measure``: what a placement is worth."""

from __future__ import annotations

from levelwind.cli.errors import DONE
from levelwind.cli.figures import measure_table
from levelwind.cli.inputs import planned_network, read_both, read_placement
from levelwind.cli.options import (
    ClusterFile,
    FormatOption,
    FromFile,
    NetworkFile,
    NodeCount,
    PlacementFile,
    Seed,
)
from levelwind.cli.output import answer


def measure(
    network_file: NetworkFile,
    placement_file: PlacementFile,
    cluster_file: ClusterFile = None,
    nodes: NodeCount = None,
    from_file: FromFile = None,
    seed: Seed = 0,
    format: FormatOption = None,
) -> int:
    """Tell what a placement is worth.

    What it survives, how evenly it loads the nodes, what it sends between them.

    Example:
      levelwind plan examples/worked.yaml --nodes 2 |
        levelwind measure examples/worked.yaml --nodes 2 --placement -
    """
    network, cluster = read_both(network_file, cluster_file, nodes)
    stands, stated = read_placement(placement_file, network, cluster)
    before = None if from_file is None else read_placement(from_file, network, cluster)[0]
    network = planned_network(network, stated)
    if before is not None:  # what was placed then may be served by others now
        before = {name: node for name, node in before.items() if name in stands}
    from levelwind import planning

    found = planning.measure(network, cluster, stands, seed=seed, moved_from=before)
    whole = {**found.as_dict(), "notes": found.notes}
    answer(format, lambda: whole, lambda: measure_table(found), remarks=found.notes)
    return DONE
