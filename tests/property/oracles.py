"""Slow, literal second implementations: plain recursion, dictionaries and loops, nothing shared with src."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.spatial import ConvexHull, HalfspaceIntersection

from levelwind.model import Filter, Join, Model, Multijoin


def naive_rate(network, rates, source, route):
    """Rows per second of one output at these stream rates, by recursion from the end to the streams."""
    if source in network.streams:
        return rates[source]
    operator = network.operators[source]
    rows = [naive_rate(network, rates, port.source, port.route) for port in operator.inputs]
    basis = naive_pairs(operator, rows) if operator.kind in ("join", "multijoin") else sum(rows)
    if isinstance(operator.spec, Filter) and operator.spec.routes:
        if operator.route_selectivity is not None:
            return basis * operator.route_selectivity[route]
        return (
            basis
            * (1.0 if operator.selectivity is None else operator.selectivity)
            / len(operator.spec.routes)
        )
    return basis * (1.0 if operator.selectivity is None else operator.selectivity)


def naive_pairs(operator, rows):
    if isinstance(operator.spec, Join):
        return 2 * operator.spec.within_s * rows[0] * rows[1]
    assert isinstance(operator.spec, Multijoin)
    windows = list(operator.spec.windows_s.values())
    total = 0.0
    for latest in range(len(rows)):  # each row of each stream meets what lies in the others' windows
        met = rows[latest]
        for other in range(len(rows)):
            if other != latest:
                met *= rows[other] * windows[other]
        total += met
    return total


def naive_load(network, rates, name):
    """CPU seconds per second of a whole operator."""
    operator = network.operators[name]
    if isinstance(operator.spec, Model) and operator.spec.load is not None:
        return sum(coefficient * rates[stream] for stream, coefficient in operator.spec.load.items())
    rows = [naive_rate(network, rates, port.source, port.route) for port in operator.inputs]
    work = naive_pairs(operator, rows) if operator.kind in ("join", "multijoin") else sum(rows)
    return work * (1e-6 if operator.cost_s is None else operator.cost_s)


def instances(operator):
    if operator.split is None:
        return [operator.name]
    return [f"{operator.name}[{i}]" for i in range(operator.split.into)]


def logical(network, physical):
    return network.operators[physical.split("[")[0]]


def naive_streams(network, rates):
    """Every physical stream: (source, producer or None, rows per second, readers, outputs)."""
    found = []
    origins = [(name, None, [None]) for name in network.streams]
    for operator in network.operators.values():
        origins += [(operator.name, route, instances(operator)) for route in operator.routes]
    for source, route, producers in origins:
        rate = naive_rate(network, rates, source, route) / len(producers)
        for producer in producers:
            whole, parted = [], []
            for reader in network.operators.values():
                if any((p.source, p.route) == (source, route) for p in reader.inputs):
                    if reader.split is None:
                        whole.append(reader.name)
                    else:
                        parted += [(name, reader.split.into) for name in instances(reader)]
            outputs = [
                o for o in network.outputs.values() if (o.input.source, o.input.route) == (source, route)
            ]
            if whole or outputs:
                found.append((source, producer, rate, whole, outputs))
            found += [(source, producer, rate / into, [name], []) for name, into in parted]
    return found


def naive_usage(network, cluster, placement, rates):
    """CPU per node (sending included), bytes per node, bytes of the shared network; all per second."""
    cpu = dict.fromkeys(cluster.names, 0.0)
    wire = dict.fromkeys(cluster.names, 0.0)
    network_bytes = 0.0
    for name, node in placement.items():
        operator = logical(network, name)
        cpu[node] += naive_load(network, rates, operator.name) / len(instances(operator))
    for source, producer, rate, readers, outputs in naive_streams(network, rates):
        origin = network.streams.get(source) or network.operators[source]
        home = origin.node if producer is None else placement[producer]
        if home is None:
            continue
        transfer = 0.0 if producer is None else origin.transfer_cost_s
        size = origin.bytes or 0.0
        targets = {placement[reader] for reader in readers} | {o.node for o in outputs if o.node is not None}
        for target in targets - {home}:
            cpu[home] += rate * transfer / 2
            cpu[target] += rate * transfer / 2
            wire[home] += rate * size
            wire[target] += rate * size
            network_bytes += rate * size
    return cpu, wire, network_bytes


def naive_delay(network, cluster, placement):
    """Longest path from a stream to an output (or to where nobody reads on), by recursion."""
    index = {name: i for i, name in enumerate(cluster.names)}

    def hop(a, b):
        return 0.0 if a is None or b is None else cluster.latency_ms[index[a]][index[b]]

    def arrival(name):  # at a physical operator; None if no stream reaches it
        best = None
        for port in logical(network, name).inputs:
            for start, home in leaving(port.source):
                if start is not None:
                    best = max(-math.inf if best is None else best, start + hop(home, placement[name]))
        return best

    def leaving(source):
        if source in network.streams:
            return [(0.0, network.streams[source].node)]
        return [(arrival(name), placement[name]) for name in instances(network.operators[source])]

    if network.outputs:
        ends = [
            start + hop(home, output.node)
            for output in network.outputs.values()
            for start, home in leaving(output.input.source)
            if start is not None
        ]
    else:
        ends = [time for time in map(arrival, placement) if time is not None]
    return max(ends, default=None)


def naive_cut_streams(network, placement):
    return sum(
        placement[sender] != placement[reader]
        for operator in network.operators.values()
        for port in dict.fromkeys(operator.inputs)
        if port.source in network.operators
        for sender in instances(network.operators[port.source])
        for reader in instances(operator)
    )


def naive_network_usage(network, cluster, placement, rates):
    index = {name: i for i, name in enumerate(cluster.names)}
    usage = 0.0
    for source, producer, rate, readers, outputs in naive_streams(network, rates):
        origin = network.streams.get(source) or network.operators[source]
        home = origin.node if producer is None else placement[producer]
        if home is not None:
            size = 1.0 if origin.bytes is None else origin.bytes
            targets = {placement[r] for r in readers} | {o.node for o in outputs if o.node is not None}
            usage += sum(rate * size * cluster.latency_ms[index[home]][index[t]] / 1000 for t in targets)
    return usage


def hull_ratio(weights, lower):
    """Share of the ideal set by Qhull: vertices of {x ≥ lower, Wx ≤ 1}, then their hull's volume."""
    d = weights.shape[1]
    ideal = 1.0 - lower.sum()
    if ideal <= 0 or (weights @ lower >= 1).any():
        return 0.0
    if d == 1:
        reach = min((1.0 - w[0] * lower[0]) / w[0] for w in weights if w[0] > 0)
        return reach / ideal
    # Seen from the lower bound, so that the simplex has volume 1/d! and nothing is badly scaled.
    planes = [np.concatenate([-np.eye(d)[k], [0.0]]) for k in range(d)]
    planes += [np.concatenate([w * ideal, [w @ lower - 1.0]]) for w in weights if w.any()]
    halves = np.array(planes)
    # A point well inside: a little way up the diagonal.
    reach = min(-h[-1] / h[:-1].sum() for h in halves[d:])
    inside = np.full(d, reach / 2)
    corners = HalfspaceIntersection(halves, inside).intersections
    return ConvexHull(corners, qhull_options="QJ Pp" if d > 4 else "Qt").volume * math.factorial(d)


def monte_carlo_ratio(weights, lower, rng, points, constant=0.0):
    """Hit or miss: uniform points of the ideal set; the share that every plane bears, and its std error."""
    d = weights.shape[1]
    ideal = 1.0 - lower.sum()
    x = lower + ideal * rng.dirichlet(np.ones(d + 1), points)[:, :d]
    share = float((x @ weights.T + constant <= 1.0).all(axis=1).mean())
    return share, math.sqrt(max(share * (1 - share), 1.0 / points) / points)


def literal_rod(weight, cpu, lower, fixed, tolerance=1e-9):
    """Figure 4.9 with its errata, loop by loop: class I takes the first node, class II the farthest plane."""
    units, d = weight.shape
    n = len(cpu)
    factor = [cpu.sum() / cpu[i] for i in range(n)]
    node_weight = [[0.0] * d for _ in range(n)]
    where = [-1] * units
    free_first = sorted(range(units), key=lambda u: (fixed[u] < 0, -math.sqrt(sum(x * x for x in weight[u]))))
    for u in free_first:
        after = [[node_weight[i][k] + weight[u][k] * factor[i] for k in range(d)] for i in range(n)]
        if fixed[u] >= 0:
            chosen = int(fixed[u])
        else:
            class_one = [i for i in range(n) if all(w <= 1 + tolerance for w in after[i])]
            if class_one or not any(weight[u]):
                chosen = class_one[0] if any(weight[u]) else 0
            else:
                scores = []
                for i in range(n):
                    room = 1.0 - sum(after[i][k] * lower[k] for k in range(d))
                    norm = math.sqrt(sum(w * w for w in after[i]))
                    scores.append(room / norm if room > 0 else room)
                chosen = max(range(n), key=lambda i: scores[i])
        where[u] = chosen
        node_weight[chosen] = after[chosen]
    return np.array(where)


def all_assignments(problem):
    """Every placement that keeps pins and tables, as node indices of the operators."""
    tables = {}
    for j, operator in enumerate(problem.physical.operators):
        tables.setdefault(operator.logical.table or f" {j}", []).append(j)
    groups = list(tables.values())
    choices = []
    for group in groups:
        pins = {int(problem.fixed[j]) for j in group if problem.fixed[j] >= 0}
        choices.append(sorted(pins) if pins else range(len(problem.cpu)))
        assert len(pins) <= 1
    for chosen in itertools.product(*choices):
        nodes = np.empty(len(problem.physical.operators), dtype=np.int64)
        for group, node in zip(groups, chosen, strict=True):
            nodes[group] = node
        yield nodes
