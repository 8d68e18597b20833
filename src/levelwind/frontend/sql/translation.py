"""From the tree of a query to operators: SELECT by SELECT, from the inside out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from levelwind.frontend.draft import Draft, Sketch
from levelwind.frontend.expressions import Fault, clip, column_name
from levelwind.frontend.sql.builder import Builder
from levelwind.frontend.sql.naming import inside
from levelwind.frontend.sql.refusals import not_a_table
from levelwind.frontend.sql.relations import BROKEN, OWN, Base, Relation, Table, canonical
from levelwind.frontend.sql.selects import Select
from levelwind.frontend.sql.unions import unite
from levelwind.model import Filter

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


def translate(draft: Draft, tree: Expr, sketch: Sketch) -> list[Draft]:
    """The operators of a query, the last of which has its name; every problem is noted on the way.

    Parameters
    ----------
    draft
        What stands for the query until now.
    tree
        The query as `parse_query` gives it, without or with faults.
    """
    builder = Builder(draft.name, draft.path, sketch)
    relation = _Translation(builder).query(tree, draft.name, {})
    if not builder.drafts or builder.drafts[-1].name != draft.name:
        # Nothing changes the rows, or somebody else reads them too: the query still has its operator.
        relation = _pass_on(relation, draft.name, builder)
    sketch.near[draft.name] = relation.near
    return builder.drafts


def _pass_on(relation: Relation, name: str, builder: Builder) -> Relation:
    base = Base(relation.port, relation.rows, {OWN: ""}, relation.near)
    before = len(builder.drafts)
    if relation.names is None:
        port = builder.add(name, Filter(where="true"), [relation.port], relation.rows)
        return builder.name_last(replace(relation, port=port), name, before)
    select = {known: canonical(OWN, column) for known, column in relation.names.items()}
    base = builder.map(base, select, name, "select")
    return builder.name_last(_relation(base), name, before)


def _relation(base: Base) -> Relation:
    """Rows under the names of their columns."""
    schema = base.rows.schema
    names = None if schema is None else {column.name: column.name for column in schema}
    return Relation(base.port, base.rows, names, base.near)


@dataclass(slots=True)
class _Common:
    """A common table expression: translated when it is first read, and once for all who read it."""

    tree: Expr
    prefix: str
    around: Mapping[str, _Common]
    relation: Relation | None = field(default=None)


Around = Mapping[str, _Common]


class _Translation:
    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def query(self, tree: Expr, prefix: str, around: Around, names: Sequence[str] | None = None) -> Relation:
        """The rows of a SELECT, of several united, or of one in brackets.

        Parameters
        ----------
        names
            What the columns are to be called, if the SELECT's own names do not count.
        """
        from sqlglot import expressions as exp

        before = len(self.builder.drafts)
        outer, common = around, tree.args.get("with_")
        if common is not None:
            around = self._with(common, prefix, around)
        if isinstance(tree, exp.Subquery):
            relation = self.query(tree.this, prefix, around, names)
        elif isinstance(tree, exp.SetOperation):
            relation = self._union(tree, prefix, around)
        elif isinstance(tree, exp.Select):
            relation = self._select(tree, prefix, around, names)
        else:
            return BROKEN
        if common is not None:
            self._check_unread(around, outer)
        return self.builder.name_last(relation, prefix, before)

    def _union(self, tree: Expr, prefix: str, around: Around) -> Relation:
        relations: list[Relation] = []
        for number, part in enumerate(_united(tree), start=1):
            first = relations[0].names if relations else None
            names = None if first is None else list(first)
            relations.append(self.query(part, inside(prefix, str(number)), around, names))
        return unite(relations, prefix, self.builder)

    def _with(self, node: Expr, prefix: str, around: Around) -> Around:
        found = dict(around)
        for common in node.expressions:
            # Each sees those before it.
            found[common.alias.lower()] = _Common(common.this, inside(prefix, common.alias), dict(found))
        return found

    def _check_unread(self, around: Around, outer: Around) -> None:
        """What is wrong with a common table expression is told even if nobody reads it."""
        for name, common in around.items():
            if common.relation is None and outer.get(name) is not common:
                made = len(self.builder.drafts)
                self.query(common.tree, common.prefix, common.around)
                del self.builder.drafts[made:]

    def _table(self, node: Expr, prefix: str, around: Around) -> Table:
        """One table of a FROM or JOIN."""
        from sqlglot import expressions as exp

        if isinstance(node, exp.Subquery):
            alias = node.alias or "from"
            return Table(alias, alias, self.query(node, inside(prefix, alias), around))
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            self.builder.fault(not_a_table(node))
            return Table(node.alias_or_name or "from", "", BROKEN)
        text = column_name(node)
        common = around.get(text.lower())
        if common is None:
            return Table(node.alias or node.name, text, self.builder.read(text))
        if common.relation is None:
            common.relation = self.query(common.tree, common.prefix, common.around)
        return Table(node.alias or node.name, text, common.relation)

    def _select(self, tree: Expr, prefix: str, around: Around, names: Sequence[str] | None) -> Relation:
        start = tree.args.get("from_")
        if start is None:
            rule, hint = "a query must read a stream or operator", "add FROM …"
            self.builder.fault(Fault(rule, clip(tree.sql(dialect="spark")), hint))
            return BROKEN
        joins = tree.args.get("joins") or ()
        tables = [self._table(node, prefix, around) for node in (start.this, *(join.this for join in joins))]
        self._check_aliases(tables)
        return Select(tree, tuple(tables), prefix, self.builder, names).relation()

    def _check_aliases(self, tables: Sequence[Table]) -> None:
        seen: set[str] = set()
        for table in tables:
            if table.alias.lower() in seen:
                rule, hint = "the tables of a SELECT must have distinct names", f"write {table.full} AS …"
                self.builder.fault(Fault(rule, table.alias, hint))
            seen.add(table.alias.lower())


def _united(tree: Expr) -> Iterator[Expr]:
    """The parts of UNION ALL, in order, those in brackets too."""
    from sqlglot import expressions as exp

    stack = [tree]
    while stack:
        node = stack.pop()
        inner = node
        while isinstance(inner, exp.Subquery) and not inner.args.get("with_"):
            inner = inner.this
        if isinstance(inner, exp.SetOperation) and (inner is tree or not inner.args.get("with_")):
            stack += [inner.expression, inner.this]
        else:
            yield node
