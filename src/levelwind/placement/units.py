"""Units: operators that can only be placed together, as the planners see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from levelwind.loads.arrays import Floats, Ints, sum_by
from levelwind.loads.problem import Problem


@dataclass(frozen=True, kw_only=True)
class Units:
    """A partition of the operators; every planner places its parts, so pins and tables hold for all.

    Parameters
    ----------
    of
        Unit of each operator.
    count
        Number of units.
    fixed
        Node each unit must stand on, or −1.
    conflicts
        Sentences about rules that contradict each other; then no plan exists.
    """

    problem: Problem
    of: Ints
    count: int
    fixed: Ints
    conflicts: tuple[str, ...] = ()

    @cached_property
    def weight(self) -> Floats:
        """Each unit's share of each variable's load (units × variables)."""
        return sum_by(self.of, self.problem.weight, self.count)

    @cached_property
    def mean_load(self) -> Floats:
        """Mean load of each unit at the stated rates."""
        return sum_by(self.of, self.problem.mean_load, self.count)

    @cached_property
    def stated_load(self) -> Floats:
        """Mean of the load that each unit states outright as a series."""
        return sum_by(self.of, self.problem.stated_load, self.count)

    @cached_property
    def members(self) -> list[list[int]]:
        """Operator indices of each unit."""
        lists: list[list[int]] = [[] for _ in range(self.count)]
        for operator, unit in enumerate(self.of.tolist()):
            lists[unit].append(operator)
        return lists

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """For each unit the units it exchanges rows with, once per arc. O(arcs)."""
        lists: list[list[int]] = [[] for _ in range(self.count)]
        unit = self.of.tolist()
        for stream in self.problem.physical.streams:
            if stream.producer is None:
                continue
            a = unit[stream.producer]
            for consumer in stream.consumers:
                b = unit[consumer]
                if a != b:
                    lists[a].append(b)
                    lists[b].append(a)
        return lists

    def assignment(self, unit_nodes: Sequence[int] | Ints) -> Ints:
        """Node of each operator from the node of each unit."""
        nodes: Ints = np.asarray(unit_nodes, dtype=np.int64)[self.of]
        return nodes

    def merged(self, group: Ints) -> Units:
        """Coarser units: unit u becomes part of ``group[u]`` (groups numbered from 0)."""
        count = int(group.max()) + 1 if len(group) else 0
        fixed = np.full(count, -1, dtype=np.int64)
        pinned = self.fixed >= 0
        fixed[group[pinned]] = self.fixed[pinned]
        return Units(problem=self.problem, of=group[self.of], count=count, fixed=fixed)


def make_units(problem: Problem) -> Units:
    """One unit per operator, except that operators on one table make one unit. O(operators)."""
    of = np.empty(len(problem.physical.operators), dtype=np.int64)
    tables: dict[str, int] = {}
    fixed: list[int] = []
    conflicts = []
    names = problem.cluster.names
    for j, operator in enumerate(problem.physical.operators):
        table, node = operator.logical.table, int(problem.fixed[j])
        if table is None or table not in tables:
            of[j] = len(fixed)
            fixed.append(node)
            if table is not None:
                tables[table] = int(of[j])
            continue
        unit = tables[table]
        of[j] = unit
        if fixed[unit] < 0:
            fixed[unit] = node
        elif node >= 0 and node != fixed[unit]:
            conflicts.append(
                f"operators on table {table!r} stay together, but {operator.name} must stand "
                f"on {names[node]} and another on {names[fixed[unit]]}"
            )
    return Units(
        problem=problem,
        of=of,
        count=len(fixed),
        fixed=np.array(fixed, dtype=np.int64),
        conflicts=tuple(conflicts),
    )
