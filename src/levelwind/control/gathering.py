"""Queries that stand in several groups, as after a restart: each is brought together in one of them."""

from __future__ import annotations

from collections.abc import Mapping

from levelwind.control.allotment import logical_loads, pinned_groups, placed_loads, without_foreign_places
from levelwind.control.binding import binding_groups, physical_operators
from levelwind.control.housing import filled_up
from levelwind.control.queries import groups_of, part_of, part_of_cluster, queries_of, standing_groups
from levelwind.model import Cluster, Network


def gathered(
    network: Network,
    cluster: Cluster,
    key: str,
    placement: Mapping[str, str],
    *,
    stood: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The placement, but that operators outside their query's group are on a node of it.

    The group of a query is that of operators that cannot be moved and of pins, else the one with most of its
    load. Operators that cannot be brought together are an input error. O(operators × nodes).

    Parameters
    ----------
    placement
        A node for every operator.
    stood
        Where operators stood before, as far as they did: these decide on the group, and queries of which
        nothing stood anywhere must be in one. None: all stand where the placement has them.
    """
    groups, queries = groups_of(cluster, key), queries_of(network)
    of_node = {node.name: group for group, nodes in groups.items() for node in nodes}
    pinned_groups(network, queries, of_node)  # pins into several groups are told as such
    physical = physical_operators(network)
    loads = placed_loads(physical, logical_loads(network, cluster))
    before = placement if stood is None else stood
    homes = {name: of_node[before[name]] for name in loads if before.get(name) in of_node}
    new = [names for names in queries if not any(each.name in homes for n in names for each in physical[n])]
    chosen = dict(zip(new, standing_groups(network, new, placement, of_node), strict=True))
    bound = binding_groups(network, queries, homes, of_node, loads)
    chosen = {names: chosen.get(names) or bound[number] for number, names in enumerate(queries)}
    found = dict(placement)
    for group, nodes in groups.items():
        names = {name for query, its in chosen.items() if its == group for name in query}
        own = {node.name for node in nodes}
        placed = [each.name for name in names for each in physical[name]]
        inside = {name: placement[name] for name in placed if placement.get(name) in own}
        if len(inside) < len(placed):
            part = without_foreign_places(part_of(network, names), own, of_node.keys() - own)
            found |= filled_up(part, part_of_cluster(cluster, nodes), inside)
    return found
