"""Every planner × every rule of the planners' contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from levelwind.loads import Problem
from levelwind.model import PlanStatus
from levelwind.placement import Decision, planner_names
from levelwind.testing import CHECK_NAMES, PlannerCheckError, check_planner

OPTIONS: dict[str, dict[str, Any]] = {"resilient": {"budget": 0.02}}
# These deal operators out by number or by chance, whatever they weigh. Planners of the network see capacity
# only as a limit, and where nothing has a place of its own any node costs the same.
NOT_LOAD_AWARE = {
    "random", "round_robin", "grouping",
    "random_node", "relaxation", "producer", "consumer", "ip_multicast", "optimal_network",
}  # fmt: skip
CASES = [
    pytest.param(check, id=f"{name}-{check.name}")
    for name in planner_names()
    for check in check_planner(name, options=OPTIONS.get(name), load_aware=name not in NOT_LOAD_AWARE)
]


@pytest.mark.parametrize("check", CASES)
def test_planner_keeps_the_contract(check):
    check.run()


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstNodePlanner:
    """Everything on the first node, whatever the rules say."""

    name: ClassVar[str] = "first_node"
    summary: ClassVar[str] = "wrong on purpose"
    origin: ClassVar[str] = "tests"
    needs: ClassVar[str] = "nothing"

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        count = len(problem.physical.operators)
        return Decision(status=PlanStatus.PLACED, assignment=np.zeros(count, dtype=np.int64))


class ForgetfulPlanner(FirstNodePlanner):
    """Random by the global generator, and it writes into the problem."""

    def plan(self, problem: Problem, *, rng: np.random.Generator) -> Decision:
        count = len(problem.physical.operators)
        problem.cpu[:] = 1.0
        nodes = np.random.randint(0, len(problem.cpu), count)  # noqa: NPY002
        return Decision(status=PlanStatus.PLACED, assignment=nodes)


def faults(planner):
    found = set()
    for check in check_planner(planner):
        try:
            check.run()
        except PlannerCheckError:
            found.add(check.name)
    return found


def test_checks_catch_a_planner_that_ignores_the_rules():
    assert faults(FirstNodePlanner) == {
        "pins_and_tables", "table_conflict", "immovable", "unequal_capacities"
    }  # fmt: skip


def test_checks_catch_a_planner_that_is_not_pure():
    assert {"same_seed", "input_kept"} <= faults(ForgetfulPlanner)


def test_a_class_is_not_asked_for_what_planning_adds():
    asked = {check.name for check in check_planner(FirstNodePlanner)}
    assert set(CHECK_NAMES) - asked == {"min_rate_beyond_capacity"}
    assert all(check.rule for check in check_planner("rod"))
