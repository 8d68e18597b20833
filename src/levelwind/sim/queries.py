"""Queries that come and go in a simulation: which operators and outputs are there at a time.

All operators that there are at any time are laid out from the beginning. One is there as long as a query that
is there uses it: under reuse it may be used by several, and goes with the last of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from levelwind.errors import InputError, Problem
from levelwind.model import Network
from levelwind.rewrite import Shared
from levelwind.rewrite.removal import without
from levelwind.sim.scenario import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What is there: the network of it, and which of all physical operators."""

    network: Network
    operators: NDArray[np.bool_]


class Queries:
    """Follows the events of a scenario.

    Parameters
    ----------
    shared
        The network with all queries, equal operators once if they are to be.
    names
        All physical operators of it, in their order.
    """

    def __init__(self, shared: Shared, names: Sequence[str], changes: Iterable[Change]) -> None:
        self._shared, self._names = shared, names
        self._absent = absent_at_first(changes)

    @property
    def present(self) -> Present:
        """What is there now. O(operators + arcs)."""
        written, whole = self._shared.written, self._shared.network
        if not self._absent:
            return Present(network=whole, operators=np.ones(len(self._names), dtype=bool))
        left = without(written, self._absent)
        used = {self._shared.serving(name) for name in left.operators}
        network = replace(
            whole,
            operators={name: operator for name, operator in whole.operators.items() if name in used},
            queries=left.queries,
            outputs={name: whole.outputs[name] for name in left.outputs},
        )
        there = [name.partition("[")[0] in used for name in self._names]
        return Present(network=network, operators=np.array(there, dtype=bool))

    def change(self, change: Change) -> Present:
        """Take an event in."""
        self._absent = changed(self._absent, change)
        return self.present


def absent_at_first(changes: Iterable[Change]) -> tuple[str, ...]:
    """The queries that come before they go: these are not there at the beginning."""
    first: dict[str, bool] = {}
    for change in sorted(changes, key=lambda one: one.at_s):
        for name in change.added:
            first.setdefault(name, True)
        for name in change.removed:
            first.setdefault(name, False)
    return tuple(name for name, comes in first.items() if comes)


def changed(absent: Sequence[str], change: Change) -> tuple[str, ...]:
    """The queries that are not there after an event."""
    return (*(name for name in absent if name not in change.added), *change.removed)


def query_problems(network: Network, changes: Sequence[Change]) -> list[tuple[int, Problem]]:
    """What is wrong with the events of queries, each with the number of its event."""
    known = {*network.outputs, *network.queries}
    found: list[tuple[int, Problem]] = []
    for number, change in enumerate(changes):
        found += [
            (number, Problem(rule="must be an output or a query of the network", value=name))
            for name in (*change.added, *change.removed)
            if name not in known
        ]
    absent = absent_at_first(changes)
    if found or not any(change.added or change.removed for change in changes):
        return found
    first = [number for number, change in enumerate(changes) if change.added]
    found += [(first[0], problem) for problem in _left_out(network, absent)] if absent else []
    for number in sorted(range(len(changes)), key=lambda i: changes[i].at_s):
        change = changes[number]
        found += [
            (number, Problem(rule="must not be there yet when it is added", value=name))
            for name in change.added
            if name not in absent
        ]
        found += [
            (number, Problem(rule="must be there when it is removed", value=name))
            for name in change.removed
            if name in absent
        ]
        absent = changed(absent, change)
        if change.removed:
            found += [(number, problem) for problem in _left_out(network, absent)]
    return found


def _left_out(network: Network, absent: Sequence[str]) -> Sequence[Problem]:
    try:
        without(network, absent)
    except InputError as error:
        return error.problems
    return ()
