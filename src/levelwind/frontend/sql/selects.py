"""One SELECT whose tables have been translated: its conditions, its columns, its groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from levelwind.frontend.declared import NAME_PATTERN, NAME_RULE
from levelwind.frontend.expressions import Fault, clip, is_aggregate
from levelwind.frontend.output_rows import WINDOW_COLUMNS
from levelwind.frontend.sql.builder import Builder
from levelwind.frontend.sql.conditions import conjuncts
from levelwind.frontend.sql.grouping import SELECTED, WHOLE_WINDOW, Grouping, Item, has_aggregate, is_window
from levelwind.frontend.sql.joins import read_tables
from levelwind.frontend.sql.parsing import to_text
from levelwind.frontend.sql.relations import (
    BROKEN,
    OWN,
    Base,
    Relation,
    Scope,
    Table,
    canonical,
    is_found,
    name_parts,
)

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_NAME = re.compile(NAME_PATTERN)
# Finds a column in a way of its own, or leaves it to the tables.
Special = Callable[["Expr", list[str]], "Expr | None"]


class Select:
    """One SELECT; ``names`` are what its columns are to be called if its own names do not count."""

    def __init__(
        self,
        tree: Expr,
        tables: tuple[Table, ...],
        prefix: str,
        builder: Builder,
        names: Sequence[str] | None,
    ) -> None:
        self.tree = tree
        self.names = names
        self.scope = Scope(tables)
        self.prefix = prefix
        self.builder = builder
        self.sound = True

    def relation(self) -> Relation:
        """The rows that it puts out, and their operators."""
        args = self.tree.args
        having = args["having"].this if args.get("having") else None
        groups = args["group"].expressions if args.get("group") else []
        grouped = bool(groups or having) or any(has_aggregate(item) for item in self.tree.expressions)
        if not self.tree.expressions:
            self._fault(Fault("SELECT must name columns", clip(to_text(self.tree)), "write * for all"))
        conditions = self._conditions()
        base = read_tables(self.scope.tables, conditions, self.prefix, self.builder, complete=self.sound)
        items = self._items(grouped)
        if items is None:  # all columns of a table whose columns are not known
            return Relation(base.port, base.rows, None, base.near)
        if grouped:
            grouping = Grouping(base, items, self.prefix, self.builder)
            resolved = [tree for node in groups if (tree := self._group(node, items)) is not None]
            condition = None if having is None else self._resolve_having(having, items)
            windows = [tree for tree in resolved if is_window(tree)]
            grouping.take_window(windows, complete=len(resolved) == len(groups))
            if not self.sound:
                return BROKEN
            base, items = grouping.carry_out([tree for tree in resolved if not is_window(tree)], condition)
        if self.names is not None and len(self.names) == len(items):
            items = [Item(name, item.tree) for name, item in zip(self.names, items, strict=True)]
        return self._project(base, items) if self.sound else BROKEN

    def _conditions(self) -> list[Expr]:
        """Everything that ON and WHERE ask for."""
        written = [join.args["on"] for join in self.tree.args.get("joins") or () if join.args.get("on")]
        where = self.tree.args.get("where")
        found = []
        for tree in (*written, *([where.this] if where is not None else [])):
            # One by one, so that what is wrong with one does not hide the others.
            parts = conjuncts(tree) if len(self.scope.tables) > 1 else [tree]
            found += [resolved for part in parts if (resolved := self._resolve(part)) is not None]
        return found

    def _resolve(self, tree: Expr, special: Special | None = None) -> Expr | None:
        """A tree whose columns have been found; None if something is wrong with it."""
        from sqlglot import expressions as exp

        if any(isinstance(node, exp.Query | exp.Window) for node in tree.walk()):
            self.sound = False  # refused already
            return None
        sound = True

        def step(node: Expr) -> Expr:
            nonlocal sound
            parts = name_parts(node)
            if parts is None:
                return node
            found = special(node, parts) if special is not None else None
            found = found or self.builder.find(parts, self.scope)
            sound = sound and found is not None
            return found or exp.Null()

        resolved = tree.copy().transform(step)
        self.sound = self.sound and sound
        return resolved if sound else None

    def _items(self, grouped: bool) -> list[Item] | None:
        """What SELECT puts out, ``*`` written out; None if that is not known."""
        found: list[Item] = []
        for node in self.tree.expressions:
            if node.is_star:
                if grouped:
                    rule = "a query that aggregates must name its columns"
                    self._fault(Fault(rule, "*", "write the columns of GROUP BY and the aggregates"))
                    continue
                expanded = self._star(node)
                if expanded is None and len(self.tree.expressions) == len(self.scope.tables) == 1:
                    return None
                if expanded is None:
                    rule = "'*' must be of tables whose columns are known"
                    self._fault(Fault(rule, clip(node.sql(dialect="spark")), "name the columns one by one"))
                found += expanded or []
            else:
                found += self._item(node, grouped)
        if self.names is None:
            self._check_names(found)
        return found

    def _star(self, node: Expr) -> list[Item] | None:
        """All columns of all tables, or of the one that is named."""
        from sqlglot import expressions as exp

        table = node.args["table"].name if isinstance(node, exp.Column) and node.args.get("table") else None
        found: list[Item] = []
        matched = False
        for number, each in enumerate(self.scope.tables):
            if table is not None and table.lower() != each.alias.lower():
                continue
            matched = True
            if each.relation.names is None:
                return None
            found += [
                Item(name, canonical(str(number), column)) for name, column in each.relation.names.items()
            ]
        if not matched:
            known = [each.alias for each in self.scope.tables]
            hint = self.builder.sketch.report.suggest(table or "", known)
            self._fault(Fault("a table must stand in FROM", f"{table}.*", hint))
        return found

    def _item(self, node: Expr, grouped: bool) -> list[Item]:
        from sqlglot import expressions as exp

        inner = node.this if isinstance(node, exp.Alias) else node.unnest()
        if any(is_window(below) for below in inner.walk()):
            self.sound = False  # refused already: window(…) must stand in GROUP BY
            return []
        tree = self._resolve(inner, self._window_column if grouped else None)
        if tree is None:
            return []
        if isinstance(node, exp.Alias):
            if not _NAME.match(node.alias):
                self._fault(Fault(NAME_RULE, node.alias))
            return [Item(node.alias, tree)]
        parts = name_parts(inner)
        if parts is None and self.names is not None:
            return [Item("column", tree)]
        if parts is None:
            shown = clip(to_text(inner))
            self._fault(Fault("a computed column must have a name", shown, f"write {shown} AS …"))
            return []
        if is_found(tree) and tree.args["table"].name == OWN and grouped:
            names = WINDOW_COLUMNS[:2] if tree.name == WHOLE_WINDOW else (tree.name,)
            return [Item(name, canonical(OWN, name)) for name in names]
        return [Item(parts[-1], tree)]

    def _window_column(self, node: Expr, parts: list[str]) -> Expr | None:
        """``window.start`` and such, unless a table or column is called so."""
        words = [part.lower() for part in parts]
        if words[0] != "window" or not isinstance(self.scope.find(parts), list):
            return None
        if _inside_aggregate(node):
            rule = "a window's ends must not stand inside an aggregate: they are the same for all its rows"
            self._fault(Fault(rule, ".".join(parts), "write them outside"))
        if words[1:] in (["start"], ["end"]):
            return canonical(OWN, f"window_{words[1]}")
        return canonical(OWN, WHOLE_WINDOW) if len(words) == 1 else None

    def _check_names(self, items: Sequence[Item]) -> None:
        seen: set[str] = set()
        for item in items:
            if item.name.lower() in seen:
                rule = "the columns of a SELECT must have distinct names"
                self._fault(
                    Fault(rule, item.name, "name the columns one by one, with AS where two are alike")
                )
            seen.add(item.name.lower())

    def _group(self, node: Expr, items: Sequence[Item]) -> Expr | None:
        """One expression of GROUP BY; None if it makes no groups of its own, or something is wrong."""
        tree = self._stands_for(node, items)
        if tree is None:
            return None
        if has_aggregate(tree):
            self._fault(Fault("GROUP BY must not have aggregate functions", clip(to_text(node))))
            return None
        if not is_window(tree) and any(is_window(below) for below in tree.walk()):
            self._fault(Fault("window(…) must stand alone in GROUP BY", clip(to_text(node))))
            return None
        # The window's own columns are the same in all of a group.
        return None if any(_is_of_window(below) for below in tree.walk()) else tree

    def _stands_for(self, node: Expr, items: Sequence[Item]) -> Expr | None:
        """What is grouped by: the expression itself, or the column of SELECT that it names or numbers."""
        from sqlglot import expressions as exp

        if isinstance(node, exp.Literal) and not node.is_string:
            number = int(node.name) if node.name.isdigit() else 0
            if not 1 <= number <= len(items):
                rule = "a number in GROUP BY must be that of a column in SELECT"
                self._fault(Fault(rule, node.name))
                return None
            return items[number - 1].tree
        parts = name_parts(node)
        if parts is not None and len(parts) == 1 and self.scope.find(parts) == []:
            named = [item.tree for item in items if item.name.lower() == parts[0].lower()]
            if named:
                return named[0]
        return self._resolve(node)

    def _resolve_having(self, having: Expr, items: Sequence[Item]) -> Expr | None:
        """HAVING reads what SELECT names first, inside aggregates what FROM brings."""
        names = {item.name.lower(): item.name for item in items}

        def special(node: Expr, parts: list[str]) -> Expr | None:
            if len(parts) == 1 and parts[0].lower() in names and not _inside_aggregate(node):
                return canonical(SELECTED, names[parts[0].lower()])
            return self._window_column(node, parts)

        return self._resolve(having, special)

    def _project(self, base: Base, items: Sequence[Item]) -> Relation:
        """The columns of SELECT, and the time; no operator if that is what the rows are already."""
        time = base.rows.time
        select: dict[str, Expr] = {}
        for item in items:
            name = item.name
            if time is not None and name.lower() == time.lower():
                if not is_found(item.tree) or base.name(item.tree) != time:
                    rule = "the time column goes along under its name; another must not have it"
                    self._fault(Fault(rule, name, "choose another name"))
                    continue
                name = time
            select[name] = item.tree
        schema = base.rows.schema
        have = None if schema is None else {column.name for column in schema}
        same = all(is_found(tree) and base.name(tree) == name for name, tree in select.items())
        if have is None or not same or not {*select, time} >= have:
            base = self.builder.map(base, select, self.prefix, "select")
        return Relation(base.port, base.rows, {name: name for name in select}, base.near)

    def _fault(self, fault: Fault) -> None:
        self.sound = False
        self.builder.fault(fault)


def _is_of_window(node: Expr) -> bool:
    names = (*WINDOW_COLUMNS, WHOLE_WINDOW)
    return is_found(node) and node.args["table"].name == OWN and node.name in names


def _inside_aggregate(node: Expr) -> bool:
    parent = node.parent
    while parent is not None and not is_aggregate(parent):
        parent = parent.parent
    return parent is not None
