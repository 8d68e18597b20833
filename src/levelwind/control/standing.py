"""Where everything stands: which nodes are there, who runs on which, what it costs, who is on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from levelwind.control.plans import plan_problems
from levelwind.control.roster import Roster, make_roster
from levelwind.errors import InputError, did_you_mean, input_error
from levelwind.loads.arrays import Floats
from levelwind.model import Cluster, Network, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """A move that was asked for and not reported yet. ``tries`` counts it and those before it that failed."""

    source: str
    target: str
    tries: int = 1


class Standing:
    """The books of a manager. It decides nothing: others say who moves, comes or goes, and it adds up.

    Parameters
    ----------
    network, cluster, placement
        What runs, on what, and where each physical operator stands now. Pins and tables must be kept.

    Attributes
    ----------
    nodes
        Every node that ever was there, by name.
    live
        Names of those that are there now, in the order in which they came.
    roster
        The operators. ``home``, ``index`` and ``load`` follow its order.
    home
        Node of each operator: where it stands, or will when its move is done; None: nowhere.
    index
        The same as positions in ``live``; -1: nowhere.
    place, cpu
        Position of each live node by name, and the capacity at each position.
    load
        Mean load of each operator in CPU seconds per second; NaN until it is known.
    under_way
        Moves asked for and not reported yet, by operator.
    """

    def __init__(self, network: Network, cluster: Cluster, placement: Mapping[str, str]) -> None:
        self._cluster = cluster
        self.nodes: dict[str, Node] = {node.name: node for node in cluster.nodes}
        self.live: list[str] = list(cluster.names)
        self.roster: Roster = make_roster(network, cluster)
        problems = plan_problems(self.roster, placement, known=self.nodes)
        if problems:
            raise InputError(problems)
        self.home: list[str | None] = [placement[name] for name in self.roster.names]
        self.load: Floats = np.full(len(self.roster.names), np.nan)
        self.under_way: dict[str, UnderWay] = {}
        self._arrange()

    # What can be seen

    @property
    def placement(self) -> dict[str, str]:
        """Node of each operator, but of homeless ones."""
        placed = zip(self.roster.names, self.home, strict=True)
        return {name: node for name, node in placed if node is not None}

    @property
    def live_nodes(self) -> tuple[Node, ...]:
        """The nodes that are there."""
        return tuple(self.nodes[name] for name in self.live)

    @property
    def homeless(self) -> list[int]:
        """Operators that stand nowhere."""
        return [j for j, home in enumerate(self.home) if home is None]

    def level(self, load: Floats | None = None) -> Floats:
        """Mean load of each live node; operators that nothing is known of count nothing."""
        own = np.nan_to_num(self.load if load is None else load)
        placed = self.index >= 0
        level = np.bincount(self.index[placed], weights=own[placed], minlength=len(self.live))
        return level.astype(np.float64)

    def expected(self) -> Floats:
        """Measured loads, stated ones where nothing was measured, their mean where nothing is stated."""
        unknown = np.isnan(self.load)
        if not unknown.any():
            return self.load
        load = np.where(unknown, self.roster.stated_load(self._whole_cluster()), self.load)
        seen = load[~np.isnan(load)]
        return np.where(np.isnan(load), float(seen.mean()) if len(seen) else 0.0, load)

    def demand_node(self, name: str) -> None:
        """Input error for a name that no node ever had."""
        if name not in self.nodes:
            hint = did_you_mean(name, self.nodes)
            rule = "must name a node of the cluster"
            raise input_error(rule, key="node", value=name, hint=hint)

    # Operators

    def stand(self, operator: int, node: str | None) -> None:
        """An operator stands on a live node from now on, or nowhere."""
        self.home[operator] = node
        self.index[operator] = -1 if node is None else self.place[node]

    def roster_of(self, network: Network) -> Roster:
        """The roster of another network on the nodes that ever were there; wrong pins are input errors."""
        return make_roster(network, self._whole_cluster())

    def take_over(self, roster: Roster, told: Mapping[str, float]) -> list[int]:
        """Change to other operators; those that were there keep their place and load. The new ones.

        ``told`` are loads of new operators, as far as they are known; the rest is expected. O(operators).
        """
        known = self.roster.position
        came_from = [known.get(name, -1) for name in roster.names]
        self.home = [None if j < 0 else self.home[j] for j in came_from]
        measured = [
            told.get(name, np.nan) if j < 0 else self.load[j]
            for name, j in zip(roster.names, came_from, strict=True)
        ]
        self.roster, self.load = roster, np.array(measured, dtype=np.float64)
        self.load = self.expected()
        self._arrange()
        return [j for j, before in enumerate(came_from) if before < 0]

    # Nodes

    def lose(self, node: str) -> list[int]:
        """A live node is gone. The operators that must be started again: those that stand nowhere now.

        What was on its way from or to the node stands nowhere either, unless its target is there: then it
        has a node, and is only to be started on it.
        """
        self.live.remove(node)
        again = []
        for j, name in enumerate(self.roster.names):
            move = self.under_way.get(name)
            if move is not None and node in (move.source, move.target):
                del self.under_way[name]
                self.home[j] = move.target if move.target in self.live else None
                if self.home[j] is not None:
                    again.append(j)
            elif self.home[j] == node:
                self.home[j] = None
            if self.home[j] is None:
                again.append(j)
        self._arrange()
        return again

    def join(self, node: Node) -> None:
        """A node is there from now on, or is there already and has other capacities."""
        if node.name not in self.live:
            self.live.append(node.name)
        self.nodes[node.name] = node
        self._arrange()

    # Bookkeeping

    def _whole_cluster(self) -> Cluster:
        return replace(self._cluster, nodes=tuple(self.nodes.values()), latency_ms=None)

    def _arrange(self) -> None:
        """Work the arrays out anew after nodes or operators came or went. O(operators + nodes)."""
        self.place = place = {name: i for i, name in enumerate(self.live)}
        self.cpu = np.array([self.nodes[name].cpu for name in self.live], dtype=np.float64)
        self.index = np.array([-1 if n is None else place[n] for n in self.home], dtype=np.int64)
