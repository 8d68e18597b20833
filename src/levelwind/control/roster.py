"""The operators of a network as a manager keeps them: names, rules and units as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from levelwind.balance.facts import Facts, make_facts
from levelwind.balance.importance import importance
from levelwind.errors import InputError, Problem
from levelwind.loads.arrays import Floats, Ints
from levelwind.loads.problem import make_problem
from levelwind.model import Cluster, Fusion, JoinPart, Network
from levelwind.rewrite import PhysicalOperator, diffusion_name, split


@dataclass(frozen=True, kw_only=True)
class Roster:
    """Physical operators in the order of the file.

    Parameters
    ----------
    names
        Of the operators.
    pinned
        Node that each is bound to, None for most.
    movable
        Whether an operator may move at all: not if it is pinned, declared immovable, or shares a table with
        one of these.
    immovable
        Whether an operator is declared immovable, or shares a table with one that is.
    unit
        Operators on one table have one number; numbered from 0 in the order of the file.
    priority
        The higher, the more important; that of `importance`.
    may_shed
        Whether an operator says that it may leave rows out under overload.
    fed_by
        By whose rows an operator's load goes: its own, but those of the one that sends for parts of a spread
        join.
    """

    network: Network
    names: tuple[str, ...]
    pinned: tuple[str | None, ...]
    movable: NDArray[np.bool_]
    immovable: NDArray[np.bool_]
    unit: Ints
    priority: Floats
    may_shed: NDArray[np.bool_]
    fed_by: Ints

    @cached_property
    def position(self) -> dict[str, int]:
        """Position of each operator by name."""
        return {name: j for j, name in enumerate(self.names)}

    @cached_property
    def bound(self) -> tuple[int, ...]:
        """Operators that are pinned."""
        return tuple(j for j, pin in enumerate(self.pinned) if pin is not None)

    @cached_property
    def alone(self) -> NDArray[np.bool_]:
        """Whether an operator moves alone: it shares its table, if it has one, with no other."""
        return (np.bincount(self.unit, minlength=1) == 1)[self.unit]

    @cached_property
    def members(self) -> dict[int, tuple[int, ...]]:
        """Operators of each unit that has more than one."""
        found: dict[int, list[int]] = {}
        for j in np.flatnonzero(~self.alone).tolist():
            found.setdefault(int(self.unit[j]), []).append(j)
        return {unit: tuple(members) for unit, members in found.items()}

    def together(self, operator: int) -> tuple[int, ...]:
        """The operators that move with this one, itself among them."""
        return self.members.get(int(self.unit[operator]), (operator,))

    def pin(self, operator: int) -> str | None:
        """Node that an operator, or another on its table, is pinned to."""
        return next((p for j in self.together(operator) if (p := self.pinned[j]) is not None), None)

    @cached_property
    def facts(self) -> Facts:
        """Wiring, priorities and properties."""
        return make_facts(self.network)

    def stated_load(self, cluster: Cluster) -> Floats:
        """Mean load of each operator by stated rates and costs; NaN where a rate is missing."""
        return make_problem(self.network, cluster).mean_load


def make_roster(network: Network, cluster: Cluster) -> Roster:
    """Take the rules out of a network; a pin to a node that the cluster never had is an input error."""
    physical = split(network)
    operators = physical.operators
    known = set(cluster.names)
    problems = [
        Problem(rule="must name a node of the cluster", key=f"{o.name}.pinned", value=o.logical.pinned)
        for o in operators
        if o.logical.pinned is not None and o.logical.pinned not in known
    ]
    problems += _table_conflicts(operators)
    if problems:
        raise InputError(problems)
    tables: dict[str, int] = {}
    unit = np.empty(len(operators), dtype=np.int64)
    numbered = 0
    for j, operator in enumerate(operators):
        table = operator.logical.table
        if table is not None and table in tables:
            unit[j] = tables[table]
            continue
        unit[j] = numbered
        if table is not None:
            tables[table] = numbered
        numbered += 1
    stuck = np.array([not o.logical.movable for o in operators], dtype=bool)
    bound, immovable = np.zeros(numbered, dtype=bool), np.zeros(numbered, dtype=bool)
    immovable[unit[stuck]] = True
    bound[unit[stuck | np.array([o.logical.pinned is not None for o in operators], dtype=bool)]] = True
    return Roster(
        network=network,
        names=tuple(o.name for o in operators),
        pinned=tuple(o.logical.pinned for o in operators),
        movable=~bound[unit],
        immovable=immovable[unit],
        unit=unit,
        priority=importance(physical),
        may_shed=np.array([o.logical.may_shed for o in operators], dtype=bool),
        fed_by=_fed_by(operators),
    )


def _fed_by(operators: tuple[PhysicalOperator, ...]) -> Ints:
    position = {operator.name: j for j, operator in enumerate(operators)}
    found = np.arange(len(operators), dtype=np.int64)
    for j, operator in enumerate(operators):
        spec = operator.logical.spec
        if isinstance(spec, JoinPart | Fusion):
            join = spec.of if isinstance(spec, JoinPart) else operator.logical.name
            found[j] = position.get(diffusion_name(join), j)
    return found


def _table_conflicts(operators: tuple[PhysicalOperator, ...]) -> list[Problem]:
    pins: dict[str, set[str]] = {}
    for operator in operators:
        table, pin = operator.logical.table, operator.logical.pinned
        if table is not None and pin is not None:
            pins.setdefault(table, set()).add(pin)
    rule = "operators on one table stay together and cannot be pinned to different nodes"
    return [
        Problem(rule=rule, key=f"table {table}", value=", ".join(sorted(nodes)))
        for table, nodes in pins.items()
        if len(nodes) > 1
    ]
