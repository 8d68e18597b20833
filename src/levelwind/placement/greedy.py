"""The greedy heart of ROD: heaviest unit first, each to the node that costs the feasible set least."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from levelwind.load.arrays import Floats, Ints
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
    columns = [np.flatnonzero(row) for row in units.weight]
    added_at_lower = units.weight @ problem.normalised_lower

    nodes = np.full(units.count, -1, dtype=np.int64)
    rule = np.zeros(units.count, dtype=np.int64)
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
        norm2_after = norm2 + change
        at_lower_after = at_lower + factor * added_at_lower[unit]
        if units.fixed[unit] >= 0:
            chosen, why = int(units.fixed[unit]), PINNED
        else:
            candidates = np.flatnonzero((worst <= limit) & open_to_class_one)
            why = CLASS_ONE if len(candidates) else CLASS_TWO
            if not len(touched):
                candidates, why = np.arange(len(factor)), WITHOUT_LOAD
            score = _distance(norm2_after, at_lower_after)
            if why == CLASS_TWO:
                chosen = int(np.argmax(score))
            else:
                pick = class_one
                if class_one == "cut":
                    candidates = _fewest_cuts(candidates, [int(nodes[u]) for u in neighbours[unit]])
                    pick = ties
                chosen = _pick(candidates, score, pick, rng)
        nodes[unit], rule[unit] = chosen, why
        weights[at, chosen] = after[..., chosen]
        norm2[chosen] = norm2_after[chosen]
        at_lower[chosen] = at_lower_after[chosen]
        if worst[chosen] > limit:
            open_to_class_one[chosen] = False
    return Greedy(nodes=nodes, rule=rule)


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
    if held:
        counts = np.array([held.get(node, 0) for node in candidates.tolist()])
        return candidates[counts == counts.max()]
    return candidates


def _pick(candidates: Ints, score: Floats, rule: str, rng: np.random.Generator) -> int:
    if rule == "fullest":
        return int(candidates[score[candidates].argmin()])
    if rule == "plane":
        return int(candidates[score[candidates].argmax()])
    if rule == "random":
        return int(rng.choice(candidates))
    return int(candidates[0])
