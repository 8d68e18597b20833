"""Where operators stand before anybody has measured anything."""

from __future__ import annotations

import numpy as np

from levelwind.errors import InputError
from levelwind.errors import Problem as InputProblem
from levelwind.loads.problem import Problem
from levelwind.placement import make_planner, make_units
from levelwind.sim.tables import Floats, Ints


def random_start(problem: Problem, rng: np.random.Generator) -> Ints:
    """By chance, an equal number of operators on every node."""
    decision = make_planner("random").plan(problem, rng=rng)
    if decision.assignment is None:
        raise InputError(InputProblem(rule=note, key="start", value="random") for note in decision.notes)
    return decision.assignment


def connected_start(problem: Problem, load: Floats) -> Ints:
    """Every connected query graph on one node (seed 001, section 5.2.2), the heaviest first, to the emptiest.

    What is pinned stays where it is pinned. O(operators × nodes + arcs).
    """
    units = make_units(problem)
    if units.conflicts:
        raise InputError(InputProblem(rule=note, key="start", value="connected") for note in units.conflicts)
    graph = _components(units.count, [(i, j) for i, near in enumerate(units.neighbours) for j in near])
    nodes = units.fixed.copy()
    unit_load = np.zeros(units.count)
    np.add.at(unit_load, units.of, load)
    node_load = np.zeros(len(problem.cpu))
    np.add.at(node_load, nodes[nodes >= 0], unit_load[nodes >= 0])
    free = nodes < 0
    weight = np.zeros(units.count)
    np.add.at(weight, graph[free], unit_load[free])
    for component in sorted(set(graph[free].tolist()), key=lambda c: (-weight[c], c)):
        home = int(np.argmin(node_load / problem.cpu))
        nodes[free & (graph == component)] = home
        node_load[home] += weight[component]
    return units.assignment(nodes)


def _components(count: int, arcs: list[tuple[int, int]]) -> Ints:
    """For each unit the smallest number in its connected component."""
    root = list(range(count))

    def top(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    for one, other in arcs:
        a, b = top(one), top(other)
        root[max(a, b)] = min(a, b)
    return np.array([top(i) for i in range(count)], dtype=np.int64)
