"""How a run is kept in balance: the options, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from levelwind.cli.inputs import parse_settings
from levelwind.errors import InputError, Problem

Policy = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="Who moves operators while it runs; see levelwind policies.",
        show_default=False,
    ),
]
PolicySettings = Annotated[
    list[str] | None,
    typer.Option(
        "--policy-set",
        metavar="KEY=VALUE",
        help="An option of the policy. May be repeated; see levelwind policies.",
        show_default=False,
    ),
]
Period = Annotated[
    str,
    typer.Option(
        "--period", metavar="DURATION", help="How long a sample of load is; the policy is asked after each."
    ),
]
MovedLoadBudget = Annotated[
    float | None,
    typer.Option(
        "--moved-load-budget",
        metavar="LOAD",
        help="Most mean load, in CPU seconds per second, that may move per period. Default: any.",
        show_default=False,
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="PROPERTY",
        help="Nodes with the same value of this property form a group with a manager of its own; "
        "no query stands in two groups.",
        show_default=False,
    ),
]


def read_balancing(
    name: str | None,
    settings: Sequence[str] | None,
    period: str,
    budget: float | None,
    groups: str | None = None,
) -> dict[str, Any]:
    """Who moves operators, how often it is asked and how much may move, as `levelwind.run` takes it."""
    from levelwind.balance.registry import make_policy
    from levelwind.frontend import parse_duration

    policy, period_s = None, 0.0
    problems: list[Problem] = []
    try:
        options = parse_settings(settings, option="--policy-set")
        if name is not None:
            policy = make_policy(name, options)
        elif options:
            rule = "options need a --policy that they are for"
            problems.append(Problem(rule=rule, key="--policy-set"))
    except InputError as error:
        problems += error.problems
    try:
        period_s = parse_duration(period)
        if not period_s:
            problems.append(Problem(rule="must be longer than nothing", key="--period", value=period))
    except ValueError as error:
        problems.append(Problem(rule=str(error), key="--period", value=period))
    if budget is not None and not 0 <= budget < float("inf"):
        rule = "must be a number of at least 0"
        problems.append(Problem(rule=rule, key="--moved-load-budget", value=str(budget)))
    if problems:
        raise InputError(problems)
    return {"policy": policy, "period_s": period_s, "moved_load_budget": budget, "groups": groups}
