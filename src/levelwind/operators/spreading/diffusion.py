"""Diffusion: sends each row of a spread join to the parts that need it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl

from levelwind.diffusion.auto import advise
from levelwind.diffusion.coordinated import shortest_slot_us, slot_length_us
from levelwind.diffusion.hosts import Hosts, Reported
from levelwind.diffusion.join import MICROSECONDS, Costs, Ints, JoinShape, Measured
from levelwind.diffusion.reasons import reasons_of, tried
from levelwind.diffusion.router import AGAIN, Method, Routed, Router, new_router
from levelwind.diffusion.saving import restore, save
from levelwind.model import Diffusion, Operator
from levelwind.model.operator import PATHS, aligned_route, coordinated_route
from levelwind.operators.multijoin.kernel import Multijoiner, make_multijoin
from levelwind.operators.multijoin.meeting import FAILS
from levelwind.operators.protocol import Kernel, Stepped
from levelwind.operators.rows import BEGINNING, END, Arrived, RowType
from levelwind.operators.spreading.columns import ERA, KNOWN, ROLE, SLOT, SPAN
from levelwind.operators.spreading.keeping import Keeper, Sent
from levelwind.operators.spreading.paths import path_rows
from levelwind.operators.state import Segment, State, Table
from levelwind.operators.timespans import microseconds

ROUTER = "router"
SAVED, CLOCK = "saved", "clock"
# A segment is so many times as long as the longest window, unless the file says.
SEGMENT_PER_WINDOW = 1.0
# Here a look costs as much as it meets: copies that are only kept are next to nothing beside it. Counted as
# work they would be most of it where windows are long, the same on all hosts, and a host that is found a
# little faster than the others would be given nearly all rows of the master.
COSTS = Costs(copy=0.0)
# Work is to be even over the hosts in each batch, for which all of them wait; but not in less than that.
LEAST_HORIZON_S = 0.05


def make_diffusion(operator: Operator, inputs: Sequence[RowType]) -> Kernel:
    """The kernel of a diffusion."""
    spec = operator.spec
    assert isinstance(spec, Diffusion)
    join = spec.join
    assert join.diffuse is not None
    plain = make_multijoin(replace(operator, spec=join), inputs)
    assert isinstance(plain, Multijoiner)
    windows = plain.windows_us
    shape = JoinShape(
        windows_us=windows,
        instances=join.diffuse.instances,
        costs=COSTS,
        unlinked=frozenset(combinations(range(len(windows)), 2)) - frozenset(plain.condition.linked),
    )
    stated = None if join.diffuse.segment_s is None else microseconds(join.diffuse.segment_s)
    return Diffuser(
        plain=plain,
        shape=shape,
        method=join.diffuse.method,
        segment_us=stated,
        selectivity=min(1.0, spec.selectivity) ** (1 / max(1, len(windows) - 1)),
        weights=join.diffuse.weights,
        master=_most_linked(shape),
    )


def _most_linked(shape: JoinShape) -> int:
    """The stream that is linked to most others, as the first master; of equals the first.

    To change masters later means to send rows twice for two windows.
    """
    links = [shape.links(stream) for stream in range(shape.streams)]
    return links.index(max(links))


@dataclass(frozen=True, slots=True, kw_only=True)
class Diffuser:
    """Sends rows on at once, in any order of arrival: where a row goes depends on its time alone.

    What is sent are the rows that ``plain``, the join as if it were not spread, would take: those that fulfil
    what is asked of their input alone, at most as many as the file says.

    A step costs O(copies) and what is laid anew. The state is the router: what is laid and not settled; and
    the rows that the plain join would hold (see `Keeper`).
    """

    plain: Multijoiner
    shape: JoinShape
    method: str
    segment_us: int | None
    selectivity: float
    weights: tuple[float, float, float] = (1.0, 0.0, 0.0)
    master: int = 0
    told: Reported | None = None

    def hearing(self, told: Reported) -> Kernel:
        """With what was measured of the hosts and of pairs of rows."""
        return replace(self, told=told)

    def step(self, state: State, inputs: Sequence[Arrived]) -> Stepped:
        """Copies of the rows, by part and input."""
        taken = [self.plain.taken(k, arrived.rows) for k, arrived in enumerate(inputs)]
        frames, shed = [frame for frame, _ in taken], sum(count for _, count in taken)
        watermark = min(arrived.watermark for arrived in inputs)
        keeper = Keeper(
            aliases=self.plain.aliases, clocks=self.plain.clocks, windows_us=self.shape.windows_us
        )
        has_changed = keeper.has_changed(state)
        if not has_changed and not any(frame.height for frame in frames):
            return Stepped({}, keeper.step(state, frames, inputs)[0], shed=shed)
        router = self._router(state)
        if has_changed:
            router.renew(self.shape)
            router.segment_us, router.slot_us = self._lengths()
        state, sent = keeper.step(state, frames, inputs)
        streams, times, known = sent.streams, sent.times, sent.known
        self._adapt(router, streams[~known], times[~known])
        self._try_lengths(router, int(np.count_nonzero(~known)))
        routed = router.route(streams, times)
        outputs = self._copies(routed, sent)
        if routed.paths:
            outputs[PATHS] = path_rows(routed.paths, self.shape.windows_us)
        if BEGINNING < watermark < END:
            router.settle(watermark)
        said = {**router.reasons, "decisions": router.decisions} if router.reasons else None
        return Stepped(outputs, self._kept(state, router), shed=shed, said=said)

    def _as_read(self, k: int, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with the names of columns that they came with."""
        prefix = f"{self.plain.aliases[k]}."
        return rows.select(
            pl.col(name).alias(name.removeprefix(prefix)) for name in rows.columns if name != FAILS
        )

    def _copies(self, routed: Routed, sent: Sent) -> dict[str | None, pl.DataFrame]:
        """The rows to send, by route."""
        outputs: dict[str | None, pl.DataFrame] = {}
        frames = [self._as_read(k, rows) for k, rows in enumerate(sent.frames)]
        streams, known = sent.streams, sent.known
        firsts = np.concatenate([[0], np.cumsum([frame.height for frame in frames])])
        aligned = routed.slot < 0
        order = np.lexsort((routed.row, streams[routed.row], routed.host, aligned))
        row, host, era, role, slot, way = (
            values[order]
            for values in (routed.row, routed.host, routed.era, routed.role, routed.slot, aligned)
        )
        stream = streams[row]
        code = (way * self.shape.instances + host) * len(frames) + stream
        for low, high in _runs(code):
            k, v = int(stream[low]), int(host[low])
            picked = frames[k][row[low:high] - firsts[k]]
            columns = [pl.Series(ERA, era[low:high])]
            again = known[row[low:high]]
            if way[low]:
                span = np.full(high - low, self.shape.windows_us[k])
                columns += [pl.Series(SPAN, span), pl.Series(KNOWN, again)]
            else:
                columns += [pl.Series(SLOT, slot[low:high]), pl.Series(ROLE, role[low:high] + AGAIN * again)]
            route = aligned_route if way[low] else coordinated_route
            outputs[route(v, self.plain.aliases[k])] = picked.with_columns(columns)
        return outputs

    def _router(self, state: State) -> Router:
        table = state.tables.get(ROUTER)
        if table is not None:
            segment = table.segments[0]
            return restore(self.shape, segment.frame.get_column(SAVED)[0])
        segment_us, slot_us = self._lengths()
        hosts = Hosts.of_speeds(np.ones(self.shape.instances), self.weights)
        method: Method = "ctr" if self.method == "ctr" else "atr"
        return new_router(
            self.shape,
            measured=Measured.of_pairs([1.0] * self.shape.streams, {}, self.selectivity, self.shape.unlinked),
            method=method,
            master=self.master,
            segment_us=segment_us,
            slot_us=slot_us,
            hosts=hosts,
        )

    def _lengths(self) -> tuple[int, int]:
        """How long segments and slots are until something was measured."""
        longest = max(1, round(SEGMENT_PER_WINDOW * max(self.shape.longest_us, 1)))
        return self.segment_us or longest, shortest_slot_us(self.shape)

    def _kept(self, state: State, router: Router) -> State:
        frame = pl.DataFrame({CLOCK: [0], SAVED: [save(router)]})
        state = state.with_table(ROUTER, Table(CLOCK, (Segment.of(frame, CLOCK),)))
        # For whoever looks at a commit: what is used now, and how many eras there have been.
        told = {
            "coordinated": int(router.method == "ctr"),
            "master": router.master,
            "segment_us": router.segment_us,
            "eras": router.next_number,
        }
        for name, value in told.items():
            state = state.with_mark(name, value)
        return state

    def _adapt(self, router: Router, streams: Ints, times: Ints) -> None:
        """Measure rates, and once in a longest window think over master, method and segment length."""
        if self.told is not None:
            router.hear(self.told, self.selectivity)
        if not router.meter(streams, times):
            return
        allowed: tuple[Method, ...] = ("atr", "ctr") if self.method == "auto" else (router.method,)
        stated = None if self.segment_us is None else self.segment_us / MICROSECONDS
        horizon = max(LEAST_HORIZON_S, router.batch_s)
        now = (router.method, router.master)
        advice = advise(
            self.shape,
            router.measured,
            horizon_s=horizon,
            full=router.counted_s * MICROSECONDS >= self.shape.longest_us,
            allowed=allowed,
            segment_s=stated,
            now=now,
        )
        before = _in_force(router)
        router.method, router.master = advice.method, advice.master
        reckoned = router.segment_us = max(1, round(advice.segment_s * MICROSECONDS))
        if stated is None:
            router.segment_us = router.profile.around(reckoned)
        router.slot_us = slot_length_us(self.shape, router.measured, horizon)
        if not router.reasons or before != _in_force(router):
            router.decisions += 1
        router.reasons = reasons_of(
            advice, self.shape, router.measured, self.plain.aliases, asked=self.method
        )
        if router.method == "atr" and router.segment_us != reckoned:
            settled = router.profile.tuner.settled
            router.reasons = tried(router.reasons, router.segment_us, settled=settled)

    def _try_lengths(self, router: Router, rows: int) -> None:
        """Lengths near the reckoned one, by what they cost the busiest host, unless the file says one."""
        if self.told is None or self.segment_us is not None or router.method != "atr" or not router.reasons:
            return
        profile = router.profile
        if profile.step(rows, self.told.busiest_s, self.shape.longest_us, router.batch_s):
            router.segment_us = profile.segment_us
            router.reasons = tried(router.reasons, router.segment_us, settled=profile.tuner.settled)
            router.decisions += profile.tuner.settled


def _in_force(router: Router) -> tuple[str, int, int]:
    """What a decision is about: coordinated routing has neither a master nor segments."""
    return ("atr", router.master, router.segment_us) if router.method == "atr" else ("ctr", 0, 0)


def _runs(codes: Ints) -> list[tuple[int, int]]:
    """Where runs of one code begin and end."""
    if not len(codes):
        return []
    edges = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1, [len(codes)]])
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
