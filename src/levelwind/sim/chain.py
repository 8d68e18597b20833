"""Ranks by which a node frees memory soonest: the slopes of progress charts (Chain)."""

from __future__ import annotations

import numpy as np

from levelwind.loads.problem import Problem
from levelwind.sim.tables import Floats

# Paths through a network with many branches are as many as its branches multiply to: enough is enough.
MOST_PATHS = 20_000


def envelope_slopes(costs: Floats, sizes: Floats) -> Floats:
    """Slope of the lower envelope over each operator of a path, as rows freed per CPU second.

    ``costs`` are CPU seconds per row that enters the path, ``sizes`` rows (or bytes) left of it after each
    operator; it begins with 1. The envelope goes from each of its corners to the point that lies down the
    steepest; all operators in between have that slope. O(operators²).

    Examples
    --------
    Two operators of equal cost; the first leaves a fifth of the row. It frees 0.8 rows a second, then the
    second frees the rest:

    >>> envelope_slopes(np.array([1.0, 1.0]), np.array([0.2, 0.0])).tolist()
    [0.8, 0.2]

    If the second frees more than the first, both are one segment:

    >>> envelope_slopes(np.array([1.0, 1.0]), np.array([0.9, 0.0])).tolist()
    [0.5, 0.5]
    """
    at, size = np.concatenate([[0.0], np.cumsum(costs)]), np.concatenate([[1.0], sizes])
    slopes, corner = np.zeros(len(costs)), 0
    while corner < len(costs):
        time = np.maximum(at[corner + 1 :] - at[corner], 1e-300)
        down = (size[corner] - size[corner + 1 :]) / time
        # Of equal slopes the furthest: one segment.
        best = len(down) - 1 - int(np.argmax(down[::-1]))
        slopes[corner : corner + best + 1] = down[best]
        corner += best + 1
    return slopes


def chain_ranks(problem: Problem) -> Floats:
    """Rank of each operator: the steepest slope that it has on any path from an entry to an end.

    Sizes count rows. A row of a join costs what the expected pairs cost, as far as rates are stated. Only the
    first `MOST_PATHS` paths are looked at. O(paths × length²).
    """
    readers: list[list[int]] = [[] for _ in problem.physical.operators]
    fed: set[int] = set()
    for stream in problem.physical.streams:
        if stream.producer is not None:
            readers[stream.producer] += stream.consumers
            fed.update(stream.consumers)
    costs, yields = _per_row(problem)
    ranks = np.full(len(readers), -np.inf)
    paths = 0
    stack = [[j] for j in range(len(readers) - 1, -1, -1) if j not in fed]
    while stack and paths < MOST_PATHS:
        path = stack.pop()
        following = readers[path[-1]]
        if following:
            stack += [[*path, j] for j in reversed(following)]
            continue
        paths += 1
        entering = np.concatenate([[1.0], np.cumprod([yields[j] for j in path[:-1]])])
        left = np.append(entering[1:], 0.0)
        slopes = envelope_slopes(np.array([costs[j] for j in path]) * entering, left)
        ranks[path] = np.maximum(ranks[path], slopes)
    # Beyond the paths looked at: by itself alone.
    alone = (1.0 - np.minimum(yields, 1.0)) / np.maximum(costs, 1e-300)
    return np.where(np.isfinite(ranks), ranks, alone)


def _per_row(problem: Problem) -> tuple[Floats, Floats]:
    """CPU seconds and rows out for each row that an operator takes."""
    operators = problem.physical.operators
    costs = np.array([o.logical.stated_cost_s for o in operators])
    yields = np.array([sum(o.logical.selectivity_of(r) for r in o.logical.routes) for o in operators])
    load = problem.mean_load
    for j, operator in enumerate(operators):
        if operator.logical.is_join:
            ports = [problem.linear.rates[p.source, p.route] for p in operator.logical.inputs]
            taken = sum(float(problem.rates.of(rate).mean()) for rate in ports) * operator.share
            pairs = load[j] / max(taken * costs[j], 1e-300) if taken > 0 and np.isfinite(load[j]) else 1.0
            costs[j] *= pairs
            yields[j] *= pairs
    return costs, yields
