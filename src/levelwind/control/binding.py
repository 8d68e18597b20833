"""What binds a query that stands somewhere already to a group: operators that must stay, pins, its load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from levelwind.errors import InputError, Problem
from levelwind.model import Network
from levelwind.rewrite import PhysicalOperator, split
from levelwind.rewrite.diffuse import written_name


def physical_operators(network: Network) -> dict[str, list[PhysicalOperator]]:
    """By operator as written, those that are placed. O(operators)."""
    found: dict[str, list[PhysicalOperator]] = {}
    for operator in split(network).operators:
        found.setdefault(written_name(operator.logical), []).append(operator)
    return found


def binding_groups(
    network: Network,
    queries: Sequence[tuple[str, ...]],
    homes: Mapping[str, str],
    there: Mapping[str, str],
    loads: Mapping[str, float],
) -> dict[int, str]:
    """The group of each query of which something stands somewhere or is pinned to a node that is there.

    Operators that cannot be moved stay in their group, and those that stand in the group of their pin, or
    are new, go by it: if these name several groups, that is an input error. If they name none, a pin that
    was not kept so far decides, then the group with most of the load.

    Parameters
    ----------
    homes
        The group that operators as placed stand in; without those that are new.
    there
        The group of each node that is there. Pins to others bind nobody.
    loads
        Of operators as placed, those in ``homes`` among them.

    Notes
    -----
    O(operators).
    """
    placed = physical_operators(network)
    found: dict[int, str] = {}
    problems = []
    for number, names in enumerate(queries):
        operators = [operator for name in names for operator in placed[name]]
        must, may = _binding(operators, homes, there)
        weights = _weights([operator.name for operator in operators], homes, loads)
        if len(must) > 1:
            rule = "the operators of a query must stand in one group, and these cannot be brought together"
            value = ", ".join(f"{who}, in group {group}" for group, who in must.items())
            problems.append(Problem(rule=rule, key=names[0], value=value))
        elif must or may:
            found[number] = next(iter(must or may))
        elif weights:
            found[number] = max(weights, key=lambda group: weights[group])
    if problems:
        raise InputError(problems)
    return found


def _binding(
    operators: Sequence[PhysicalOperator], homes: Mapping[str, str], there: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The groups that operators must stand in, and those they are pinned into but do not; with one each."""
    must: dict[str, str] = {}
    may: dict[str, str] = {}
    for operator in operators:
        home, pin = homes.get(operator.name), operator.logical.pinned
        pinned_into = None if pin is None else there.get(pin)
        if pinned_into is not None:
            kept = home in (None, pinned_into)
            (must if kept else may).setdefault(pinned_into, f"{operator.name} is pinned to {pin}")
        elif home is not None and not operator.logical.movable:
            must.setdefault(home, f"{operator.name} is immovable")
    return must, may


def _weights(
    operators: Sequence[str], homes: Mapping[str, str], loads: Mapping[str, float]
) -> dict[str, tuple[float, int]]:
    """Of each group the load of the operators that stand there, and their number where loads are alike."""
    found: dict[str, tuple[float, int]] = {}
    for name in operators:
        if name in homes:
            load, number = found.get(homes[name], (0.0, 0))
            found[homes[name]] = (load + loads[name], number + 1)
    return found
