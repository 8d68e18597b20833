"""Network coordinates as nodes find them: each moves a little with every latency that it measures.

References: Vivaldi (Dabek et al., SIGCOMM 2004) for the springs and the confidence; seed 002, section 3.1.1,
for the moving percentile filter and its numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from levelwind.loads.arrays import Floats, Ints
from levelwind.space.coordinates import Coordinates, ping

# The cache does not see changes in functions of other files: after one, delete the *.nbi and *.nbc files.
compiled = njit(cache=True, error_model="numpy")
# Latencies below this are not told apart: a relative error would make too much of them.
SMALLEST_MS = 0.01
LEAST_HEIGHT_MS = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class VivaldiConfig:
    """How coordinates are found.

    Parameters
    ----------
    dimensions
        Of the latency space. Three, as in the paper.
    height
        Whether each node has a height besides its position: what its access line adds to every path. The
        paper has none; on transit-stub networks the median error is 17% without and 10% with heights.
    neighbours
        How many nodes each node measures, chosen once by chance. Vivaldi's paper finds 64 enough.
    rounds
        Measurements that each node makes before its coordinate is used.
    gain, error_gain
        Largest share of an error by which one measurement moves a node, or its confidence (c_c and c_e).
    history, percentile
        The filter of each link: what counts is this percentile of its last measurements.
    """

    dimensions: int = 3
    height: bool = True
    neighbours: int = 64
    rounds: int = 600
    gain: float = 0.25
    error_gain: float = 0.25
    history: int = 10
    percentile: float = 20.0


class Vivaldi:
    """Nodes that measure each other, round by round.

    Latencies may change between rounds, and nodes may join and leave (`present`): the coordinates follow.

    Examples
    --------
    >>> line = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0))) * 10.0
    >>> nodes = Vivaldi(4, VivaldiConfig(), np.random.default_rng(0))
    >>> moved = nodes.measure(line, rounds=2000)
    >>> bool(np.abs(nodes.coordinates.matrix() - line).max() < 1.0)
    True
    """

    def __init__(self, count: int, config: VivaldiConfig, rng: np.random.Generator) -> None:
        self.config = config
        self.present = np.ones(count, dtype=bool)
        self.rng = rng
        self._position = rng.normal(size=(count, config.dimensions))
        self._height = np.full(count, LEAST_HEIGHT_MS if config.height else 0.0)
        self._error = np.ones(count)
        # Of each node the other nodes by chance: every one of them if there are few.
        width = max(1, min(config.neighbours, count - 1))
        others = np.argsort(rng.random((count, max(1, count - 1))), axis=1)[:, :width] if count > 1 else None
        self._neighbour = np.zeros((count, width), dtype=np.int64)
        if others is not None:
            self._neighbour = others + (others >= np.arange(count)[:, None])
        self._history = np.zeros((count, width, config.history))
        self._seen = np.zeros((count, width), dtype=np.int64)

    @property
    def coordinates(self) -> Coordinates:
        """Where the nodes believe themselves to be now."""
        return Coordinates(
            position=self._position.copy(), height=self._height.copy(), error=self._error.copy()
        )

    def measure(self, latency_ms: Floats, *, rounds: int, jitter: float = 0.0, spikes: float = 0.0) -> Floats:
        """Every node that is present measures one of its neighbours, ``rounds`` times.

        Parameters
        ----------
        latency_ms
            One-way; what cannot be measured is NaN and is left out. Measured is half of the round trip.
        jitter
            Measurements are this share too large on average (exponential), as queues make them.
        spikes
            Share of measurements that are ten times too large.

        Returns
        -------
        How far the nodes moved in each round on average, in ms.

        Notes
        -----
        O(rounds × nodes × (dimensions + history)).
        """
        measured, count = ping(latency_ms), len(self.present)
        moved = np.zeros(rounds)
        if count < 2:
            return moved
        # In portions, so that what is drawn ahead stays small.
        for first in range(0, rounds, 64):
            some = min(64, rounds - first)
            slot = self.rng.integers(self._neighbour.shape[1], size=(some, count))
            noise = np.ones((some, count))
            if jitter:
                noise += self.rng.exponential(jitter, size=(some, count))
            if spikes:
                noise[self.rng.random((some, count)) < spikes] *= 10.0
            moved[first : first + some] = _rounds(
                self._position, self._height, self._error, self._neighbour, self._history, self._seen,
                self.present, measured, slot, noise, self.config.height, self.config.gain,
                self.config.error_gain, self.config.percentile / 100.0,
            )  # fmt: skip
        return moved

    def join(self, nodes: Ints) -> None:
        """Nodes come in anew: near the origin, without confidence, and knowing no latency."""
        self.present[nodes] = True
        self._position[nodes] = self.rng.normal(size=(len(nodes), self.config.dimensions))
        self._height[nodes] = LEAST_HEIGHT_MS if self.config.height else 0.0
        self._error[nodes] = 1.0
        self._seen[nodes] = 0

    def leave(self, nodes: Ints) -> None:
        """Nodes go: nobody measures them any more."""
        self.present[nodes] = False


def embed(latency_ms: Floats, *, config: VivaldiConfig | None = None, seed: int = 0) -> Coordinates:
    """Coordinates after ``config.rounds`` measurements by every node.

    O(rounds × nodes). Deterministic for one seed.
    """
    chosen = config or VivaldiConfig()
    nodes = Vivaldi(len(latency_ms), chosen, np.random.default_rng(seed))
    nodes.measure(latency_ms, rounds=chosen.rounds)
    return nodes.coordinates


@compiled
def filtered(history: Floats, seen: int, share: float) -> float:
    """The percentile (nearest rank) of the last measurements of a link, which has made ``seen`` so far."""
    count = min(seen, len(history))
    last = np.sort(history[:count])
    return last[max(0, int(np.ceil(share * count - 1e-9)) - 1)]


@compiled
def _rounds(
    position: Any, height: Any, error: Any, neighbour: Any, history: Any, seen: Any, present: Any,
    measured: Any, slot: Any, noise: Any, with_height: bool, gain: float, error_gain: float, share: float,
) -> Any:  # fmt: skip
    rounds, count = slot.shape
    dimensions, length = position.shape[1], history.shape[2]
    moved = np.zeros(rounds)
    step = np.zeros(dimensions)
    for r in range(rounds):
        moving = 0
        for i in range(count):
            s = slot[r, i]
            j = neighbour[i, s]
            sample = measured[i, j] * noise[r, i]
            if not (present[i] and present[j] and np.isfinite(sample)):
                continue
            history[i, s, seen[i, s] % length] = sample
            seen[i, s] += 1
            latency = max(filtered(history[i, s], seen[i, s], share), SMALLEST_MS)
            squared = 0.0
            for k in range(dimensions):
                step[k] = position[i, k] - position[j, k]
                squared += step[k] * step[k]
            apart = np.sqrt(squared)
            distance = apart + height[i] + height[j]
            trust = error[i] / max(error[i] + error[j], 1e-12)
            wrong = abs(distance - latency) / latency
            error[i] = min(1.5, wrong * error_gain * trust + error[i] * (1.0 - error_gain * trust))
            force = gain * trust * (latency - distance)
            if apart < 1e-9:
                # Two nodes at one point are pushed apart along a direction that is theirs alone.
                step[:] = 0.0
                step[(i + j) % dimensions] = 1.0 if i < j else -1.0
                apart = 1.0
            before = height[i]
            for k in range(dimensions):
                position[i, k] += force * step[k] / apart
            if with_height and distance > 1e-9:
                height[i] = max(LEAST_HEIGHT_MS, before + force * (before + height[j]) / distance)
            moved[r] += abs(force)
            moving += 1
        moved[r] /= max(moving, 1)
    return moved
