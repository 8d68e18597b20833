"""For those who test against Levelwind: named worlds with known answers, and checks that any planner can run.

`levelwind.testing.strategies` has Hypothesis strategies; it is imported by name, since it needs Hypothesis.
"""

from levelwind.testing.planner_checks import CHECK_NAMES, Check, PlannerCheckError, check_planner
from levelwind.testing.worlds import WORLDS, World, world

__all__ = ["CHECK_NAMES", "WORLDS", "Check", "PlannerCheckError", "World", "check_planner", "world"]
