"""Checks that every policy must pass, whoever wrote it.

>>> from levelwind.testing import check_policy
>>> for check in check_policy("cor_bal"):
...     check.run()
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from levelwind.balance import Policy, Proposal, Situation, make_policy
from levelwind.balance.costs.protocol import LOAD, STATE_BYTES, STATISTICS
from levelwind.balance.facts import make_facts
from levelwind.loads.arrays import Floats, Ints, sum_by
from levelwind.model import Model, Network, Node, Operator, Port, Stream
from levelwind.testing.planner_checks import Check

SAMPLES = 10


class PolicyCheckError(AssertionError):
    """A policy broke a rule of the policies' contract; the text says which, and on what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The policy under test: a registered name, or a class that nobody has registered yet."""

    policy: str | type[Any]
    options: Mapping[str, Any]
    seed: int

    def propose(self, situation: Situation) -> tuple[Proposal, ...]:
        """What the policy proposes, with a fresh generator."""
        made: Policy
        if isinstance(self.policy, str):
            made = make_policy(self.policy, self.options)
        else:
            made = self.policy(**self.options)
        return tuple(made.propose(situation, rng=np.random.default_rng(self.seed)))


def check_policy(
    policy: str | type[Any], *, options: Mapping[str, Any] | None = None, seed: int = 0, central: bool = True
) -> Iterator[Check]:
    """Every check of the suite for one policy, to be run one by one.

    Parameters
    ----------
    policy
        A registered name or a policy class.
    options
        Options of the policy.
    central
        Whether pairs do not depend on chance: only then do nodes in another order give the same answer.
    """
    subject = Subject(policy=policy, options=options or {}, seed=seed)
    for name, function in _CHECKS.items():
        if central or name != "nodes_in_another_order":
            rule = (function.__doc__ or "").strip()
            yield Check(name=name, rule=rule, run=partial(function, subject))


def random_situation(
    seed: int, *, nodes: int = 6, operators: int = 30, load: float = 0.9, uneven: float = 0.3
) -> Situation:
    """Chains of operators that burst at different times, on unequal nodes of uneven load.

    It has all that a manager tells: nodes, facts, and every statistic, those beside the load as zeros.
    """
    rng = np.random.default_rng(seed)
    cpu = rng.uniform(0.5, 1.5, nodes)
    chains = max(1, operators // 3)
    phase = rng.random(chains)[np.arange(operators) % chains]
    wave = 1.0 + 0.6 * np.sign(np.sin(2 * np.pi * (np.arange(SAMPLES) / SAMPLES + phase[:, None])))
    series = rng.uniform(0.5, 1.5, (operators, 1)) * (wave + rng.uniform(0.0, 0.1, (operators, SAMPLES)))
    share = cpu * rng.uniform(1 - uneven, 1 + uneven, nodes)
    node = rng.choice(nodes, size=operators, p=share / share.sum())
    return _situation(
        series * (load * cpu.sum() / series.mean(axis=1).sum()), node.astype(np.int64), cpu, chains=chains
    )


def _situation(series: Floats, node: Ints, cpu: Floats, *, chains: int) -> Situation:
    """What a manager would tell of these loads: operators of one chain stand ``chains`` apart."""
    count = len(node)
    operators = {}
    for k in range(count):
        reads = f"I{k}" if k < chains else f"o{k - chains}"
        operators[f"o{k}"] = Operator(name=f"o{k}", spec=Model(), inputs=(Port(source=reads),))
    streams = {f"I{k}": Stream(name=f"I{k}") for k in range(chains)}
    return Situation(
        series=series,
        node=node,
        cpu=cpu,
        movable=np.ones(count, dtype=bool),
        unit=np.arange(count),
        state_bytes=np.zeros(count),
        nodes=tuple(Node(name=f"n{i}", cpu=each) for i, each in enumerate(cpu.tolist())),
        facts=make_facts(Network(streams=streams, operators=operators)),
        seen={name: np.zeros(count) for name in STATISTICS if name not in (LOAD, STATE_BYTES)},
    )


def after(situation: Situation, proposed: tuple[Proposal, ...]) -> Ints:
    """Where every operator stands when all proposals are carried out."""
    node = situation.node.copy()
    for proposal in proposed:
        node[proposal.operator] = proposal.to
    return node


def relative_loads(situation: Situation, node: Ints) -> Floats:
    """Mean load of each node over its CPU."""
    return sum_by(node, situation.series.mean(axis=1), len(situation.cpu)) / situation.cpu


def _valid(subject: Subject) -> None:
    """Every proposal names an operator and another node, no operator twice, and says why."""
    some = 0
    for seed in range(8):
        situation = random_situation(seed)
        proposed = subject.propose(situation)
        some += len(proposed)
        _demand(len({p.operator for p in proposed}) == len(proposed), "an operator is proposed twice")
        for proposal in proposed:
            _demand(0 <= proposal.operator < len(situation.node), f"operator {proposal.operator}")
            _demand(0 <= proposal.to < len(situation.cpu), f"node {proposal.to}")
            _demand(situation.node[proposal.operator] != proposal.to, "moved to where it stands")
            _demand(bool(proposal.reason), "no reason")
    _demand(some > 0, "nothing was proposed for nodes of very uneven load")


def _deterministic(subject: Subject) -> None:
    """The same situation and seed give the same proposals, and no global random state is used."""
    situation = random_situation(1)
    first = subject.propose(situation)
    before = random.getstate(), repr(np.random.get_state(legacy=True))  # noqa: NPY002
    second = subject.propose(random_situation(1))
    now = random.getstate(), repr(np.random.get_state(legacy=True))  # noqa: NPY002
    _demand(first == second, "the second answer differs from the first")
    _demand(before == now, "a global random state was used")


def _input_kept(subject: Subject) -> None:
    """The situation is the same afterwards."""
    situation, same = random_situation(2), random_situation(2)
    subject.propose(situation)
    for field in fields(situation):
        _demand(
            _equal(getattr(situation, field.name), getattr(same, field.name)), f"{field.name} was changed"
        )


def _equal(one: Any, other: Any) -> bool:
    """Whether two values are the same, arrays inside of them too."""
    if is_dataclass(one):
        return all(_equal(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return bool(one == other)


def _immovable(subject: Subject) -> None:
    """What may not move stays."""
    for seed in range(8):
        situation = random_situation(seed)
        movable = np.arange(len(situation.node)) % 3 > 0
        proposed = subject.propose(replace(situation, movable=movable))
        wrong = [p.operator for p in proposed if not movable[p.operator]]
        _demand(not wrong, f"immovable, and moved: {wrong}")
    nothing = replace(situation, movable=np.zeros(len(situation.node), dtype=bool))
    _demand(not subject.propose(nothing), "nothing may move, and something does")


def _immovable_counts(subject: Subject) -> None:
    """Immovable operators count in their node's load: what can move leaves their node, not the empty one."""
    series = np.full((6, SAMPLES), 0.1)
    series[0] = 0.5
    situation = _situation(series, np.array([0, 0, 0, 0, 1, 1]), np.ones(2), chains=6)
    situation = replace(situation, movable=np.arange(6) > 0)
    load = relative_loads(situation, after(situation, subject.propose(situation)))
    _demand(bool(load.max() < 0.8 - 1e-9), f"loads 0.8 and 0.2 became {load.round(3).tolist()}")


def _units(subject: Subject) -> None:
    """Operators of a unit move together, to one node, or stay together."""
    for seed in range(8):
        situation = random_situation(seed)
        unit = np.arange(len(situation.node)) // 3
        situation = replace(situation, unit=unit, node=situation.node[3 * unit])
        node = after(situation, subject.propose(situation))
        _demand(bool((node == node[3 * unit]).all()), "operators of one unit stand apart")
        movable = np.ones(len(node), dtype=bool)
        movable[0] = False
        proposed = subject.propose(replace(situation, movable=movable))
        _demand(all(p.operator > 2 for p in proposed), "a unit with an immovable operator moved")


def _idle(subject: Subject) -> None:
    """An operator without load never moves."""
    for seed in range(8):
        situation = random_situation(seed)
        series = situation.series.copy()
        series[::4] = 0.0
        proposed = subject.propose(replace(situation, series=series))
        _demand(all(p.operator % 4 for p in proposed), "an operator without load moved")


def _not_ready(subject: Subject) -> None:
    """A node that is not ready is given nothing, however empty it is; the others go on without it."""
    some = all_ready = 0
    for seed in range(8):
        situation = random_situation(seed)
        all_ready += len(subject.propose(situation))
        ready = np.ones(len(situation.cpu), dtype=bool)
        ready[[int(np.argmin(relative_loads(situation, situation.node))), seed % len(ready)]] = False
        proposed = subject.propose(replace(situation, ready=ready))
        some += len(proposed)
        wrong = sorted({p.to for p in proposed if not ready[p.to]})
        _demand(not wrong, f"nodes {wrong} are not ready, and are given operators")
    _demand(some > 0 or not all_ready, "as one node is not ready, nothing is proposed for the others")
    nobody = replace(situation, ready=np.zeros(len(ready), dtype=bool))
    _demand(not subject.propose(nobody), "no node is ready, and one is given operators")


def _larger_load(subject: Subject) -> None:
    """Of two nodes the larger load falls, or they end nearer than 0.1 of their CPU to each other."""
    for seed in range(20):
        situation = random_situation(seed, nodes=2, operators=12)
        before = relative_loads(situation, situation.node)
        load = relative_loads(situation, after(situation, subject.propose(situation)))
        fine = load.max() <= before.max() * (1 + 1e-9) or load.max() - load.min() <= 0.1 + 1e-9
        _demand(bool(fine), f"{before.round(3).tolist()} became {load.round(3).tolist()}")


def _no_danger(subject: Subject) -> None:
    """Nodes of even and constant load, far below their CPU: nothing moves."""
    situation = _situation(np.full((12, SAMPLES), 0.1), np.arange(12) % 4, np.ones(4), chains=4)
    _demand(not subject.propose(situation), "something moved")


def _nodes_in_another_order(subject: Subject) -> None:
    """Nodes in another order: the same moves, under their new numbers."""
    for seed in range(8):
        situation = random_situation(seed)
        order = np.random.default_rng(seed).permutation(len(situation.cpu))
        place = np.argsort(order)
        nodes = tuple(situation.nodes[i] for i in order.tolist())
        turned = replace(situation, node=place[situation.node], cpu=situation.cpu[order], nodes=nodes)
        here = after(situation, subject.propose(situation))
        there = after(turned, subject.propose(turned))
        _demand(bool((place[here] == there).all()), f"situation {seed}: other operators moved, or elsewhere")


def _few_nodes(subject: Subject) -> None:
    """One node, more nodes than operators, one sample, no operators: no trouble."""
    for nodes, operators in ((1, 3), (7, 3), (3, 1)):
        situation = random_situation(3, nodes=nodes, operators=operators)
        node = after(situation, subject.propose(situation))
        _demand(bool((node >= 0).all() and (node < nodes).all()), f"{operators} operators, {nodes} nodes")
        subject.propose(replace(situation, series=situation.series[:, :1]))
    empty = _situation(np.zeros((0, SAMPLES)), np.zeros(0, dtype=np.int64), np.ones(3), chains=1)
    _demand(not subject.propose(empty), "no operators, and one moved")


_CHECKS: Mapping[str, Callable[[Subject], None]] = {
    "valid": _valid,
    "deterministic": _deterministic,
    "input_kept": _input_kept,
    "immovable": _immovable,
    "immovable_counts": _immovable_counts,
    "units": _units,
    "idle": _idle,
    "not_ready": _not_ready,
    "larger_load": _larger_load,
    "no_danger": _no_danger,
    "nodes_in_another_order": _nodes_in_another_order,
    "few_nodes": _few_nodes,
}
POLICY_CHECK_NAMES = tuple(_CHECKS)


def _demand(holds: bool, text: str) -> None:
    if not holds:
        raise PolicyCheckError(text)
