"""A scheduler at work in a simulation: asked after every sample, its answer put into force."""

from __future__ import annotations

import numpy as np

from levelwind.sim.scenario import Named
from levelwind.sim.scheduling import Lap, make_scheduler
from levelwind.sim.simulator import Simulator


class Turns:
    """Keeps the laps of a run. One choice is a lap for ever: then nothing is kept."""

    def __init__(self, named: Named, simulator: Simulator, seed: int) -> None:
        self._scheduler = make_scheduler(named.name, named.options)
        self._orders = self._scheduler.orders(simulator.problem)
        self._simulator, self._rng = simulator, np.random.default_rng([seed, 2003])
        self._laps: list[Lap] = []
        self._results = 0
        self._use(0)

    def _use(self, number: int) -> None:
        self._used = number
        self._simulator.schedule(*self._orders[number])

    def sampled(self, sample_s: float) -> None:
        """A sample is over."""
        if len(self._orders) == 1:
            return
        results = self._simulator.sums[0]
        rate, self._results = (results - self._results) / sample_s, results
        if self._simulator.is_recording:  # results are not counted before
            self._laps.append(Lap(self._used, float(self._simulator.in_system), rate))
        self._use(self._scheduler.choose(self._laps, rng=self._rng))
