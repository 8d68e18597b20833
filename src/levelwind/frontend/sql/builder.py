"""Collects the operators that a query becomes, each checked as a written one would be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from levelwind.frontend.columntypes import UNKNOWN
from levelwind.frontend.document import KeyPath
from levelwind.frontend.draft import Draft, Sketch
from levelwind.frontend.expressions import Fault, clip, is_aggregate
from levelwind.frontend.graph import find_port
from levelwind.frontend.rows import Rows, check_scalar, columns
from levelwind.frontend.sql.naming import inside, unused
from levelwind.frontend.sql.parsing import to_text
from levelwind.frontend.sql.relations import BROKEN, Base, Relation, Scope, ambiguous, name_parts, window_near
from levelwind.model import Aggregate, Filter, Map, Port, TimeWindow
from levelwind.model.frozen import frozen_mapping
from levelwind.model.operator import Spec

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


class Builder:
    """The operators of one query so far, and how problems of it are told."""

    def __init__(self, query: str, path: KeyPath, sketch: Sketch) -> None:
        self.query = query
        self.path = path
        self.sketch = sketch
        self.drafts: list[Draft] = []
        self._taken: set[str] = {query}
        self._told: set[Fault] = set()

    def fault(self, fault: Fault) -> None:
        """Notes a problem of the query, once."""
        if fault not in self._told:
            self._told.add(fault)
            self.sketch.report.add(self.path, fault.rule, fault.value, fault.hint)

    def read(self, text: str) -> Relation:
        """The rows of a stream, operator, route or query."""
        port = find_port(text, self.path, self.sketch)
        if port is None:
            return BROKEN
        rows = self.sketch.rows_of(port)
        names = None if rows.schema is None else {column.name: column.name for column in rows.schema}
        near = dict(self.sketch.near.get(port.source, {}))
        draft = self.sketch.operators.get(port.source)
        spec = draft.spec if draft is not None else None
        if isinstance(spec, Aggregate) and isinstance(spec.window, TimeWindow) and spec.timeout_s is None:
            near |= window_near(spec.window.size_s)
        if rows.time is not None:
            near[rows.time] = (0, 0)
        return Relation(port, rows, names, near)

    def add(self, name: str, spec: Spec, inputs: Sequence[Port], rows: Rows) -> Port:
        """An operator more; its name is changed if it is taken."""
        name = unused(name, self._taken, ".")
        self._taken.add(name)
        self.drafts.append(Draft(name, spec.kind, self.path, {}, inputs=tuple(inputs), spec=spec, rows=rows))
        self.sketch.read_operators.update(
            port.source for port in inputs if port.source not in self.sketch.streams
        )
        return Port(source=name)

    def name_last(self, relation: Relation, name: str, before: int) -> Relation:
        """Gives a finished part its name, if it ends in an operator that was made for it.

        Parameters
        ----------
        before
            How many operators there were when the part was begun.
        """
        if len(self.drafts) == before or relation.port.source != self.drafts[-1].name:
            return relation
        last = self.drafts[-1]
        if last.name == name:
            return relation
        self._taken.discard(last.name)
        last.name = name if name == self.query else unused(name, self._taken, ".")
        self._taken.add(last.name)
        return replace(relation, port=Port(source=last.name))

    def filter(self, base: Base, condition: Expr, prefix: str, role: str) -> Base:
        """The rows for which a condition holds."""
        where, _ = self.scalar(condition, base, boolean=True)
        port = self.add(inside(prefix, role), Filter(where=where), [base.port], base.rows)
        return replace(base, port=port)

    def map(self, base: Base, select: Mapping[str, Expr], prefix: str, role: str) -> Base:
        """Rows with new columns, the time among them; only what is named goes along."""
        texts, types = {}, {}
        near = {}
        for name, tree in select.items():
            texts[name], types[name] = self.scalar(tree, base)
            plain = name_parts(base.placed(tree))
            if plain is not None and ".".join(plain) in base.near:
                near[name] = base.near[".".join(plain)]
        time = base.rows.time
        if time is not None:
            near[time] = (0, 0)
            types.setdefault(time, "timestamp")
        rows = Rows(None if base.rows.schema is None else columns(types), time)
        port = self.add(inside(prefix, role), Map(select=frozen_mapping(texts)), [base.port], rows)
        return Base(port, rows, {"": ""}, near)

    def scalar(self, tree: Expr, base: Base, *, boolean: bool = False) -> tuple[str, str]:
        """The text of an expression over some rows, and its type."""
        if any(is_aggregate(node) for node in tree.walk()):
            rule = "an aggregate must stand in SELECT or HAVING, and not inside another"
            self.fault(Fault(rule, clip(to_text(base.placed(tree)))))
            return "", UNKNOWN
        text = to_text(base.placed(tree))
        return text, check_scalar(text, base.rows, self.path, self.sketch.report, boolean=boolean)

    def find(self, parts: Sequence[str], scope: Scope) -> Expr | None:
        """The column of a name; None after noting that there is none, or more than one."""
        found = scope.find(parts)
        if not isinstance(found, list):
            return found
        if found:
            self.fault(ambiguous(parts, found))
        else:
            blamed, known = scope.unknown(parts)
            hint = self.sketch.report.suggest(blamed, known)
            self.fault(Fault("a column must exist", ".".join(parts), hint))
        return None
