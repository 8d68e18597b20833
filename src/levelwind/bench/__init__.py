"""What `levelwind bench` runs: each benchmark compares us with a baseline, on one machine, in one run."""

from levelwind.bench.registry import describe, names, run

__all__ = ["describe", "names", "run"]
