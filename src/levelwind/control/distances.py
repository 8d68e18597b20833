"""What a manager knows of the network between its nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from levelwind.balance.surroundings import Surroundings, estimated, surroundings
from levelwind.control.events import LatencyMeasured
from levelwind.errors import InputError, input_error
from levelwind.loads.arrays import Floats
from levelwind.loads.problem import make_problem
from levelwind.model import Cluster, Network, Node

# Reports of latencies that a mean is taken of.
KEPT_REPORTS = 50


def checked_latencies(event: LatencyMeasured) -> Floats:
    """Latencies as reported; malformed ones are input errors."""
    latency = np.asarray(event.latency_ms, dtype=float)
    count = len(event.nodes)
    if latency.shape != (count, count) or not (np.isfinite(latency) & (latency >= 0)).all():
        rule = "latencies are a square of numbers of at least 0, a row and a column for each node"
        raise input_error(rule, key="latency_ms", value=f"{latency.shape} for {count} nodes")
    return latency


class Distances:
    """Latencies by the names of nodes: of the cluster file until somebody measures, then means of reports."""

    def __init__(self, cluster: Cluster) -> None:
        self._names: tuple[str, ...] = ()
        self._reports: deque[Floats] = deque(maxlen=KEPT_REPORTS)
        self._measured = False
        if cluster.latency_ms is not None:
            self._names = cluster.names
            self._reports.append(np.array(cluster.latency_ms, dtype=float))
        self._known: tuple[object, Surroundings | None] = (None, None)

    def measured(self, event: LatencyMeasured) -> None:
        """Take new latencies in: the first report replaces what was stated, further ones are averaged."""
        latency = checked_latencies(event)
        if not self._measured or event.nodes != self._names:
            self._reports.clear()
        self._reports.append(latency)
        self._names, self._measured, self._known = event.nodes, True, (None, None)

    def around(self, network: Network, nodes: Sequence[Node]) -> Surroundings | None:
        """What operators send each other and what lies between these nodes; None where that is not known.

        Kept until the network, the nodes or the latencies change.
        """
        names = tuple(node.name for node in nodes)
        key = (id(network), names)
        if self._known[0] != key:
            self._known = (key, self._made(network, nodes, names))
        return self._known[1]

    def _made(self, network: Network, nodes: Sequence[Node], names: tuple[str, ...]) -> Surroundings | None:
        if not names or not set(names) <= set(self._names):
            return None
        place = {name: i for i, name in enumerate(self._names)}
        at = [place[name] for name in names]
        latency, error = estimated([report[np.ix_(at, at)] for report in self._reports])
        latency = latency.copy()
        np.fill_diagonal(latency, 0.0)
        try:
            problem = make_problem(network, Cluster(nodes=tuple(nodes)))
        except InputError:
            return None  # rows enter or leave at a node that is lost
        return surroundings(problem, latency, error)
