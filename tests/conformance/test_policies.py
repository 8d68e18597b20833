"""Every policy × every rule of the policies' contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from levelwind.balance import Proposal, Situation, policy_names
from levelwind.balance.costs.protocol import LOAD, STATE_BYTES, STATISTICS
from levelwind.balance.even import BalancePolicy
from levelwind.testing import POLICY_CHECK_NAMES, PolicyCheckError, check_policy

# Moves for the network's sake, not for balance: `tests/unit/balance/test_local_relaxation.py`.
NOT_BALANCING = ("local_relaxation",)
PAIRINGS = [{"pairing": pairing} for pairing in ("central", "random", "neighbour")]
COSTS = [{"cost": "cpu"}, {"cost": "cpu", "percent_difference": 0}]
OPTIONS = {"balance": COSTS, "degradation": COSTS, "replan": [{"gain": 5}, {"gain": 0}]}
CASES = [
    pytest.param(check, id="-".join([name, *map(str, options.values()), check.name]))
    for name in policy_names()
    if name not in NOT_BALANCING
    for options in OPTIONS.get(name, PAIRINGS)
    for check in check_policy(name, options=options, central=options.get("pairing", "central") == "central")
]


@pytest.mark.parametrize("check", CASES)
def test_policy_keeps_the_contract(check):
    check.run()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToFirstPolicy:
    """All to the first node, whatever the rules say."""

    name: ClassVar[str] = "to_first"
    summary: ClassVar[str] = "wrong on purpose"
    origin: ClassVar[str] = "tests"

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        return tuple(Proposal(operator=j, to=0, reason="") for j in range(len(situation.node)))


class ChancePolicy(ToFirstPolicy):
    """One random operator to a random node, by the global generator; it writes into the situation."""

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        situation.cpu[:] = 1.0
        if not len(situation.node):
            return ()
        operator = int(np.random.randint(len(situation.node)))  # noqa: NPY002
        return (Proposal(operator=operator, to=0, reason="chance"),)


class CuriousPolicy(BalancePolicy):
    """Reads all that a manager tells, and then does as `balance`."""

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        operators, nodes = len(situation.node), len(situation.cpu)
        assert len([node.properties for node in situation.nodes]) == nodes
        assert len(situation.facts.properties) == len(situation.facts.operators) == operators
        assert len(situation.facts.wiring.reader_start) == operators + 1
        assert {LOAD, STATE_BYTES, *situation.seen} == set(STATISTICS)
        assert all(len(figures) == operators for figures in situation.seen.values())
        return BalancePolicy.propose(self, situation, rng=rng)


@pytest.mark.parametrize("check", [pytest.param(each, id=each.name) for each in check_policy(CuriousPolicy)])
def test_a_policy_may_read_whatever_a_manager_tells(check):
    check.run()


def faults(policy):
    found = set()
    for check in check_policy(policy):
        try:
            check.run()
        except PolicyCheckError:
            found.add(check.name)
    return found


def test_checks_catch_a_policy_that_ignores_the_rules():
    assert faults(ToFirstPolicy) == set(POLICY_CHECK_NAMES) - {"deterministic", "input_kept", "few_nodes"}


def test_checks_catch_a_policy_that_is_not_pure():
    assert {"deterministic", "input_kept", "no_danger"} <= faults(ChancePolicy)
