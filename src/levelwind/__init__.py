"""Levelwind: where every operator of every continuous query runs.

The functions of the command line, for notebooks and programs: `load` and `load_cluster` read files,
`parse` reads text; `plan`, `measure`, `compare`, `explain`, `size` and `run` do what the commands do.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from levelwind.balance import policy_names as policies
    from levelwind.balance.costs import cost_model_names as cost_models
    from levelwind.errors import InputError, LevelwindError
    from levelwind.frontend import InputWarning, load, load_cluster, parse
    from levelwind.model import Cluster, Measures, Network, Node, Plan, PlanStatus
    from levelwind.placement import planner_names as planners
    from levelwind.planning import Explanation, Sizing, compare, explain, measure, plan, size
    from levelwind.spark.api import run

# Imported when first used: `levelwind --help` need not wait for NumPy.
_HOMES = {
    "Cluster": "model",
    "Explanation": "planning",
    "InputError": "errors",
    "InputWarning": "frontend",
    "LevelwindError": "errors",
    "Measures": "model",
    "Network": "model",
    "Node": "model",
    "Plan": "model",
    "PlanStatus": "model",
    "Sizing": "planning",
    "compare": "planning",
    "cost_models": "balance.costs",
    "explain": "planning",
    "load": "frontend",
    "load_cluster": "frontend",
    "measure": "planning",
    "parse": "frontend",
    "plan": "planning",
    "planners": "placement",
    "policies": "balance",
    "run": "spark.api",
    "size": "planning",
}

__all__ = [
    "Cluster",
    "Explanation",
    "InputError",
    "InputWarning",
    "LevelwindError",
    "Measures",
    "Network",
    "Node",
    "Plan",
    "PlanStatus",
    "Sizing",
    "compare",
    "cost_models",
    "explain",
    "load",
    "load_cluster",
    "measure",
    "parse",
    "plan",
    "planners",
    "policies",
    "run",
    "size",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        message = f"module 'levelwind' has no attribute {name!r}"
        raise AttributeError(message)
    lists = {"planners": "planner_names", "policies": "policy_names", "cost_models": "cost_model_names"}
    attribute = lists.get(name, name)
    return getattr(import_module(f"levelwind.{_HOMES[name]}"), attribute)
