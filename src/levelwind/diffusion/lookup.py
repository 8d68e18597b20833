"""To which hosts each row of a batch goes, given what was laid: compiled loops, nothing else."""

from __future__ import annotations

import numpy as np
from numba import njit

from levelwind.diffusion.join import Array

compiled = njit(cache=True)


@compiled
def place_of(edges: Array, time: int) -> int:
    """The number of the piece ``[edges[i], edges[i + 1])`` that holds a time; −1 or the last if outside."""
    low, high = 0, len(edges)
    while low < high:
        middle = (low + high) // 2
        if edges[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low - 1


@compiled
def aligned_copies(
    streams: Array,
    times: Array,
    windows: Array,
    master: int,
    floors: Array,
    edges: Array,
    hosts: Array,
    m: int,
) -> tuple[Array, Array]:
    """Rows and hosts of the copies that one reign asks for: each row once for every host.

    A row of the master goes to the host of its segment. A row of another stream k goes to the hosts of all
    segments ``[a, b)`` with ``a − W_k ≤ t < b + W_M``, unless it lies below k's floor.
    O(rows × segments within the windows), less where these go round all hosts.
    """
    room = len(streams) + 16
    row_of = np.empty(room, dtype=np.int64)
    host_of = np.empty(room, dtype=np.int64)
    stamp = np.full(m, -1, dtype=np.int64)
    count = 0
    segments = len(hosts)
    own = windows[master]
    for row in range(len(streams)):
        stream, time = streams[row], times[row]
        if time < floors[stream]:
            continue
        if stream == master:
            first = place_of(edges, time)
            last = first
        else:
            first = place_of(edges, time - own)  # holds the earliest master row that can meet it
            if first < 0:
                first = 0
            last = place_of(edges, time + windows[stream])
            if last >= segments:
                last = segments - 1
        if first < 0 or first >= segments:
            continue
        if count + m > room:
            room = 2 * room + m
            more_rows = np.empty(room, dtype=np.int64)
            more_hosts = np.empty(room, dtype=np.int64)
            more_rows[:count] = row_of[:count]
            more_hosts[:count] = host_of[:count]
            row_of, host_of = more_rows, more_hosts
        found = 0
        for segment in range(first, last + 1):
            host = hosts[segment]
            if stamp[host] != row:
                stamp[host] = row
                row_of[count] = row
                host_of[count] = host
                count += 1
                found += 1
                if found == m:  # nobody is left
                    break
    return row_of[:count].copy(), host_of[:count].copy()


@compiled
def coordinated_copies(
    streams: Array,
    times: Array,
    floors: Array,
    ceilings: Array,
    begin: int,
    edges: Array,
    stored: Array,
    probed: Array,
) -> tuple[Array, Array, Array, Array]:
    """Rows, hosts, roles and slots of the copies that one era of coordinated routing asks for.

    Parameters
    ----------
    stored, probed
        Per slot, stream and host: whether it keeps the rows, and whether the rows begin their path there.

    Roles: 1 the host keeps the row, 2 the row looks for partners there, 3 both. A row before ``begin`` looks
    for none: it is never the latest member of a group of this era. O(rows × hosts).
    """
    m = stored.shape[2]
    room = len(streams) * m
    row_of = np.empty(room, dtype=np.int64)
    host_of = np.empty(room, dtype=np.int64)
    role_of = np.empty(room, dtype=np.int64)
    slot_of = np.empty(room, dtype=np.int64)
    count = 0
    for row in range(len(streams)):
        stream, time = streams[row], times[row]
        if time < floors[stream] or time >= ceilings[stream]:
            continue
        slot = place_of(edges, time)
        if slot < 0 or slot >= stored.shape[0]:
            continue
        for host in range(m):
            role = 0
            if stored[slot, stream, host]:
                role = 1
            if time >= begin and probed[slot, stream, host]:
                role += 2
            if role:
                row_of[count] = row
                host_of[count] = host
                role_of[count] = role
                slot_of[count] = slot
                count += 1
    return row_of[:count].copy(), host_of[:count].copy(), role_of[:count].copy(), slot_of[:count].copy()
