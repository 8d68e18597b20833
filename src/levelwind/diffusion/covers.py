"""Routing paths of coordinated tuple routing: weighted greedy set covers, compiled.

References
----------
[1] Gu, Yu, Wang, ICDE 2007, section 4.1.
[2] V. Chvátal, "A greedy heuristic for the set-covering problem", Mathematics of Operations Research 4, 1979.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from levelwind.diffusion.join import Array

compiled = njit(cache=True)
NOBODY = -1


@compiled
def greedy_cover(located: Array, allowed: Array, weight: Array, serve: Array, chosen: Array) -> None:
    """Serve the slots that wait (``serve`` is −2) from allowed hosts, each slot from one host.

    Picks the host with the least weight per slot that it adds, until no allowed host adds any [2].
    ``serve`` and ``chosen`` are changed. O(slots × hosts + picks × hosts).
    """
    slots, m = located.shape
    adds = np.zeros(m, dtype=np.int64)
    for slot in range(slots):
        if serve[slot] == -2:
            for host in range(m):
                if located[slot, host] and allowed[host]:
                    adds[host] += 1
    while True:
        best, least = NOBODY, np.inf
        for host in range(m):
            if adds[host] > 0:
                price = weight[host] / adds[host]
                if price < least:
                    best, least = host, price
        if best == NOBODY:
            return
        chosen[best] = True
        for slot in range(slots):
            if serve[slot] == -2 and located[slot, best]:
                serve[slot] = best
                for host in range(m):
                    if located[slot, host] and allowed[host]:
                        adds[host] -= 1


@compiled
def path_overhead(
    serve: Array, chosen: Array, hops: int, order: Array, partners: Array, stream: int
) -> tuple[float, Array]:
    """Copies and partial groups sent for each row of a stream along a path, the row itself not counted.

    [1]'s equation 3, put right: what was made on host a goes to all hosts of the next hop but a itself.
    Also the number of partial groups per row that enter each hop: of the stream that is visited, each meets
    the least that one of its rows does.
    """
    m = chosen.shape[1]
    entering = np.ones(hops)
    total = 0.0
    for host in range(m):
        total += chosen[0, host]
    total -= 1.0
    for hop in range(1, hops):
        k = order[hop - 1]
        met = partners[stream, k]
        for earlier in range(hop - 1):
            met = min(met, partners[order[earlier], k])
        entering[hop] = entering[hop - 1] * met
        served = np.zeros(m)
        waiting = 0
        for slot in range(serve.shape[1]):
            if serve[hop - 1, slot] >= 0:
                served[serve[hop - 1, slot]] += 1.0
                waiting += 1
        size = 0
        for host in range(m):
            size += chosen[hop, host]
        stay = 0.0
        if waiting:
            for host in range(m):
                if chosen[hop, host]:
                    stay += served[host] / waiting
        total += entering[hop] * (size - stay)
    return total, entering


@compiled
def plan_slot(
    located: Array,
    wanted: Array,
    orders: Array,
    partners: Array,
    rows: Array,
    load: Array,
    kept: Array,
    unit: float,
    active: Array,
    speed: Array,
    spread: int,
    costs: Array,
    stored: Array,
    probed: Array,
    chosen_order: Array,
    serve: Array,
) -> None:
    """Where the rows of one slot go, for all streams, and their paths.

    Parameters
    ----------
    located
        Earlier slots × streams × hosts: who keeps which rows.
    wanted
        Streams × earlier slots × streams: whether rows of this slot of one stream look into an earlier slot
        of another.
    orders
        Streams × candidates × hops: orders of the other streams to try.
    partners
        Streams × streams: σ · r · W; see `Measured.met`.
    rows
        About how many rows of each stream the slot brings.
    load
        Work planned for each host, in seconds over its speed; the slot's own is added.
    kept
        Rows that each host keeps, over its speed; the slot's own are added.
    unit
        Seconds of work that count as a load of 1.
    spread
        How many hosts keep each row at least, so that empty hosts are filled and can be chosen.
    costs
        Of sending, receiving and looking once, in seconds.
    stored, probed, chosen_order, serve
        What comes out. ``serve`` (streams × hops × slots + 1, the last for this slot itself) has the host
        that answers for each slot, −1 where none needs to.

    O(streams × candidates × hops × slots × hosts).
    """
    past, n, m = located.shape
    hops = n - 1
    weight = np.empty(m)
    everyone = np.ones(m, dtype=np.bool_)
    entered = np.empty((n, hops))
    best_serve = np.empty((hops, past), dtype=np.int64)
    best_chosen = np.empty((hops, m), dtype=np.bool_)
    for turn in range(n):
        stream = turn
        lowest = np.inf
        for host in range(m):
            if active[host] and load[host] < lowest:
                lowest = load[host]
        for host in range(m):
            weight[host] = 0.05 + (load[host] - lowest) / unit if active[host] else 1e6
            if weight[host] < 0.05:
                weight[host] = 0.05
        best = np.inf
        for candidate in range(orders.shape[1]):
            order = orders[stream, candidate]
            trial = np.full((hops, past), NOBODY, dtype=np.int64)
            chosen = np.zeros((hops, m), dtype=np.bool_)
            for hop in range(hops):
                k = order[hop]
                for slot in range(past):
                    if wanted[stream, slot, k]:
                        trial[hop, slot] = -2
                if hop > 0:
                    greedy_cover(located[:, k, :], chosen[hop - 1], weight, trial[hop], chosen[hop])
                greedy_cover(located[:, k, :], everyone, weight, trial[hop], chosen[hop])
            overhead, _ = path_overhead(trial, chosen, hops, order, partners, stream)
            if overhead < best - 1e-12:
                best = overhead
                chosen_order[stream] = candidate
                best_serve[:] = trial
                best_chosen[:] = chosen
        for hop in range(hops):
            for slot in range(past):
                serve[stream, hop, slot] = best_serve[hop, slot]
        # Kept where it begins its path; filled up with those that keep the fewest for their speed.
        copies = 0
        for host in range(m):
            probed[stream, host] = best_chosen[0, host]
            stored[stream, host] = best_chosen[0, host] and active[host]
            if stored[stream, host]:
                copies += 1
                kept[host] += rows[stream] / speed[host]
        while copies < spread:
            pick = NOBODY
            for host in range(m):
                if active[host] and not stored[stream, host] and (pick < 0 or kept[host] < kept[pick]):
                    pick = host
            if pick < 0:
                break
            stored[stream, pick] = True
            copies += 1
            kept[pick] += rows[stream] / speed[pick]
            load[pick] += rows[stream] * costs[1] / speed[pick]
        _, entering = path_overhead(
            best_serve, best_chosen, hops, orders[stream, chosen_order[stream]], partners, stream
        )
        entered[stream] = entering
        for hop in range(hops):
            for host in range(m):
                if best_chosen[hop, host]:
                    work = costs[1] + costs[2] if hop == 0 else 0.5 * (costs[0] + costs[1]) + costs[2]
                    load[host] += rows[stream] * entering[hop] * work / speed[host]
    # The slot's own rows of the other streams, now that it is known who keeps them.
    for stream in range(n):
        for hop in range(hops):
            k = orders[stream, chosen_order[stream], hop]
            pick = NOBODY
            reused = False
            for host in range(m):
                if not stored[k, host]:
                    continue
                inside = False
                for slot in range(past):
                    if serve[stream, hop, slot] == host:
                        inside = True
                        break
                better = pick < 0 or (inside and not reused)
                if not better and inside == reused and load[host] < load[pick]:
                    better = True
                if better:
                    pick, reused = host, inside
            serve[stream, hop, past] = pick
            if pick >= 0 and not reused:
                load[pick] += rows[stream] * entered[stream, hop] * (costs[1] + costs[2]) / speed[pick]
            if hop == 0 and pick >= 0:
                probed[stream, pick] = True
