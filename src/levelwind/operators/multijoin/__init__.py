"""Multijoin: groups of rows of several inputs."""

from levelwind.operators.multijoin.kernel import make_multijoin

__all__ = ["make_multijoin"]
