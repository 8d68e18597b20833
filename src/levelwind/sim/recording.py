"""What is written down while a simulation is recorded, and the measures that come of it."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
from numpy.typing import NDArray

from levelwind.model.frozen import frozen_mapping
from levelwind.sim.outcome import Moved, Outcome, Timeline
from levelwind.sim.simulator import Simulator
from levelwind.sim.statistics import IdealLoads, load_correlation, load_spread, load_std, load_std_bound
from levelwind.sim.tables import Floats


class Recording:
    """Samples of the recorded time.

    ``cpu`` holds the capacity of every node that is there at any time, ``lost`` the nodes that are gone: the
    caller keeps it up to date. A node that has not joined yet, or is gone, has no load, which is not load 0.
    """

    def __init__(self, simulator: Simulator, ideal: IdealLoads, cpu: Floats, lost: Set[int]) -> None:
        self._simulator, self._ideal, self._cpu, self._lost = simulator, ideal, cpu, lost
        self._begin_s = simulator.now_s
        self._assignment = simulator.assignment
        self._busy_s = self._padded(simulator.busy_s)
        self._sums = simulator.sums
        self._at: list[float] = []
        self._load: list[Floats] = []
        self._busy: list[Floats] = []
        self._latency: list[float] = []
        self._queued: list[int] = []

    def add(self, load: Floats, rates: Floats, length_s: float) -> None:
        """A sample is over: the loads of operators in it, and the rates of sources."""
        simulator = self._simulator
        self._at.append(simulator.now_s - self._begin_s)
        # Judged under the placement at its beginning, which was decided without it.
        nodes = self._ideal.of_nodes(load, rates, self._assignment, len(self._cpu))
        self._load.append(np.where(self._there(), nodes, np.nan))
        self._assignment = simulator.assignment
        busy_s, sums = self._padded(simulator.busy_s), simulator.sums
        self._busy.append((busy_s - self._busy_s) / length_s)
        results = sums[0] - self._sums[0]
        self._latency.append((sums[1] - self._sums[1]) / results if results else np.nan)
        self._queued.append(simulator.in_system)
        self._busy_s, self._sums = busy_s, sums

    def outcome(
        self,
        *,
        loads: Floats,
        rates: Floats,
        moves: tuple[Moved, ...],
        kernel_seconds: float,
        alarms: tuple[str, ...],
    ) -> Outcome:
        """All figures; ``loads`` and ``rates`` are of the window that the last placement was decided on."""
        simulator = self._simulator
        assignment, there = simulator.assignment, self._there()
        cpu = self._cpu[there]
        window = np.stack(
            [
                self._ideal.of_nodes(loads[:, k], rates[:, k], assignment, len(self._cpu))[there]
                for k in range(loads.shape[1])
            ],
            axis=1,
        )
        every = np.stack(self._load, axis=1)
        stayed = ~np.isnan(every).any(axis=1)
        lived = every[stayed]
        latencies = simulator.latencies
        names, nodes = self._ideal.problem.physical.names, simulator.node_names
        return Outcome(
            latency_ratio=latencies.ratio,
            latency_mean_s=latencies.mean_s,
            latency_p50_s=latencies.p50_s,
            latency_p99_s=latencies.p99_s,
            load_std=load_std(window, cpu),
            load_std_bound=load_std_bound(window, cpu),
            load_correlation=load_correlation(window),
            load_spread=load_spread(window, cpu),
            held_out_load_std=load_std(lived, self._cpu[stayed]),
            held_out_load_correlation=load_correlation(lived),
            moves=moves,
            tuples=latencies.results,
            events=simulator.events,
            kernel_seconds=kernel_seconds,
            trace_hash=simulator.trace_hash,
            placement=frozen_mapping(
                {name: nodes[i] for name, i in zip(names, assignment.tolist(), strict=True) if i >= 0}
            ),
            alarms=alarms,
            timeline=Timeline(
                at_s=np.array(self._at),
                load=every / self._cpu[:, None],
                busy=np.stack(self._busy, axis=1),
                latency_s=np.array(self._latency),
                queued=np.array(self._queued, dtype=float),
            ),
        )

    def _there(self) -> NDArray[np.bool_]:
        """Which nodes are there now."""
        there = np.arange(len(self._cpu)) < len(self._simulator.node_names)
        there[list(self._lost)] = False
        return there

    def _padded(self, values: Floats) -> Floats:
        padded = np.zeros(len(self._cpu))
        padded[: len(values)] = values
        return padded
