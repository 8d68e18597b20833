"""For those who test against Levelwind: named worlds, and checks that any planner and any policy can run.

`levelwind.testing.strategies` has Hypothesis strategies; it is imported by name, since it needs Hypothesis.
"""

from levelwind.testing.planner_checks import CHECK_NAMES, Check, PlannerCheckError, check_planner, meshed
from levelwind.testing.policy_checks import POLICY_CHECK_NAMES, PolicyCheckError, check_policy
from levelwind.testing.worlds import WORLDS, World, world

__all__ = [
    "CHECK_NAMES",
    "POLICY_CHECK_NAMES",
    "WORLDS",
    "Check",
    "PlannerCheckError",
    "PolicyCheckError",
    "World",
    "check_planner",
    "check_policy",
    "meshed",
    "world",
]
