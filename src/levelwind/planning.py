"""Plan, measure, compare, explain, size: the whole of planning as plain functions.

The commands of the same names print what these return. A cluster may be given as a number of equal nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from levelwind.errors import InputError, Problem, did_you_mean, input_error
from levelwind.loads.planes import least_distance, planes
from levelwind.loads.problem import Problem as PlanningProblem
from levelwind.loads.problem import make_problem
from levelwind.model import Cluster, Measures, Network, Plan, PlanStatus
from levelwind.model.frozen import frozen_mapping
from levelwind.placement import check_needs, make_planner, make_units, node_loads
from levelwind.placement import measure as measure_assignment

Placement = Mapping[str, str]

# A node that is full to the last digit is not overloaded.
ROUNDING = 1e-9
MOST_NODES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why an operator stands where it does, and what every other node would mean.

    ``elsewhere`` has the measures of the placement with this one operator moved, by node; ``here`` those
    of the placement as it is.
    """

    operator: str
    node: str
    reason: str
    here: Measures
    elsewhere: Mapping[str, Measures]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """How many equal nodes bear the rates. ``nodes`` is None if no number does.

    ``margin`` is how many times the rates could grow, all together, before the fullest node is full.
    ``loads`` are the nodes' loads at the rates, under ``plan``.
    """

    nodes: int | None
    margin: float | None
    plan: Plan | None
    loads: Mapping[str, float]
    notes: tuple[str, ...] = ()


def plan(
    network: Network,
    cluster: Cluster | int,
    planner: str = "rod",
    *,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    current: Placement | Plan | None = None,
) -> Plan:
    """Decide where every operator runs.

    Parameters
    ----------
    planner, options
        A name from `levelwind.planners()` and its options.
    current
        Where operators stand now: those that cannot be moved stay, and ``moved_load`` is measured.

    Examples
    --------
    >>> import levelwind as lw
    >>> network = lw.parse(
    ...     {"streams": {"I": {}}, "operators": [
    ...         {"name": "a", "kind": "model", "input": "I", "cost": 0.001},
    ...         {"name": "b", "kind": "model", "input": "I", "cost": 0.001}]})
    >>> result = lw.plan(network, 2)
    >>> result.placement["a"] != result.placement["b"], result.measures.feasible_ratio
    (True, 1.0)
    """
    problem = make_problem(
        network, cluster_of(cluster), current=None if current is None else _by_name(current)
    )
    return _plan(problem, planner, options, seed)


def measure(
    network: Network,
    cluster: Cluster | int,
    placement: Placement | Plan,
    *,
    seed: int = 0,
    moved_from: Placement | Plan | None = None,
) -> Measures:
    """What a placement is worth."""
    problem = make_problem(network, cluster_of(cluster))
    before = None if moved_from is None else _assignment(problem, moved_from)
    return measure_assignment(problem, _assignment(problem, placement), seed=seed, moved_from=before)


def compare(
    network: Network,
    cluster: Cluster | int,
    planners: Sequence[str],
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
    current: Placement | Plan | None = None,
) -> tuple[Plan, ...]:
    """Plans of several planners for the same network, in the order asked for."""
    problem = make_problem(
        network, cluster_of(cluster), current=None if current is None else _by_name(current)
    )
    return tuple(_plan(problem, name, (options or {}).get(name), seed) for name in planners)


def explain(
    network: Network, cluster: Cluster | int, placement: Placement | Plan, operator: str, *, seed: int = 0
) -> Explanation:
    """Why ``operator`` stands where it does, and the measures with it on each other node.

    A bare placement carries no reasons; a `Plan` does.
    """
    problem = make_problem(network, cluster_of(cluster))
    assignment = _assignment(problem, placement)
    names = problem.physical.names
    if operator not in names:
        rule = "must name an operator of the network"
        raise input_error(rule, key="operator", value=operator, hint=did_you_mean(operator, names))
    j = names.index(operator)
    elsewhere = {}
    for i, node in enumerate(problem.cluster.names):
        if i != assignment[j]:
            moved = assignment.copy()
            moved[j] = i
            elsewhere[node] = measure_assignment(problem, moved, seed=seed)
    units = make_units(problem)
    notes = []
    if len(units.members[int(units.of[j])]) > 1:
        notes.append("it shares a table with other operators: moved alone, it would break that rule")
    if units.fixed[units.of[j]] >= 0:
        bound = problem.cluster.names[units.fixed[units.of[j]]]
        notes.append(f"it is bound to {bound}: on any other node it breaks that rule")
    reasons = placement.reasons if isinstance(placement, Plan) else {}
    return Explanation(
        operator=operator,
        node=problem.cluster.names[assignment[j]],
        reason=reasons.get(operator, "the placement was given, not planned: it states no reasons"),
        here=measure_assignment(problem, assignment, seed=seed),
        elsewhere=elsewhere,
        notes=tuple(notes),
    )


def size(
    network: Network,
    rates: Mapping[str, float],
    *,
    planner: str = "rod",
    options: Mapping[str, Any] | None = None,
    cpu: float = 1.0,
    seed: int = 0,
) -> Sizing:
    """The smallest number of equal nodes on which the planner's plan bears these rates.

    Every smaller number was tried and failed: the search starts where all CPU together would just do.
    O(plans tried). Rates not given are taken from the network.
    """
    named = _highest_node(network)
    problem = make_problem(network, Cluster.equal(named, cpu=cpu), rates=rates)
    if problem.rates.missing:
        rule = "sizing needs the rate of every stream that causes load"
        value = "no rate for " + ", ".join(problem.rates.missing)
        raise input_error(rule, key="rates", value=value, hint="give them as --rates name=rows_per_s,…")
    units = make_units(problem)
    heaviest = int(np.argmax(units.mean_load)) if units.count else 0
    if units.count and units.mean_load[heaviest] > cpu * (1 + ROUNDING):
        names = ", ".join(problem.physical.names[j] for j in units.members[heaviest])
        need = units.mean_load[heaviest] / cpu
        note = f"{names} alone needs {need:.2f} nodes at these rates: split it"
        return Sizing(nodes=None, margin=None, plan=None, loads={}, notes=(note,))
    fewest = max(named, ceil(problem.mean_load.sum() / cpu - 1e-9))
    for count in range(fewest, max(fewest, units.count) + 1):
        trial = make_problem(network, Cluster.equal(count, cpu=cpu), rates=rates)
        answer = _plan(trial, planner, options, seed, measured=False)
        if answer.status is not PlanStatus.PLACED:
            continue
        assignment = trial.assignment(answer.placement)
        loads = node_loads(trial, assignment)
        if loads.max() <= 1.0 + ROUNDING:
            full = replace(answer, measures=measure_assignment(trial, assignment, seed=seed))
            by_node = {name: float(load) for name, load in zip(trial.cluster.names, loads, strict=True)}
            margin = float(1.0 / loads.max()) if loads.max() > 0 else None
            return Sizing(nodes=count, margin=margin, plan=full, loads=frozen_mapping(by_node))
    note = f"no number of nodes up to one per operator bears these rates as {planner} places them"
    return Sizing(nodes=None, margin=None, plan=None, loads={}, notes=(note,))


def _highest_node(network: Network) -> int:
    """The smallest number of nodes n1, n2, … that has all those which the network names."""
    named = [o.pinned for o in network.operators.values()]
    named += [s.node for s in network.streams.values()] + [o.node for o in network.outputs.values()]
    numbers = [name[1:] for name in named if name is not None and name[:1] == "n"]
    highest = max([1, *(int(number) for number in numbers if number.isdecimal())])
    if highest > MOST_NODES:
        rule = f"nodes are numbered up to {MOST_NODES} in sizing"
        raise input_error(rule, key="pinned", value=f"n{highest}")
    return highest


def _plan(
    problem: PlanningProblem,
    planner: str,
    options: Mapping[str, Any] | None,
    seed: int,
    *,
    measured: bool = True,
) -> Plan:
    if not isinstance(seed, int) or seed < 0:
        rule = "must be a whole number of at least 0"
        raise input_error(rule, key="seed", value=repr(seed))
    chosen = make_planner(planner, options)
    check_needs(chosen, problem)
    decision = chosen.plan(problem, rng=np.random.default_rng(seed))
    if decision.assignment is None:
        return Plan(planner=planner, status=decision.status, notes=decision.notes)
    status, notes = decision.status, [*decision.notes, *_routing(problem)]
    distance = least_distance(planes(problem, decision.assignment), problem.normalised_lower)
    if status is PlanStatus.PLACED and distance < -ROUNDING:
        status = PlanStatus.INFEASIBLE
        notes.append("a node or link is overloaded at the streams' minimum rates")
    worth = None
    if measured:
        worth = measure_assignment(problem, decision.assignment, seed=seed, moved_from=problem.current)
        if worth.max_load is not None and worth.max_load > 1 + ROUNDING:
            notes.append(f"at the stated rates a node is overloaded: load {worth.max_load:.3g}")
    return Plan(
        planner=planner,
        status=status,
        placement=frozen_mapping(problem.placement(decision.assignment)),
        measures=worth,
        notes=tuple(notes),
        reasons=frozen_mapping(dict(zip(problem.physical.names, decision.reasons, strict=True))),
    )


def _routing(problem: PlanningProblem) -> list[str]:
    """The way that each join with ``method: auto`` is planned for."""
    spread = problem.linear.spread
    return [f"{name} is planned for {own.why}" for name, own in spread.items() if own.why]


def cluster_of(cluster: Cluster | int) -> Cluster:
    """A cluster: as given, with the latencies of its routes if it states none; or that many equal nodes."""
    if isinstance(cluster, Cluster):
        if cluster.latency_ms is None and cluster.topology is not None:
            from levelwind.space.latency import with_latency  # compiled loops: only those wait who need it

            return with_latency(cluster)
        return cluster
    if not isinstance(cluster, int) or isinstance(cluster, bool) or not 1 <= cluster <= MOST_NODES:
        rule = f"must be a Cluster or a number of nodes from 1 to {MOST_NODES}"
        raise input_error(rule, key="cluster", value=repr(cluster))
    return Cluster.equal(cluster)


def _by_name(placement: Placement | Plan) -> Placement:
    return placement.placement if isinstance(placement, Plan) else placement


def _assignment(problem: PlanningProblem, placement: Placement | Plan) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Node of each operator, after checking that the placement names them all and nothing else."""
    by_name = _by_name(placement)
    operators, nodes = problem.physical.names, problem.cluster.names
    known_operators, known_nodes = set(operators), set(nodes)
    problems = [
        Problem(rule="every operator must have a node", key=name, hint=f"add {name!r} to the placement")
        for name in operators
        if name not in by_name
    ]
    for name, node in by_name.items():
        if name not in known_operators:
            hint = did_you_mean(name, operators)
            problems.append(
                Problem(rule="must name an operator of the network", key=name, value=name, hint=hint)
            )
        elif node not in known_nodes:
            hint = did_you_mean(str(node), nodes)
            problems.append(
                Problem(rule="must name a node of the cluster", key=name, value=str(node), hint=hint)
            )
    if problems:
        raise InputError(problems)
    return problem.assignment(by_name)
