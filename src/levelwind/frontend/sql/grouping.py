"""GROUP BY: the columns that make groups, the window, what is computed, and what is read from the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from levelwind.frontend.expressions import Fault, clip, is_aggregate
from levelwind.frontend.functions import WINDOW_FUNCTION
from levelwind.frontend.output_rows import WINDOW_COLUMNS
from levelwind.frontend.rows import Rows, check_aggregate, columns
from levelwind.frontend.sql.builder import Builder
from levelwind.frontend.sql.durations import duration_us
from levelwind.frontend.sql.naming import inside, unused
from levelwind.frontend.sql.parsing import to_text
from levelwind.frontend.sql.refusals import WINDOW_HINT
from levelwind.frontend.sql.relations import OWN, Base, canonical, is_found, window_near
from levelwind.model import Aggregate, TimeWindow
from levelwind.model.frozen import frozen_mapping

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

WINDOW_TIME = WINDOW_COLUMNS[-1]
NO_WINDOW = TimeWindow(size_s=1.0, slide_s=1.0)
# What the bare word "window" is found as, before it is known where it stands.
WHOLE_WINDOW = "window"


@dataclass(slots=True)
class Item:
    """One column that a SELECT puts out: its name, and the expression in terms of found columns."""

    name: str
    tree: Expr


def has_aggregate(tree: Expr) -> bool:
    """Whether a tree calls an aggregate function; one with OVER is none."""
    from sqlglot import expressions as exp

    nodes = tree.walk(prune=lambda node: isinstance(node, exp.Window))
    return any(is_aggregate(node) for node in nodes)


def is_window(node: Expr) -> bool:
    """Whether a node is a call of ``window(…)``."""
    from sqlglot import expressions as exp

    return isinstance(node, exp.Anonymous) and node.name.lower() == WINDOW_FUNCTION


class Grouping:
    """One aggregate: begun with its groups, grows by what SELECT and HAVING ask of it."""

    def __init__(self, base: Base, items: Sequence[Item], prefix: str, builder: Builder) -> None:
        self.base = base
        self.items = items
        self.prefix = prefix
        self.builder = builder
        # Trees that make groups, each with the column that holds it.
        self.keys: dict[Expr, str] = {}
        self.compute: dict[str, Expr] = {}
        self.window = NO_WINDOW

    def carry_out(self, groups: Sequence[Expr], having: Expr | None) -> tuple[Base, list[Item]]:
        """The operators of the grouping; what SELECT puts out, read from their rows."""
        self._take_keys(groups, having)
        finished = [replace(item, tree=self._computed(item)) for item in self.items]
        condition = None if having is None else self._having(having, finished)
        if not self.compute:  # groups alone: a window without a row is never put out, so counting will do
            self.compute[unused("n", self._names())] = _count()
        base = self._aggregate()
        if condition is not None:
            base = self.builder.filter(base, condition, self.prefix, "having")
        return base, finished

    def take_window(self, calls: Sequence[Expr], *, complete: bool) -> None:
        """The window, over the event time; that there is none is not held against what is not complete."""
        if not calls and not complete:
            return
        if len(calls) != 1:
            rule = "a query that aggregates must have exactly one window(time, size) in GROUP BY"
            time = self.base.rows.time or "time"
            hint = WINDOW_HINT.replace("time", time) if not calls else "leave all but one out"
            self.builder.fault(Fault(rule, f"{len(calls)} windows" if calls else "no window", hint))
            return
        (call,) = calls
        shown, arguments = clip(to_text(self.base.placed(call))), call.expressions
        if len(arguments) not in (2, 3):
            rule = "a window must be written window(time, size) or window(time, size, slide)"
            self.builder.fault(Fault(rule, shown))
            return
        self._check_time(arguments[0])
        lengths = [duration_us(argument) for argument in arguments[1:]]
        for length, argument in zip(lengths, arguments[1:], strict=True):
            if length is None or length <= 0:
                rule = "a window's size and slide must be durations of a fixed length"
                self.builder.fault(Fault(rule, clip(argument.sql(dialect="spark")), "such as '10 seconds'"))
        size, slide = lengths[0] or 0, lengths[-1] or 0
        if min(size, slide) <= 0:
            return
        if slide > size:
            rule = "slide must not be more than the window's size: rows would be lost"
            self.builder.fault(Fault(rule, shown))
            return
        self.window = TimeWindow(size_s=size / 1e6, slide_s=slide / 1e6)

    def _check_time(self, argument: Expr) -> None:
        rows = self.base.rows
        if rows.schema is None:
            return
        if not is_found(argument) or self.base.near.get(self.base.name(argument)) != (0, 0):
            rule = "a window must be over the event time"
            hint = f"write window({rows.time}, …)" if rows.time else "state 'time' for the stream"
            self.builder.fault(Fault(rule, clip(to_text(self.base.placed(argument))), hint))

    def _take_keys(self, groups: Sequence[Expr], having: Expr | None) -> None:
        """The columns that make groups; what is no column yet, or may not be called so, is mapped first."""
        taken = {column.name for column in self.base.rows.schema or ()} | set(WINDOW_COLUMNS)
        made: dict[str, Expr] = {}
        for tree in dict.fromkeys(groups):
            name = self.base.name(tree) if is_found(tree) else None
            if name is None or name in WINDOW_COLUMNS or not self._is_column(name):
                alias = next((item.name for item in self.items if item.tree == tree), "key")
                name = unused(alias if alias not in taken else "key", taken)
                taken.add(name)
                made[name] = tree
            self.keys[tree] = name
        if not made:
            return
        plain = {name: tree for tree, name in self.keys.items() if name not in made}
        for tree in (*(item.tree for item in self.items), *([] if having is None else [having])):
            for call in _outermost_calls(tree):
                plain.update({self.base.name(node): node for node in call.walk() if is_found(node)})
        mapped = self.builder.map(self.base, {**plain, **made}, self.prefix, "keys")
        self.base = replace(mapped, places=self.base.places)

    def _is_column(self, name: str) -> bool:
        """Whether it is a column, and not a field inside one."""
        return self.base.rows.schema is None or name in self.base.rows.types

    def _names(self) -> set[str]:
        """All names that a computed column must not have."""
        return {*self.keys.values(), *WINDOW_COLUMNS, *self.compute, *(item.name for item in self.items)}

    def _computed(self, item: Item) -> Expr:
        """Has an item computed; returns what reads it from the aggregate's rows."""
        reads_window = any(is_found(node) and node.name in WINDOW_COLUMNS for node in _outside(item.tree))
        free = item.name not in {*self.keys.values(), *WINDOW_COLUMNS, *self.compute}
        if has_aggregate(item.tree) and not reads_window and free:
            self.compute[item.name] = self._grouped(item.tree, lambda call: call)
            return canonical(OWN, item.name)
        return self._grouped(item.tree, self._call)

    def _call(self, call: Expr) -> Expr:
        """Has a single call computed; one that is there already serves again."""
        for name, tree in self.compute.items():
            if tree == call:
                return canonical(OWN, name)
        name = unused(call.sql_name().lower(), self._names())  # type: ignore[attr-defined]
        self.compute[name] = call.copy()
        return canonical(OWN, name)

    def _grouped(self, tree: Expr, on_call: Callable[[Expr], Expr]) -> Expr:
        """A tree in which groups are read from their columns, and calls are what is made of them."""
        from sqlglot import expressions as exp

        inside_calls: set[int] = set()

        def step(node: Expr) -> Expr:
            if id(node) in inside_calls:
                return node
            if node in self.keys:
                return canonical(OWN, self.keys[node])
            if is_aggregate(node):
                inside_calls.update(id(below) for below in node.walk())
                return on_call(node)
            if is_found(node) and node.args["table"].name != OWN:
                name = self.base.name(node)
                rule = "a column outside an aggregate function must be in GROUP BY"
                self.builder.fault(Fault(rule, name, f"put {name} in GROUP BY or use first({name})"))
                return exp.Null()
            if is_found(node) and node.name == WHOLE_WINDOW:
                rule, hint = "a window is read by its ends", "write window.start or window.end"
                self.builder.fault(Fault(rule, WHOLE_WINDOW, hint))
                return exp.Null()
            return node

        return tree.copy().transform(step)

    def _having(self, having: Expr, finished: Sequence[Item]) -> Expr:
        """HAVING in terms of the aggregate's rows; it may read what SELECT computes by its name."""
        by_name = {item.name: item.tree for item in finished}
        tree = having.copy().transform(
            lambda node: by_name[node.name] if is_found(node) and _is_selected(node, by_name) else node
        )
        return self._grouped(tree, self._call)

    def _aggregate(self) -> Base:
        by = tuple(self.keys.values())
        types = self.base.rows.types
        found = {name: types.get(name, "unknown") for name in by}
        texts = {}
        report = self.builder.sketch.report
        for name, tree in self.compute.items():
            own = replace(self.base, places={**self.base.places, OWN: ""})
            texts[name] = to_text(own.placed(tree))
            found[name] = check_aggregate(texts[name], self.base.rows, by, self.builder.path, report)
        known = self.base.rows.schema is not None
        all_types = {**found, **dict.fromkeys(WINDOW_COLUMNS, "timestamp")}
        rows = Rows(columns(all_types) if known else None, WINDOW_TIME)
        spec = Aggregate(window=self.window, compute=frozen_mapping(texts), by=by)
        port = self.builder.add(inside(self.prefix, "window"), spec, [self.base.port], rows)
        return Base(port, rows, {OWN: ""}, window_near(self.window.size_s))


SELECTED = "selected"


def _is_selected(node: Expr, names: dict[str, Expr]) -> bool:
    return node.args["table"].name == SELECTED and node.name in names


def _outermost_calls(tree: Expr) -> list[Expr]:
    return [node for node in tree.walk(prune=is_aggregate) if is_aggregate(node)]


def _outside(tree: Expr) -> list[Expr]:
    """The nodes outside every aggregate."""
    return [node for node in tree.walk(prune=is_aggregate) if not is_aggregate(node)]


def _count() -> Expr:
    from sqlglot import expressions as exp

    return exp.Count(this=exp.Star())
