"""Spark SQL expressions carried out on Polars frames, with the results and failures of ANSI mode."""

from levelwind.operators.expressions.scalar import Scalar, compile_scalar, compile_tree, passing

__all__ = ["Scalar", "compile_scalar", "compile_tree", "passing"]
