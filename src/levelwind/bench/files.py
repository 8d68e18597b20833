"""Network files for the benchmarks that run the command; written anew, so that no repository is needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from levelwind.frontend.generate import random_trees

# The worked example of the README.
WORKED = """\
name: worked
streams:
  I1: {}
  I2: {}
operators:
  - {name: o1, kind: model, input: I1, cost: 14, selectivity: 1}
  - {name: o2, kind: model, input: o1, cost: 6}
  - {name: o3, kind: model, input: I2, cost: 9, selectivity: 0.5}
  - {name: o4, kind: model, input: o3, cost: 14}
"""
WORKED_PLACEMENT = '{"o1": "n1", "o2": "n2", "o3": "n2", "o4": "n1"}\n'


def write_worked(folder: Path) -> tuple[Path, Path]:
    """The worked example and a placement of it, as files."""
    network, placement = folder / "worked.yaml", folder / "placement.json"
    network.write_text(WORKED, encoding="utf-8")
    placement.write_text(WORKED_PLACEMENT, encoding="utf-8")
    return network, placement


def write_trees(file: Path, *, operators: int, streams: int, seed: int) -> None:
    """Random trees as a YAML file, an operator per line, as a person or a program would write them."""
    network = random_trees(np.random.default_rng(seed), operators=operators, streams=streams)
    lines = [f"name: {network.name}", "streams:"]
    lines += [f"  {name}: {{rate: 100}}" for name in network.streams]
    lines.append("operators:")
    lines += [
        f"  - {{name: {box.name}, kind: model, input: {box.inputs[0].source}, "
        f"cost: {box.cost_s:.9f}, selectivity: {box.selectivity:.6f}}}"
        for box in network.operators.values()
    ]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
