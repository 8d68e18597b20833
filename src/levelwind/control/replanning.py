"""A plan for what runs already: on nodes that can be used, within its groups, leaving what is immovable."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import replace
from typing import Any

from levelwind import planning
from levelwind.control.allotment import tiered_plan, without_foreign_places
from levelwind.control.queries import part_of_cluster
from levelwind.control.roster import Roster, make_roster
from levelwind.errors import RunError
from levelwind.model import Cluster, Network, PlanStatus
from levelwind.rewrite import split


def plan_anew(
    network: Network,
    cluster: Cluster,
    planner: str,
    *,
    usable: Collection[str],
    stands: Mapping[str, str],
    groups: str | None = None,
    homes: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> dict[str, str]:
    """Where every operator is to run from now on; a planner without a plan ends in a `RunError`.

    Parameters
    ----------
    usable
        Nodes that can take operators. Pins to others bind nobody; whoever is immovable stays on them.
    stands
        Where operators run, or will when their moves are done.
    groups, homes
        With tiers: the property that groups are made by, and the group that each operator stands in, which
        its query does not leave. Where none of its nodes can be used, everything stays as it is.
    """
    nodes = tuple(node for node in cluster.nodes if node.name in usable)
    if not nodes:
        return dict(stands)
    closed = set(cluster.names) - {node.name for node in nodes}
    there, part = cluster, network
    if closed:
        there = replace(cluster, nodes=nodes, latency_ms=part_of_cluster(cluster, nodes).latency_ms)
        part = without_foreign_places(network, set(there.names), closed)
    if groups is not None:
        written = {name.partition("[")[0]: group for name, group in (homes or {}).items()}
        made: Mapping[str, str] = tiered_plan(
            part, there, groups, planner, options=options, seed=seed, current=stands, homes=written
        )
    else:
        plan = planning.plan(part, there, planner, options=options, seed=seed, current=stands)
        if plan.status is not PlanStatus.PLACED:
            message = f"{planner} has no plan for what was measured: {plan.status.value}"
            raise RunError(message)
        made = plan.placement
    everything = {**stands, **made, **_kept(make_roster(network, cluster), stands, closed)}
    return {name: everything[name] for name in split(network).names if name in everything}


def _kept(roster: Roster, stands: Mapping[str, str], closed: Set[str]) -> dict[str, str]:
    """Operators on nodes that can take nothing that must stay there: immovable, or pinned to them."""
    return {
        name: stands[name]
        for j, name in enumerate(roster.names)
        if stands.get(name) in closed and (roster.immovable[j] or roster.pin(j) == stands[name])
    }
