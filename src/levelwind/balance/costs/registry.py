"""Cost models by name: the built-in ones, and those that other packages bring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from levelwind.balance.costs.protocol import STATISTICS, CostModel
from levelwind.errors import InputError, Problem, input_error
from levelwind.plugins import Registry

BUILT_IN = {
    "cpu": "levelwind.balance.costs.cpu:CpuCost",
    "memory": "levelwind.balance.costs.memory:MemoryCost",
    "output_rate": "levelwind.balance.costs.output_rate:OutputRateCost",
    "connections": "levelwind.balance.costs.connections:ConnectionsCost",
    "work": "levelwind.balance.costs.work:WorkCost",
}
ENTRY_POINTS = "levelwind.cost_models"
COST_MODELS = Registry(kind="cost model", built_in=BUILT_IN, entry_points=ENTRY_POINTS)


def cost_model_names() -> tuple[str, ...]:
    """Names of all cost models, the built-in ones first."""
    return COST_MODELS.names()


def make_cost_model(name: str, options: Mapping[str, Any] | None = None) -> CostModel:
    """A cost model with options; a bad name or option is an input error, and so is an unknown statistic.

    What nobody counts would never come, and a policy that goes by it would never move anything.
    """
    model: CostModel = COST_MODELS.make(name, options)
    unknown = sorted(model.statistics - set(STATISTICS))
    if unknown:
        rule = f"a cost model reads only what is counted: {', '.join(STATISTICS)}"
        raise input_error(rule, key=f"{name}.statistics", value=", ".join(unknown))
    return model


def chosen_cost_model(text: str) -> CostModel:
    """The one that an option of a policy names: ``name``, or ``name:option=value`` with more by comma.

    Examples
    --------
    >>> chosen_cost_model("connections:most=6").most
    6.0
    """
    name, _, rest = text.partition(":")
    options, problems = {}, []
    for part in filter(None, (each.strip() for each in rest.split(","))):
        key, pair, value = part.partition("=")
        if pair:
            options[key.strip()] = value.strip()
        else:
            rule, hint = "must be option=value", f"write {name}:option=value"
            problems.append(Problem(rule=rule, key=f"{name}.options", value=part, hint=hint))
    if problems:
        raise InputError(problems)
    return make_cost_model(name.strip(), options)
