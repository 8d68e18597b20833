"""Simulated annealing on a plan's volume: random moves and swaps, losses accepted less and less."""

from __future__ import annotations

from typing import Any

import numpy as np

from levelwind.loads.arrays import Ints
from levelwind.placement.delays import Paths, delay_of, unlimited
from levelwind.placement.rays import OVERHEAD, Rays, add, compiled, fill, shift_streams, volume_of

# Rounding adds up in single precision: after so many accepted changes the table is worked out afresh.
REFRESH = 1024


def anneal(
    rays: Rays,
    nodes: Ints,
    free: Ints,
    *,
    seed: int,
    work: float,
    hot: float,
    cold: float,
    paths: Paths | None = None,
) -> tuple[Ints, float, int]:
    """Improve a plan.

    Parameters
    ----------
    nodes, free
        Node of each unit, and the units that may move.
    work
        How many plans to try: a try costs about (planes + OVERHEAD) × rays, more if sending costs.
    hot, cold
        Temperatures at the start and the end: a plan that loses the share x of the volume is accepted
        with chance exp(−x / temperature).
    paths
        Paths that no plan may make longer than their limit; the plan to begin with must keep it.

    Returns
    -------
    The best plan met, its value on the rays (negative: overload at the lower bound), and plans tried.
    """
    within = unlimited() if paths is None else paths
    first = np.uint64(2 * seed + 1)
    found, value, tries = _anneal(rays, nodes.copy(), free, first, work, hot, cold, within)
    return found, float(value), int(tries)


def value_on(rays: Rays, nodes: Ints) -> float:
    """A plan's volume on the rays."""
    return anneal(rays, nodes, np.zeros(1, dtype=np.int64), seed=0, work=0, hot=1.0, cold=1.0)[1]


@compiled
def _anneal(
    rays: Rays, nodes: Ints, free: Ints, state: Any, work: float, hot: float, cold: float, paths: Paths
) -> Any:
    limited = len(paths.reaches) > 0
    unit, cpu, planes, ideal, power = rays.unit, rays.cpu, rays.planes, rays.ideal, rays.power
    n, width = len(cpu), unit.shape[1]
    carried = len(rays.home) > 0
    largest, result = np.zeros(width, dtype=np.float32), np.zeros(width, dtype=np.float32)
    incident_start = rays.incident_start
    stamp = np.zeros(n + 1, dtype=np.int64)
    table = np.zeros((2 * n + 1, width), dtype=np.float32)
    kept = np.zeros((2 * n + 1, width), dtype=np.float32)
    fill(table, nodes, rays, stamp)
    value = volume_of(table, planes, ideal, power, largest, result)
    best, best_value = nodes.copy(), value
    tries, accepted, spent = 0, 0, 0
    step = (planes + OVERHEAD) * width
    while spent < work:
        tries += 1
        spent += step
        heat = hot * (cold / hot) ** (spent / work)
        state = _next(state)
        draw = _bits(state)
        one = free[draw % np.uint64(len(free))]
        draw //= np.uint64(len(free))
        if tries & 1:
            # Every other time a unit from where it hurts: the fullest node along some ray.
            fullest = _fullest(table, np.int64(draw % np.uint64(width - 1)), min(planes, 2 * n), n)
            draw //= np.uint64(width - 1)
            for _ in range(4 * n):
                if nodes[one] == fullest:
                    break
                state = _next(state)
                one = free[_bits(state) % np.uint64(len(free))]
        source, other = nodes[one], -1
        if draw & np.uint64(1):
            target = np.int64((draw >> np.uint64(1)) % np.uint64(n))
        else:
            other = free[(draw >> np.uint64(1)) % np.uint64(len(free))]
            target = nodes[other]
        if target == source:
            spent -= step - width // 16  # nothing was looked at, but a search without choices must end
            continue
        if carried:
            kept[:] = table
            arcs = incident_start[one + 1] - incident_start[one]
            if other >= 0:
                arcs += incident_start[other + 1] - incident_start[other]
            spent += (2 * planes + 16 * arcs) * width
        else:
            kept[source], kept[target] = table[source], table[target]
        add(table[source], -cpu[source], unit[one])
        add(table[target], cpu[target], unit[one])
        if other >= 0:
            add(table[target], -cpu[target], unit[other])
            add(table[source], cpu[source], unit[other])
        if carried:
            shift_streams(table, one, target, nodes, rays, stamp)
            if other >= 0:
                shift_streams(table, other, source, nodes, rays, stamp)
        else:
            nodes[one] = target
            if other >= 0:
                nodes[other] = source
        fresh = volume_of(table, planes, ideal, power, largest, result)
        accept = fresh >= value
        if not accept and fresh > 0.0:
            state = _next(state)
            chance = (_bits(state) + 1) / 9007199254740993.0
            accept = fresh / value - 1.0 > heat * np.log(chance)
        if accept and limited:
            accept = delay_of(paths, nodes) <= paths.limit_ms
        if not accept:
            nodes[one] = source
            if other >= 0:
                nodes[other] = target
            if carried:
                table[:] = kept
            else:
                table[source], table[target] = kept[source], kept[target]
            continue
        value = fresh
        accepted += 1
        if accepted % REFRESH == 0:
            fill(table, nodes, rays, stamp)
            value = volume_of(table, planes, ideal, power, largest, result)
        if value > best_value:
            best_value = value
            best[:] = nodes
    return best, best_value, tries


@compiled
def _fullest(table: Any, ray: int, planes: int, n: int) -> Any:
    """The node with the largest plane value along one ray."""
    node, most = 0, np.float32(-1.0)
    for p in range(planes):
        here = table[p, ray] / (np.float32(1.0) - table[p, table.shape[1] - 1])
        if here > most:
            node, most = p % n, here
    return node


@compiled
def _next(state: Any) -> Any:
    """The next state of xorshift64*, a small generator that is the same on every machine."""
    state ^= state >> np.uint64(12)
    state ^= state << np.uint64(25)
    state ^= state >> np.uint64(27)
    return state


@compiled
def _bits(state: Any) -> Any:
    """53 random bits of a generator's state."""
    return (state * np.uint64(2685821657736338717)) >> np.uint64(11)
