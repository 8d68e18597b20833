"""The baseline of `rod_scale`: ROD as it is printed, every operator against every node and every stream."""

from __future__ import annotations

import numpy as np

from levelwind.loads import Problem
from levelwind.loads.arrays import Ints

TOLERANCE = 1e-9


def literal_rod(problem: Problem) -> Ints:
    """Figure 4.9 of seed 000, with the errata without which it does not work (class II takes the maximum).

    For each operator the whole node weight matrix is worked out anew: O(operators × nodes × variables), in
    NumPy calls. A class I node is the first there is, as the figure allows.
    """
    factor = (problem.cpu.sum() / problem.cpu)[:, None]
    load = problem.weight
    weights = np.zeros((len(problem.cpu), load.shape[1]))
    nodes = np.empty(len(load), dtype=np.int64)
    for j in np.argsort(-np.sqrt((load * load).sum(axis=1)), kind="stable").tolist():
        candidate = weights + factor * load[j]
        class_one = np.flatnonzero((candidate <= 1.0 + TOLERANCE).all(axis=1))
        if len(class_one):
            chosen = int(class_one[0])
        else:
            chosen = int(np.argmax(1.0 / np.sqrt((candidate * candidate).sum(axis=1))))
        weights[chosen] = candidate[chosen]
        nodes[j] = chosen
    return nodes
