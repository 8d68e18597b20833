"""The cost space: latency coordinates and load as one more dimension, searched for near nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from levelwind.loads.arrays import Floats, Ints
from levelwind.space.coordinates import Coordinates


@dataclass(frozen=True, kw_only=True)
class CostSpace:
    """Nodes as points: latency, height, and load times its weight (seed 002, section 3.1.1).

    An operator wants a node at its own point, without height and without load; so a loaded node, or one
    behind a slow line, lies farther away than its latency says.

    Parameters
    ----------
    load
        Per node, a share of its CPU.
    load_weight_ms
        How far a fully loaded node moves away. 0: the space of latency alone.
    """

    coordinates: Coordinates
    load: Floats
    load_weight_ms: float = 0.0

    @cached_property
    def points(self) -> Floats:
        """One row per node."""
        above = [self.coordinates.height, self.load * self.load_weight_ms]
        return np.column_stack([self.coordinates.position, *above])

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import KDTree

        return KDTree(self.points)

    def nearest(self, target: Floats, k: int) -> Ints:
        """The ``k`` nodes nearest to each target (points × latency dimensions), nearest first.

        O(log nodes + k) per target.
        """
        wanted = np.zeros((len(target), self.points.shape[1]))
        wanted[:, : target.shape[1]] = target
        k = min(k, len(self.points))
        _, found = self._tree.query(wanted, k=np.arange(1, k + 1))
        return np.asarray(found, dtype=np.int64)
