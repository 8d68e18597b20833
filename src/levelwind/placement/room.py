"""What nodes have left: CPU, memory, bandwidth. Nothing is placed beyond it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from levelwind.placement.flows import UNPLACED, Flows, held_bytes

# A node that is full to the last digit is not overloaded.
ROUNDING = 1e-9
CPU, MEMORY, BANDWIDTH, SHARED = "CPU", "memory", "bandwidth", "bandwidth of the shared network"


class Room:
    """A placement in the making, and what it leaves of every node at the stated rates.

    Units that must stand somewhere are placed from the start. Sending counts as soon as both ends are placed.
    A step costs O(arcs at the unit).
    """

    def __init__(self, flows: Flows) -> None:
        self.flows = flows
        units, problem = flows.units, flows.units.problem
        self.nodes = np.full(units.count, UNPLACED, dtype=np.int64)
        self._load = np.nan_to_num(units.mean_load)
        self._held = held_bytes(units)
        unlimited = [np.inf if n.memory_bytes is None else n.memory_bytes for n in problem.cluster.nodes]
        self._size = {CPU: problem.cpu, MEMORY: np.array(unlimited), BANDWIDTH: problem.bandwidth}
        self.left = {name: size.copy() for name, size in self._size.items()}
        self.shared_left = problem.network_bandwidth
        for flow in flows.flows:
            if flow.home < 0:
                for target in set(flow.exits) - {flow.entry}:
                    self._take({(BANDWIDTH, flow.entry): flow.wire, (BANDWIDTH, target): flow.wire}, 1.0)
                    self.shared_left -= flow.wire
        for unit in np.flatnonzero(units.fixed >= 0).tolist():
            self.place(unit, int(units.fixed[unit]))

    def overfull(self) -> str | None:
        """What is overfull already, by what must stand where it stands; None if nothing is."""
        names = self.flows.units.problem.cluster.names
        for resource, left in self.left.items():
            short = np.flatnonzero(left < -ROUNDING * np.maximum(self._size[resource], 1.0))
            if len(short):
                return (
                    f"{names[short[0]]} is overloaded by what must stand there or pass: {resource} is short"
                )
        if self.shared_left < -ROUNDING * max(1.0, self.flows.units.problem.network_bandwidth):
            return f"what must pass between nodes is too much: {SHARED} is short"
        return None

    def lacking(self, unit: int, node: int) -> str | None:
        """The resource that is short if the unit is put on the node; None if it fits."""
        taken, shared = self._needs(unit, node)
        for (resource, where), amount in taken.items():
            if amount > self.left[resource][where] + ROUNDING * max(1.0, self._size[resource][where]):
                return resource
        slack = ROUNDING * max(1.0, self.flows.units.problem.network_bandwidth)
        return SHARED if shared > self.shared_left + slack else None

    def place(self, unit: int, node: int) -> None:
        """Put a unit on a node, whether it fits or not."""
        taken, shared = self._needs(unit, node)
        self._take(taken, 1.0)
        self.shared_left -= shared
        self.nodes[unit] = node

    def remove(self, unit: int) -> None:
        """Take a unit off its node."""
        node = int(self.nodes[unit])
        self.nodes[unit] = UNPLACED
        taken, shared = self._needs(unit, node)
        self._take(taken, -1.0)
        self.shared_left += shared

    def first_fit(self, unit: int, order: Iterable[int]) -> int | None:
        """Place the unit on the first node of the order that has room for it; None if none has."""
        for node in order:
            if self.lacking(unit, node) is None:
                self.place(unit, node)
                return node
        return None

    def shortage(self, unit: int) -> str:
        """Why no node takes the unit: what is short on how many nodes, and by how much."""
        units = self.flows.units
        names = ", ".join(units.problem.physical.names[j] for j in units.members[unit])
        every = range(len(units.problem.cpu))
        short = Counter(self.lacking(unit, node) or CPU for node in every)
        (resource, most), *others = short.most_common()
        text = f"no node has room for {names}: {resource} is short"
        if others:
            rest = "".join(f", {other} on {count}" for other, count in others)
            text += f" on {most} of {len(every)} nodes{rest}"
        elif resource in (CPU, MEMORY):
            need = (self._load if resource == CPU else self._held)[unit]
            widest = int(np.argmax(self.left[resource]))
            left, where = self.left[resource][widest], units.problem.cluster.names[widest]
            text += f" (it needs {need:.4g}, the most that is left is {left:.4g}, on {where})"
        for name, (wanted, there) in self.totals().items():
            if wanted > there * (1 + ROUNDING):
                text += f"; all operators together need {wanted:.4g} of {name}, all nodes have {there:.4g}"
        return text

    def totals(self) -> dict[str, tuple[float, float]]:
        """CPU and memory that all units need, without what sending costs, and that all nodes have."""
        needed = {CPU: self._load, MEMORY: self._held}
        return {name: (float(need.sum()), float(self._size[name].sum())) for name, need in needed.items()}

    def fits_in_all(self) -> bool:
        """Whether all nodes together have what all units need: if not, no order of placing helps."""
        return all(wanted <= there * (1 + ROUNDING) for wanted, there in self.totals().values())

    def _needs(self, unit: int, node: int) -> tuple[dict[tuple[str, int], float], float]:
        """What the unit takes on the node and at the other ends of its flows, and of the shared network."""
        taken: dict[tuple[str, int], float] = defaultdict(float)
        taken[CPU, node] += float(self._load[unit])
        if self._held[unit]:
            taken[MEMORY, node] += float(self._held[unit])
        shared = 0.0
        for f in self.flows.of[unit]:
            flow = self.flows.flows[f]
            if not (flow.cpu or flow.wire):
                continue
            if flow.home == unit:
                ends = [(node, target) for target in self.flows.receivers(flow, self.nodes) if target != node]
            else:
                home = self.flows.home(flow, self.nodes)
                there = self.flows.receivers(flow, self.nodes, without=unit)
                ends = [(home, node)] if home >= 0 and home != node and node not in there else []
            for pair in ends:
                for end in pair:
                    taken[CPU, end] += flow.cpu / 2.0
                    taken[BANDWIDTH, end] += flow.wire
                shared += flow.wire
        return taken, shared

    def _take(self, taken: dict[tuple[str, int], float], sign: float) -> None:
        for (resource, node), amount in taken.items():
            self.left[resource][node] -= sign * amount
