"""Hops: parts of a spread join that keep rows, grow partial groups by one input, and pass them on.

A row looks for partners once the watermark has passed it, so that every row which is not later is here. What
it may see is bounded by its path: at each hop, one host answers for each slot of the input that is visited.
Rows that are later than the one that looks are left out; groups with those are theirs to find.

When a run is closed (``--until-idle``), all rows look, though the watermark has not passed them. A run that
goes on from there may bring rows that are older than some of these. So rows that the watermark had not passed
look again once it has, and of what they find, groups whose rows were all there at the closing are left out:
they were found then. A row's *round*, how often the run had been closed when it came, tells.

Windows are those by which a path was laid: they come with it. Rows that are sent again because windows have
changed are of a round before all others, so that groups of such rows alone are left out likewise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from levelwind.diffusion.join import Ints
from levelwind.diffusion.router import AGAIN, KEEPS, LOOKS
from levelwind.model import JoinPart, Operator
from levelwind.operators.multijoin import make_multijoin
from levelwind.operators.multijoin.extending import extended
from levelwind.operators.multijoin.holding import WINDOW, freed
from levelwind.operators.multijoin.kernel import STEPS, Multijoiner
from levelwind.operators.multijoin.meeting import FAILS, Flags, Meeting, Member
from levelwind.operators.multijoin.order import Pair, is_due, measure, total_names, with_total
from levelwind.operators.multijoin.partials import Partials, bound_in_frame
from levelwind.operators.protocol import Kernel, Stepped
from levelwind.operators.rows import BEGINNING, END, Arrived, Rejected, RowType
from levelwind.operators.spreading.columns import ERA, ROLE, ROUND, SLOT, STREAM
from levelwind.operators.spreading.paths import WINDOWS, KnownPaths, longest_windows, with_windows
from levelwind.operators.state import State, Table, one_frame
from levelwind.operators.types import empty_frame

PATHS_TABLE, UNTIL = "(paths)", "until"
# Up to where the watermark has been, so that rows before it have looked; whether all rows have, since the run
# was closed; and how often that was before the present round.
LOOKED, CLOSED, ROUNDS = "looked", "closed", "rounds"
# The round of rows that are sent again.
BEFORE_ALL = -1


def make_hop(whole: Operator, spec: JoinPart, inputs: Sequence[RowType]) -> Kernel:
    """The kernel of one hop; ``whole`` is the join as if it were not spread."""
    n = len(spec.join.aliases)
    joiner = make_multijoin(whole, inputs[:n])
    assert isinstance(joiner, Multijoiner)
    assert spec.hop is not None
    named = [joiner.named(k, empty_frame(rows)) for k, rows in enumerate(inputs[:n])]
    return Hop(joiner, spec.instance, spec.hop, spec.hop == n - 2, pl.concat(named, how="horizontal"))


@dataclass(slots=True)
class _Found:
    """What comes of a step: what goes to which hosts, rejected groups, and what was measured of pairs."""

    rounds: int
    measure: bool
    outputs: list[tuple[Ints, pl.DataFrame]] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    measured: dict[Pair, Pair] = field(default_factory=dict)

    def look_at(self, meeting: Meeting, bound: tuple[int, ...], target: int) -> None:
        """Measure how many rows of two inputs agree, once for each pair in a step in which that is due."""
        if not self.measure:
            return
        # Of the rows that are bound, the last that something is asked about together with the target.
        for k in reversed(bound):
            pair = (min(k, target), max(k, target))
            if pair in meeting.condition.linked:
                if pair not in self.measured:
                    self.measured[pair] = measure(meeting, (k, target))
                return


@dataclass(frozen=True, slots=True, eq=False)
class Hop:
    """One hop of one instance.

    A step costs what the join of the rows and partial groups that look with the rows kept here costs, and
    O(partial groups × hosts of the next hop). The state is the rows kept here: about copies × rate ×
    (window + lateness) of each input.
    """

    joiner: Multijoiner
    instance: int
    hop: int
    is_last: bool
    form: pl.DataFrame

    def step(self, state: State, inputs: Sequence[Arrived]) -> Stepped:
        """Takes in rows, paths and partial groups; puts out groups, or partial groups for the next hop."""
        joiner = self.joiner
        n = len(joiner.aliases)
        watermark = min(arrived.watermark for arrived in inputs)
        was_closed = bool(state.marks.get(CLOSED, 0))
        rounds = state.marks.get(ROUNDS, 0) + (was_closed and watermark < END)
        paths_table = self._told(state, inputs[n].rows)
        tables = [state.table(name, clock) for name, clock in zip(joiner.aliases, joiner.clocks, strict=True)]
        tables = [
            self._grown(k, table, inputs[k].rows, rounds) if inputs[k].rows.height else table
            for k, table in enumerate(tables)
        ]
        found = _Found(rounds, measure=is_due(state.marks.get(STEPS, 0), n, self.instance))
        looking = [
            (stream, frame)
            for stream, frame in self._looking(state, tables, inputs, watermark)
            if frame.height
        ]
        if looking:
            known = KnownPaths.of(paths_table.frames(), n)
            for stream, frame in looking:
                self._grow(known, stream, frame, tables, found)
        after = self._remembered(state, found, bool(looking))
        newest = self._newest(state, inputs[n].rows)
        after = self._with_windows(after, newest)
        if BEGINNING < watermark < END:
            paths_table = paths_table.evict(watermark).compact()
            spans = longest_windows(paths_table.frames(), newest)
            tables = [
                table.evict(max(watermark - span, BEGINNING)).compact()
                for table, span in zip(tables, spans, strict=True)
            ]
            if watermark > state.marks.get(LOOKED, BEGINNING):
                after = after.with_mark(LOOKED, watermark)
        for name, table in zip(joiner.aliases, tables, strict=True):
            if table.segments or name in state.tables:
                after = after.with_table(name, table)
        if paths_table.segments or PATHS_TABLE in state.tables:
            after = after.with_table(PATHS_TABLE, paths_table)
        if was_closed != (watermark == END):
            after = after.with_mark(CLOSED, int(watermark == END)).with_mark(ROUNDS, rounds)
        return Stepped(self._sent(found.outputs), after, tuple(found.rejected))

    def _grown(self, k: int, table: Table, rows: pl.DataFrame, rounds: int) -> Table:
        """A table with more rows. If some are sent again, what bounded it was the windows of others."""
        if rows.select((pl.col(ROLE) & AGAIN > 0).any()).item():
            table = freed(table)
        return table.append(self._taken(k, rows, rounds))

    def _taken(self, k: int, rows: pl.DataFrame, rounds: int) -> pl.DataFrame:
        """Rows as they are kept."""
        wanted, alias = self.joiner.wanted(k, self._mine(rows)), self.joiner.aliases[k]
        if wanted.is_empty():
            return wanted
        again = pl.col(f"{alias}.{ROLE}") & AGAIN > 0
        came = pl.when(again).then(pl.lit(BEFORE_ALL)).otherwise(pl.lit(rounds)).cast(pl.Int64)
        return wanted.with_columns(came.alias(f"{alias}.{ROUND}"))

    def _told(self, state: State, rows: pl.DataFrame) -> Table:
        """The paths, with new ones. If the state is from before paths said their windows, they do now."""
        windows, table = self.joiner.windows_us, state.table(PATHS_TABLE, UNTIL)
        if table.segments and WINDOW + self.joiner.aliases[0] not in state.marks:
            table = Table(UNTIL).append(with_windows(one_frame(table.frames()), windows))
        return table.append(with_windows(rows, windows)) if rows.height else table

    def _with_windows(self, state: State, windows_us: Sequence[int]) -> State:
        for name, window in zip(self.joiner.aliases, windows_us, strict=True):
            if state.marks.get(WINDOW + name) != window:
                state = state.with_mark(WINDOW + name, window)
        return state

    def _newest(self, state: State, paths: pl.DataFrame) -> Sequence[int]:
        """The windows by which paths are laid now, as far as is known here."""
        if paths.height:
            told = with_windows(paths, self.joiner.windows_us).sort("era").get_column(WINDOWS)
            newest: list[int] = told[-1].to_list()
            return newest
        aliased = zip(self.joiner.aliases, self.joiner.windows_us, strict=True)
        return [state.marks.get(WINDOW + alias, window) for alias, window in aliased]

    def _remembered(self, state: State, found: _Found, looked: bool) -> State:
        """With what was measured of pairs of inputs; see `measure`."""
        for pair, seen in found.measured.items():
            names = total_names(*(self.joiner.aliases[input] for input in pair))
            for name, value in with_total(state.marks, names, seen).items():
                state = state.with_mark(name, value)
        return state.with_mark(STEPS, state.marks.get(STEPS, 0) + 1) if looked else state

    def _mine(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Without rows that only look for partners, if they do not begin here."""
        return rows.filter(pl.col(ROLE) & KEEPS > 0) if self.hop else rows

    def _looking(
        self, state: State, tables: Sequence[Table], inputs: Sequence[Arrived], watermark: int
    ) -> Iterator[tuple[int, pl.DataFrame]]:
        """Rows that the watermark has passed in this step, or partial groups, by the stream that looks."""
        n = len(self.joiner.aliases)
        if self.hop == 0:
            since = state.marks.get(LOOKED, BEGINNING)
            if watermark <= since or (watermark == END and state.marks.get(CLOSED, 0)):
                return
            for k, alias in enumerate(self.joiner.aliases):
                clock = pl.col(self.joiner.clocks[k]).to_physical()
                found = [
                    frame.filter(
                        (clock >= since) & (clock < watermark) & (pl.col(f"{alias}.{ROLE}") & LOOKS > 0)
                    )
                    for frame in tables[k].frames()
                ]
                if found:
                    hidden = {f"{alias}.{name}": name for name in (ERA, SLOT, ROUND)}
                    yield k, one_frame(found).rename(hidden).drop(f"{alias}.{ROLE}")
            return
        frames = [arrived.rows for arrived in inputs[n + 1 :] if arrived.rows.height]
        if frames:
            together = pl.concat(frames)
            for key, frame in together.group_by(STREAM, maintain_order=True):
                yield int(key[0]), frame

    def _grow(
        self,
        known: KnownPaths,
        stream: int,
        frame: pl.DataFrame,
        tables: Sequence[Table],
        found: _Found,
    ) -> None:
        """Grow what looks by the input that its path visits here."""
        eras = frame.get_column(ERA).to_numpy()
        number = known.number(eras, frame.get_column(SLOT).to_numpy(), stream)
        for order, which in known.by_order(number, self.hop + 1):
            target, bound = order[-1], (stream, *order[:-1])
            for era in np.unique(eras[which]).tolist():
                own = which[eras[which] == era]
                partials = frame[own]
                kept = self._kept(tables[target], target, era)
                if kept is None:
                    continue
                self._meet(known, number[own], partials, bound, target, kept, found, known.windows[era])

    def _kept(self, table: Table, target: int, era: int) -> pl.DataFrame | None:
        alias = self.joiner.aliases[target]
        found = [
            frame.filter((pl.col(f"{alias}.{ROLE}") & KEEPS > 0) & (pl.col(f"{alias}.{ERA}") == era))
            for frame in table.frames()
        ]
        frames = [frame for frame in found if frame.height]
        return one_frame(frames) if frames else None

    def _meet(
        self,
        known: KnownPaths,
        number: Ints,
        partials: pl.DataFrame,
        bound: tuple[int, ...],
        target: int,
        kept: pl.DataFrame,
        found: _Found,
        windows_us: Sequence[int],
    ) -> None:
        joiner, alias = self.joiner, self.joiner.aliases[target]
        stream = bound[0]
        slots = kept.get_column(f"{alias}.{SLOT}").to_numpy()
        answers, low = known.answered(number, self.hop, self.instance)
        members = {k: Member.of(partials, joiner.clocks[k]) for k in bound}
        members[target] = Member.of(kept, joiner.clocks[target])
        # The row that looks is the latest: as if nothing came after it.
        latest = [0 if k == stream else window for k, window in enumerate(windows_us)]
        meeting = Meeting(joiner.condition, latest, members)
        found.look_at(meeting, bound, target)
        looks_at, times = members[stream].times, members[target].times
        came = kept.get_column(f"{alias}.{ROUND}").to_numpy()
        came_before = partials.get_column(ROUND).to_numpy()

        def meant(looker: Ints, row: Ints) -> Flags:
            """Rows for which this host answers, without those at the same time that come later in order."""
            place = slots[row] - low
            inside = (place >= 0) & (place < answers.shape[1])
            mine = inside & answers[looker, np.where(inside, place, 0)]
            return mine if target < stream else mine & (times[row] < looks_at[looker])

        start = bound_in_frame(meeting, bound)
        for groups in extended(meeting, start, target, meant=meant, chunk=joiner.chunk):
            looker, row = groups.at[stream], groups.at[target]
            rounds = np.maximum(came[row], came_before[looker])
            if self.is_last:
                is_new = rounds >= found.rounds
                groups, rounds = groups.take(is_new), rounds[is_new]
            if len(groups):
                self._put_out(known, number, meeting, groups, bound, target, partials, rounds, found)

    def _put_out(
        self,
        known: KnownPaths,
        number: Ints,
        meeting: Meeting,
        groups: Partials,
        bound: tuple[int, ...],
        target: int,
        partials: pl.DataFrame,
        rounds: Ints,
        found: _Found,
    ) -> None:
        if self.is_last:
            whole: list[pl.DataFrame] = []
            self.joiner._put_out(self._plain(meeting), groups, whole, found.rejected)
            found.outputs += [(np.empty(0, dtype=np.int64), frame) for frame in whole]
            return
        looker = groups.at[bound[0]]
        columns = {}
        for k in (*bound, target):
            prefix = f"{self.joiner.aliases[k]}."
            for name in self.form.columns:
                if name.startswith(prefix):
                    columns[name] = meeting.members[k].frame.get_column(name).gather(groups.at[k])
        height = len(groups)
        full = [
            columns.get(name, pl.Series(name, [None], dtype=dtype).new_from_index(0, height))
            for name, dtype in self.form.schema.items()
        ]
        fails = groups.fails if groups.fails is not None else np.zeros(height, dtype=np.bool_)
        frame = pl.DataFrame(full).with_columns(
            partials.get_column(ERA).gather(looker),
            partials.get_column(SLOT).gather(looker),
            pl.Series(ROUND, rounds),
            pl.Series(STREAM, np.full(height, bound[0], dtype=np.int64)),
            pl.Series(FAILS, fails),
        )
        for path in np.unique(number[looker]).tolist():
            own = frame.filter(pl.Series(number[looker] == path))
            found.outputs.append((known.hosts(path, self.hop + 1), own))

    def _plain(self, meeting: Meeting) -> Meeting:
        """The same rows without hidden columns, as they are put out."""
        members = {}
        for k, member in meeting.members.items():
            prefix = f"{self.joiner.aliases[k]}."
            names = [name for name in self.form.columns if name.startswith(prefix)]
            members[k] = Member(member.frame.select(names), member.times, member.known, member.fails)
        return Meeting(meeting.condition, meeting.windows_us, members)

    def _sent(self, outputs: Sequence[tuple[Ints, pl.DataFrame]]) -> dict[str | None, pl.DataFrame]:
        if self.is_last:
            return {None: pl.concat([frame for _, frame in outputs])} if outputs else {}
        to: dict[int, list[pl.DataFrame]] = {}
        for hosts, frame in outputs:
            for host in hosts.tolist():
                to.setdefault(host, []).append(frame)
        return {str(host): pl.concat(frames) for host, frames in sorted(to.items())}
