"""Queries as tiers see them: operators that must stay in one group, and networks of some of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from levelwind.control.binding import physical_operators
from levelwind.errors import InputError, Problem
from levelwind.model import Cluster, Model, Network, Node


def queries_of(network: Network) -> list[tuple[str, ...]]:
    """Operators that feed each other or share a table, together, in the order of the file.

    Two queries that read the same stream and nothing of each other are two. O(operators + arcs).
    """
    leader = {name: name for name in network.operators}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    tables: dict[str, str] = {}
    for name, operator in network.operators.items():
        for port in operator.inputs:
            if port.source in leader:
                leader[find(name)] = find(port.source)
        if operator.table is not None:
            leader[find(name)] = find(tables.setdefault(operator.table, name))
    found: dict[str, list[str]] = {}
    for name in network.operators:
        found.setdefault(find(name), []).append(name)
    return [tuple(names) for names in found.values()]


def part_of(network: Network, names: Collection[str]) -> Network:
    """The network of these operators alone, with the streams they read and the outputs that read them."""
    operators = {name: network.operators[name] for name in network.operators if name in names}
    read = {port.source for operator in operators.values() for port in operator.inputs}
    for operator in operators.values():
        if isinstance(operator.spec, Model) and operator.spec.load:
            read |= set(operator.spec.load)
    outputs = {k: output for k, output in network.outputs.items() if output.input.source in operators}
    return replace(
        network,
        operators=operators,
        streams={name: stream for name, stream in network.streams.items() if name in read},
        outputs=outputs,
        queries={name: query for name, query in network.queries.items() if name in operators},
    )


def groups_of(cluster: Cluster, key: str) -> dict[str, tuple[Node, ...]]:
    """Nodes by the value of a property; one that does not state it is an input error."""
    found: dict[str, list[Node]] = {}
    problems = []
    for node in cluster.nodes:
        if key in node.properties:
            found.setdefault(str(node.properties[key]), []).append(node)
        else:
            rule = f"every node must state the property {key!r} that groups are made by"
            problems.append(Problem(rule=rule, key=f"{node.name}.properties"))
    if problems:
        raise InputError(problems)
    return {group: tuple(nodes) for group, nodes in found.items()}


def part_of_cluster(cluster: Cluster, nodes: tuple[Node, ...]) -> Cluster:
    """These nodes, and what is stated of the latencies between them."""
    if cluster.latency_ms is None:
        return Cluster(nodes=nodes)
    at = [cluster.names.index(node.name) for node in nodes]
    return Cluster(nodes=nodes, latency_ms=tuple(tuple(cluster.latency_ms[i][j] for j in at) for i in at))


def standing_groups(
    network: Network,
    queries: Iterable[tuple[str, ...]],
    placement: Mapping[str, str],
    group_of_node: Mapping[str, str],
) -> list[str]:
    """The group that each query stands in; one that stands in two, or in none, is an input error."""
    physical = physical_operators(network)
    problems, found = [], []
    for names in queries:
        nodes = {placement.get(each.name) for name in names for each in physical[name]}
        groups = {group_of_node.get(node or "") for node in nodes} - {None}
        if len(groups) != 1 or None in nodes:
            rule = "the operators of a query must all have a node, in one group"
            problems.append(Problem(rule=rule, key=names[0], value=", ".join(sorted(map(str, nodes)))))
        found.append(next(iter(groups)) or "" if groups else "")
    if problems:
        raise InputError(problems)
    return found


def allotted(
    loads: Iterable[float],
    cpu: Mapping[str, float],
    *,
    level: Mapping[str, float] | None = None,
    bound: Mapping[int, str] | None = None,
) -> list[str]:
    """A group for each query: the heaviest first, to the group that it leaves least loaded.

    ``level`` is the load that groups have already, ``bound`` the group that a query must stand in.
    O(queries × (log queries + groups)).
    """
    wanted = list(loads)
    carried = {group: (level or {}).get(group, 0.0) for group in cpu}
    found = [""] * len(wanted)
    for number in sorted(range(len(wanted)), key=lambda k: (k not in (bound or {}), -wanted[k], k)):
        group = (bound or {}).get(number) or min(
            cpu, key=lambda name: (carried[name] + wanted[number]) / cpu[name]
        )
        carried[group] = carried.get(group, 0.0) + wanted[number]
        found[number] = group
    return found
