"""Least loaded node first: the one step that the load-balancing planners share."""

from __future__ import annotations

import numpy as np

from levelwind.loads.arrays import Floats, Ints, sum_by
from levelwind.placement.units import Units


def place_by_load(units: Units, load: Floats, sequence: Ints) -> Ints:
    """Give each unit, in ``sequence``, to the node that it leaves least loaded relative to its CPU.

    Pinned units count first. O(units × nodes).
    """
    cpu = units.problem.cpu
    node_load = pinned_load(units, load)
    nodes = units.fixed.copy()
    for unit in sequence.tolist():
        if nodes[unit] < 0:
            chosen = int(np.argmin((node_load + load[unit]) / cpu))
            nodes[unit] = chosen
            node_load[chosen] += load[unit]
    return nodes


def pinned_load(units: Units, load: Floats) -> Floats:
    """Load that pinned units put on each node."""
    pinned = units.fixed >= 0
    return sum_by(units.fixed[pinned], load[pinned], len(units.problem.cpu))


def heaviest_first(load: Floats) -> Ints:
    """Units by falling load, equal ones in the order of the file."""
    return np.argsort(-load, kind="stable")
