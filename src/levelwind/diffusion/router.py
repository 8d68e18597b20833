"""The router: rows in, copies for hosts out. Lays what is needed, and switches method, master and length.

The past is never changed: a switch takes effect so far ahead that nothing it concerns has been sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp
from typing import Any, Literal

import numpy as np

from levelwind.diffusion.aligned import Reign, new_reign
from levelwind.diffusion.coordinated import CoordinatedEra, Path, looks_per_s, new_era
from levelwind.diffusion.hosts import Hosts, Reported
from levelwind.diffusion.join import FIRST, MICROSECONDS, Ints, JoinShape, Measured
from levelwind.diffusion.profiling import Profile

Method = Literal["atr", "ctr"]
KEEPS, LOOKS = 1, 2
# Beside these, of a row that is sent again.
AGAIN = 4
# A rate that lies within this part of the old one, or the old one within this part of it, has not changed.
CALM = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """Copies to send: row ``row[i]`` of the batch to host ``host[i]``, as part of era ``era[i]``.

    ``role`` is `KEEPS`, `LOOKS` or their sum: whether the host keeps the row, and whether the row looks for
    partners there. ``slot`` is that of the row in an era of coordinated routing, −1 in one of aligned
    routing, where a host keeps all and each row looks. ``paths`` are those of the slots laid for this batch.
    """

    row: Ints
    host: Ints
    era: Ints
    role: Ints
    slot: Ints
    paths: tuple[Path, ...] = ()


@dataclass(slots=True, kw_only=True)
class Router:
    """Spreads one join. Change ``method``, ``master``, ``segment_us`` and ``hosts`` at any time.

    ``floors`` are, after all eras so far, the times before which rows of each stream are no part of new ones.
    ``reasons`` say why rows are routed the way they are, ``decisions`` how often something else was decided.
    """

    shape: JoinShape
    hosts: Hosts
    measured: Measured
    method: Method = "atr"
    master: int = 0
    segment_us: int = 5_000_000
    slot_us: int = 1_000_000
    eras: list[Reign | CoordinatedEra] = field(default_factory=list)
    next_number: int = 0
    floors: list[int] = field(default_factory=list)
    latest_us: int = FIRST
    counted: list[float] = field(default_factory=list)
    counted_s: float = 0.0
    counted_batches: float = 0.0
    thought_us: int = FIRST
    advised: list[float] = field(default_factory=list)
    reasons: dict[str, Any] = field(default_factory=dict)
    decisions: int = 0
    profile: Profile = field(default_factory=Profile)
    rng: np.random.Generator | None = None

    def route(self, streams: Ints, times: Ints) -> Routed:
        """Where the rows of a batch go. Amortised O(rows × hosts they go to); laying is per segment."""
        streams = np.ascontiguousarray(streams, dtype=np.int64)
        times = np.ascontiguousarray(times, dtype=np.int64)
        paths: list[Path] = []
        if len(times):
            paths = self._lay(int(times.min()), max(self.latest_us, int(times.max())))
        rows, hosts, eras, roles, slots = [], [], [], [], []
        for era in self.eras:
            if isinstance(era, Reign):
                row, host = era.copies(self.shape, streams, times)
                role = np.full(len(row), KEEPS + LOOKS, dtype=np.int64)
                slot = np.full(len(row), -1, dtype=np.int64)
            else:
                row, host, role, slot = era.copies(streams, times)
            rows.append(row)
            hosts.append(host)
            eras.append(np.full(len(row), era.number, dtype=np.int64))
            roles.append(role)
            slots.append(slot)
        return Routed(
            row=_joined(rows),
            host=_joined(hosts),
            era=_joined(eras),
            role=_joined(roles),
            slot=_joined(slots),
            paths=tuple(paths),
        )

    def meter(self, streams: Ints, times: Ints) -> bool:
        """Count the rows of a batch that is about to be routed; whether it is time to think choices over.

        That is once in a longest window at most, and only if a rate, a selectivity or the length of batches
        has changed. Rates are means over about ten longest windows, or ten batches, in event time.
        """
        if not len(times):
            return False
        longest = max(self.shape.longest_us, 1)
        latest = int(times.max())
        begin = self.latest_us if self.latest_us > FIRST else int(times.min())
        passed = max(0, latest - begin)
        fade = exp(-passed / (10 * max(longest, self.batch_s * MICROSECONDS)))
        own = np.bincount(streams, minlength=self.shape.streams)
        before = self.counted or [0.0] * self.shape.streams
        self.counted = [old * fade + float(new) for old, new in zip(before, own, strict=True)]
        self.counted_s = self.counted_s * fade + passed / MICROSECONDS
        self.counted_batches = self.counted_batches * fade + 1.0
        if latest < self.thought_us + longest or self.counted_s <= 0:
            return False
        self.thought_us = latest
        rates = [max(count / self.counted_s, 1e-6) for count in self.counted]
        self._know(replace(self.measured, rates=tuple(rates)))
        known = [*rates, *(chance for row in self.measured.selectivity for chance in row), self.batch_s]
        if len(known) == len(self.advised) and all(
            CALM * old <= new <= old / CALM for old, new in zip(self.advised, known, strict=True)
        ):
            return False
        self.advised = known
        return True

    @property
    def batch_s(self) -> float:
        """How long a batch is in event time, in the mean."""
        return self.counted_s / max(self.counted_batches, 1.0)

    def hear(self, reported: Reported, otherwise: float) -> None:
        """Take in what was measured of hosts and of pairs of rows.

        It changes where rows go that nothing was laid for yet, and what is thought when choices are thought
        over. ``otherwise`` is the selectivity of pairs of streams as long as none was measured.
        """
        self.hosts.hear(reported)
        if reported.selectivity:
            rates, unlinked = self.measured.rates, self.shape.unlinked
            self._know(Measured.of_pairs(rates, reported.selectivity, otherwise, unlinked))

    def _know(self, measured: Measured) -> None:
        """Go by other figures from now on. What paths have planned for hosts is reckoned anew by them.

        Else what was planned by a guess that is far too high, as that all rows agree, would never be made up
        for: the host that a slot more or less had fallen to would get everything, or nothing, for long.
        """
        if self.eras and isinstance(self.eras[-1], CoordinatedEra):
            before = looks_per_s(self.shape, self.measured)
            self.hosts.planned_s *= looks_per_s(self.shape, measured) / before
        self.measured = measured

    def renew(self, shape: JoinShape) -> None:
        """Begin anew with other windows. Rows from now on are no part of the eras so far.

        Of the rows that were routed, those that may still be in a group must be routed again, before or with
        the next ones.
        """
        self.shape = shape
        self.eras, self.floors = [], []
        self.thought_us, self.advised = FIRST, []

    def settle(self, watermark_us: int) -> None:
        """Forget what no row from the watermark on can need."""
        last = self.eras[-1:]
        self.eras = [
            era for era in self.eras if era.settle(self.shape, watermark_us) or any(era is e for e in last)
        ]

    def _lay(self, earliest: int, latest: int) -> list[Path]:
        """Lay what rows up to ``latest`` need, switching first if another way is wanted."""
        paths: list[Path] = []
        if not self.eras:
            paths += self._begin(earliest)
        ahead = self.shape.longest_us + 1
        era = self.eras[-1]
        if isinstance(era, Reign):
            if era.end_us < latest + ahead:
                if self.method == "ctr":
                    paths += self._to_coordinated(era)
                elif self.master != era.master:
                    self._to_master(era)
        elif self.method == "atr":
            paths += self._to_aligned(era, max(era.end_us, self.latest_us + ahead))
        era = self.eras[-1]
        if isinstance(era, Reign):
            era.lay(self.shape, self.hosts, self.measured, self.segment_us, latest + ahead)
        else:
            paths += era.lay(self.shape, self.hosts, self.measured, self.slot_us, latest + 1, self.rng)
        self.latest_us = latest
        return paths

    def _begin(self, earliest: int) -> list[Path]:
        """The first era, which has no beginning; its first piece ends where the first row's would."""
        self.floors = [FIRST] * self.shape.streams
        length = self.segment_us if self.method == "atr" else self.slot_us
        end = (earliest // length + 1) * length
        if self.method == "atr":
            era = self._reign(self.master, self.floors, FIRST)
            era.lay_one(self.shape, self.hosts, self.measured, end, length)
            return []
        coordinated = self._era(self.floors, FIRST, FIRST)
        return coordinated.lay_first(self.shape, self.hosts, self.measured, end)

    def _to_master(self, old: Reign) -> None:
        """From one master to another, at the end of what is laid: the transition, then the new reign."""
        at, new = old.end_us, self.master
        windows = self.shape.windows_us
        self.floors[old.master] = at
        begin = max(at - windows[new], self.floors[new])
        if begin < at:
            floors = [max(floor, at - window) for floor, window in zip(self.floors, windows, strict=True)]
            floors[old.master] = at
            transition = self._reign(new, floors, begin)
            while transition.end_us < at:
                to = min(transition.end_us + self.segment_us, at)
                transition.lay_one(self.shape, self.hosts, self.measured, to, self.segment_us)
        self.floors[new] = at
        self._reign(new, self.floors, at)

    def _to_coordinated(self, old: Reign) -> list[Path]:
        """Groups whose row of the old master is at the switch or later belong to the new era."""
        at, windows = old.end_us, self.shape.windows_us
        self.floors[old.master] = at
        floors = [max(floor, at - window) for floor, window in zip(self.floors, windows, strict=True)]
        era = self._era(floors, at - self.shape.longest_us, at)
        return era.lay(self.shape, self.hosts, self.measured, self.slot_us, at, self.rng)

    def _to_aligned(self, old: CoordinatedEra, at: int) -> list[Path]:
        """Groups whose row of the new master is before the switch stay with the old era."""
        reach = at + self.shape.windows_us[self.master]
        paths = old.lay(self.shape, self.hosts, self.measured, self.slot_us, reach, self.rng)
        old.ceilings = np.full(self.shape.streams, reach, dtype=np.int64)
        old.ceilings[self.master] = at
        self.floors[self.master] = at
        self._reign(self.master, self.floors, at)
        return paths

    def _reign(self, master: int, floors: Sequence[int], begin: int) -> Reign:
        era = new_reign(self.next_number, master, floors, begin)
        era.floors[master] = max(era.floors[master], begin)
        self._add(era)
        return era

    def _era(self, floors: Sequence[int], start: int, begin: int) -> CoordinatedEra:
        era = new_era(self.next_number, self.shape, floors, start, begin)
        self._add(era)
        return era

    def _add(self, era: Reign | CoordinatedEra) -> None:
        self.eras.append(era)
        self.next_number += 1


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def new_router(
    shape: JoinShape,
    *,
    measured: Measured | None = None,
    method: Method = "atr",
    master: int = 0,
    segment_us: int = 5_000_000,
    slot_us: int | None = None,
    hosts: Hosts | None = None,
) -> Router:
    """A router that has seen nothing yet. Without figures, streams count alike."""
    return Router(
        shape=shape,
        hosts=hosts or Hosts.equal(shape.instances),
        measured=measured or Measured.of([1.0] * shape.streams, 0.01),
        method=method,
        master=master,
        segment_us=segment_us,
        slot_us=slot_us or max(1, segment_us // 5),
    )
