"""Checks that every planner must pass, whoever wrote it.

>>> from levelwind.testing import check_planner
>>> for check in check_planner("rod"):
...     check.run()
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from levelwind import planning
from levelwind.loads import Problem, make_problem
from levelwind.model import (
    Cluster,
    Link,
    Model,
    Network,
    Node,
    Operator,
    Output,
    Plan,
    PlanStatus,
    Port,
    Split,
    Stream,
    Topology,
)
from levelwind.placement import Decision, Planner, check_needs, make_planner

SAMPLES = 10


class PlannerCheckError(AssertionError):
    """A planner broke a rule of the planners' contract; the text says which, and on what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One rule, ready to be run: ``run`` returns nothing, or raises `PlannerCheckError`."""

    name: str
    rule: str
    run: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The planner under test: a registered name, or a class that nobody has registered yet."""

    planner: str | type[Any]
    options: Mapping[str, Any]
    seed: int

    def made(self) -> Planner:
        """The planner with its options."""
        if isinstance(self.planner, str):
            return make_planner(self.planner, self.options)
        planner: Planner = self.planner(**self.options)
        return planner

    def decide(self, problem: Problem, *, seed: int | None = None) -> Decision:
        """The planner's bare answer, without what `levelwind.plan` adds."""
        planner = self.made()
        check_needs(planner, problem)
        return planner.plan(problem, rng=np.random.default_rng(self.seed if seed is None else seed))

    def plan(
        self, network: Network, cluster: Cluster, *, current: Mapping[str, str] | None = None, seed: int = 0
    ) -> Plan:
        """The planner's answer as a user gets it."""
        seed += self.seed
        if isinstance(self.planner, str):
            return planning.plan(
                network, cluster, self.planner, options=self.options, seed=seed, current=current
            )
        problem = make_problem(network, cluster, current=current)
        decision = self.decide(problem, seed=seed)
        placement = {} if decision.assignment is None else problem.placement(decision.assignment)
        return Plan(planner=self.planner.name, status=decision.status, placement=placement)


def check_planner(
    planner: str | type[Any],
    *,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    load_aware: bool = True,
) -> Iterator[Check]:
    """Every check of the suite for one planner, to be run one by one.

    Parameters
    ----------
    planner
        A registered name or a planner class. What `levelwind.plan` adds on top of any planner (refusing a
        plan that is overloaded at the lower bound) is checked only for a name.
    options
        Options of the planner; give a search a small budget.
    load_aware
        Whether the planner claims to use the nodes' capacities. Chance does not.
    """
    subject = Subject(planner=planner, options=options or {}, seed=seed)
    left_out = set() if load_aware else {"unequal_capacities"}
    if not isinstance(planner, str):
        left_out.add("min_rate_beyond_capacity")
    for name, function in _CHECKS.items():
        if name not in left_out:
            rule = (function.__doc__ or "").strip()
            yield Check(name=name, rule=rule, run=partial(function, subject))


def _valid_plan(subject: Subject) -> None:
    """Every operator stands on exactly one node, and the node exists."""
    for seed in range(4):
        network = _trees(seed)
        _demand_valid(subject.plan(network, _unequal()), network, _unequal(), f"network {seed}")


def _split_operators(subject: Subject) -> None:
    """Every instance of a split operator is placed under its own name."""
    network = _trees(1)
    boxes = {n: replace(o, split=Split(into=2)) if n == "o2" else o for n, o in network.operators.items()}
    plan = subject.plan(replace(network, operators=boxes), meshed(Cluster.equal(2)))
    expected = {*(set(boxes) - {"o2"}), "o2[0]", "o2[1]"}
    _demand(set(plan.placement) == expected, f"placed {sorted(plan.placement)}, not {sorted(expected)}")


def _pins_and_tables(subject: Subject) -> None:
    """A pinned operator stands on its node, and operators on one table stand together."""
    network = _trees(2)
    boxes = dict(network.operators)
    boxes["o1"] = replace(boxes["o1"], pinned="n3")
    boxes["o2"] = replace(boxes["o2"], table="accounts")
    boxes["o5"] = replace(boxes["o5"], table="accounts")
    boxes["o3"] = replace(boxes["o3"], table="orders", pinned="n2")
    boxes["o4"] = replace(boxes["o4"], table="orders")
    for seed in range(4):
        placed = subject.plan(replace(network, operators=boxes), _unequal(), seed=seed).placement
        _demand(placed["o1"] == "n3", f"o1 is pinned to n3 and stands on {placed['o1']}")
        _demand(placed["o2"] == placed["o5"], "o2 and o5 share a table and stand apart")
        _demand(placed["o3"] == placed["o4"] == "n2", "o3 and o4 share a table pinned to n2")


def _same_seed(subject: Subject) -> None:
    """The same problem and seed give the same plan, and no global random state is read or changed."""
    network, cluster = _trees(3), _unequal()
    first = subject.plan(network, cluster).placement
    before = random.getstate(), repr(np.random.get_state(legacy=True))  # noqa: NPY002
    second = subject.plan(_trees(3), _unequal()).placement
    after = random.getstate(), repr(np.random.get_state(legacy=True))  # noqa: NPY002
    _demand(first == second, "the second plan differs from the first")
    _demand(before == after, "a global random state was used")


def _renamed_nodes(subject: Subject) -> None:
    """Other names for the nodes change the names in the answer and nothing else."""
    network, cluster = _trees(4), _unequal()
    new = {"n1": "zeta", "n2": "alpha", "n3": "mu"}
    boxes = dict(network.operators)
    boxes["o3"] = replace(boxes["o3"], pinned="n2")
    pinned = replace(network, operators=boxes)
    boxes = boxes | {"o3": replace(boxes["o3"], pinned=new["n2"])}
    renamed = meshed(Cluster(nodes=tuple(replace(node, name=new[node.name]) for node in cluster.nodes)))
    plain = subject.plan(pinned, cluster).placement
    other = subject.plan(replace(network, operators=boxes), renamed).placement
    _demand({o: new[n] for o, n in plain.items()} == dict(other), f"{dict(plain)} became {dict(other)}")


def _one_node(subject: Subject) -> None:
    """On a single node everything stands there."""
    network, cluster = _trees(5), _cluster(1.0)
    plan = subject.plan(network, cluster)
    _demand_valid(plan, network, cluster, "one node")


def _more_nodes_than_operators(subject: Subject) -> None:
    """More nodes than operators is no trouble: some stay empty."""
    network, cluster = _trees(6, operators=3), _cluster(1.0, 2.0, 0.5, 1.0, 1.0, 1.0)
    _demand_valid(subject.plan(network, cluster), network, cluster, "six nodes, three operators")


def _zero_load(subject: Subject) -> None:
    """Operators without load are placed like any other, also if no operator has any."""
    network, cluster = _trees(7), _unequal()
    for free in (("o2", "o4"), tuple(network.operators)):
        boxes = {n: replace(o, cost_s=0.0) if n in free else o for n, o in network.operators.items()}
        changed = replace(network, operators=boxes)
        _demand_valid(subject.plan(changed, cluster), changed, cluster, f"without load: {', '.join(free)}")


def _zero_load_that_is_sent(subject: Subject) -> None:
    """Sending costs something and no operator does: still placed."""
    network, cluster = _trees(7), _cluster(1.0, 2.0, wire=50.0)
    boxes = {n: replace(o, cost_s=0.0, transfer_cost_s=0.01, bytes=8.0) for n, o in network.operators.items()}
    changed = replace(network, operators=boxes)
    _demand_valid(subject.plan(changed, cluster), changed, cluster, "only sending costs")


def _sending(subject: Subject) -> None:
    """Costs of sending, row sizes, limited bandwidth, entries and outputs on nodes: all placed."""
    network, cluster = _trees(8), _cluster(1.0, 2.0, 1.0, wire=50.0)
    boxes = {n: replace(o, transfer_cost_s=0.01, bytes=8.0) for n, o in network.operators.items()}
    streams = {n: replace(s, bytes=4.0, node="n2") for n, s in network.streams.items()}
    outputs = {"out": Output(name="out", input=Port(source="o1"), node="n1")}
    changed = replace(network, operators=boxes, streams=streams, outputs=outputs)
    _demand_valid(subject.plan(changed, cluster), changed, cluster, "sending costs, bandwidth is limited")


def _unread_stream(subject: Subject) -> None:
    """A stream that no operator reads changes nothing."""
    network, cluster = _trees(9), _unequal()
    unread = Stream(name="unread", rate=(1.0,) * SAMPLES)
    plain = subject.plan(network, cluster)
    more = subject.plan(replace(network, streams={**network.streams, "unread": unread}), cluster)
    _demand_valid(more, network, cluster, "a stream that no operator reads")
    _demand(plain.placement == more.placement, "the stream that no operator reads changed the plan")


def _table_conflict(subject: Subject) -> None:
    """Two operators on one table, pinned to different nodes: infeasible, with a note that names the table."""
    network = _trees(10)
    boxes = dict(network.operators)
    boxes["o1"] = replace(boxes["o1"], table="accounts", pinned="n1")
    boxes["o2"] = replace(boxes["o2"], table="accounts", pinned="n2")
    plan = subject.plan(replace(network, operators=boxes), _unequal())
    _demand(plan.status is PlanStatus.INFEASIBLE, f"status {plan.status.value}, not infeasible")
    if isinstance(subject.planner, str):
        _demand(any("accounts" in note for note in plan.notes), "no note names the table")


def _min_rate_beyond_capacity(subject: Subject) -> None:
    """Lower bounds that no plan can bear: infeasible; bounds that any plan bears: placed."""
    network, cluster = _trees(11), _unequal()
    total = float(make_problem(network, cluster).operator_load.sum())
    for share, expected in ((10.0, PlanStatus.INFEASIBLE), (1e-6, PlanStatus.PLACED)):
        rate = share * float(sum(node.cpu for node in cluster.nodes)) / total
        streams = {n: replace(s, min_rate=rate) for n, s in network.streams.items()}
        plan = subject.plan(replace(network, streams=streams), cluster)
        what = f"min_rate at {share:g} times the capacity"
        _demand(plan.status is expected, f"{what}: status {plan.status.value}, not {expected.value}")
        if expected is PlanStatus.INFEASIBLE:
            _demand(bool(plan.notes), f"{what}: no note says why")


def _immovable(subject: Subject) -> None:
    """Operators that cannot be moved stay where they stand now; without a present place they are free."""
    network, cluster = _trees(12), _unequal()
    boxes = {n: replace(o, movable=n not in ("o1", "o4")) for n, o in network.operators.items()}
    changed = replace(network, operators=boxes)
    for node in cluster.names:
        placed = subject.plan(changed, cluster, current=dict.fromkeys(boxes, node)).placement
        stay = {placed["o1"], placed["o4"]}
        _demand(stay == {node}, f"o1 and o4 stood on {node}, cannot be moved, and now stand on {stay}")
    _demand_valid(subject.plan(changed, cluster), changed, cluster, "immovable, but not placed yet")


def _input_kept(subject: Subject) -> None:
    """The problem that the planner was given is the same afterwards."""
    network, cluster = _trees(13), _cluster(1.0, 2.0, wire=100.0)
    boxes = {n: replace(o, transfer_cost_s=0.001, bytes=8.0) for n, o in network.operators.items()}
    problem = make_problem(replace(network, operators=boxes), cluster)
    before = _snapshot(problem)
    subject.decide(problem)
    after = _snapshot(problem)
    changed = [name for name in before if before[name] != after[name]]
    _demand(not changed, f"changed by the planner: {', '.join(changed)}")


def _empty_network(subject: Subject) -> None:
    """A network without operators has an empty plan."""
    network = replace(_trees(14), operators={})
    _demand_valid(subject.plan(network, _unequal()), network, _unequal(), "no operators")


def _empty_network_with_output(subject: Subject) -> None:
    """A stream that goes straight to an output on another node, with limited bandwidth: an empty plan."""
    network = replace(_trees(14), operators={})
    streams = {n: replace(s, bytes=8.0, node="n1") for n, s in network.streams.items()}
    outputs = {"out": Output(name="out", input=Port(source="I1"), node="n2")}
    changed = replace(network, streams=streams, outputs=outputs)
    cluster = _cluster(1.0, 1.0, wire=100.0)
    _demand_valid(subject.plan(changed, cluster), changed, cluster, "no operators, one output")


def _unequal_capacities(subject: Subject) -> None:
    """Over several networks, a node with three times the CPU carries at least 1.5 times the other's load."""
    cluster = _cluster(1.0, 3.0)
    load = np.zeros(2)
    for seed in range(6):
        network = _trees(seed, operators=8)
        problem = make_problem(network, cluster)
        placed = problem.assignment(subject.plan(network, cluster, seed=seed).placement)
        np.add.at(load, placed, problem.mean_load / problem.mean_load.sum())
    _demand(load[1] > 1.5 * load[0], f"the small node carried {load[0]:.2f}, the large one {load[1]:.2f}")


_CHECKS: Mapping[str, Callable[[Subject], None]] = {
    "valid_plan": _valid_plan,
    "split_operators": _split_operators,
    "pins_and_tables": _pins_and_tables,
    "same_seed": _same_seed,
    "renamed_nodes": _renamed_nodes,
    "one_node": _one_node,
    "more_nodes_than_operators": _more_nodes_than_operators,
    "zero_load": _zero_load,
    "zero_load_that_is_sent": _zero_load_that_is_sent,
    "sending": _sending,
    "unread_stream": _unread_stream,
    "table_conflict": _table_conflict,
    "min_rate_beyond_capacity": _min_rate_beyond_capacity,
    "immovable": _immovable,
    "input_kept": _input_kept,
    "empty_network": _empty_network,
    "empty_network_with_output": _empty_network_with_output,
    "unequal_capacities": _unequal_capacities,
}
CHECK_NAMES = tuple(_CHECKS)


def _demand(holds: bool, text: str) -> None:
    if not holds:
        raise PlannerCheckError(text)


def _demand_valid(plan: Plan, network: Network, cluster: Cluster, what: str) -> None:
    _demand(plan.status is PlanStatus.PLACED, f"{what}: status {plan.status.value} ({'; '.join(plan.notes)})")
    missing = set(network.operators) - set(plan.placement)
    _demand(not missing, f"{what}: not placed: {', '.join(sorted(missing))}")
    extra = set(plan.placement) - set(network.operators)
    _demand(not extra, f"{what}: placed, but not in the network: {', '.join(sorted(extra))}")
    strange = set(plan.placement.values()) - set(cluster.names)
    _demand(not strange, f"{what}: nodes that do not exist: {', '.join(sorted(map(str, strange)))}")


def _trees(seed: int, *, operators: int = 6) -> Network:
    """Two streams with rate series and a random tree on each; all operators cost something."""
    rng = np.random.default_rng(seed)
    streams = {
        f"I{k}": Stream(name=f"I{k}", rate=tuple(rng.uniform(0.2, 2.0, SAMPLES).tolist())) for k in (1, 2)
    }
    boxes: dict[str, Operator] = {}
    for j in range(operators):
        name = f"o{j + 1}"
        sources = [f"I{j % 2 + 1}", *(f"o{i + 1}" for i in range(j % 2, j, 2))]
        boxes[name] = Operator(
            name=name,
            spec=Model(),
            inputs=(Port(source=sources[int(rng.integers(len(sources)))]),),
            cost_s=float(rng.uniform(0.01, 0.1)),
            selectivity=float(rng.uniform(0.5, 1.0)),
        )
    return Network(name=f"check-{seed}", streams=streams, operators=boxes)


def meshed(cluster: Cluster) -> Cluster:
    """The cluster with its nodes 1 ms apart, each linked to each: for planners that look at the network."""
    names = cluster.names
    latency = tuple(tuple(0.0 if a == b else 1.0 for b in names) for a in names)
    links = tuple(Link(source=a, target=b, latency_ms=1.0) for a, b in combinations(names, 2))
    return replace(cluster, latency_ms=latency, topology=Topology(nodes=names, links=links))


def _cluster(*cpus: float, wire: float | None = None) -> Cluster:
    """Nodes with these CPUs, 1 ms apart."""
    nodes = tuple(Node(name=f"n{i + 1}", cpu=cpu, bandwidth_bytes_per_s=wire) for i, cpu in enumerate(cpus))
    return meshed(Cluster(nodes=nodes))


def _unequal() -> Cluster:
    return _cluster(1.0, 2.0, 0.5)


def _snapshot(problem: Problem) -> dict[str, bytes]:
    """Every number of a problem, as bytes; what it works out on demand is worked out first."""
    carried = problem.carried
    arrays = {
        name: getattr(problem, name)
        for name in ("operator_load", "lower", "fixed", "cpu", "total_load", "weight", "normalised_lower")
    }
    arrays |= {"bandwidth": problem.bandwidth, "mean_load": problem.mean_load}
    arrays |= {"load_series": problem.load_series, "variable_rates": problem.variable_rates}
    arrays |= {f"carried.{f.name}": getattr(carried, f.name) for f in fields(carried)}
    found = {name: np.asarray(array).tobytes() for name, array in arrays.items()}
    return found | {"network": pickle.dumps(problem.network), "cluster": pickle.dumps(problem.cluster)}
