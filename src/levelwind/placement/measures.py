"""What a placement is worth: every measure of the contract, each None where the input does not allow it."""

from __future__ import annotations

import numpy as np

from levelwind.loads.arrays import Floats, Ints, standardised, sum_by
from levelwind.loads.planes import copies, least_distance, planes, volume_of_planes
from levelwind.loads.problem import Problem
from levelwind.model import Measures


def measure(problem: Problem, assignment: Ints, *, seed: int = 0, moved_from: Ints | None = None) -> Measures:
    """All measures of a placement (node of each operator).

    Parameters
    ----------
    seed
        Of the rays along which the feasible set is integrated; the same seed gives the same number.
    moved_from
        A placement to compare with, for ``moved_load``.

    Notes
    -----
    O(operators × (variables + samples) + arcs + rays × nodes × variables).
    """
    notes: list[str] = []
    all_planes = planes(problem, assignment)
    lower = problem.normalised_lower
    volume = volume_of_planes(all_planes, lower, seed=seed)
    if not problem.variables:
        notes.append("feasible_ratio: no operator has a load that follows a stream")
    distance = least_distance(all_planes, lower)
    heaviest = all_planes.cpu.max(initial=0.0)
    load = _loads(problem, assignment, notes)
    spread = _series_measures(problem, assignment, notes)
    usage, delay = _network_measures(problem, assignment, notes)
    moved = None
    if moved_from is not None and load is not None:
        moved = float(problem.mean_load[assignment != moved_from].sum())
    return Measures(
        feasible_ratio=volume.ratio,
        feasible_error=volume.error,
        min_plane_distance=distance if np.isfinite(distance) else None,
        min_axis_distance=float(1.0 / heaviest) if heaviest > 0 else None,
        max_load=None if load is None else float(load.max()),
        load_spread=None if load is None else float(load.max() - load.min()),
        load_std=spread[0],
        load_std_bound=spread[1],
        load_correlation=spread[2],
        network_usage=usage,
        delay=delay,
        cut_streams=cut_streams(problem, assignment),
        moved_load=moved,
        notes=tuple(notes),
    )


def node_loads(problem: Problem, assignment: Ints) -> Floats:
    """Load of each node relative to its CPU at the stated rates, transfer included; NaN without rates."""
    load = sum_by(assignment, problem.mean_load, len(problem.cpu))
    stream, sender, receiver = copies(problem, assignment)
    if len(stream):
        half = (problem.carried_samples.mean(axis=1) * problem.carried.transfer_s / 2)[stream]
        load += sum_by(sender, half, len(load)) + sum_by(receiver, half, len(load))
    return load / problem.cpu


def cut_streams(problem: Problem, assignment: Ints) -> int:
    """Arcs from operator to operator that lead from one node to another. O(arcs)."""
    node = assignment.tolist()
    return sum(
        node[stream.producer] != node[reader]
        for stream in problem.physical.streams
        if stream.producer is not None
        for reader in stream.consumers
    )


def _loads(problem: Problem, assignment: Ints, notes: list[str]) -> Floats | None:
    if problem.rates.missing:
        notes.append("max_load, load_spread: no rate stated for " + ", ".join(problem.rates.missing))
        return None
    return node_loads(problem, assignment)


def _series_measures(
    problem: Problem, assignment: Ints, notes: list[str]
) -> tuple[float | None, float | None, float | None]:
    if problem.rates.missing:
        notes.append("load_std, load_correlation: no rate stated for " + ", ".join(problem.rates.missing))
        return None, None, None
    if problem.load_series is None:
        notes.append("load_std, load_correlation: all stated rates are constant")
        return None, None, None
    cpu = problem.cpu
    series = node_series(problem, problem.load_series, assignment)
    std = float((series / cpu[:, None]).std(axis=1).mean())
    bound = float(series.sum(axis=0).std() / cpu.sum())
    if len(cpu) == 1:
        notes.append("load_correlation: there is only one node")
        return std, bound, None
    return std, bound, mean_correlation(series)


def node_series(problem: Problem, load_series: Floats, assignment: Ints) -> Floats:
    """Load of each node over time, the cost of sending included."""
    count, samples = len(problem.cpu), load_series.shape[1]
    series = sum_by(assignment, load_series, count)
    stream, sender, receiver = copies(problem, assignment)
    if len(stream):
        cost = problem.carried_samples * (problem.carried.transfer_s / 2)[:, None]
        half = np.broadcast_to(cost, (len(cost), samples))[stream]
        series += sum_by(sender, half, count) + sum_by(receiver, half, count)
    return series


def mean_correlation(series: Floats) -> float:
    """Mean over all pairs of rows of their correlation; a constant row has correlation 0 with any other."""
    unit = standardised(series)
    total = unit.sum(axis=0)
    # The sum over ordered pairs is the squared length of the sum, less each row with itself.
    count = len(series)
    return float((total @ total - (unit * unit).sum()) / (count * (count - 1)))


def _network_measures(
    problem: Problem, assignment: Ints, notes: list[str]
) -> tuple[float | None, float | None]:
    if problem.cluster.latency_ms is None:
        notes.append("network_usage, delay: the cluster states no latency")
        return None, None
    latency = np.array(problem.cluster.latency_ms)
    np.fill_diagonal(latency, 0.0)  # rows that stay on a node do not travel
    delay = _delay(problem, assignment, latency)
    if problem.rates.missing:
        notes.append("network_usage: no rate stated for " + ", ".join(problem.rates.missing))
        return None, delay
    network, linear = problem.network, problem.linear
    index = {name: i for i, name in enumerate(problem.cluster.names)}
    usage = 0.0
    for stream in problem.physical.streams:
        origin = network.operators.get(stream.source)
        if origin is not None:
            size, home = origin.bytes_of(stream.route), int(assignment[stream.producer])
        else:
            entry = network.streams[stream.source]
            if entry.node is None:
                continue
            size, home = entry.bytes, index[entry.node]
        rate = problem.rates.of(linear.rates[stream.source, stream.route]).mean() * stream.share
        places = (network.outputs[name].node for name in stream.outputs)
        targets = {int(assignment[reader]) for reader in stream.consumers}
        targets |= {index[place] for place in places if place is not None}
        weight = 1.0 if size is None else size
        usage += sum(rate * weight * latency[home, target] / 1000.0 for target in targets - {home})
    if np.isnan(usage):
        unknown = [name for name, stream in network.streams.items() if stream.rate is None]
        notes.append("network_usage: no rate stated for " + ", ".join(unknown))
        return None, delay
    return float(usage), delay


def _delay(problem: Problem, assignment: Ints, latency: Floats) -> float | None:
    """Longest path from a stream to an output in milliseconds; the ends count only where they state a node.

    O(operators + arcs).
    """
    network = problem.network
    index = {name: i for i, name in enumerate(problem.cluster.names)}
    arrival = np.full(len(assignment), -np.inf)
    by_source: dict[str, list[int]] = {}
    for t, stream in enumerate(problem.physical.streams):
        by_source.setdefault(stream.source, []).append(t)
    longest = -np.inf
    for name in (*network.streams, *network.order):
        for t in by_source.get(name, ()):
            stream = problem.physical.streams[t]
            if stream.producer is None:
                entry = network.streams[name].node
                start, home = 0.0, None if entry is None else index[entry]
            else:
                start, home = float(arrival[stream.producer]), int(assignment[stream.producer])
            for reader in stream.consumers:
                hop = 0.0 if home is None else float(latency[home, assignment[reader]])
                arrival[reader] = max(arrival[reader], start + hop)
            for output in stream.outputs:
                place = network.outputs[output].node
                hop = 0.0 if home is None or place is None else float(latency[home, index[place]])
                longest = max(longest, start + hop)
    if not network.outputs:
        # Without outputs the network ends where nobody reads on.
        longest = float(arrival.max(initial=-np.inf))
    return float(longest) if np.isfinite(longest) else None
