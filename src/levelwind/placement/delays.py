"""Delay of a plan, compiled: searches that must keep within one ask for it after every move."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from levelwind.loads.arrays import Floats, Ints
from levelwind.placement.units import Units

compiled = njit(cache=True, error_model="numpy")


class Paths(NamedTuple):
    """Arcs from streams over operators to outputs, each after those that lead to where it begins.

    ``source`` and ``target`` are units, or −1 − node at an end that stands on a node, or ``NOWHERE`` at one
    that states none. ``reached_from`` and ``reaches`` are operators, −1 for a stream or an output. Without
    latencies, and so without a limit, all are empty.
    """

    reached_from: Ints
    reaches: Ints
    source: Ints
    target: Ints
    latency_ms: Floats
    operators: int
    has_outputs: bool
    limit_ms: float


NOWHERE = np.iinfo(np.int64).min


def unlimited() -> Paths:
    """No paths to keep short."""
    none = np.zeros(0, dtype=np.int64)
    return Paths(none, none, none, none, np.zeros((0, 0)), 0, False, np.inf)


def make_paths(units: Units, limit_ms: float) -> Paths:
    """The paths of a problem on its cluster, to be kept within a limit. O(arcs)."""
    problem = units.problem
    network, index = problem.network, {name: i for i, name in enumerate(problem.cluster.names)}
    by_source: dict[str, list[int]] = {}
    for t, stream in enumerate(problem.physical.streams):
        by_source.setdefault(stream.source, []).append(t)
    rows: list[tuple[int, int, int, int]] = []

    def end(node: str | None) -> int:
        return NOWHERE if node is None else -1 - index[node]

    for name in (*network.streams, *network.order):
        for t in by_source.get(name, ()):
            stream = problem.physical.streams[t]
            if stream.producer is None:
                start, home = -1, end(network.streams[name].node)
            else:
                start, home = stream.producer, int(units.of[stream.producer])
            rows += [(start, reader, home, int(units.of[reader])) for reader in stream.consumers]
            rows += [(start, -1, home, end(network.outputs[output].node)) for output in stream.outputs]
    arcs = np.array(rows, dtype=np.int64).reshape(-1, 4)
    latency = np.array(problem.cluster.latency_ms, dtype=float)
    np.fill_diagonal(latency, 0.0)
    return Paths(
        reached_from=arcs[:, 0].copy(),
        reaches=arcs[:, 1].copy(),
        source=arcs[:, 2].copy(),
        target=arcs[:, 3].copy(),
        latency_ms=latency,
        operators=len(problem.physical.operators),
        has_outputs=bool(network.outputs),
        limit_ms=limit_ms,
    )


@compiled
def delay_of(paths: Paths, nodes: Ints) -> float:
    """The longest path in ms if units stand on these nodes; 0 if no path leads anywhere. O(arcs)."""
    arrival = np.full(paths.operators, -np.inf)
    longest = -np.inf
    for a in range(len(paths.reaches)):
        start = 0.0 if paths.reached_from[a] < 0 else arrival[paths.reached_from[a]]
        one, other = paths.source[a], paths.target[a]
        if one != NOWHERE and other != NOWHERE:
            home = nodes[one] if one >= 0 else -1 - one
            place = nodes[other] if other >= 0 else -1 - other
            start += paths.latency_ms[home, place]
        if paths.reaches[a] < 0:
            longest = max(longest, start)
        else:
            arrival[paths.reaches[a]] = max(arrival[paths.reaches[a]], start)
    if not paths.has_outputs:
        for time in arrival:
            longest = max(longest, time)
    return max(longest, 0.0)


@compiled
def delays_of_all(paths: Paths, first: Ints, free: Ints, count: int) -> Floats:
    """Delay of every way to put the free units on ``count`` nodes; the last unit changes fastest."""
    total = count ** len(free)
    found = np.empty(total)
    nodes = first.copy()
    for number in range(total):
        rest = number
        for k in range(len(free) - 1, -1, -1):
            nodes[free[k]] = rest % count
            rest //= count
        found[number] = delay_of(paths, nodes)
    return found


@compiled
def shorten(paths: Paths, nodes: Ints, free: Ints, count: int) -> float:
    """Move one unit at a time to where the delay is least, until the limit is kept or nothing helps.

    Changes ``nodes``; returns the delay. O(moves × units × nodes × arcs).
    """
    delay = delay_of(paths, nodes)
    while delay > paths.limit_ms:
        best, unit, place = delay, -1, -1
        for u in free:
            before = nodes[u]
            for node in range(count):
                nodes[u] = node
                found = delay_of(paths, nodes)
                if found < best:
                    best, unit, place = found, u, node
            nodes[u] = before
        if unit < 0:
            return delay
        nodes[unit] = place
        delay = best
    return delay
