"""Kernels by the kind of operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from levelwind.errors import InputError, LevelwindError
from levelwind.model import Operator
from levelwind.operators.protocol import Kernel
from levelwind.operators.rows import RowType

# Named by module, and imported when asked for: a kind that compiles its loops must not slow the others.
MAKERS = {
    "filter": "levelwind.operators.filter:make_filter",
    "map": "levelwind.operators.map:make_map",
    "union": "levelwind.operators.union:make_union",
    "aggregate": "levelwind.operators.aggregate:make_aggregate",
    "join": "levelwind.operators.join:make_join",
    "multijoin": "levelwind.operators.multijoin:make_multijoin",
    "custom": "levelwind.operators.custom:make_custom",
    "model": "levelwind.operators.model:make_model",
    "diffusion": "levelwind.operators.spreading:make_diffusion",
    "join_part": "levelwind.operators.spreading:make_join_part",
    "fusion": "levelwind.operators.spreading:make_fusion",
}


def make_kernel(
    operator: Operator, inputs: Sequence[RowType], *, leaves: Sequence[int] | None = None
) -> Kernel:
    """The kernel of an operator whose inputs bring rows of the given types, in the order of its inputs.

    Parameters
    ----------
    leaves
        How many distinct sources feed each input, which only a union asks for; see `make_union`.
    """
    path = MAKERS.get(operator.kind)
    if path is None:
        message = (
            f"operator {operator.name!r}: an operator of kind {operator.kind!r} is not run yet. "
            f"Hint: kinds that run: {', '.join(MAKERS)}"
        )
        raise LevelwindError(message)
    module, _, name = path.partition(":")
    options: dict[str, Any] = {"leaves": leaves} if operator.kind == "union" else {}
    try:
        kernel: Kernel = getattr(import_module(module), name)(operator, inputs, **options)
    except InputError as error:  # of an expression, which does not know where it stands
        key = f"operators.{operator.name}"
        raise InputError(replace(p, key=p.key or key) for p in error.problems) from error
    return kernel
