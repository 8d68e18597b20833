"""Clustering: operators joined by costly streams become one unit before ROD places them."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from levelwind.loads.arrays import Floats, Ints
from levelwind.loads.planes import bandwidth_is_abundant
from levelwind.loads.problem import Problem
from levelwind.placement.units import Units

OFF = float("inf")
WEIGHT_BOUNDS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, OFF)
RATIO_QUANTILES = (0.0, 0.5, 0.8)
SWEEP_UP_TO = 500  # streams; above, fewer settings are tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """When a stream's two ends are clustered, and which stream goes first (seed 000, sections 4.4.3, 4.4.4).

    Parameters
    ----------
    communication, bandwidth
        The stream's ratio to one of its ends must exceed one of these (η_c, η_b); infinite: not looked at.
    weight
        The cluster's weight on a node must stay below this (ψ); 1 is a node's fair share of a variable.
    first
        ``weight``: smallest cluster first. ``communication`` or ``bandwidth``: streams above both
        thresholds, then those above this one, then the others; largest ratio first.
    """

    communication: float = OFF
    bandwidth: float = OFF
    weight: float = 1.0
    first: str = "weight"

    def __str__(self) -> str:
        limits = {"communication": self.communication, "bandwidth": self.bandwidth}
        above = [f"{name} ratio above {limit:.3g}" for name, limit in limits.items() if limit < OFF]
        first = "lightest cluster" if self.first == "weight" else f"largest {self.first} ratio"
        light = f"weight below {self.weight:g}" if self.weight < OFF else "any weight"
        return f"{' or '.join(above)}, {light}, {first} first"


@dataclass(frozen=True, slots=True)
class _Arc:
    """A stream between two units, with what it costs as a share of each variable's load."""

    ends: tuple[int, int]
    communication: Floats
    bandwidth: Floats


def clusterings(units: Units) -> Iterator[tuple[Thresholds, Units]]:
    """Every different clustering that a sweep over orders, ratios and weights yields, the plain one left out.

    Ratio thresholds are quantiles of the ratios that the network has. Bandwidth counts only if it can
    become the bottleneck at all (theorem 3). O(settings × arcs × (log arcs + variables)).
    """
    arcs = _arcs(units)
    if not arcs:
        return
    communication = np.array([_ratio(arc.communication, arc, units.weight) for arc in arcs])
    bandwidth = np.array([_ratio(arc.bandwidth, arc, units.weight) for arc in arcs])
    sweep_c = _levels(communication)
    sweep_b = [] if bandwidth_is_abundant(units.problem) else _levels(bandwidth)
    settings: list[Thresholds] = []
    for weight in WEIGHT_BOUNDS if len(arcs) <= SWEEP_UP_TO else WEIGHT_BOUNDS[1::2]:
        plain = Thresholds(weight=weight)
        one_c = [replace(plain, communication=c) for c in sweep_c]
        one_b = [replace(plain, bandwidth=b) for b in sweep_b]
        both = [replace(plain, communication=c, bandwidth=b) for c, b in product(sweep_c, sweep_b)]
        for thresholds in (*one_c, *one_b, *both):
            settings.append(thresholds)
            if thresholds.communication < OFF:
                settings.append(replace(thresholds, first="communication"))
            if thresholds.bandwidth < OFF:
                settings.append(replace(thresholds, first="bandwidth"))
    seen = {tuple(range(units.count))}
    for thresholds in settings:
        group = cluster(units, arcs, thresholds)
        key = tuple(group.tolist())
        if key not in seen:
            seen.add(key)
            yield thresholds, units.merged(group)


def cluster(units: Units, arcs: list[_Arc], thresholds: Thresholds) -> Ints:
    """Merge ends of streams, best stream first, until no stream qualifies; the group of each unit.

    Figures 4.15 and 4.19 of seed 000, with their errata. A stream's place in the queue is worked out
    anew whenever one of its ends has grown.
    """
    problem = units.problem
    factor = problem.cpu.sum() / problem.cpu.max()
    leader = list(range(units.count))
    weight = units.weight.copy()
    fixed = units.fixed.copy()
    touching: list[set[int]] = [set() for _ in range(units.count)]
    for t, arc in enumerate(arcs):
        for end in arc.ends:
            touching[end].add(t)
    version = [0] * len(arcs)
    queue: list[tuple[tuple[float, ...], int, int]] = []

    def find(unit: int) -> int:
        while leader[unit] != unit:
            leader[unit] = leader[leader[unit]]
            unit = leader[unit]
        return unit

    def enqueue(t: int) -> None:
        a, b = (find(end) for end in arcs[t].ends)
        if a == b or (fixed[a] >= 0 and fixed[b] >= 0 and fixed[a] != fixed[b]):
            return
        heavy = factor * float((weight[a] + weight[b]).max())
        if heavy < thresholds.weight:
            ratios = (
                _end_ratio(arcs[t].communication, weight[a], weight[b]),
                _end_ratio(arcs[t].bandwidth, weight[a], weight[b]),
            )
            key = _priority(thresholds, heavy, *ratios)
            if key is not None:
                heapq.heappush(queue, (key, t, version[t]))

    for t in range(len(arcs)):
        enqueue(t)
    while queue:
        _, t, stamp = heapq.heappop(queue)
        if stamp != version[t]:
            continue
        a, b = (find(end) for end in arcs[t].ends)
        if a == b:
            continue
        leader[b] = a
        weight[a] += weight[b]
        fixed[a] = max(fixed[a], fixed[b])
        touching[a] |= touching[b]
        touching[a] = {t for t in touching[a] if find(arcs[t].ends[0]) != find(arcs[t].ends[1])}
        for t in touching[a]:
            version[t] += 1
            enqueue(t)
    groups: dict[int, int] = {}
    return np.array([groups.setdefault(find(u), len(groups)) for u in range(units.count)], dtype=np.int64)


def _priority(
    thresholds: Thresholds, weight: float, communication: float, bandwidth: float
) -> tuple[float, ...] | None:
    """Place in the queue, smallest first; None for a stream that is cheap enough to cut."""
    costly_c, costly_b = communication > thresholds.communication, bandwidth > thresholds.bandwidth
    if not (costly_c or costly_b):
        return None
    if thresholds.first == "weight":
        return (weight,)
    by_communication = thresholds.first == "communication"
    own, other = (communication, bandwidth) if by_communication else (bandwidth, communication)
    own_costly, other_costly = (costly_c, costly_b) if by_communication else (costly_b, costly_c)
    if own_costly:
        return (0.0 if other_costly else 1.0, -own)
    return (2.0, -other)


def _arcs(units: Units) -> list[_Arc]:
    """Streams between different units that cost CPU or limited bandwidth to send, one per reader."""
    problem: Problem = units.problem
    carried = problem.carried
    by_total = carried.rate / problem.total_load
    arcs = []
    for t, reader in zip(carried.reader_stream.tolist(), carried.reader_operator.tolist(), strict=True):
        producer = int(carried.producer[t])
        if producer < 0:
            continue
        ends = (int(units.of[producer]), int(units.of[reader]))
        if ends[0] != ends[1]:
            size = carried.bytes[t] if problem.has_bandwidth else 0.0
            arcs.append(_Arc(ends, by_total[t] * carried.transfer_s[t], by_total[t] * size))
    return arcs


def _ratio(cost: Floats, arc: _Arc, weight: Floats) -> float:
    return _end_ratio(cost, weight[arc.ends[0]], weight[arc.ends[1]])


def _end_ratio(cost: Floats, one: Floats, other: Floats) -> float:
    """Largest ratio, over variables and both ends, of the stream's cost to the end's load."""
    costly = np.flatnonzero(cost)
    if not len(costly):
        return 0.0
    lesser = np.minimum(one[costly], other[costly])
    with np.errstate(divide="ignore"):
        return float((cost[costly] / lesser).max())


def _levels(ratios: Floats) -> list[float]:
    """Thresholds worth trying: just below the least ratio, and at quantiles of the others."""
    positive = ratios[ratios > 0]
    if not len(positive):
        return []
    finite = np.where(
        np.isfinite(positive), positive, np.nanmax(positive[np.isfinite(positive)], initial=1.0)
    )
    quantiles = RATIO_QUANTILES if len(ratios) <= SWEEP_UP_TO else RATIO_QUANTILES[:1]
    return sorted({float(np.quantile(finite, q)) * (1 - 1e-9) for q in quantiles})
