"""The first plan of a tiered cluster: queries to groups, then a planner within each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from levelwind import planning
from levelwind.control.queries import allotted, groups_of, part_of, queries_of
from levelwind.errors import RunError, input_error
from levelwind.loads.problem import make_problem
from levelwind.model import Cluster, Network, Plan, PlanStatus
from levelwind.rewrite import PhysicalOperator, split
from levelwind.rewrite.diffuse import written_name

Place = Callable[[Network, Cluster], Mapping[str, str]]


def logical_loads(network: Network, cluster: Cluster) -> dict[str, float]:
    """Mean load of each operator as written, by stated rates; 1 for all of them where a rate is missing."""
    problem = make_problem(network, cluster)
    loads = dict.fromkeys(network.operators, 0.0)
    if not np.isfinite(problem.mean_load).all():
        return dict.fromkeys(network.operators, 1.0)
    for operator, load in zip(problem.physical.operators, problem.mean_load.tolist(), strict=True):
        loads[written_name(operator.logical)] += load
    return loads


def placed_loads(
    placed: Mapping[str, Sequence[PhysicalOperator]], loads: Mapping[str, float]
) -> dict[str, float]:
    """Loads of operators as written, in equal parts to those that are placed."""
    return {each.name: loads[name] / len(own) for name, own in placed.items() for each in own}


def pinned_groups(
    network: Network, queries: list[tuple[str, ...]], home: Mapping[str, str]
) -> dict[int, str]:
    """The group that pins bind a query to; pins into two groups are an input error.

    ``home`` is the group of each node; pins to others bind nobody.
    """
    bound: dict[int, str] = {}
    for number, names in enumerate(queries):
        pins = (network.operators[name].pinned for name in names)
        found = {home[pin] for pin in pins if pin is not None and pin in home}
        if len(found) > 1:
            rule = "the operators of a query stand in one group and cannot be pinned into several"
            raise input_error(rule, key=names[0], value=", ".join(sorted(found)))
        if found:
            bound[number] = found.pop()
    return bound


def placed_by_group(
    network: Network, cluster: Cluster, key: str, place: Place, homes: Mapping[str, str] | None = None
) -> dict[str, str]:
    """A placement in which no query leaves its group; ``place`` places each group's part on its nodes.

    ``homes`` names the group that an operator as written stands in: its query stays there, and is left out
    if the group has no node here.
    """
    groups, queries = groups_of(cluster, key), queries_of(network)
    loads = logical_loads(network, cluster)
    cpu = {group: sum(node.cpu for node in nodes) for group, nodes in groups.items()}
    of_node = {node.name: group for group, nodes in groups.items() for node in nodes}
    bound = pinned_groups(network, queries, of_node)
    for number, query in enumerate(queries):
        home = next((homes[name] for name in query if name in homes), None) if homes else None
        if home is not None:
            bound[number] = home
    chosen = allotted([sum(loads[name] for name in names) for names in queries], cpu, bound=bound)
    placement: dict[str, str] = {}
    for group, nodes in groups.items():
        names = {name for query, own in zip(queries, chosen, strict=True) if own == group for name in query}
        if names:
            own = {node.name for node in nodes}
            part = without_foreign_places(part_of(network, names), own, of_node.keys() - own)
            placement.update(place(part, Cluster(nodes=nodes)))
    return placement


def without_foreign_places(network: Network, nodes: Set[str], elsewhere: Set[str] = frozenset()) -> Network:
    """The network without the places of streams and outputs that stand outside: they bind no operator.

    Nor do pins to nodes of ``elsewhere``: whoever takes the operators in cannot keep them.
    """
    streams = {
        name: replace(stream, node=stream.node if stream.node in nodes else None)
        for name, stream in network.streams.items()
    }
    outputs = {
        name: replace(output, node=output.node if output.node in nodes else None)
        for name, output in network.outputs.items()
    }
    operators = {
        name: replace(operator, pinned=None) if operator.pinned in elsewhere else operator
        for name, operator in network.operators.items()
    }
    return replace(network, streams=streams, outputs=outputs, operators=operators)


def plan_by_group(
    network: Network,
    cluster: Cluster,
    key: str,
    planner: str,
    *,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    current: Mapping[str, str] | None = None,
    homes: Mapping[str, str] | None = None,
) -> Plan:
    """A plan by a planner within each group; ``homes`` as for `placed_by_group`.

    Where ``current`` says where operators stand, those that cannot be moved stay there, and their queries in
    the group. If there is no plan for a group, there is none; the notes say of which group they speak.
    """
    if homes is None and current is not None:
        homes = _immovable_homes(network, cluster, key, current)
    status, notes = PlanStatus.PLACED, list[str]()

    def place(part: Network, nodes: Cluster) -> Mapping[str, str]:
        nonlocal status
        made = planning.plan(part, nodes, planner, options=options, seed=seed, current=current)
        group = nodes.nodes[0].properties[key]
        notes.extend(f"group {group}: {text}" for text in made.notes)
        if made.status is not PlanStatus.PLACED:
            status = made.status
        return made.placement

    placement = placed_by_group(network, cluster, key, place, homes)
    return Plan(planner=planner, status=status, placement=placement, notes=tuple(notes))


def tiered_plan(
    network: Network, cluster: Cluster, key: str, planner: str, **options: Any
) -> Mapping[str, str]:
    """The placement of `plan_by_group`, which takes the same; a `RunError` if there is none."""
    made = plan_by_group(network, cluster, key, planner, **options)
    if made.status is not PlanStatus.PLACED:
        message = f"planner {planner} has no plan for a group: {made.status.value}. {'; '.join(made.notes)}"
        raise RunError(message)
    return made.placement


def _immovable_homes(
    network: Network, cluster: Cluster, key: str, current: Mapping[str, str]
) -> dict[str, str]:
    """The group that each immovable operator as written stands in."""
    of_node = {node.name: group for group, nodes in groups_of(cluster, key).items() for node in nodes}
    stuck = [operator for operator in split(network).operators if not operator.logical.movable]
    nodes = {operator.logical.name: current.get(operator.name) for operator in stuck}
    return {name: of_node[node] for name, node in nodes.items() if node is not None and node in of_node}
