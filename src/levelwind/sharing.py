"""Plans in which queries use each other's operators, where that spares the network something."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from levelwind.loads.problem import make_problem
from levelwind.model import Cluster, Network, Plan, PlanStatus
from levelwind.model.frozen import frozen_mapping
from levelwind.placement import check_needs, make_planner, make_units
from levelwind.placement.flows import latency_seconds, make_flows
from levelwind.planning import plan
from levelwind.rewrite.reuse import Shared, share, with_multicast


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPlan:
    """A plan of what is computed, and who is served by whom.

    ``usage_apart`` is the network usage with every query on its own, as the same planner places it: the
    plan's is never above it.
    """

    plan: Plan
    network: Network
    served_by: Mapping[str, str] = field(default_factory=frozen_mapping)
    usage: float | None = None
    usage_apart: float | None = None


def plan_shared(
    network: Network,
    cluster: Cluster,
    planner: str = "network",
    *,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    multicast: bool = True,
) -> SharedPlan:
    """Plan a network whose queries reuse equal operators wherever that lowers network usage.

    Queries decide in turn, as if they came one after another: one that has operators which run already is
    planned with them and without, and takes what costs the network less. Operators far from where it would
    have put its own are left alone that way. Then each shared operator is tried with a multicast operator
    behind it, which passes its rows on.

    Notes
    -----
    A plan per query that could share, and one per shared operator.
    """
    possible = share(network, models=True).served_by
    apart = set(possible)
    best = before = _usage(network, cluster, planner, options, seed)
    for own in _queries(network):
        mine = apart & own
        if mine and best is not None:
            made = share(network, models=True, apart=apart - mine)
            usage = _usage(made.network, cluster, planner, options, seed)
            if usage is not None and usage < best:
                apart -= mine
                best = usage
    shared = share(network, models=True, apart=apart)
    chosen = shared.network
    if multicast and best is not None:
        for leader in dict.fromkeys(shared.served_by.values()):
            outputs = [each for each in chosen.outputs.values() if each.input.source == leader]
            if len(outputs) < 2:
                continue
            trial = with_multicast(chosen, leader)
            usage = _usage(trial, cluster, planner, options, seed)
            if usage is not None and usage < best:
                chosen, best = trial, usage
    return _answer(chosen, shared, cluster, planner, options, seed, best, before)


def _answer(
    network: Network,
    shared: Shared,
    cluster: Cluster,
    planner: str,
    options: Mapping[str, Any] | None,
    seed: int,
    usage: float | None,
    before: float | None,
) -> SharedPlan:
    made = plan(network, cluster, planner, options=options, seed=seed)
    return SharedPlan(plan=made, network=network, served_by=shared.served_by, usage=usage, usage_apart=before)


def _usage(
    network: Network, cluster: Cluster, planner: str, options: Mapping[str, Any] | None, seed: int
) -> float | None:
    """Network usage as the planner places it; None if it does not."""
    problem = make_problem(network, cluster)
    chosen = make_planner(planner, options)
    check_needs(chosen, problem)
    answer = chosen.plan(problem, rng=np.random.default_rng(seed))
    if answer.status is not PlanStatus.PLACED or answer.assignment is None:
        return None
    units = make_units(problem)
    nodes = np.empty(units.count, dtype=np.int64)
    nodes[units.of] = answer.assignment
    return make_flows(units).usage(nodes, latency_seconds(units))


def _queries(network: Network) -> list[set[str]]:
    """Operators that hang together, in the order of the file."""
    group: dict[str, set[str]] = {}
    for name in network.order:
        own = {name}
        for port in network.operators[name].inputs:
            own |= group.get(port.source, set())
        for member in own:
            group[member] = own
    return list({id(own): own for own in (group[name] for name in network.operators)}.values())
