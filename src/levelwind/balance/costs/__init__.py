"""Cost models: how full a node is, in one number, and what part of that each operator has."""

from levelwind.balance.costs.protocol import STATISTICS, CostModel, CostTable, cost_table
from levelwind.balance.costs.registry import COST_MODELS, cost_model_names, make_cost_model

__all__ = [
    "COST_MODELS",
    "STATISTICS",
    "CostModel",
    "CostTable",
    "cost_model_names",
    "cost_table",
    "make_cost_model",
]
