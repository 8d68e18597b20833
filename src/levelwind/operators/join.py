"""Join: pairs of rows whose event times are close and for which a condition holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from levelwind.errors import input_error
from levelwind.model import Operator
from levelwind.model.operator import Join
from levelwind.operators.expressions import passing
from levelwind.operators.join_pairs import Side, pairs, times_of
from levelwind.operators.join_predicate import Condition, split_condition
from levelwind.operators.protocol import Kernel, Stepped
from levelwind.operators.rows import BEGINNING, END, ORDER, TIME, Arrived, Rejected, RowType
from levelwind.operators.state import State, Table
from levelwind.operators.timespans import Numbers, microseconds

JOIN_TIME = "join_time"
TABLES = ("left", "right")


def make_join(operator: Operator, inputs: Sequence[RowType]) -> Kernel:
    """The kernel of a join of two inputs, which may be the same port."""
    spec = operator.spec
    assert isinstance(spec, Join)
    aliases = (spec.aliases[0], spec.aliases[1])
    clocks = []
    for alias, rows in zip(aliases, inputs, strict=True):
        if rows.time is None:
            rule = "what a join reads must have an event-time column"
            raise input_error(rule, key=f"operators.{operator.name}.inputs", value=alias)
        clocks.append(f"{alias}.{rows.time}")
    types = [
        {f"{alias}.{name}": kind for name, kind in rows.types.items()}
        for alias, rows in zip(aliases, inputs, strict=True)
    ]
    condition = split_condition(spec.where, types)
    return Joiner(aliases, (clocks[0], clocks[1]), microseconds(spec.within_s), condition)


@dataclass(frozen=True, slots=True)
class _Met:
    """Rows of both inputs that may be pairs, and which of them are: positions on the left and right."""

    left: pl.DataFrame
    right: pl.DataFrame
    at: Iterator[tuple[Numbers, Numbers]]


@dataclass(frozen=True, slots=True)
class Joiner:
    """A join of two inputs.

    A pair is put out in the batch in which the later to arrive of its members arrives: new rows on the
    left meet all rows on the right, and rows known on the left meet the new ones on the right. A row is
    given up once the other input's watermark says that no partner can come.

    A step costs O((new + kept) log kept) and the pairs that agree in time and keys, of which a bounded
    number is looked at together.
    """

    aliases: tuple[str, str]
    clocks: tuple[str, str]
    within_us: int
    condition: Condition
    _nothing: list[pl.DataFrame] = field(default_factory=list, compare=False, repr=False)

    def step(self, state: State, inputs: Sequence[Arrived]) -> Stepped:
        """Takes in rows of both inputs, and puts out the pairs they make."""
        new = [self._wanted(side, arrived.rows) for side, arrived in enumerate(inputs)]
        tables = [state.table(name, clock) for name, clock in zip(TABLES, self.clocks, strict=True)]

        outputs, rejected = [], []
        for met in self._meetings(tables, new):
            for good, bad in self._agreed(met):
                outputs += [good] if good.height else []
                rejected += [] if bad is None else [bad]
        for side, name in enumerate(TABLES):
            table = self._kept(tables[side], new[side], inputs[1 - side].watermark, self.clocks[side])
            if table is not tables[side]:
                state = state.with_table(name, table)
        if not outputs:
            outputs = [self._no_pairs(*(arrived.rows for arrived in inputs))]
        return Stepped({None: pl.concat(outputs)}, state, tuple(rejected))

    def _named(self, side: int, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with their columns behind the input's alias, without the hidden order."""
        return rows.select(
            pl.col(name).alias(f"{self.aliases[side]}.{name}") for name in rows.columns if name != ORDER
        )

    def _no_pairs(self, left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
        """What comes of no rows; kept, since most steps of most joins may see none."""
        if not self._nothing:
            sides = [self._named(side, rows.clear()) for side, rows in enumerate((left, right))]
            self._nothing.append(self._with_time(sides[0].hstack(sides[1])))
        return self._nothing[0]

    def _wanted(self, side: int, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows that can be in a pair: a row without a time is close to none."""
        if rows.is_empty():
            return rows
        rows = self._named(side, rows)
        if rows.get_column(self.clocks[side]).null_count():
            rows = rows.filter(pl.col(self.clocks[side]).is_not_null())
        return self.condition.wanted(side, rows)

    def _meetings(self, tables: Sequence[Table], new: Sequence[pl.DataFrame]) -> Iterator[_Met]:
        """Every two rows of which at least one is new, once."""
        known = [
            table.read() if table.segments and new[1 - side].height else None
            for side, table in enumerate(tables)
        ]
        left, right = new
        if left.height and (right.height or known[1] is not None):
            others = right
            if known[1] is not None:
                others = known[1] if right.is_empty() else pl.concat([known[1], right], how="diagonal")
            found = pairs(self._side(0, left), self._side(1, others), self.within_us)
            yield _Met(left, others, found)
        if right.height and known[0] is not None:
            found = pairs(self._side(1, right), self._side(0, known[0]), self.within_us)
            yield _Met(known[0], right, ((there, here) for here, there in found))

    def _side(self, side: int, rows: pl.DataFrame) -> Side:
        return Side(times_of(rows, self.clocks[side]), self.condition.keys_of(side, rows))

    def _agreed(self, met: _Met) -> Iterator[tuple[pl.DataFrame, Rejected | None]]:
        """The pairs for which the whole condition holds, and those on which it failed."""
        condition = self.condition
        asked = condition.reads or self.clocks[:1]  # a frame without columns has no height
        for left, right in met.at:
            if condition.rest is None:
                yield self._with_time(_side_by_side(met, left, right)), None
                continue
            # Only what the condition reads is gathered for all pairs, the rest for those that pass.
            mask, reasons = passing(condition.rest, _side_by_side(met, left, right, asked))
            kept = mask.to_numpy()
            good = self._with_time(_side_by_side(met, left[kept], right[kept]))
            bad = None
            if reasons is not None and reasons.null_count() < len(reasons):
                failed = reasons.is_not_null().to_numpy()
                bad = Rejected(
                    self._with_time(_side_by_side(met, left[failed], right[failed])), reasons.drop_nulls()
                )
            yield good, bad

    def _with_time(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The pairs with the time of their later member."""
        later = pl.max_horizontal(self.clocks).cast(TIME)
        return rows.with_columns(later.alias(JOIN_TIME))

    def _kept(self, table: Table, new: pl.DataFrame, watermark: int, clock: str) -> Table:
        """The table with new rows, without those that the other input has no partner for any more."""
        if watermark == END:
            # Nothing is open in a join. A later run may go on from here, and find partners for what is kept.
            return table.append(new)
        bound = max(watermark - self.within_us, BEGINNING)
        if new.height and bound > BEGINNING:
            new = new.filter(pl.col(clock).to_physical() >= bound)
        return table.append(new).evict(bound).compact()


def _side_by_side(
    met: _Met, left: Numbers, right: Numbers, columns: Sequence[str] | None = None
) -> pl.DataFrame:
    """The pairs' columns, all of them or some."""
    gathered = [
        frame.get_column(name).gather(at)
        for frame, at in ((met.left, left), (met.right, right))
        for name in frame.columns
        if columns is None or name in columns
    ]
    return pl.DataFrame(gathered)
