"""Network coordinates: a point per node, so that distances tell latencies nobody has measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from levelwind.loads.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinates:
    """Where nodes lie in latency space; all figures are one-way milliseconds.

    The latency between two nodes is the distance of their positions and both heights. A height is what a
    node's own access line adds to every path; without heights it is 0.

    Parameters
    ----------
    position
        Nodes × dimensions.
    height
        Per node, at least 0.
    error
        Per node, its own estimate of its relative error: 1 knows nothing, 0 is certain. One minus it is
        what the paper calls confidence.
    """

    position: Floats
    height: Floats
    error: Floats

    def between(self, one: Ints, other: Ints) -> Floats:
        """Predicted latency of each pair of nodes; index arrays are broadcast. A node is at 0 from itself."""
        apart = self.position[one] - self.position[other]
        distance = np.sqrt((apart * apart).sum(axis=-1)) + self.height[one] + self.height[other]
        return np.where(np.equal(one, other), 0.0, distance)

    def matrix(self) -> Floats:
        """Predicted latency between all nodes. O(nodes²)."""
        every = np.arange(len(self.position))
        return self.between(every[:, None], every[None, :])


def ping(latency_ms: Floats) -> Floats:
    """What a node can measure by itself: half of the round trip, which is the same in both directions."""
    return (latency_ms + latency_ms.T) / 2.0


def median_error(coordinates: Coordinates, latency_ms: Floats) -> float:
    """Median over all pairs of |predicted − measured| / measured. O(nodes²)."""
    measured = ping(latency_ms)
    known = np.isfinite(measured) & (measured > 0)
    off = np.abs(coordinates.matrix() - measured)[known]
    return float(np.median(off / measured[known])) if off.size else 0.0
