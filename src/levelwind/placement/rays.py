"""A plan as values along rays: what the compiled searches work on.

A plan's planes are held as their values along a fixed set of rays. Moving a unit changes a few rows of that
table by known rows; the volume is then the mean over rays of (1 / largest value)^d. All candidate plans
are judged on the same rays, so differences between plans are far more precise than the volumes are.
Single precision suffices: the last word on a plan is spoken in double precision, by `feasible_volume`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from levelwind.loads.arrays import Ints
from levelwind.loads.directions import directions
from levelwind.placement.units import Units

Table = NDArray[np.float32]

# Division as NumPy does it: a check for zero in the loop would keep it from being vectorised. The cache does
# not see changes in functions of other files: after one, delete the *.nbi and *.nbc (the Makefile does).
compiled = njit(cache=True, fastmath=True, error_model="numpy")

# Passes over the rays that a try costs besides one per plane: changing rows and raising to the power.
OVERHEAD = 10


class Rays(NamedTuple):
    """A problem along rays. The last column of every table is not a ray: it is the lower bound point.

    Planes, the rows of a plan's table, are numbered: CPU of each node, bandwidth of each node, the shared
    network. ``unit`` and ``stream`` hold the load of each unit and the rows per second of each stream that
    is costly to send; ``cpu``, ``wire`` and ``backbone`` scale CPU seconds and bytes to shares of a plane.
    """

    unit: Table
    cpu: Table
    wire: Table
    backbone: np.float32
    ideal: np.float32
    power: int
    planes: int
    stream: Table
    transfer: Table
    size: Table
    home: Ints  # producing unit of each stream, or −1 − node for one that enters at a node
    reader_start: Ints
    reader: Ints  # reading unit, or −1 − node for an output that stands on a node
    incident_start: Ints
    incident: Ints  # streams that a unit sends or reads


def make_rays(units: Units, *, points: int, seed: int) -> Rays:
    """Lay a problem out along ``points`` rays. O((units + streams) × points × variables)."""
    problem = units.problem
    lower = problem.normalised_lower
    along = np.concatenate([directions(len(problem.variables), points, 1, seed)[0], lower[None, :]])
    carried = problem.carried
    rate = carried.rate / problem.total_load
    flow = rate @ along.T
    flow[:, -1] += carried.floor / problem.cpu.sum()
    starts, readers = _readers(units)
    incident_start, incident = _incident(units, starts, readers)
    nodes = len(problem.cpu)
    return Rays(
        unit=(units.weight @ along.T).astype(np.float32),
        cpu=(problem.cpu.sum() / problem.cpu).astype(np.float32),
        wire=(problem.cpu.sum() / problem.bandwidth).astype(np.float32),
        backbone=np.float32(problem.cpu.sum() / problem.network_bandwidth),
        ideal=np.float32(1.0 - lower.sum()),
        power=len(problem.variables),
        planes=2 * nodes + 1 if len(rate) else nodes,
        stream=flow.astype(np.float32).reshape(len(rate), points + 1),
        transfer=(carried.transfer_s / 2).astype(np.float32),
        size=carried.bytes.astype(np.float32),
        home=_homes(units),
        reader_start=starts,
        reader=readers,
        incident_start=incident_start,
        incident=incident,
    )


def _homes(units: Units) -> Ints:
    """Producing unit of each carried stream, or −1 − node where it enters."""
    carried = units.problem.carried
    homes = -1 - carried.entry
    inside = carried.producer >= 0
    homes[inside] = units.of[carried.producer[inside]]
    return homes


def _readers(units: Units) -> tuple[Ints, Ints]:
    """Readers of each carried stream, back to back, and where each stream's begin."""
    carried = units.problem.carried
    stream = np.concatenate([carried.reader_stream, carried.exit_stream])
    reader = np.concatenate([units.of[carried.reader_operator], -1 - carried.exit_node])
    order = np.argsort(stream, kind="stable")
    counts = np.bincount(stream, minlength=len(carried.producer))
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), reader[order]


def _incident(units: Units, starts: Ints, readers: Ints) -> tuple[Ints, Ints]:
    """Streams that each unit sends or reads, each once."""
    carried = units.problem.carried
    touching: list[set[int]] = [set() for _ in range(units.count)]
    for t, producer in enumerate(carried.producer.tolist()):
        ends = [int(r) for r in readers[starts[t] : starts[t + 1]] if r >= 0]
        ends += [int(units.of[producer])] if producer >= 0 else []
        for unit in ends:
            touching[unit].add(t)
    flat = [t for streams in touching for t in sorted(streams)]
    lengths = [len(streams) for streams in touching]
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), np.array(flat, dtype=np.int64)


@compiled
def volume_of(table: Table, planes: int, ideal: Any, power: int, largest: Table, result: Table) -> Any:
    """Volume of the plan in the table's first ``planes`` rows; minus the overload if there is any.

    The two rows at the end are room to work in. (Numbers and rows are passed, not a `Rays`: it is called
    millions of times a second, and handing over a tuple of arrays would cost as much as the sum.)
    """
    one = np.float32(1.0)
    width = table.shape[1] - 1
    over = np.float32(0.0)
    for p in range(planes):
        over = max(over, table[p, width] - one)
    if over > 0.0:
        return -over
    for x in range(width):
        largest[x] = 1.0
    for p in range(planes):
        row, scale = table[p], ideal / (one - table[p, width])
        for x in range(width):
            largest[x] = max(largest[x], scale * row[x])
    # x^power by squaring, a whole row at a time, so that every loop vectorises.
    for x in range(width):
        largest[x] = one / largest[x]
        result[x] = 1.0
    left = power
    while left:
        if left & 1:
            for x in range(width):
                result[x] *= largest[x]
        left >>= 1
        if left:
            for x in range(width):
                largest[x] *= largest[x]
    total = np.float32(0.0)
    for x in range(width):
        total += result[x]
    return total / np.float32(width)


@compiled
def add(row: Table, factor: Any, values: Table) -> None:
    """Add a multiple of one row to another; kept apart so that the loop vectorises."""
    for x in range(len(row)):
        row[x] += factor * values[x]


@compiled
def add_stream(table: Table, t: int, sign: Any, nodes: Ints, rays: Rays, stamp: Ints) -> None:
    """Add one stream's cost of travel to the planes it touches; ``sign`` −1 takes it away.

    ``stamp`` has an entry per node and one more, a counter: it tells which nodes were served already.
    """
    n = len(rays.cpu)
    stamp[n] += 1
    mark = stamp[n]
    home = rays.home[t]
    sender = nodes[home] if home >= 0 else -1 - home
    if sender < 0:  # the producer is not placed yet
        return
    stamp[sender] = mark
    copies = 0
    for r in range(rays.reader_start[t], rays.reader_start[t + 1]):
        reader = rays.reader[r]
        node = nodes[reader] if reader >= 0 else -1 - reader
        if node < 0 or stamp[node] == mark:
            continue
        stamp[node] = mark
        copies += 1
        add(table[node], sign * rays.transfer[t] * rays.cpu[node], rays.stream[t])
        add(table[n + node], sign * rays.size[t] * rays.wire[node], rays.stream[t])
    if copies:
        many = sign * np.float32(copies)
        add(table[sender], many * rays.transfer[t] * rays.cpu[sender], rays.stream[t])
        add(table[n + sender], many * rays.size[t] * rays.wire[sender], rays.stream[t])
        add(table[2 * n], many * rays.size[t] * rays.backbone, rays.stream[t])


@compiled
def fill(table: Table, nodes: Ints, rays: Rays, stamp: Ints) -> None:
    """Work the whole table out from the plan."""
    table[:] = 0.0
    for u in range(len(nodes)):
        add(table[nodes[u]], rays.cpu[nodes[u]], rays.unit[u])
    for t in range(len(rays.home)):
        add_stream(table, t, np.float32(1.0), nodes, rays, stamp)


@compiled
def shift_streams(table: Table, u: int, target: int, nodes: Ints, rays: Rays, stamp: Ints) -> None:
    """Move a unit to a node in the plan, and what its streams cost in the table."""
    for sign in (np.float32(-1.0), np.float32(1.0)):
        for e in range(rays.incident_start[u], rays.incident_start[u + 1]):
            add_stream(table, rays.incident[e], sign, nodes, rays, stamp)
        nodes[u] = target
