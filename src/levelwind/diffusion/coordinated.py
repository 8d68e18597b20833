"""Coordinated tuple routing: each row is kept on a few hosts, and looks for partners along a path of hosts.

Event time is cut into *slots*, the same for all streams. When a slot is laid, every stream gets the hosts
that keep its rows of this slot, and a path: in which order its rows visit the other streams, and at each hop
which host answers for which earlier slot. A row, and later each partial group, goes to all hosts of the next
hop.

A group is found by its latest member, the higher stream number winning ties; its row looks only at rows that
are not later. It looks once the watermark has passed it, so that everything it must see is there. With these
two rules arrival may be out of order, no group is found twice, and no host waits for another.

An era of coordinated routing between others keeps all groups that its neighbours do not: ``floors`` and
``ceilings`` bound each stream's rows.

Deviates from the paper where that loses or doubles groups: hosts answer for disjoint slots, all streams'
slots open together, and each row is kept on ``spread`` hosts at least (else few hosts do all the work).

References
----------
[1] Gu, Yu, Wang, ICDE 2007, section 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil, sqrt

import numpy as np

from levelwind.diffusion.covers import plan_slot
from levelwind.diffusion.hosts import Hosts
from levelwind.diffusion.join import FIRST, LAST, MICROSECONDS, Flags, Floats, Ints, JoinShape, Measured
from levelwind.diffusion.lookup import coordinated_copies

MOST_AT_ONCE = 1000
# Slots in the longest window.
SLOTS_PER_WINDOW = 10
# Rows that a slot should bring, of all streams together. A path is laid and told to every host whether rows
# come or not: with fewer, that would be much of what there is to do, and the same for slow hosts and fast.
ROWS_PER_SLOT = 50
# Orders of the other streams that are tried for each path: a first stream each for up to nine streams.
MOST_ORDERS = 8
# What a row meets because nothing is asked counts so many times: any condition is better than none, also one
# whose selectivity was not measured yet and is stated as 1.
UNASKED = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """Where rows of one stream in one slot look for partners.

    ``order[h]`` is the stream visited at hop h; ``serve[h, j]`` the host that answers for its slot
    ``first + j``, −1 if it need not be looked into. ``until_us`` is the end of the slot.
    """

    era: int
    slot: int
    stream: int
    order: Ints
    first: int
    serve: Ints
    until_us: int

    def hosts(self, hop: int) -> Ints:
        """The hosts of a hop, in rising order."""
        found = np.unique(self.serve[hop])
        return found[found >= 0]


@dataclass(slots=True, kw_only=True)
class CoordinatedEra:
    """A time of coordinated routing.

    Slots are numbered from ``first`` on: slot ``first + i`` is ``[edges[i], edges[i + 1])``. Rows from
    ``begin_us`` on look for partners, those before are only kept.
    """

    number: int
    floors: Ints
    ceilings: Ints
    begin_us: int
    first: int
    edges: Ints
    stored: Flags
    probed: Flags

    @property
    def end_us(self) -> int:
        """Where what was laid ends."""
        return int(self.edges[-1])

    def copies(self, streams: Ints, times: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Rows, hosts, roles and slots of the copies to send."""
        row, host, role, slot = coordinated_copies(
            streams,
            times,
            self.floors,
            self.ceilings,
            self.begin_us,
            self.edges,
            self.stored,
            self.probed,
        )
        return row, host, role, slot + self.first

    def lay(
        self,
        shape: JoinShape,
        hosts: Hosts,
        measured: Measured,
        slot_us: int,
        to_us: int,
        rng: np.random.Generator | None = None,
    ) -> list[Path]:
        """Lay slots until ``to_us`` is covered.

        Parameters
        ----------
        rng
            Chooses hosts at random where the algorithm would by load: the paper's unoptimised form.
        """
        paths: list[Path] = []
        end = self.end_us
        step = max(slot_us, -(-(to_us - end) // MOST_AT_ONCE))
        while end < to_us:
            hosts.fade(end)
            paths += self._lay_one(shape, hosts, measured, end + step, rng)
            end += step
        return paths

    def lay_first(self, shape: JoinShape, hosts: Hosts, measured: Measured, to_us: int) -> list[Path]:
        """Lay one slot from the end of what was laid to a given time."""
        return self._lay_one(shape, hosts, measured, to_us, None)

    def _lay_one(
        self,
        shape: JoinShape,
        hosts: Hosts,
        measured: Measured,
        end: int,
        rng: np.random.Generator | None,
    ) -> list[Path]:
        n, m = shape.streams, shape.instances
        start = self.end_us
        windows = np.array(shape.windows_us, dtype=np.int64)
        # Slots that may hold a partner of a row at the start of this one, by stream.
        reached = (self.edges[1:, np.newaxis] > start - windows) & (self.edges[1:, np.newaxis] > self.floors)
        oldest = int(np.argmax(reached.any(axis=1))) if len(reached) and reached.any() else len(reached)
        wanted = np.repeat(reached[np.newaxis, oldest:], n, axis=0)
        if end <= self.begin_us:
            wanted[:] = False
        orders = join_orders(shape, measured)
        length_s = min(end - start, MICROSECONDS if start == FIRST else end - start) / MICROSECONDS
        rows = np.array(measured.rates) * length_s
        costs = shape.costs
        capacity = hosts.capacity
        load: Floats = hosts.planned_s / capacity
        before = load.copy()
        kept: Floats = hosts.kept / capacity
        if rng is not None:
            load = rng.permutation(m).astype(np.float64) * (1e3 * max(1.0, float(load.max(initial=0.0))))
            before, kept = load.copy(), load.copy()
        unit = max(1e-9, float(rows.sum()) * (costs.receive_s + costs.probe_s) / m)
        stored = np.zeros((n, m), dtype=np.bool_)
        probed = np.zeros((n, m), dtype=np.bool_)
        chosen = np.zeros(n, dtype=np.int64)
        serve = np.full((n, n - 1, len(reached) - oldest + 1), -1, dtype=np.int64)
        plan_slot(
            self.stored[oldest:],
            wanted,
            orders,
            measured.met(shape, UNASKED),
            rows,
            load,
            kept,
            unit,
            hosts.active,
            capacity,
            min(spread_over(m), int(hosts.active.sum())),
            np.array([costs.send_s, costs.receive_s, costs.probe_s]),
            stored,
            probed,
            chosen,
            serve,
        )
        hosts.planned_s += (load - before) * capacity
        hosts.kept += rows @ stored
        if end <= self.begin_us:
            probed[:] = False
        slot = self.first + len(self.stored)
        self.edges = np.append(self.edges, end)
        self.stored = np.concatenate([self.stored, stored[np.newaxis]])
        self.probed = np.concatenate([self.probed, probed[np.newaxis]])
        if end <= self.begin_us:
            return []
        return [
            Path(
                era=self.number,
                slot=slot,
                stream=i,
                order=orders[i, chosen[i]],
                first=self.first + oldest,
                serve=serve[i],
                until_us=end,
            )
            for i in range(n)
        ]

    def settle(self, shape: JoinShape, watermark_us: int) -> bool:
        """Forget slots that neither a row nor a path from now on can need; whether any is left."""
        reach = min(watermark_us, self.end_us) - shape.longest_us
        if (self.ceilings <= watermark_us).all():
            return False
        gone = min(int(np.searchsorted(self.edges[1:], reach, side="right")), len(self.stored) - 1)
        if gone > 0:
            self.first += gone
            self.edges = self.edges[gone:]
            self.stored, self.probed = self.stored[gone:], self.probed[gone:]
        return True


def new_era(
    number: int, shape: JoinShape, floors: Sequence[int], from_us: int, begin_us: int
) -> CoordinatedEra:
    """An era with nothing laid: rows are kept from ``from_us``, and look for partners from ``begin_us``."""
    n, m = shape.streams, shape.instances
    return CoordinatedEra(
        number=number,
        floors=np.array(floors, dtype=np.int64),
        ceilings=np.full(n, LAST, dtype=np.int64),
        begin_us=begin_us,
        first=0,
        edges=np.array([from_us], dtype=np.int64),
        stored=np.zeros((0, n, m), dtype=np.bool_),
        probed=np.zeros((0, n, m), dtype=np.bool_),
    )


def shortest_slot_us(shape: JoinShape) -> int:
    """How long a slot is, if there are many rows in a window."""
    return max(1, -(-shape.longest_us // SLOTS_PER_WINDOW))


def slot_length_us(shape: JoinShape, measured: Measured, horizon_s: float) -> int:
    """How long slots are to be: longer where few rows come, but not longer than the longest window.

    Or than lets there be a slot for each host in the time over which work is to be even.
    """
    enough_s = ROWS_PER_SLOT / max(sum(measured.rates), 1e-6)
    most_s = max(shape.longest_us / MICROSECONDS, horizon_s / shape.instances)
    return max(shortest_slot_us(shape), int(min(enough_s, most_s) * MICROSECONDS))


def spread_over(instances: int) -> int:
    """On how many hosts each row is kept at least.

    Rows of two streams meet on a host if one goes to a row of a square of hosts, the other to a column.
    """
    return min(instances, max(2, ceil(sqrt(instances))))


def join_orders(shape: JoinShape, measured: Measured) -> Ints:
    """For each stream, orders of the others to try: one for each stream that may come first, then variations.

    After the first follows always the stream in which those before have fewest partners. Variations swap two
    neighbours that come later. Up to four streams these are all orders; streams × candidates × hops.
    """
    partners = measured.met(shape, UNASKED)
    found = [list(islice(_orders(i, partners), MOST_ORDERS)) for i in range(shape.streams)]
    return np.array(found, dtype=np.int64).reshape(shape.streams, -1, shape.streams - 1)


def looks_per_s(shape: JoinShape, measured: Measured) -> float:
    """Rows and partial groups per second that look for partners, each once however many hosts answer."""
    partners, total = measured.met(shape, UNASKED), 0.0
    for stream, order in enumerate(join_orders(shape, measured)[:, 0].tolist()):
        entering, bound = measured.rates[stream], [stream]
        for k in order:
            total += entering
            entering *= float(partners[bound, k].min())
            bound.append(k)
    return total


def _orders(stream: int, partners: Floats) -> Iterator[list[int]]:
    """Orders, each once; those that begin with few partners first."""
    others = sorted((k for k in range(len(partners)) if k != stream), key=lambda k: (partners[stream, k], k))
    chains = []
    for first in others:
        chain, left = [first], set(others) - {first}
        while left:
            chain.append(min(left, key=lambda k: (partners[[stream, *chain], k].min(), k)))
            left.remove(chain[-1])
        chains.append(chain)
    yield from chains
    for chain in chains:
        for at in range(1, len(chain) - 1):
            yield [*chain[:at], chain[at + 1], chain[at], *chain[at + 2 :]]
