"""The tables and figures of the papers, measured again: one module for each."""

from levelwind.reproduce.registry import describe, names, run

__all__ = ["describe", "names", "run"]
