"""What lies between nodes, and what operators send each other: for policies that look at the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from levelwind.loads.arrays import Floats, Ints
from levelwind.loads.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Arcs between operators, and latencies between nodes.

    Parameters
    ----------
    source, target
        One entry per arc: an operator, or −1 − node where rows enter or leave.
    rate
        Bytes per second, rows per second where rows state no size.
    latency_ms
        One-way, between all nodes of the situation.
    error_ms
        One standard error of each latency, where it was measured several times; None: taken as certain.
    """

    source: Ints
    target: Ints
    rate: Floats
    latency_ms: Floats
    error_ms: Floats | None = None


def estimated(history: Sequence[Floats]) -> tuple[Floats, Floats | None]:
    """Mean of matrices measured one after the other, and its standard error; None for a single one.

    The error of few samples is itself uncertain and is made larger, about as Student's distribution does:
    what they seem to promise must not move anything.
    """
    count = len(history)
    if count == 1:
        return history[0], None
    matrices = np.asarray(history)
    few = 1.0 + 10.0 / (count - 1) ** 2
    return matrices.mean(axis=0), matrices.std(axis=0, ddof=1) * (few / count**0.5)


def surroundings(problem: Problem, latency_ms: Floats, error_ms: Floats | None = None) -> Surroundings:
    """The arcs of a problem at its stated rates; ends that state no node are left out. O(arcs)."""
    network, index = problem.network, {name: i for i, name in enumerate(problem.cluster.names)}
    rows: list[tuple[int, int, float]] = []
    for stream in problem.physical.streams:
        if stream.producer is None:
            entry = network.streams[stream.source]
            if entry.node is None:
                continue
            source, size = -1 - index[entry.node], entry.bytes
        else:
            origin = network.operators[stream.source]
            source, size = stream.producer, origin.bytes_of(stream.route)
        mean = float(problem.rates.of(problem.linear.rates[stream.source, stream.route]).mean())
        rate = stream.share * (mean if np.isfinite(mean) else 0.0) * (1.0 if size is None else size)
        places = (network.outputs[name].node for name in stream.outputs)
        rows += [(source, reader, rate) for reader in stream.consumers]
        rows += [(source, -1 - index[place], rate) for place in places if place is not None]
    return Surroundings(
        source=np.array([row[0] for row in rows], dtype=np.int64),
        target=np.array([row[1] for row in rows], dtype=np.int64),
        rate=np.array([row[2] for row in rows], dtype=np.float64),
        latency_ms=latency_ms,
        error_ms=error_ms,
    )
