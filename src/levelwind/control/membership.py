"""Which query is in which group, and what that makes of networks and reports: a top manager's books."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from levelwind.control.allotment import logical_loads, pinned_groups, placed_loads, without_foreign_places
from levelwind.control.binding import binding_groups, physical_operators
from levelwind.control.queries import allotted, part_of, queries_of
from levelwind.errors import InputError, Problem
from levelwind.loads.arrays import Ints
from levelwind.model import Cluster, Network

# For each group the operators of a report that are its own, and their places there.
Rows = dict[str, tuple[tuple[str, ...], Ints]]


class Membership:
    """The queries of a network, each in one group.

    Attributes
    ----------
    queries, physical
        Of each query the operators as written, and as placed.
    group
        The group of each query.
    instances
        By operator as written, those that are placed.
    group_by_name
        The group of each operator as placed.
    pins
        By query with pins, the node of each operator as written that has one.
    """

    def __init__(self, network: Network, group: Sequence[str]) -> None:
        self.network, self.group = network, list(group)
        self.queries = queries_of(network)
        placed = physical_operators(network)
        self.instances = {name: [each.name for each in own] for name, own in placed.items()}
        self.physical = [tuple(p for name in names for p in self.instances[name]) for names in self.queries]
        self.pins: dict[int, dict[str, str]] = {}
        for number, names in enumerate(self.queries):
            pins = {name: pin for name in names if (pin := network.operators[name].pinned) is not None}
            if pins:
                self.pins[number] = pins
        self.group_by_name: dict[str, str] = {}
        self._asked: tuple[str, ...] | None = None
        self._rows: Rows = {}
        self._learn_groups()

    def put(self, number: int, group: str) -> None:
        """A query belongs to another group from now on. O(operators)."""
        self.group[number] = group
        self._learn_groups()

    def part(self, group: str, group_of_node: Mapping[str, str]) -> Network:
        """The network of a group, without pins to nodes of others: its manager knows none of these."""
        own = zip(self.queries, self.group, strict=True)
        names = {name for names, its in own if its == group for name in names}
        nodes = {name for name, its in group_of_node.items() if its == group}
        return without_foreign_places(part_of(self.network, names), nodes, group_of_node.keys() - nodes)

    def away(self, number: int, group_of_node: Mapping[str, str]) -> dict[str, str]:
        """Operators of a query that are pinned to a node of another group than its own, and that node."""
        own, pins = self.group[number], self.pins.get(number, {})
        return {name: pin for name, pin in pins.items() if group_of_node.get(pin, own) != own}

    def with_network(
        self,
        network: Network,
        cluster: Cluster,
        group_of_node: Mapping[str, str],
        live: Mapping[str, Sequence[str]],
        loads: Mapping[str, float],
    ) -> Membership:
        """The books of another network; what is wrong with its pins is an input error.

        Known queries stay, unless a node that is there binds them to another group; those that become one go
        where what cannot be moved stands, else where most of the load is. New ones go to the group that pins
        bind them to, or to the one that they leave least loaded. ``live`` are the nodes of each group that
        are there, ``loads`` the measured loads of operators as placed. O(operators + arcs).
        """
        queries = queries_of(network)
        pinned = pinned_groups(network, queries, group_of_node)
        there = {name: group for group, own in live.items() for name in own}
        stated = logical_loads(network, cluster)
        measured = self.group_by_name.keys() <= loads.keys()
        weights = loads if measured else placed_loads(physical_operators(network), stated)
        bound = binding_groups(network, queries, self.group_by_name, there, weights)
        of = {node.name: node.cpu for node in cluster.nodes}
        cpu = {group: sum(of[name] for name in own) for group, own in live.items() if own}
        cpu = cpu or dict.fromkeys(live, 1.0)  # nobody is there: all the same
        bound = {number: group for number, group in pinned.items() if group in cpu} | bound
        found = Membership(network, [next(iter(live))] * len(queries))
        own_loads = [
            sum(loads[p] for p in physical)
            if all(p in loads for p in physical)
            else sum(stated[name] for name in names)
            for names, physical in zip(found.queries, found.physical, strict=True)
        ]
        for number, group in enumerate(allotted(own_loads, cpu, bound=bound)):
            found.group[number] = group
        found._learn_groups()
        return found

    def rows(self, operators: tuple[str, ...], groups: Sequence[str]) -> Rows:
        """Which rows of a report are which group's; remembered as long as the same is asked."""
        if self._asked is not operators and self._asked != operators:
            self._rows, self._asked = self._cut(operators, groups), operators
        return self._rows

    def _cut(self, operators: Sequence[str], groups: Sequence[str]) -> Rows:
        rows: dict[str, list[int]] = {group: [] for group in groups}
        problems = []
        for row, name in enumerate(operators):
            group = self.group_by_name.get(name)
            if group is None:
                problems.append(Problem(rule="must name an operator of the network", key=name))
            else:
                rows[group].append(row)
        if problems:
            raise InputError(problems)
        return {
            group: (tuple(operators[row] for row in own), np.array(own, dtype=np.int64))
            for group, own in rows.items()
        }

    def _learn_groups(self) -> None:
        own = zip(self.physical, self.group, strict=True)
        self.group_by_name = {name: group for names, group in own for name in names}
        self._asked, self._rows = None, {}
