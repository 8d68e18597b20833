"""Hyperplanes: the rate points at which a node, its link or the shared network is full.

In normalised space x_k = l_k·r_k / C_T the ideal plane is Σx = 1 and the plane of row w is w·x = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from levelwind.loads.arrays import Floats, Ints, sum_by
from levelwind.loads.feasible import Volume, feasible_volume
from levelwind.loads.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Planes:
    """Weights of all planes of a placement (seed 000, sections 4.1.3 and 4.4.4).

    ``cpu`` has a row per node. ``bandwidth`` has a row per node with a stated bandwidth and one for the
    shared network if its bandwidth is stated. ``constant`` is the share of each plane that is taken
    whatever the variables are: by rows of streams that cause no load (see `Carried.floor`).
    """

    cpu: Floats
    bandwidth: Floats
    constant: Floats

    @property
    def all(self) -> Floats:
        """Every plane, CPU first."""
        return np.concatenate([self.cpu, self.bandwidth])


def planes(problem: Problem, assignment: Ints) -> Planes:
    """Weights of the planes of a placement. O(operators × variables + arcs)."""
    n = len(problem.cpu)
    # The last column is not a variable: it holds what is constant.
    load = np.concatenate([sum_by(assignment, problem.operator_load, n), np.zeros((n, 1))], axis=1)
    stream, sender, receiver = copies(problem, assignment)
    carried = problem.carried
    rows = np.concatenate([carried.rate, carried.floor[:, None]], axis=1)
    half = (rows * (carried.transfer_s / 2)[:, None])[stream]
    load += sum_by(sender, half, n) + sum_by(receiver, half, n)
    planes_of = [load / problem.cpu[:, None]]
    if problem.has_bandwidth:
        volume = (rows * carried.bytes[:, None])[stream]
        sent = sum_by(sender, volume, n) + sum_by(receiver, volume, n)
        limited = np.isfinite(problem.bandwidth)
        planes_of.append(sent[limited] / problem.bandwidth[limited, None])
        if np.isfinite(problem.network_bandwidth):
            # The shared network carries each copy once, though two nodes handle it.
            planes_of.append(volume.sum(axis=0, keepdims=True) / problem.network_bandwidth)
    together = np.concatenate(planes_of)
    weights = together[:, :-1] * (problem.cpu.sum() / problem.total_load)
    return Planes(cpu=weights[:n], bandwidth=weights[n:], constant=together[:, -1])


def copies(problem: Problem, assignment: Ints) -> tuple[Ints, Ints, Ints]:
    """Every copy of a stream that travels: (stream, sending node, receiving node).

    A stream is sent once to each node that reads it, however many readers stand there. O(arcs log arcs).
    """
    carried, n = problem.carried, len(problem.cpu)
    if not len(carried.producer):
        empty = np.zeros(0, dtype=np.int64)
        return empty, empty, empty
    stream = np.concatenate([carried.reader_stream, carried.exit_stream])
    receiver = np.concatenate([assignment[carried.reader_operator], carried.exit_node])
    pair = np.unique(stream * n + receiver)
    stream, receiver = pair // n, pair % n
    home = carried.entry.copy()
    inside = carried.producer >= 0
    home[inside] = assignment[carried.producer[inside]]
    sender = home[stream]
    travels = sender != receiver
    return stream[travels], sender[travels], receiver[travels]


def plane_distance(weights: Floats, lower: Floats, constant: Floats | float = 0.0) -> Floats:
    """Distance from the lower bound point to each plane, negative if the point is beyond it.

    For a plane without weight it is infinite, since nothing can fill that node, or minus infinity if
    what is constant overfills it.
    """
    norm = np.sqrt((weights * weights).sum(axis=1))
    slack = 1.0 - constant - weights @ lower
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = slack / norm
    return np.where(norm > 0, distance, np.where(slack < 0, -np.inf, np.inf))


def least_distance(found: Planes, lower: Floats) -> float:
    """Distance from the lower bound point to the nearest plane of a placement; negative if it is beyond."""
    return float(plane_distance(found.all, lower, found.constant).min(initial=np.inf))


def volume_of_planes(found: Planes, lower: Floats, *, seed: int = 0) -> Volume:
    """Size of the feasible set below all planes, as a share of the ideal set."""
    return feasible_volume(found.all, lower, constant=found.constant, seed=seed)


def bandwidth_is_abundant(problem: Problem) -> bool:
    """Whether no placement whatever can make bandwidth the bottleneck (theorem 3 of seed 000).

    Two conditions, for every variable: the streams at each operator ask less of any node's bandwidth than
    the operator asks of its CPU; and all streams together, sent once each, ask less of the shared network
    than all operators ask of all CPUs. (The second is printed upside down.) A stream is counted once per
    reader, which is the most it can be sent. Where rows enter or leave at stated nodes the theorem says
    nothing: such a node sends rows that no operator of its own accounts for. O(arcs × variables).
    """
    if not problem.has_bandwidth:
        return True
    carried = problem.carried
    if (carried.entry >= 0).any() or len(carried.exit_node):
        return False
    volume = carried.rate * carried.bytes[:, None]
    count = len(problem.operator_load)
    touched = sum_by(carried.reader_operator, volume[carried.reader_stream], count)
    inside = carried.producer >= 0
    readers = np.bincount(carried.reader_stream, minlength=len(volume)) + np.bincount(
        carried.exit_stream, minlength=len(volume)
    )
    sent = volume * readers[:, None]
    touched += sum_by(carried.producer[inside], sent[inside], count)
    room = (problem.bandwidth / problem.cpu).min()
    if np.isfinite(room) and not (touched < problem.operator_load * room)[touched > 0].all():
        return False
    total = sent.sum(axis=0)
    limit = problem.total_load * (problem.network_bandwidth / problem.cpu.sum())
    return bool((total < limit)[total > 0].all())
