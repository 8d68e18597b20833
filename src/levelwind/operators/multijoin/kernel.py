"""Multijoin: groups of a row of each input, each within its window of the latest, that fulfil a condition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from levelwind.errors import input_error
from levelwind.model import Operator
from levelwind.model.operator import Multijoin
from levelwind.operators.join import JOIN_TIME
from levelwind.operators.join_pairs import CHUNK
from levelwind.operators.multijoin.condition import GroupCondition, make_condition
from levelwind.operators.multijoin.extending import grown
from levelwind.operators.multijoin.holding import WINDOW, freed, has_changed, held, others
from levelwind.operators.multijoin.meeting import FAILS, KNOWN, SPAN, Meeting, Member
from levelwind.operators.multijoin.order import (
    best_order,
    mark_names,
    measure,
    measured_now,
    selectivities,
    total_names,
    with_measure,
    with_total,
)
from levelwind.operators.multijoin.pair_tests import pair_tests
from levelwind.operators.multijoin.partials import Partials, columns_of, single
from levelwind.operators.protocol import Kernel, Stepped
from levelwind.operators.rows import ORDER, TIME, Arrived, Rejected, RowType
from levelwind.operators.shedding import at_most
from levelwind.operators.state import State, Table, one_frame
from levelwind.operators.timespans import microseconds

# Pairs that a Python function is asked about together: it gets all their columns, which may be long vectors.
CHUNK_OF_PAIRS = 1 << 15
# How many steps were made with rows in them: measuring goes by it.
STEPS = "steps"


def make_multijoin(
    operator: Operator, inputs: Sequence[RowType], *, together: str | None = None, part: int | None = None
) -> Kernel:
    """The kernel of a join of any number of inputs, several of which may be the same port.

    Parameters
    ----------
    together
        A column of whole numbers that all inputs bring besides those of their types: only rows that agree in
        it are joined, and it is not put out. Each row then also says how old it may be (`SPAN`), and whether
        it is one that was there before its windows were (`KNOWN`).
    part
        The number of the instance, if it is one of a spread join.
    """
    spec = operator.spec
    assert isinstance(spec, Multijoin)
    types = []
    for alias, rows in zip(spec.aliases, inputs, strict=True):
        if rows.time is None:
            rule = "what a multijoin reads must have an event-time column"
            raise input_error(rule, key=f"operators.{operator.name}.inputs", value=alias)
        types.append({f"{alias}.{name}": kind for name, kind in rows.types.items()})
    told = [f"{alias}.{name}" for alias in spec.aliases for name in (SPAN, KNOWN)]
    boxes = None if together is None else [f"{alias}.{together}" for alias in spec.aliases]
    return Multijoiner(
        spec.aliases,
        tuple(f"{alias}.{rows.time}" for alias, rows in zip(spec.aliases, inputs, strict=True)),
        tuple(microseconds(spec.windows_s[alias]) for alias in spec.aliases),
        make_condition(spec.where, types, tests=pair_tests(operator.name, spec, types), together=boxes),
        hidden=frozenset({ORDER, FAILS, *(boxes or ()), *(told if boxes else ())}),
        chunk=CHUNK_OF_PAIRS if spec.pairs else CHUNK,
        shed_rows=spec.shed_rows,
        part=part,
    )


@dataclass(frozen=True, slots=True)
class Multijoiner:
    """A join of several inputs.

    A group is put out in the batch in which the last to arrive of its members arrives. To find each group
    once, new rows of input i meet known and new rows of the inputs before it, and known rows of those after
    it: a group is found from the last of the inputs that bring it a new row. A row is given up once the other
    inputs' watermarks say that no row can come that is in a group with it.

    A step costs O((new + kept) log kept) for each input that brings rows, and the partial groups that agree
    in time and keys or in a band, of which a bounded number is held at a time. The state is the rows that may
    still be in a group: about rate × (window + lateness) of each input.
    """

    aliases: tuple[str, ...]
    clocks: tuple[str, ...]
    windows_us: tuple[int, ...]
    condition: GroupCondition
    hidden: frozenset[str] = frozenset({ORDER, FAILS})
    chunk: int = CHUNK
    shed_rows: int | None = None
    part: int | None = None
    _nothing: list[pl.DataFrame] = field(default_factory=list, compare=False, repr=False)

    def step(self, state: State, inputs: Sequence[Arrived]) -> Stepped:
        """Takes in rows of all inputs, and puts out the groups they make."""
        before = [self._held(state, input) for input in range(len(self.aliases))]
        new, tables, shed = [], [], 0
        for input, arrived in enumerate(inputs):
            rows, left_out = self.taken(input, arrived.rows)
            known, rows = self._parted(input, rows)
            new.append(rows)
            shed += left_out
            # What bounded the table was the window of other rows.
            tables.append(before[input] if known is None else freed(before[input]).append(known))
        outputs: list[pl.DataFrame] = []
        rejected: list[Rejected] = []
        meeting = self._meeting(state, tables, new)
        if meeting is not None:
            state = self._measured(state, meeting)
            for groups in self._found(state, meeting, [rows.height for rows in new]):
                self._put_out(meeting, groups, outputs, rejected)
        for input, name in enumerate(self.aliases):
            table, window = tables[input], self._longest(state, input, tables[input], new[input])
            if window is not None:
                table = held(table, new[input], others(inputs, input), window)
            stored = state.tables.get(name)
            if table is not stored and (stored is not None or table is not before[input]):
                state = state.with_table(name, table)
        if not outputs:
            outputs = [self._no_groups([arrived.rows for arrived in inputs])]
        for name, window in zip(self.aliases, self.windows_us, strict=True):
            if state.tables and not self._is_part and state.marks.get(WINDOW + name) != window:
                state = state.with_mark(WINDOW + name, window)
        return Stepped({None: pl.concat(outputs)}, state, tuple(rejected), shed)

    @property
    def _is_part(self) -> bool:
        """Whether it is an instance of a spread join, whose rows say what their windows are."""
        return self.part is not None

    def named(self, input: int, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with their columns behind the input's alias, without the hidden order."""
        return rows.select(
            pl.col(name).alias(f"{self.aliases[input]}.{name}") for name in rows.columns if name != ORDER
        )

    def taken(self, input: int, rows: pl.DataFrame) -> tuple[pl.DataFrame, int]:
        """Of the rows that can be in a group as many as are taken in a batch; how many others there were."""
        wanted = self.wanted(input, rows)
        if self.shed_rows is None:
            return wanted, 0
        kept = at_most(wanted, self.shed_rows)
        return kept, wanted.height - kept.height

    def wanted(self, input: int, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows that can be in a group; with a mark on those that can only be in one that is rejected."""
        if rows.is_empty():
            return rows
        rows = self.named(input, rows)
        if rows.get_column(self.clocks[input]).null_count():
            rows = rows.filter(pl.col(self.clocks[input]).is_not_null())
        fails = None
        for conjunct in self.condition.alone[input]:
            if conjunct.may_fail and fails is None:
                fails = pl.Series(FAILS, [False]).new_from_index(0, rows.height)
            mask, reasons = conjunct.test(rows)
            if reasons is not None and fails is not None:
                mask, fails = mask | reasons.is_not_null(), fails | reasons.is_not_null()
            rows = rows.filter(mask)
            fails = None if fails is None else fails.filter(mask)
        return rows if fails is None else rows.with_columns(fails.alias(FAILS))

    def _held(self, state: State, input: int) -> Table:
        """The rows held of an input. Rows of a part say what their windows are, whatever was or is now."""
        name, window = self.aliases[input], self.windows_us[input]
        table = state.table(name, self.clocks[input])
        return freed(table) if not self._is_part and has_changed(state.marks, name, window) else table

    def _parted(self, input: int, rows: pl.DataFrame) -> tuple[pl.DataFrame | None, pl.DataFrame]:
        """Rows that count as known, if there are any, and new ones."""
        name = f"{self.aliases[input]}.{KNOWN}"
        if name not in rows.columns:
            return None, rows
        known, rows = rows.get_column(name), rows.drop(name)
        return (rows.filter(known), rows.filter(~known)) if known.any() else (None, rows)

    def _spans(self, state: State, input: int, rows: pl.DataFrame) -> pl.Series | int:
        """The windows of rows; one number if all have the same.

        Rows from before they said it have the one that stood in the state then.
        """
        name, window = f"{self.aliases[input]}.{SPAN}", self.windows_us[input]
        if not self._is_part:
            return window
        window = state.marks.get(WINDOW + self.aliases[input], window)
        if name not in rows.columns or not rows.height:
            return window
        spans = rows.get_column(name).fill_null(window)
        least, most = spans.min(), spans.max()
        assert isinstance(most, int)
        return most if least == most else spans

    def _longest(self, state: State, input: int, table: Table, new: pl.DataFrame) -> int | None:
        """The longest window of rows of an input that are held or new, None if there are none.

        O(new rows and segments).
        """
        if not self._is_part:
            return self.windows_us[input]
        found = [self._spans(state, input, new)] if new.height else []
        for segment in table.segments:
            if SPAN not in segment.memo:
                spans = self._spans(state, input, segment.frame)
                segment.memo[SPAN] = spans if isinstance(spans, int) else spans.max()
            found.append(segment.memo[SPAN])
        return max(
            (each if isinstance(each, int) else int(each.to_numpy().max()) for each in found), default=None
        )

    def _meeting(self, state: State, tables: Sequence[Table], new: Sequence[pl.DataFrame]) -> Meeting | None:
        """The rows that may be in a group with a new one; None if there can be no group."""
        if not any(rows.height for rows in new):
            return None
        if not all(rows.height or table.segments for rows, table in zip(new, tables, strict=True)):
            return None
        members, windows = {}, []
        for input, clock in enumerate(self.clocks):
            known = tables[input].read()
            parts = [rows for rows in (known, new[input]) if rows is not None and rows.height]
            if not parts:
                return None
            count = 0 if known is None else known.height
            frame = one_frame(parts)
            member, spans = Member.of(frame, clock, known=count), self._spans(state, input, frame)
            if not isinstance(spans, int):
                own = spans.to_numpy()
                member, spans = replace(member, spans=own), int(own.max())
            members[input] = member
            windows.append(spans)
        return Meeting(self.condition, windows, members)

    def _names(self, pair: tuple[int, int]) -> tuple[str, str]:
        """The marks under which the selectivity of two inputs is remembered."""
        return mark_names(*(self.aliases[input] for input in pair))

    def _measured(self, state: State, meeting: Meeting) -> State:
        """The state with what is remembered of selectivities; only where somebody chooses by it."""
        if len(self.aliases) < 3 and self.part is None:
            return state
        step = state.marks.get(STEPS, 0)
        for pair in measured_now(step, self.condition, self.part or 0):
            seen = measure(meeting, pair)
            marks = with_measure(state.marks, self._names(pair), seen)
            if self.part is not None:
                names = total_names(*(self.aliases[input] for input in pair))
                marks |= with_total(state.marks, names, seen)
            for name, value in marks.items():
                state = state.with_mark(name, value)
        return state.with_mark(STEPS, step + 1)

    def _found(self, state: State, meeting: Meeting, new: Sequence[int]) -> Iterator[Partials]:
        """All groups with a new row in them, each once."""
        seen = {}
        for pair in self.condition.linked:
            met, agreed = self._names(pair)
            seen[pair] = state.marks.get(met, 0), state.marks.get(agreed, 0)
        chances = selectivities(self.condition, seen)
        counts = [len(meeting.members[input].times) for input in range(len(self.aliases))]
        for input, height in enumerate(new):
            known = [meeting.members[other].known for other in range(input + 1, len(self.aliases))]
            if not height or not all(known):
                continue
            order = [(other, other > input) for other in best_order(input, counts, chances)]
            start = single(meeting, input, np.arange(counts[input] - height, counts[input]))
            yield from grown(meeting, start, order, chunk=self.chunk)

    def _put_out(
        self, meeting: Meeting, groups: Partials, outputs: list[pl.DataFrame], rejected: list[Rejected]
    ) -> None:
        if not len(groups):
            return
        if groups.fails is not None and groups.fails.any():
            bad = groups.take(groups.fails)
            rejected.append(Rejected(self._rows(meeting, bad), self._reasons(meeting, bad)))
            groups = groups.take(~groups.fails)
        if len(groups):
            outputs.append(self._rows(meeting, groups))

    def _rows(self, meeting: Meeting, groups: Partials) -> pl.DataFrame:
        """All columns of the groups' rows, and the time of the latest."""
        columns = [
            (input, name)
            for input in range(len(self.aliases))
            for name in meeting.members[input].frame.columns
            if name not in self.hidden
        ]
        latest = pl.Series(JOIN_TIME, groups.latest).cast(TIME)
        return columns_of(meeting, groups, columns).with_columns(latest)

    def _reasons(self, meeting: Meeting, groups: Partials) -> pl.Series:
        """Why each group is rejected: the first condition that fails, those on one row before the others."""
        reasons = []
        for number, conjunct in enumerate(self.condition.fallible):
            _, found = conjunct.test(columns_of(meeting, groups, conjunct.columns))
            if found is not None:
                reasons.append(found.cast(pl.String).alias(str(number)))
        return pl.DataFrame(reasons).select(pl.coalesce(pl.all())).to_series()

    def _no_groups(self, inputs: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """What comes of no rows; kept, since most steps of most joins may see none."""
        if not self._nothing:
            columns = [
                column
                for input, rows in enumerate(inputs)
                for column in self.named(input, rows.clear()).get_columns()
                if column.name not in self.hidden
            ]
            self._nothing.append(pl.DataFrame([*columns, pl.Series(JOIN_TIME, [], dtype=TIME)]))
        return self._nothing[0]
