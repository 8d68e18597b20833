"""Whether a plan can be carried out: every operator exactly once, every node there and ready, rules kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from levelwind.control.events import PlanProposed
from levelwind.control.instructions import Alarm, AskAgain
from levelwind.control.roster import Roster
from levelwind.errors import Problem, did_you_mean

# An invalid plan is asked for again so often, the first time counted; then somebody must look.
ATTEMPTS = 3


def refused(
    event: PlanProposed, problems: Sequence[str], nodes: tuple[str, ...]
) -> tuple[str, Alarm | AskAgain]:
    """What to write down of a plan that is not valid, and the answer: ask for another, at last an alarm.

    ``nodes`` are those that a plan may use.
    """
    more = f", and {len(problems) - 1} more" if problems[1:] else ""
    text = f"{event.reason} is not valid: {problems[0]}{more}"
    if event.attempt >= ATTEMPTS:
        return text, Alarm(text=f"{text}; asked {event.attempt} times")
    return text, AskAgain(attempt=event.attempt + 1, nodes=nodes, problems=tuple(problems))


def by_group(
    placement: Mapping[str, str], group_by_name: Mapping[str, str], group_of_node: Mapping[str, str]
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """A plan cut into those of the groups, and what is wrong with it if operators are to leave theirs."""
    parts: dict[str, dict[str, str]] = {}
    problems = []
    for name, node in placement.items():
        group = group_by_name.get(name)
        if group is None:
            problems.append(f"{name}: must name an operator of the network")
        elif group_of_node.get(node, group) != group:
            problems.append(f"{name}: must stand in group {group}, not on {node}")
        else:
            parts.setdefault(group, {})[name] = node
    return parts, problems


def plan_problems(
    roster: Roster,
    placement: Mapping[str, str],
    *,
    known: Collection[str],
    live: Collection[str] | None = None,
    ready: Collection[str] | None = None,
    stands: Mapping[str, str] | None = None,
) -> list[Problem]:
    """Everything that is wrong with a plan; empty if it is valid. O(operators).

    A mapping names an operator at most once, so what is left to see is that it names each of them, and no
    other. ``known`` are the nodes that the cluster ever had, ``live`` those that answer, ``ready`` those of
    them that can work; None: all. ``stands`` says where operators run now: one may stay on a node that is not
    ready, and one that is immovable must stay, unless it goes where it is pinned to.
    """
    stands = stands or {}
    problems = [
        Problem(rule="every operator must have a node", key=name)
        for name in roster.names
        if name not in placement
    ]
    for name, node in placement.items():
        if name not in roster.position:
            hint = did_you_mean(name, roster.names)
            problems.append(Problem(rule="must name an operator of the network", key=name, hint=hint))
        elif node not in known:
            hint = did_you_mean(str(node), known)
            rule = "must name a node of the cluster"
            problems.append(Problem(rule=rule, key=name, value=str(node), hint=hint))
        elif live is not None and node not in live:
            problems.append(Problem(rule="must name a node that is there", key=name, value=str(node)))
        elif ready is not None and node not in ready and stands.get(name) != node:
            problems.append(Problem(rule="must name a node that is ready", key=name, value=str(node)))
        elif rule := _broken(roster, roster.position[name], node, live, stands.get(name)):
            problems.append(Problem(rule=rule, key=name, value=str(node)))
    for members in roster.members.values():
        homes = {placement.get(roster.names[j]) for j in members}
        if len(homes) > 1:
            rule, value = "operators on one table stand together", ", ".join(map(str, homes))
            problems.append(Problem(rule=rule, key=roster.names[members[0]], value=value))
    return problems


def _broken(
    roster: Roster, operator: int, node: str, live: Collection[str] | None, stands: str | None
) -> str:
    """The rule that forbids an operator this node; empty if none does."""
    pin = roster.pinned[operator]
    # A pin to a node that is gone binds nobody.
    if pin not in (None, node) and (live is None or pin in live):
        return f"is pinned to {pin}"
    if roster.immovable[operator] and stands not in (None, node) and roster.pin(operator) != node:
        return f"is immovable, or shares a table with one that is, and runs on {stands}"
    return ""
