"""Who balances with whom."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from levelwind.loads.arrays import Floats, Ints

CENTRAL, RANDOM, NEIGHBOUR = "central", "random", "neighbour"
PAIRINGS = (CENTRAL, RANDOM, NEIGHBOUR)


def pairs_of(load: Floats, pairing: str, rng: np.random.Generator) -> Ints:
    """Pairs of nodes for one period (pairs × 2), no node twice. O(nodes log nodes).

    Parameters
    ----------
    load
        Relative load of each node.
    pairing
        ``central``: the i-th most loaded with the i-th least loaded, as a coordinator would that knows all.
        ``random``: each node meets one other by chance. ``neighbour``: nodes form a ring and meet the one
        before or the one after them, by the toss of a coin. The last two need no coordinator.

    Notes
    -----
    With an odd number of nodes one stays alone; in the central pairing the middle one, which print pairs with
    itself.
    """
    count = len(load)
    half = count // 2
    if pairing == CENTRAL:
        order = np.argsort(-load, kind="stable")
    elif pairing == RANDOM:
        order = rng.permutation(count)
    else:
        around = np.roll(np.arange(count), int(rng.integers(2)))
        return around[: 2 * half].reshape(half, 2).astype(np.int64)
    return np.stack([order[:half], order[::-1][:half]], axis=1).astype(np.int64)


def pairs_of_ready(load: Floats, ready: NDArray[np.bool_], pairing: str, rng: np.random.Generator) -> Ints:
    """The same among the nodes that can take operators now; of the others none meets any."""
    able = np.flatnonzero(ready)
    return able[pairs_of(load[able], pairing, rng)]


def partners(pairs: Ints, count: int) -> Ints:
    """The node that each node meets, itself if it meets none."""
    partner = np.arange(count, dtype=np.int64)
    partner[pairs[:, 0]], partner[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    return partner
