"""What a FROM brings in: tables, their columns by name, and which of them tell the event time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from levelwind.frontend.columntypes import UNKNOWN
from levelwind.frontend.expressions import Fault, node_parts
from levelwind.frontend.output_rows import JOIN_TIME, WINDOW_COLUMNS
from levelwind.frontend.rows import NOTHING_KNOWN, Rows
from levelwind.frontend.sql.parsing import column_node
from levelwind.model import Port

if TYPE_CHECKING:
    from sqlglot.expressions import Column, Expr

# For columns that follow the event time: the least and the most of (event time - column), in microseconds.
Near = Mapping[str, tuple[int, int]]
START, END, TIME = WINDOW_COLUMNS
# The owner of columns that belong to no table: a join's own time, what a grouping puts out.
OWN = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows that can be read: where they come out, their columns, and the names they go by.

    ``names`` maps what a query may call a column to what the column is called, in order; None if the
    columns are not known. The time column can be read even if it has no name here.
    """

    port: Port
    rows: Rows
    names: Mapping[str, str] | None
    near: Near = field(default_factory=dict)

    def column(self, name: str) -> str | None:
        """The column that a name stands for, in whatever case, as in Spark."""
        named = self.names or {}
        if name in named:
            return named[name]
        time = {self.rows.time: self.rows.time} if self.rows.time else {}
        return next((col for known, col in {**time, **named}.items() if known.lower() == name.lower()), None)

    def field(self, parts: Sequence[str]) -> str | None:
        """The column, or the field inside a column, that the parts of a name stand for."""
        if self.names is None:
            return ".".join(parts)
        for cut in range(len(parts), 0, -1):
            column = self.column(".".join(parts[:cut]))
            if column is None:
                continue
            kind = self.rows.types.get(column, UNKNOWN)
            if cut == len(parts) or kind == UNKNOWN or kind.startswith("struct<"):
                return ".".join((column, *parts[cut:]))
        return None


def window_near(size_s: float) -> Near:
    """How far a window's columns are from its time, which is its end less a microsecond."""
    size = round(size_s * 1e6)
    return {TIME: (0, 0), END: (-1, -1), START: (size - 1, size - 1)}


# Stands for a table that could not be found: everything may be read from it.
BROKEN = Relation(Port(source=""), NOTHING_KNOWN, None)


@dataclass(frozen=True, slots=True)
class Table:
    """A relation in FROM, and what it is called there; ``full`` is its name without an alias."""

    alias: str
    full: str
    relation: Relation


@dataclass(frozen=True, slots=True)
class Scope:
    """The tables of one SELECT. A column is found as (number of its table, column)."""

    tables: tuple[Table, ...]

    def find(self, parts: Sequence[str]) -> Column | list[str]:
        """The column that a name stands for; if it is not exactly one, the names that would tell."""
        found: list[tuple[str, str]] = []
        guessed: list[tuple[str, str]] = []
        for owner, table in self._named(parts):
            column = table.relation.field(parts[1 if _same(parts[0], table.alias) else 2 :])
            if column is not None:
                return canonical(owner, column)
        for number, table in enumerate(self.tables):
            column = table.relation.field(parts)
            if column is not None:
                (guessed if table.relation.names is None else found).append((str(number), column))
        if not found and not any(self._named(parts)):
            found = guessed
        if len(found) == 1:
            return canonical(*found[0])
        if not found and len(self.tables) > 1 and len(parts) == 1 and _same(parts[0], JOIN_TIME):
            return canonical(OWN, JOIN_TIME)
        return [f"{self.tables[int(owner)].alias}.{column}" for owner, column in found]

    def _named(self, parts: Sequence[str]) -> Iterator[tuple[str, Table]]:
        """The tables that a name says it belongs to."""
        for number, table in enumerate(self.tables):
            by_alias = len(parts) > 1 and _same(parts[0], table.alias)
            if by_alias or (len(parts) > 2 and ".".join(parts[:2]) == table.full):
                yield str(number), table

    def unknown(self, parts: Sequence[str]) -> tuple[str, list[str]]:
        """For a name that was not found: the part that is to blame, and the columns it might have been."""
        named = [table for _, table in self._named(parts)]
        known = {name for table in named or self.tables for name in table.relation.names or ()}
        return ".".join(parts[1:] if named else parts), sorted(known)


def _same(one: str, other: str) -> bool:
    return one.lower() == other.lower()


def canonical(owner: str, column: str) -> Column:
    """A column that has been found, written so that equal columns are equal nodes."""
    from sqlglot import expressions as exp

    return exp.Column(
        this=exp.Identifier(this=column, quoted=True), table=exp.Identifier(this=owner, quoted=True)
    )


def name_parts(node: Expr) -> list[str] | None:
    """The parts of a column's name; None if the node is something else."""
    from sqlglot import expressions as exp

    if not isinstance(node, exp.Column | exp.Dot):
        return None
    parts = node_parts(node)
    plain = all(isinstance(part, exp.Identifier) for part in parts)
    return [part.name for part in parts] if plain else None


def ambiguous(parts: Sequence[str], ways: Sequence[str]) -> Fault:
    """The fault of a name that several tables know."""
    return Fault("a column must belong to one table", ".".join(parts), f"write {' or '.join(ways)}")


@dataclass(frozen=True, slots=True)
class Base:
    """Rows that a SELECT is computed from, and what found columns are called in them.

    ``places`` has, for each owner of columns, what stands before their names: after a join the alias.
    """

    port: Port
    rows: Rows
    places: Mapping[str, str]
    near: Near

    def name(self, column: Expr) -> str:
        """What a found column is called here."""
        return self.places[column.args["table"].name] + column.name

    def placed(self, tree: Expr) -> Expr:
        """A tree of found columns in terms of these rows."""
        return tree.copy().transform(lambda node: column_node(self.name(node)) if is_found(node) else node)


def is_found(node: Expr) -> bool:
    """Whether a node is a column that has been found."""
    from sqlglot import expressions as exp

    return isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier)
