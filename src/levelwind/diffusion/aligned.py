"""Aligned tuple routing: the master's segments are spread over hosts, all other streams follow.

Time here is event time, and everything is laid out before the first row that it concerns arrives. Where a
row goes thus depends on its stream and time alone, so rows may arrive in any order.

A *reign* is a time in which one stream is master. Its time is cut into segments ``[a, b)``, each of which has
a host. A group belongs to the segment of its master row: of stream k it can hold only rows in
``[a − W_k, b + W_M)``, and those are sent to the segment's host. Since every master row has one host, a host
may keep all its segments of a reign in one place, with one copy of each row: no group is found twice.

At a switch from M to N at ``t_s``, groups whose row of M is earlier belong to the old reign. Of the others,
those whose row of N is at ``t_s`` or later belong to the new reign, the rest to a *transition*: a short reign
of N over ``[t_s − W_N, t_s)`` in which rows of M count from ``t_s`` on. ``floors`` carry that on: a stream's
rows before the end of its last reign are no part of what comes after, for all their groups are done.

Deviates from the paper, which marks tuples in the transition (and loses groups that way).

References
----------
[1] Gu, Yu, Wang, ICDE 2007, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from levelwind.diffusion.hosts import Hosts
from levelwind.diffusion.join import FIRST, MICROSECONDS, Floats, Ints, JoinShape, Measured
from levelwind.diffusion.lookup import aligned_copies

# A jump in time is laid in so many segments at most: one row from far ahead must not ask for millions.
MOST_AT_ONCE = 1000


@dataclass(slots=True, kw_only=True)
class Reign:
    """A time in which ``master`` is cut into segments: ``hosts[i]`` has ``[edges[i], edges[i + 1])``.

    ``floors`` holds for each stream the time before which its rows are no part of this reign.
    """

    number: int
    master: int
    floors: Ints
    edges: Ints
    hosts: Ints

    @property
    def end_us(self) -> int:
        """Where what was laid ends."""
        return int(self.edges[-1])

    def copies(self, shape: JoinShape, streams: Ints, times: Ints) -> tuple[Ints, Ints]:
        """Rows and hosts of the copies to send."""
        windows = np.array(shape.windows_us, dtype=np.int64)
        return aligned_copies(
            streams, times, windows, self.master, self.floors, self.edges, self.hosts, shape.instances
        )

    def lay(self, shape: JoinShape, hosts: Hosts, measured: Measured, segment_us: int, to_us: int) -> None:
        """Lay segments until ``to_us`` is covered. O(segments × hosts)."""
        edges, chosen = [], []
        end = self.end_us
        step = max(segment_us, -(-(to_us - end) // MOST_AT_ONCE))
        until = self._until(shape)
        while end < to_us:
            hosts.fade(end)
            edges.append(end + step)
            chosen.append(self._take(shape, hosts, measured, until, end, end + step))
            end += step
        self._extend(edges, chosen)

    def lay_one(
        self, shape: JoinShape, hosts: Hosts, measured: Measured, to_us: int, segment_us: int
    ) -> None:
        """Lay one segment, from the end of what was laid; one without a beginning is the first of all.

        Rows before that are few, if any: a second's is enough to count for them.
        """
        start = to_us - min(segment_us, MICROSECONDS) if self.end_us == FIRST else self.end_us
        host = self._take(shape, hosts, measured, self._until(shape), start, to_us)
        self._extend([to_us], [host])

    def _until(self, shape: JoinShape) -> Ints:
        """Where each host's last segment ends."""
        until = np.full(shape.instances, FIRST, dtype=np.int64)
        np.maximum.at(until, self.hosts, self.edges[1:])
        return until

    def _take(
        self, shape: JoinShape, hosts: Hosts, measured: Measured, until: Ints, begin: int, end: int
    ) -> int:
        """The host of a segment; what it will have to do is planned, less what it gets anyway.

        Hosts are compared with the most that the segment adds to one of them. All that it is made of would be
        far more where all hosts get most rows anyway, and make one that is thought a little faster take one
        segment after the other.
        """
        works = segment_work_s(shape, measured, self.master, begin, end, until)
        host = hosts.least(float(works.max()))
        hosts.planned_s[host] += works[host]
        until[host] = end
        return host

    def _extend(self, edges: Sequence[int], hosts: Sequence[int]) -> None:
        self.edges = np.concatenate([self.edges, np.array(edges, dtype=np.int64)])
        self.hosts = np.concatenate([self.hosts, np.array(hosts, dtype=np.int64)])

    def settle(self, shape: JoinShape, watermark_us: int) -> bool:
        """Forget segments that no row from now on can meet; whether any is left."""
        reach = watermark_us - shape.windows_us[self.master]
        gone = int(np.searchsorted(self.edges[1:], reach, side="right"))
        if gone:
            self.edges, self.hosts = self.edges[gone:], self.hosts[gone:]
        return len(self.hosts) > 0


def new_reign(number: int, master: int, floors: Sequence[int], begin_us: int) -> Reign:
    """A reign with nothing laid."""
    return Reign(
        number=number,
        master=master,
        floors=np.array(floors, dtype=np.int64),
        edges=np.array([begin_us], dtype=np.int64),
        hosts=np.empty(0, dtype=np.int64),
    )


def segment_work_s(
    shape: JoinShape, measured: Measured, master: int, begin: int, end: int, before: Ints
) -> Floats:
    """About how much work a segment adds: every row that is sent is received and looks for partners.

    Copies of other streams' rows count as `Costs.copy` says. ``before`` is where each host's last segment
    ends: it has got rows up to there and the master's window.
    """
    windows = shape.windows_us
    got = before + windows[master]
    rows = np.full(len(before), float(measured.rates[master] * (end - begin)))
    for k, rate in enumerate(measured.rates):
        if k != master:
            rows += shape.costs.copy * rate * (end + windows[master] - np.maximum(begin - windows[k], got))
    return rows / MICROSECONDS * (shape.costs.receive_s + shape.costs.probe_s)
