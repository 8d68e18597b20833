"""The greedy heart of ROD: heaviest unit first, each to the node that costs the feasible set least."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from levelwind.loads.arrays import Floats, Ints
from levelwind.placement.units import Units

# Equal operators meet the ideal plane exactly, so rounding must not push them over it.
TOLERANCE = 1e-9
CLASS_ONE_RULES = ("cut", "fullest", "plane", "random", "first")
ORDERS = ("normalised", "raw")

PINNED, CLASS_ONE, CLASS_TWO, WITHOUT_LOAD, VOLUME = range(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy:
    """Where each unit went, and by which rule."""

    nodes: Ints
    rule: Ints


def place_greedily(
    units: Units,
    *,
    rng: np.random.Generator,
    class_one: str = "cut",
    ties: str = "fullest",
    order: str = "normalised",
) -> Greedy:
    """Place units one by one, largest norm first (figure 4.9 of seed 000, with its errata).

    Class I nodes are those whose plane stays above the ideal one with the unit added: taking one costs
    nothing in this step. Otherwise the node whose plane stays farthest from the lower bound point is
    taken; where that point is beyond every plane, the one with the least overload.

    Parameters
    ----------
    class_one
        Which class I node: ``cut`` fewest streams cut; ``fullest`` nearest plane, which keeps other nodes
        empty for what is to come; ``plane`` farthest plane; ``random``; ``first``.
    ties
        Which of the nodes with equally few cuts: a rule as above.
    order
        ``normalised`` orders by shares of each variable's load, ``raw`` by the coefficients themselves,
        which depend on the streams' units.

    Notes
    -----
    O(units log units + units × nodes × variables per unit).
    """
    problem = units.problem
    factor = problem.cpu.sum() / problem.cpu
    columns = _columns(units.weight)
    fixed = units.fixed.tolist()
    added_at_lower = (units.weight @ problem.normalised_lower).tolist()
    bounded = problem.lower.any()
    stated, standing = units.stated_load.tolist(), np.zeros(len(factor))
    everywhere = np.arange(len(factor))

    nodes = [-1] * units.count
    rule = [PINNED] * units.count
    weights = np.zeros((len(problem.variables), len(factor)))  # a row per variable: a unit touches few
    norm2 = np.zeros(len(factor))
    at_lower = np.zeros(len(factor))
    open_to_class_one = np.ones(len(factor), dtype=bool)
    neighbours = units.neighbours if class_one == "cut" else []
    limit = 1.0 + TOLERANCE
    for unit in sequence(units, order).tolist():
        touched = columns[unit]
        # A single variable is the common case: an index instead of a list makes every array below flat.
        at = touched[0] if len(touched) == 1 else touched
        here = weights[at]
        growth = np.multiply.outer(units.weight[unit, at], factor)
        after = here + growth
        change = growth * (here + after)  # of the squared norm
        worst = after
        if len(touched) != 1:
            change = change.sum(axis=0)
            worst = after.max(axis=0, initial=0.0)
        if fixed[unit] >= 0:
            chosen, why = fixed[unit], PINNED
        else:
            candidates = ((worst <= limit) & open_to_class_one).nonzero()[0]
            why = CLASS_ONE if len(candidates) else CLASS_TWO
            if not len(touched):
                candidates, why = everywhere, WITHOUT_LOAD
                if stated[unit] > 0:  # a load series of its own: all it asks for is an even share
                    candidates = ((standing + stated[unit]) / problem.cpu).argmin(keepdims=True)
            pick = "plane" if why == CLASS_TWO else class_one
            if why == CLASS_TWO:
                candidates = everywhere
            elif class_one == "cut":
                candidates = _fewest_cuts(candidates, [nodes[u] for u in neighbours[unit]])
                pick = ties
            chosen = int(candidates[0])
            if len(candidates) > 1 and pick == "random":
                chosen = int(rng.choice(candidates))
            elif len(candidates) > 1 and pick != "first":
                if bounded:
                    score = _distance(norm2 + change, at_lower + factor * added_at_lower[unit])[candidates]
                else:  # the distance from the origin is 1 / norm: the order is all that matters
                    score = -(norm2 + change)[candidates]
                chosen = int(candidates[score.argmin() if pick == "fullest" else score.argmax()])
        nodes[unit], rule[unit] = chosen, why
        weights[at, chosen] = after[..., chosen]
        norm2[chosen] += change[chosen]
        at_lower[chosen] += factor[chosen] * added_at_lower[unit]
        standing[chosen] += stated[unit]
        if worst[chosen] > limit:
            open_to_class_one[chosen] = False
    return Greedy(nodes=np.array(nodes, dtype=np.int64), rule=np.array(rule, dtype=np.int64))


def _columns(weight: Floats) -> list[Ints]:
    """The variables that each unit touches."""
    rows, columns = np.nonzero(weight)
    return np.split(columns, np.searchsorted(rows, np.arange(1, len(weight)))) if len(weight) else []


def sequence(units: Units, order: str) -> Ints:
    """Units by falling norm of their load, the pinned ones before all others."""
    key = units.weight if order == "normalised" else units.weight * units.problem.total_load
    falling = np.argsort(-np.sqrt((key * key).sum(axis=1)), kind="stable")
    pinned = units.fixed[falling] >= 0
    return np.concatenate([falling[pinned], falling[~pinned]])


def _distance(norm2: Floats, at_lower: Floats) -> Floats:
    """Distance from the lower bound to each plane; where it is beyond the plane, minus the overload."""
    room = 1.0 - at_lower
    distance: Floats = np.where(room > 0, room / np.sqrt(np.maximum(norm2, 1e-300)), room)
    return distance


def _fewest_cuts(candidates: Ints, placed: list[int]) -> Ints:
    """The candidates that most of a unit's placed neighbours stand on."""
    held: dict[int, int] = {}
    for node in placed:
        if node >= 0:
            held[node] = held.get(node, 0) + 1
    if not held:
        return candidates
    # Looked up among the neighbours' nodes, which are few, and not among the candidates, which are many.
    found = np.searchsorted(candidates, list(held)).tolist()
    near = [
        (node, count)
        for (node, count), i in zip(held.items(), found, strict=True)
        if i < len(candidates) and candidates[i] == node
    ]
    if not near:
        return candidates
    most = max(count for _, count in near)
    return np.array(sorted(node for node, count in near if count == most))
