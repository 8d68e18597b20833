"""Which moves may be asked for: names that exist, and rules that a move must not break."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from levelwind.errors import Problem, did_you_mean
from levelwind.model import Network
from levelwind.rewrite import split


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Operators as they are placed, and everything that keeps them from being moved."""

    operators: tuple[str, ...]
    problems: tuple[Problem, ...]


def check_move(network: Network, names: Sequence[str], target: str, nodes: Collection[str]) -> Asked:
    """What a move would move. The name of a split operator stands for all its instances.

    An operator must be movable, must not be pinned elsewhere, and goes with all others on its table.
    The keys of the problems are ``operators`` and ``to``, the rest of a path is the caller's.
    """
    physical = split(network).operators
    logical = {operator.name: operator.logical for operator in physical}
    found: dict[str, None] = {}
    problems = []
    for name in names:
        here = [other for other in logical if name in (other, logical[other].name)]
        if not here:
            rule, hint = (
                "must be an operator of the network",
                did_you_mean(name, [*network.operators, *logical]),
            )
            problems.append(Problem(rule=rule, key="operators", value=name, hint=hint))
        found |= dict.fromkeys(here)
    if target not in nodes:
        rule, hint = "must be a node of the cluster", did_you_mean(target, nodes)
        problems.append(Problem(rule=rule, key="to", value=target, hint=hint))
    for name in found:
        operator = logical[name]
        if operator.pinned not in (None, target):
            rule = f"an operator must stay on the node it is pinned to, {operator.pinned}"
            problems.append(Problem(rule=rule, key="operators", value=name))
        elif not operator.movable and operator.pinned is None:
            problems.append(Problem(rule="an operator must be movable", key="operators", value=name))
        left = [other for other in logical if operator.table and logical[other].table == operator.table]
        if missing := [other for other in left if other not in found]:
            rule, hint = (
                f"operators on table {operator.table} stay together",
                f"move {', '.join(missing)} too",
            )
            problems.append(Problem(rule=rule, key="operators", value=name, hint=hint))
    return Asked(operators=tuple(found), problems=tuple(problems))
