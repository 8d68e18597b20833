"""A network file on its way to a network: names sorted out, nothing raised yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from levelwind.frontend.document import KeyPath
from levelwind.frontend.report import BAD, Report
from levelwind.frontend.rows import NOTHING_KNOWN, Rows
from levelwind.model import Output, Port, Query, Stream
from levelwind.model.operator import Spec

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Values = dict[str, Any]
# The kind of what stands for a query until its operators are made.
QUERY = "query"


@dataclass(slots=True)
class Draft:
    """One operator, or a query: the values that were read, and what the checks have found out so far.

    ``spec`` is None if the operator is broken; the file is then refused, but what reads the operator is
    still checked for its own mistakes. ``rows`` is what it puts out, ``tree`` the SQL of a query.
    """

    name: str
    kind: str | None
    path: KeyPath
    values: Values
    aliases: tuple[str, ...] = ()
    inputs: tuple[Port, ...] = ()
    routes: tuple[str, ...] = ()
    spec: Spec | None = None
    rows: Rows = NOTHING_KNOWN
    tree: Expr | None = None

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key; the default if it is unstated or was refused."""
        return value_of(self.values, key, default)


@dataclass(slots=True)
class Sketch:
    """All parts of a file. ``all_drafts`` also holds operators whose name is taken or missing.

    ``made`` are the operators that queries became, ``near`` what is known of a query's columns that follow
    its event time: the least and the most of (event time - column), in microseconds.
    """

    report: Report
    streams: dict[str, Stream] = field(default_factory=dict)
    operators: dict[str, Draft] = field(default_factory=dict)
    all_drafts: list[Draft] = field(default_factory=list)
    queries: dict[str, Query] = field(default_factory=dict)
    outputs: dict[str, Output] = field(default_factory=dict)
    made: dict[str, list[Draft]] = field(default_factory=dict)
    near: dict[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    read_streams: set[str] = field(default_factory=set)
    read_operators: set[str] = field(default_factory=set)

    def rows_of(self, port: Port) -> Rows:
        """What is known of the rows at a port."""
        stream = self.streams.get(port.source)
        if stream is not None:
            return Rows(stream.schema, stream.time)
        draft = self.operators.get(port.source)
        return NOTHING_KNOWN if draft is None else draft.rows

    def all_operators(self) -> dict[str, Draft]:
        """The written operators in their order, then those that queries became."""
        drafts = [self.made.get(name, [draft]) for name, draft in self.operators.items()]
        return {draft.name: draft for made in drafts for draft in made}


def value_of(values: Values, key: str, default: Any = None) -> Any:
    """The value of a key; the default if it is unstated or was refused."""
    value = values.get(key, default)
    return default if value is BAD else value
