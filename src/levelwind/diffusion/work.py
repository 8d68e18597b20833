"""What a spread join makes hosts do: receive rows, look for partners, send partial groups and results.

A look is one row or partial group that searches one host's part of one window. Rows agree with a chance, the
selectivity, so that what is counted are means given when rows arrive; nothing else is averaged. Copies are
those that the router really sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from levelwind.diffusion.aligned import Reign
from levelwind.diffusion.coordinated import Path
from levelwind.diffusion.join import MICROSECONDS, Array, Floats, Ints, JoinShape, Measured
from levelwind.diffusion.router import LOOKS, Routed, Router

compiled = njit(cache=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Per second and host: CPU seconds asked for, groups found, and rows or partial groups received."""

    cpu_s: Floats
    groups: Floats
    received: Floats

    def per_host(self) -> Floats:
        """CPU seconds over the whole run."""
        return self.cpu_s.sum(axis=0)


def partners_at(shape: JoinShape, measured: Measured, streams: Ints, times: Ints) -> Floats:
    """For each row and stream, the rows of the stream's window that agree with it, in the mean."""
    found = np.zeros((len(times), shape.streams))
    selectivity = np.array(measured.selectivity)
    for k, window in enumerate(shape.windows_us):
        own = np.sort(times[streams == k])
        inside = np.searchsorted(own, times, side="right") - np.searchsorted(own, times - window)
        found[:, k] = inside * selectivity[streams, k]
    return found


def work_of(
    router: Router, streams: Ints, times: Ints, routed: Routed, paths: Sequence[Path], seconds: int
) -> Work:
    """The work of a run whose rows all came by one method; ``router`` must have settled nothing.

    O(copies × log rows) for aligned routing, O(rows × hops × slots in a window) for coordinated.
    """
    partners = partners_at(router.shape, router.measured, streams, times)
    bins = np.minimum(times // MICROSECONDS, seconds - 1)
    m = router.shape.instances
    out = Work(cpu_s=np.zeros((seconds, m)), groups=np.zeros((seconds, m)), received=np.zeros((seconds, m)))
    for era in router.eras:
        mine = routed.era == era.number
        if isinstance(era, Reign):
            _aligned(router, era, streams, times, partners, bins, routed.row[mine], routed.host[mine], out)
        else:
            own = [path for path in paths if path.era == era.number]
            _coordinated(router, streams, times, partners, bins, routed, mine, own, era.edges, era.first, out)
    return out


def _aligned(
    router: Router,
    era: Reign,
    streams: Ints,
    times: Ints,
    partners: Floats,
    bins: Ints,
    row: Ints,
    host: Ints,
    out: Work,
) -> None:
    shape, master = router.shape, era.master
    costs = shape.costs
    stream, time = streams[row], times[row]
    # A row looks at the master first: so much of it as is here. All others are here in full.
    span = int(times.max(initial=0)) + shape.longest_us + 2
    of_master = stream == master
    key = np.sort(host[of_master] * span + time[of_master])
    high = np.searchsorted(key, host * span + time, side="right")
    low = np.searchsorted(key, host * span + np.maximum(time - shape.windows_us[master], 0))
    chance = np.array(router.measured.selectivity)[stream, master]
    first = np.where(of_master, 1.0, (high - low) * chance)
    looks, groups = np.empty(len(row)), np.empty(len(row))
    for k in range(shape.streams):
        own = stream == k
        rest = [i for i in range(shape.streams) if i not in (k, master)]
        grow, last = _chain(partners[row[own]][:, rest])
        # The master's own row begins with the chain, all others with a look at the master.
        looks[own] = grow if k == master else 1.0 + first[own] * grow
        groups[own] = last if k == master else first[own] * last
    np.add.at(out.cpu_s, (bins[row], host), costs.receive_s + looks * costs.probe_s + groups * costs.send_s)
    np.add.at(out.groups, (bins[row], host), groups)
    np.add.at(out.received, (bins[row], host), 1.0)


def _chain(partners: Floats) -> tuple[Floats, Floats]:
    """Looks and groups of a row that visits some streams in turn, those with few partners first."""
    ordered = np.sort(partners, axis=1)
    made = np.cumprod(np.concatenate([np.ones((len(ordered), 1)), ordered], axis=1), axis=1)
    return made[:, :-1].sum(axis=1), made[:, -1]


def _coordinated(
    router: Router,
    streams: Ints,
    times: Ints,
    partners: Floats,
    bins: Ints,
    routed: Routed,
    mine: Array,
    paths: Sequence[Path],
    edges: Ints,
    first_slot: int,
    out: Work,
) -> None:
    shape = router.shape
    n, hops = shape.streams, shape.streams - 1
    costs = shape.costs
    row, host, role, slot = (v[mine] for v in (routed.row, routed.host, routed.role, routed.slot))
    np.add.at(out.cpu_s, (bins[row], host), costs.receive_s)
    np.add.at(out.received, (bins[row], host), 1.0)
    if not paths:
        return
    slots = 1 + max(path.slot for path in paths)
    wide = max(path.serve.shape[1] for path in paths)
    order = np.zeros((slots, n, hops), dtype=np.int64)
    serve = np.full((slots, n, hops, wide), -1, dtype=np.int64)
    begin = np.zeros((slots, n), dtype=np.int64)
    for path in paths:
        order[path.slot, path.stream] = path.order
        begin[path.slot, path.stream] = path.first
        serve[path.slot, path.stream, :, : path.serve.shape[1]] = path.serve
    looking = np.unique(row[(role & LOOKS) > 0])
    slot_of = np.full(len(streams), -1, dtype=np.int64)
    slot_of[row] = slot
    sorted_times = [np.sort(times[streams == k]) for k in range(n)]
    starts = np.concatenate([[0], np.cumsum([len(each) for each in sorted_times])])
    _walk(
        looking,
        streams,
        times,
        slot_of,
        partners,
        bins,
        np.array(shape.windows_us, dtype=np.int64),
        np.concatenate(sorted_times),
        starts,
        order,
        serve,
        begin,
        edges,
        first_slot,
        np.array([costs.send_s, costs.receive_s, costs.probe_s]),
        out.cpu_s,
        out.groups,
        out.received,
    )


@compiled
def _walk(
    looking: Array,
    streams: Array,
    times: Array,
    slot_of: Array,
    partners: Array,
    bins: Array,
    windows: Array,
    sorted_times: Array,
    starts: Array,
    order: Array,
    serve: Array,
    begin: Array,
    edges: Array,
    first_slot: int,
    costs: Array,
    cpu_s: Array,
    groups: Array,
    received: Array,
) -> None:
    """Each row along its path: looks on every host of a hop, then partial groups to the hosts of the next."""
    m = cpu_s.shape[1]
    hops = order.shape[2]
    share = np.zeros(m)
    inside = np.zeros(m, dtype=np.bool_)
    onward = np.zeros(m, dtype=np.bool_)
    for row in looking:
        stream, time, slot, second = streams[row], times[row], slot_of[row], bins[row]
        made = 1.0
        for hop in range(hops):
            k = order[slot, stream, hop]
            own = sorted_times[starts[k] : starts[k + 1]]
            share[:] = 0.0
            inside[:] = False
            total = 0.0
            for j in range(serve.shape[3]):
                host = serve[slot, stream, hop, j]
                if host < 0:
                    continue
                inside[host] = True
                place = begin[slot, stream] + j - first_slot
                low = max(edges[place], time - windows[k])
                high = min(edges[place + 1], time + 1)
                if high > low:
                    count = np.searchsorted(own, high) - np.searchsorted(own, low)
                    share[host] += count
                    total += count
            for host in range(m):
                if inside[host]:
                    cpu_s[second, host] += made * costs[2]
            made *= partners[row, k]
            if made == 0.0 or total == 0.0:
                break
            for host in range(m):
                share[host] /= total
            if hop == hops - 1:
                for host in range(m):
                    groups[second, host] += made * share[host]
                    cpu_s[second, host] += made * share[host] * costs[0]
                break
            onward[:] = False
            size = 0
            for j in range(serve.shape[3]):
                host = serve[slot, stream, hop + 1, j]
                if host >= 0 and not onward[host]:
                    onward[host] = True
                    size += 1
            for host in range(m):
                goes = size - 1 if onward[host] else size
                cpu_s[second, host] += made * share[host] * goes * costs[0]
                if onward[host]:
                    cpu_s[second, host] += made * (1.0 - share[host]) * costs[1]
                    received[second, host] += made * (1.0 - share[host])
