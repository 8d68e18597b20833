"""Plans in which queries use each other's operators, where that spares the network something."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from levelwind.errors import input_error
from levelwind.loads.problem import make_problem
from levelwind.model import Cluster, Network, Plan, PlanStatus
from levelwind.model.frozen import frozen_mapping
from levelwind.placement import check_needs, make_planner, make_units
from levelwind.placement.flows import latency_seconds, make_flows
from levelwind.planning import plan
from levelwind.rewrite.reuse import share, with_multicast

# Equal sums, added up in another order.
ROUNDING = 1e-12
MOST_ALONE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPlan:
    """A plan of what is computed, and who is served by whom.

    ``multicast`` are the operators whose rows a multicast operator passes on. ``usage_apart`` is the network
    usage if no operator is shared, as the same planner places it: the plan's is never above it. Queries that
    stand together still share the streams that they read (see `usage_alone`). It is None if there is no such
    plan: what does not fit apart may fit shared.
    """

    plan: Plan
    network: Network
    served_by: Mapping[str, str] = field(default_factory=frozen_mapping)
    multicast: tuple[str, ...] = ()
    usage: float | None = None
    usage_apart: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Who plans, on what, and where operators stand now."""

    cluster: Cluster
    planner: str
    options: Mapping[str, Any] | None
    seed: int
    current: Mapping[str, str] | None

    def standing(self, network: Network) -> dict[str, str] | None:
        """Where the operators that are computed stand now."""
        if self.current is None:
            return None
        return {
            name: node for name, node in self.current.items() if name.partition("[")[0] in network.operators
        }

    def usage(self, network: Network) -> float | None:
        """Network usage as the planner places a network; None if it does not."""
        problem = make_problem(network, self.cluster, current=self.standing(network))
        chosen = make_planner(self.planner, self.options)
        check_needs(chosen, problem)
        answer = chosen.plan(problem, rng=np.random.default_rng(self.seed))
        if answer.status is not PlanStatus.PLACED or answer.assignment is None:
            return None
        units = make_units(problem)
        nodes = np.empty(units.count, dtype=np.int64)
        nodes[units.of] = answer.assignment
        return make_flows(units).usage(nodes, latency_seconds(units))

    def plan(self, network: Network) -> Plan:
        """The plan itself."""
        return plan(
            network,
            self.cluster,
            self.planner,
            options=self.options,
            seed=self.seed,
            current=self.standing(network),
        )


def plan_shared(
    network: Network,
    cluster: Cluster,
    planner: str = "network",
    *,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    multicast: bool = True,
    current: Mapping[str, str] | None = None,
) -> SharedPlan:
    """Plan a network whose queries reuse equal operators wherever that does not raise network usage.

    Queries decide in turn, as if they came one after another: one that has operators which run already is
    planned with them and without, and reuses them unless that costs the network more. Operators far from
    where it would have put its own are left alone that way. Then each shared operator is tried with a
    multicast operator behind it, which passes its rows on. Queries that find no room apart share all that
    they can.

    Raises
    ------
    InputError
        If the cluster states no latencies: then nothing tells what sharing spares.

    Notes
    -----
    At most two plans per query that could share, and one per shared operator.
    """
    if cluster.latency_ms is None:
        rule = "reuse is planned by network usage, which needs the latencies between the nodes"
        hint = "name a matrix in the cluster file's `latency`; levelwind run shares without"
        raise input_error(rule, key="--reuse", value="a cluster without latency", hint=hint)
    asked = _Asked(cluster=cluster, planner=planner, options=options, seed=seed, current=current)
    possible = share(network, models=True)
    apart = set(possible.served_by)
    best = before = asked.usage(network)
    if best is None and apart:
        best, apart = asked.usage(possible.network), set()
    # A second time round, what is shared meanwhile may make worth it what was not.
    for own in (*_queries(network), *_queries(network)):
        mine = apart & own
        if mine and best is not None:
            made = share(network, models=True, apart=apart - mine)
            usage = asked.usage(made.network)
            # What costs the network nothing more is shared too: it spares the CPU.
            if usage is not None and usage <= best * (1.0 + ROUNDING):
                apart -= mine
                best = min(best, usage)
    shared = share(network, models=True, apart=apart)
    chosen, relayed = shared.network, []
    if multicast and best is not None:
        for leader in dict.fromkeys(shared.served_by.values()):
            outputs = [each for each in chosen.outputs.values() if each.input.source == leader]
            if len(outputs) < 2:
                continue
            trial = with_multicast(chosen, leader)
            usage = asked.usage(trial)
            if usage is not None and usage < best:
                chosen, best = trial, usage
                relayed.append(leader)
    return SharedPlan(
        plan=asked.plan(chosen),
        network=chosen,
        served_by=shared.served_by,
        multicast=tuple(relayed),
        usage=best,
        usage_apart=before,
    )


def usage_alone(
    network: Network,
    cluster: Cluster,
    planner: str = "network",
    *,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> float | None:
    """Network usage of queries that share nothing, streams included: each is planned by itself.

    The sum over the queries; None if one of them finds no place, or if there are more than ``MOST_ALONE``:
    that takes a plan per query.
    """
    queries = _queries(network)
    if len(queries) > MOST_ALONE:
        return None
    asked = _Asked(cluster=cluster, planner=planner, options=options, seed=seed, current=None)
    total = 0.0
    for own in queries:
        names = set(own)
        read = {port.source for name in own for port in network.operators[name].inputs}
        alone = replace(
            network,
            streams={name: stream for name, stream in network.streams.items() if name in read},
            operators={name: operator for name, operator in network.operators.items() if name in names},
            outputs={name: o for name, o in network.outputs.items() if o.input.source in names},
            queries={name: query for name, query in network.queries.items() if name in names},
        )
        usage = asked.usage(alone)
        if usage is None:
            return None
        total += usage
    return total


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
