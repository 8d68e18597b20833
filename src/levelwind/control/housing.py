"""Homes for operators that stand nowhere: their node was lost, or their query has just come."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

import numpy as np

from levelwind.control.roster import make_roster
from levelwind.control.standing import Standing
from levelwind.loads.arrays import Floats
from levelwind.model import Cluster, Network


class Home(NamedTuple):
    """Node for operators of one unit, why, and the rule that cannot be kept (empty: none)."""

    operators: list[int]
    node: str
    reason: str
    alarm: str


def homes(standing: Standing, operators: list[int], cause: str, unready: Set[str]) -> list[Home]:
    """A home for each unit: on the node that it leaves least loaded, unless a table or a pin binds it.

    Units of the highest priority go first, then the heaviest. ``operators`` that have a node already (they
    were on their way there) keep it. Nodes of ``unready`` are taken only if there is no other. Nothing is
    changed. O(operators × nodes).
    """
    expected = standing.expected()
    level = standing.level(expected)
    priority = standing.roster.priority
    units: dict[int, list[int]] = {}
    for j in operators:
        units.setdefault(int(standing.roster.unit[j]), []).append(j)

    def turn(unit: list[int]) -> tuple[float, float]:
        return -max(float(priority[j]) for j in unit), -float(expected[unit].sum())

    found = []
    for unit in sorted(units.values(), key=turn):
        load = float(expected[[j for j in unit if standing.home[j] is None]].sum())
        node, reason, alarm = _home(standing, unit, level + load, unready)
        level[standing.place[node]] += load
        found.append(Home(unit, node, f"{cause}; {reason}", alarm))
    return found


def _home(standing: Standing, unit: list[int], after: Floats, unready: Set[str]) -> tuple[str, str, str]:
    """Node of a unit, why, and what cannot be kept. ``after``: each node's load with the unit on it."""
    roster = standing.roster
    together = roster.together(unit[0])
    name, pin = roster.names[unit[0]], roster.pin(unit[0])
    stands = next((node for j in together if (node := standing.home[j])), None)
    if stands is not None:
        apart = f"{name} is pinned to {pin}, but its table stands on {stands}"
        return (
            stands,
            "it stays with its table, or goes on where it was going",
            "" if pin in (None, stands) else apart,
        )
    if pin in standing.place:
        assert pin is not None
        return pin, "pinned", ""
    relative = after / standing.cpu
    closed = [standing.place[node] for node in unready if node in standing.place]
    if len(closed) < len(standing.live):
        relative[closed] = np.inf
    node = standing.live[int(np.argmin(relative))]
    alarm = "" if pin is None else f"{name} is pinned to {pin}, which is not there: it runs on {node}"
    return node, "least loaded node", alarm


def filled_up(network: Network, cluster: Cluster, placement: Mapping[str, str]) -> dict[str, str]:
    """The placement with a home for every operator that it has no node for, by what is stated of loads."""
    roster = make_roster(network, cluster)
    missing = [j for j, name in enumerate(roster.names) if name not in placement]
    anywhere = dict(placement)
    for j in missing:
        table = (placement.get(roster.names[k]) for k in roster.together(j))
        stands = next((node for node in table if node is not None), cluster.names[0])
        anywhere[roster.names[j]] = roster.pin(j) or stands
    standing = Standing(network, cluster, anywhere)
    for j in missing:
        standing.stand(j, None)
    for home in homes(standing, missing, "", frozenset()):
        for j in home.operators:
            standing.stand(j, home.node)
    return standing.placement
