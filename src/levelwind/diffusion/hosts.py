"""Which host is least loaded: what hosts report, and what has been planned for them since.

References
----------
[1] Gu, Yu, Wang, ICDE 2007, equation 1: a host's load is the weighted sum of the parts of its CPU, memory and
    bandwidth that are in use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp

import numpy as np

from levelwind.diffusion.join import MICROSECONDS, Flags, Floats

# However full a host is, so much of it counts as free: one that gets nothing at all would never report less.
LEAST_FREE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What was measured of the hosts, and of pairs of rows, since a join has been spread.

    Parameters
    ----------
    speed
        Of each host: rows that it would work off in a second with nothing else to do, over the mean of all.
    usage
        Parts in use of each host's CPU (by others than this join), memory and bandwidth.
    selectivity
        The share of pairs of rows near in time that agree, by numbers of the two streams, smaller one first.
    busiest_s
        CPU seconds of the host that had most to do, step by step, faded by `profiling.FADE`.
    """

    speed: tuple[float, ...]
    usage: tuple[tuple[float, float, float], ...]
    selectivity: Mapping[tuple[int, int], float] = field(default_factory=dict)
    busiest_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class Hosts:
    """Loads of hosts. Nothing but the choice of hosts depends on them: results never do.

    A host is given work in proportion to its capacity: its speed, times the part of it that is free.

    Parameters
    ----------
    speed
        CPU capacity of each, 1 for an ordinary one.
    weights
        Of CPU, memory and bandwidth in the load, [1]'s ω. They add up to 1.
    memory_s
        After so many seconds of event time, planned work counts 1/e: by then it is done and reported. Long
        enough that a round over all hosts is remembered.
    usage
        What hosts reported last: parts in use of CPU (by other work), memory and bandwidth, a row per host.
    planned_s
        CPU seconds of work planned for each, faded.
    kept
        Rows that were planned to be kept by each, faded. Keeping and looking are shared out each for itself,
        so that work is even whatever the one costs beside the other.
    active
        Whether new rows may go there. What a host holds already is still joined there.
    """

    speed: Floats
    weights: Floats = field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    memory_s: float = 600.0
    usage: Floats
    planned_s: Floats
    kept: Floats
    active: Flags
    faded_at_us: int | None = None

    @classmethod
    def equal(cls, count: int) -> Hosts:
        """So many of speed 1."""
        return cls.of_speeds(np.ones(count))

    @classmethod
    def of_speeds(cls, speed: Floats, weights: Sequence[float] = (1.0, 0.0, 0.0)) -> Hosts:
        """Idle ones of the given speeds."""
        count = len(speed)
        return cls(
            speed=np.array(speed, dtype=np.float64),
            weights=np.array(weights, dtype=np.float64),
            usage=np.zeros((count, 3)),
            planned_s=np.zeros(count),
            kept=np.zeros(count),
            active=np.ones(count, dtype=np.bool_),
        )

    @property
    def capacity(self) -> Floats:
        """CPU seconds per second that each has for this join: its speed without what is in use, [1]'s w."""
        free: Floats = np.maximum(1.0 - self.usage @ self.weights, LEAST_FREE)
        return self.speed * free

    def loads(self) -> Floats:
        """The load of each: planned work as a part of what it can do in the time remembered."""
        return self.planned_s / (self.capacity * self.memory_s)

    def hear(self, reported: Reported) -> None:
        """Take in what hosts report.

        Loads stay as they were, so that work is given by the new capacities from now on. Else a host that has
        become slower would get nothing until all others had caught up with what it was given before.
        """
        before = self.capacity
        self.speed = np.array(reported.speed, dtype=np.float64)
        self.usage = np.array(reported.usage, dtype=np.float64).reshape(-1, 3)
        self.planned_s = self.planned_s * self.capacity / before
        self.kept = self.kept * self.capacity / before

    def fade(self, now_us: int) -> None:
        """Let planned work fade with event time."""
        if self.faded_at_us is not None and now_us > self.faded_at_us:
            fade = exp((self.faded_at_us - now_us) / MICROSECONDS / self.memory_s)
            self.planned_s *= fade
            self.kept *= fade
        if self.faded_at_us is None or now_us > self.faded_at_us:
            self.faded_at_us = now_us

    def least(self, work_s: float) -> int:
        """The active host that is least loaded with that much more work, the first of equals. O(hosts)."""
        # With the work done: a slow host must not take what a fast one does sooner.
        after = self.loads() + work_s / (self.capacity * self.memory_s)
        return int(np.argmin(np.where(self.active, after, np.inf)))
