"""Where units would stand if there were a node at every point of the latency space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from levelwind.loads.arrays import Floats, Ints
from levelwind.placement.flows import Flows

compiled = njit(cache=True, error_model="numpy")
# Springs: at most so many sweeps over all units; medians: so many, until nothing moves farther than this.
MOST_SWEEPS, MEDIAN_SWEEPS, STILL_MS = 5_000, 200, 0.01
# Nearer than this, two ends of a link count as this far apart, so that no weight becomes infinite.
CLOSE_MS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The links of free units, sorted by unit: each leads to another unit or to a fixed point.

    ``start[u]`` to ``start[u + 1]`` are the links of unit u; ``other`` is a unit or −1, then ``anchor`` is a
    node; ``rate`` is in bytes per second.
    """

    start: Ints
    other: Ints
    anchor: Ints
    rate: Floats


def make_links(flows: Flows, nodes: Ints) -> Links:
    """One link per unit and arc, both ways. Units that are placed are fixed points. O(arcs)."""
    rows: list[tuple[int, int, int, float]] = []
    for flow in flows.flows:
        if flow.rate <= 0:
            continue
        home = flow.home if flow.home >= 0 and nodes[flow.home] < 0 else -1
        place = flows.home(flow, nodes)
        ends = [(unit, -1) if nodes[unit] < 0 else (-1, int(nodes[unit])) for unit in flow.readers]
        ends += [(-1, node) for node in flow.exits]
        for unit, node in ends:
            if home >= 0:
                rows.append((home, unit, node, flow.rate))
            if unit >= 0:
                rows.append((unit, home, place, flow.rate))
    rows.sort(key=lambda row: row[0])
    units = np.array([row[0] for row in rows], dtype=np.int64)
    return Links(
        start=np.searchsorted(units, np.arange(flows.units.count + 1)).astype(np.int64),
        other=np.array([row[1] for row in rows], dtype=np.int64),
        anchor=np.array([row[2] for row in rows], dtype=np.int64),
        rate=np.array([row[3] for row in rows], dtype=np.float64),
    )


def relax(
    links: Links, position: Floats, first: Floats, *, damping: float, rest_ms: float
) -> tuple[Floats, int]:
    """Spring relaxation: Σ rate × distance² becomes least (seed 002, figure 7).

    Each unit is drawn towards what it exchanges rows with, S ← S − δ·F / Σ rate, until no force, over the
    sum of its rates, is above ``rest_ms``. Printed is S + F·δ, which drives units away, and a δ that
    diverges for rates above 2/δ.

    Parameters
    ----------
    position
        Of the nodes, which are the fixed points.
    first
        Where the units begin.

    Returns
    -------
    Where they come to rest, and after how many sweeps. O(sweeps × links).
    """
    point = first.copy()
    return point, _settled(links, position, point, damping, rest_ms, MOST_SWEEPS, False)


def medians(links: Links, position: Floats, first: Floats) -> Floats:
    """Points for which Σ rate × distance itself is small: geometric medians, by Weiszfeld's steps in turn.

    A step of Weiszfeld's is one whole step of springs whose strength is the rate over the distance.
    O(sweeps × links).
    """
    point = first.copy()
    _settled(links, position, point, 1.0, STILL_MS, MEDIAN_SWEEPS, True)
    return point


def _settled(
    links: Links, position: Floats, point: Floats, damping: float, rest_ms: float, most: int, far_weaker: bool
) -> int:
    return int(
        _settle(
            links.start, links.other, links.anchor, links.rate, position, point, damping, rest_ms, most,
            far_weaker,
        )
    )  # fmt: skip


@compiled
def _settle(
    start: Any, other: Any, anchor: Any, rate: Any, position: Any, point: Any, damping: float, rest: float,
    most: int, far_weaker: bool,
) -> int:  # fmt: skip
    """Pull the units in ``point`` in turn until no pull is as long as ``rest``; the number of sweeps."""
    dimensions = position.shape[1]
    force = np.zeros(dimensions)
    for sweep in range(most):
        longest = 0.0
        for u in range(len(start) - 1):
            total = 0.0
            force[:] = 0.0
            for a in range(start[u], start[u + 1]):
                there = point[other[a]] if other[a] >= 0 else position[anchor[a]]
                weight = rate[a]
                if far_weaker:
                    squared = 0.0
                    for k in range(dimensions):
                        squared += (point[u, k] - there[k]) ** 2
                    weight /= max(np.sqrt(squared), CLOSE_MS)
                total += weight
                for k in range(dimensions):
                    force[k] += weight * (point[u, k] - there[k])
            if total > 0.0:
                squared = 0.0
                for k in range(dimensions):
                    point[u, k] -= damping * force[k] / total
                    squared += (force[k] / total) ** 2
                longest = max(longest, np.sqrt(squared))
        if longest < rest:
            return sweep + 1
    return most
