"""Aggregates: one row per window and group."""

from levelwind.operators.aggregate.kernels import make_aggregate

__all__ = ["make_aggregate"]
