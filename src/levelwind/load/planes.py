"""Hyperplanes: the rate points at which a node, its link or the shared network is full.

In normalised space x_k = l_k·r_k / C_T the ideal plane is Σx = 1 and the plane of row w is w·x = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from levelwind.load.arrays import Floats, Ints, sum_by
from levelwind.load.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Planes:
    """Weights of all planes of a placement (seed 000, sections 4.1.3 and 4.4.4).

    ``cpu`` has a row per node. ``bandwidth`` has a row per node with a stated bandwidth and one for the
    shared network if its bandwidth is stated.
    """

    cpu: Floats
    bandwidth: Floats

    @property
    def all(self) -> Floats:
        """Every plane, CPU first."""
        return np.concatenate([self.cpu, self.bandwidth])


def planes(problem: Problem, assignment: Ints) -> Planes:
    """Weights of the planes of a placement. O(operators × variables + arcs)."""
    n, d = len(problem.cpu), len(problem.variables)
    load = sum_by(assignment, problem.operator_load, n)
    stream, sender, receiver = copies(problem, assignment)
    carried = problem.carried
    if len(stream):
        half = (carried.rate * (carried.transfer_s / 2)[:, None])[stream]
        load += sum_by(sender, half, n) + sum_by(receiver, half, n)
    scale = problem.cpu.sum() / problem.total_load
    cpu = load * scale / problem.cpu[:, None]
    if not problem.has_bandwidth:
        return Planes(cpu=cpu, bandwidth=np.zeros((0, d)))
    volume = (carried.rate * carried.bytes[:, None])[stream]
    sent = sum_by(sender, volume, n) + sum_by(receiver, volume, n)
    limited = np.isfinite(problem.bandwidth)
    rows = [sent[limited] / problem.bandwidth[limited, None]]
    if np.isfinite(problem.network_bandwidth):
        # The shared network carries each copy once, though two nodes handle it.
        rows.append(volume.sum(axis=0, keepdims=True) / problem.network_bandwidth)
    return Planes(cpu=cpu, bandwidth=np.concatenate(rows) * scale)


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
    home = np.where(carried.producer >= 0, assignment[carried.producer], carried.entry)
    sender = home[stream]
    travels = sender != receiver
    return stream[travels], sender[travels], receiver[travels]


def plane_distance(weights: Floats, lower: Floats) -> Floats:
    """Distance from the lower bound point to each plane, negative if the point is beyond it.

    Infinite for a plane without weight: nothing can fill that node.
    """
    norm = np.sqrt((weights * weights).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = (1.0 - weights @ lower) / norm
    return np.where(norm > 0, distance, np.inf)


def bandwidth_is_abundant(problem: Problem) -> bool:
    """Whether no placement whatever can make bandwidth the bottleneck (theorem 3 of seed 000).

    Two conditions, for every variable: the streams at each operator ask less of any node's bandwidth than
    the operator asks of its CPU; and all streams together, sent once each, ask less of the shared network
    than all operators ask of all CPUs. (The second is printed upside down.) A stream is counted once per
    reader, which is the most it can be sent. O(arcs × variables).
    """
    if not problem.has_bandwidth:
        return True
    carried = problem.carried
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
