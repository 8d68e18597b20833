"""Which query is in which group, and what that makes of networks and reports: a top manager's books."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levelwind.control.allotment import without_foreign_places
from levelwind.control.queries import part_of, queries_of
from levelwind.errors import InputError, Problem
from levelwind.loads.arrays import Ints
from levelwind.model import Network
from levelwind.rewrite import split
from levelwind.rewrite.diffuse import written_name

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
    """

    def __init__(self, network: Network, group: Sequence[str]) -> None:
        self.network, self.group = network, list(group)
        self.queries = queries_of(network)
        self.instances: dict[str, list[str]] = {}
        for operator in split(network).operators:
            self.instances.setdefault(written_name(operator.logical), []).append(operator.name)
        self.physical = [tuple(p for name in names for p in self.instances[name]) for names in self.queries]
        self.group_by_name: dict[str, str] = {}
        self._asked: tuple[str, ...] | None = None
        self._rows: Rows = {}
        self._learn_groups()

    def put(self, number: int, group: str) -> None:
        """A query belongs to another group from now on. O(operators)."""
        self.group[number] = group
        self._learn_groups()

    def part(self, group: str, nodes: set[str]) -> Network:
        """The network of a group, whose nodes these are."""
        own = zip(self.queries, self.group, strict=True)
        names = {name for names, its in own if its == group for name in names}
        return without_foreign_places(part_of(self.network, names), nodes)

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
