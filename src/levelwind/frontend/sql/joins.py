"""Tables that are joined: rows that cannot take part are filtered out first, then table after table comes in.

A join's own rule is on the event times of its two inputs, within a bound of each other. What a query says
of times is brought to that form: a column is known to lie so far from its row's event time at least and at
most (`Near`), so a bound between two columns gives one between the event times. What the join's rule does
not say already is asked of its pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from levelwind.frontend.expressions import Fault
from levelwind.frontend.output_rows import JOIN_TIME
from levelwind.frontend.rows import NOTHING_KNOWN, Rows, check_scalar
from levelwind.frontend.sql.builder import Builder
from levelwind.frontend.sql.conditions import bounds, owners, together
from levelwind.frontend.sql.naming import inside, unused
from levelwind.frontend.sql.parsing import to_text
from levelwind.frontend.sql.relations import OWN, Base, Near, Table
from levelwind.model import Column, Join

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


def read_tables(
    tables: Sequence[Table], conditions: Sequence[Expr], prefix: str, builder: Builder, *, complete: bool
) -> Base:
    """The rows of all tables for which all conditions hold.

    Parameters
    ----------
    complete
        Whether these are all conditions: where some could not be understood, none is found missing.
    """
    left = _filtered(tables, 0, conditions, prefix, builder)
    alias = tables[0].alias
    for number in range(1, len(tables)):
        right = _filtered(tables, number, conditions, prefix, builder)
        asked = [each for each in conditions if _asked_at(each, len(tables)) == number]
        role = "join" if number == len(tables) - 1 else f"join_{tables[number].alias}"
        aliases = (alias, unused(tables[number].alias, (alias,)))
        joining = _Joining(left, right, aliases, builder)
        left = joining.join(asked, str(number), inside(prefix, role), complete=complete)
        alias = f"{alias}_{tables[number].alias}"
    late = [condition for condition in conditions if OWN in owners(condition)]
    return builder.filter(left, together(late), prefix, "where") if late else left


def _asked_at(condition: Expr, tables: int) -> int | None:
    """The number of the table whose join asks a condition: the last that it is about.

    None if it is about one table, or about the time of the last join. What is about no table is asked at
    the end.
    """
    read = owners(condition)
    if OWN in read or len(read) == 1:
        return None
    return max((int(owner) for owner in read), default=tables - 1)


def _filtered(
    tables: Sequence[Table], number: int, conditions: Sequence[Expr], prefix: str, builder: Builder
) -> Base:
    """The rows of one table for which the conditions hold that are about it alone."""
    relation = tables[number].relation
    base = Base(relation.port, relation.rows, {str(number): ""}, relation.near)
    alone = len(tables) == 1
    own = [each for each in conditions if alone or owners(each) == {str(number)}]
    if not own:
        return base
    return builder.filter(
        base, together(own), prefix if alone else inside(prefix, tables[number].alias), "where"
    )


class _Joining:
    """One join of two inputs."""

    def __init__(self, left: Base, right: Base, aliases: tuple[str, str], builder: Builder) -> None:
        self.sides = (left, right)
        self.aliases = aliases
        self.builder = builder
        # The most by which the left's event time may be after the right's, and the other way round.
        self.most: list[int | None] = [None, None]

    def join(self, conditions: Sequence[Expr], right: str, name: str, *, complete: bool) -> Base:
        rows, places = self._rows(), self._places()
        base = Base(self.sides[0].port, rows, places, {})
        for side in self.sides:
            if side.rows.schema is not None and side.rows.time is None:
                rule = "what a join reads must have an event-time column"
                self.builder.fault(Fault(rule, str(side.port), "state 'time' for the stream"))
        told = [(condition, self._told(condition, right)) for condition in conditions]
        within = self._within(complete=complete)
        rest = [
            condition for condition, exact in told if exact is None or any(limit < within for limit in exact)
        ]
        where = to_text(base.placed(together(rest))) if rest else None
        if where is not None:
            reads = Rows(rows.schema[:-1]) if rows.schema else NOTHING_KNOWN
            check_scalar(where, reads, self.builder.path, self.builder.sketch.report, boolean=True)
        spec = Join(aliases=self.aliases, within_s=within / 1e6, where=where)
        port = self.builder.add(name, spec, [side.port for side in self.sides], rows)
        return Base(port, rows, places, self._near())

    def _told(self, condition: Expr, right: str) -> list[int] | None:
        """Takes what a condition says of the times; returns its bounds if it says exactly that."""
        limits, exact = [], True
        for bound in bounds(condition):
            later = int(bound.later.args["table"].name == right)
            if later == int(bound.earlier.args["table"].name == right):
                return None
            nearest = [self._near_of(bound.later, later), self._near_of(bound.earlier, 1 - later)]
            if nearest[0] is None or nearest[1] is None:
                return None
            limit = nearest[0][1] + bound.most_us - nearest[1][0]
            exact = exact and all(near is not None and near[0] == near[1] for near in nearest)
            known = self.most[later]
            self.most[later] = limit if known is None else min(known, limit)
            limits.append(limit)
        return limits if limits and exact else None

    def _near_of(self, column: Expr, side: int) -> tuple[int, int] | None:
        """How far a column is from its side's event time; one whose columns are not known is believed."""
        base = self.sides[side]
        return (0, 0) if base.rows.schema is None else base.near.get(base.name(column))

    def _within(self, *, complete: bool) -> int:
        """The bound of the join, in microseconds."""
        if self.most[0] is not None and self.most[1] is not None:
            if self.most[0] + self.most[1] >= 0:
                return max(self.most[0], self.most[1])
            rule = "the bounds on the time between a join's rows must leave room for some"
            self.builder.fault(Fault(rule, " and ".join(self.aliases)))
            return 0
        if not complete:
            return 0
        times = [base.rows.time or "time" for base in self.sides]
        a, b = (f"{alias}.{time}" for alias, time in zip(self.aliases, times, strict=True))
        rule = "a join must bound the time between its rows from both sides"
        hint = f"add to ON: {a} BETWEEN {b} - INTERVAL 1 MINUTE AND {b} + INTERVAL 1 MINUTE"
        self.builder.fault(Fault(rule, " and ".join(self.aliases), hint))
        return 0

    def _rows(self) -> Rows:
        if any(side.rows.schema is None for side in self.sides):
            return Rows(None, JOIN_TIME)
        found = [
            Column(name=f"{alias}.{column.name}", type=column.type)
            for alias, side in zip(self.aliases, self.sides, strict=True)
            for column in side.rows.schema or ()
        ]
        return Rows((*found, Column(name=JOIN_TIME, type="timestamp")), JOIN_TIME)

    def _places(self) -> dict[str, str]:
        behind = {
            owner: f"{alias}.{place}"
            for alias, side in zip(self.aliases, self.sides, strict=True)
            for owner, place in side.places.items()
            if owner != OWN
        }
        return {**behind, OWN: ""}

    def _near(self) -> Near:
        """The join's time is the later of its inputs': at most so much after each as the other may be."""
        found = {JOIN_TIME: (0, 0)}
        for number, (alias, side) in enumerate(zip(self.aliases, self.sides, strict=True)):
            after = max(0, self.most[1 - number] or 0)
            for column, (least, most) in side.near.items():
                found[f"{alias}.{column}"] = (least, most + after)
        return found
