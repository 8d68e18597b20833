"""How important operators are, by what they compute for."""

from __future__ import annotations

import numpy as np

from levelwind.loads.arrays import Floats, shared
from levelwind.rewrite import PhysicalNetwork


def importance(physical: PhysicalNetwork) -> Floats:
    """The priority that counts of each operator: the highest of its own and of all that its rows reach.

    Whoever loses rows, or is late, takes them from everyone further on. What operators state stays as it is.
    O(operators + arcs).
    """
    network = physical.network
    highest = {name: operator.priority for name, operator in network.operators.items()}
    for name in reversed(network.order):
        for port in network.operators[name].inputs:
            if port.source in highest:
                highest[port.source] = max(highest[port.source], highest[name])
    return shared(np.array([highest[o.logical.name] for o in physical.operators], dtype=np.float64))
