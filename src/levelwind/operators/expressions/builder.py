"""From a tree to parts: each kind of node has a rule, and every rule asks for its children's parts here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from levelwind.frontend.columntypes import UNKNOWN
from levelwind.frontend.expressions import clip, column_name, node_parts
from levelwind.operators.expressions.parts import Part, refuse
from levelwind.operators.expressions.sparktypes import VOID, dtype_of, spark_type

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Rule = Callable[["Expr", "Builder"], Part]
# A value whose text is longer than this is put in a column of its own: it is used in several places, and
# there Polars would compute it again each time.
_LONG = 500
# What a number is written with.
_LITERALS = ("Literal", "Neg", "Paren")
_COLUMN = "\x00part{}"


class Builder:
    """Compiles one tree for columns of known types."""

    def __init__(self, types: Mapping[str, str], rules: Mapping[str, Rule]) -> None:
        self.types = types
        self.columns: dict[str, None] = {}
        self.stages: list[list[pl.Expr]] = []
        self._rules = rules
        self._stage_of: dict[str, int] = {}

    def part(self, node: Expr) -> Part:
        """The compiled part of a node."""
        kind = type(node).__name__
        if kind == "Anonymous":
            kind = node.name.lower()
        if kind in ("Column", "Dot"):
            return self._column(node)
        rule = self._rules.get(kind)
        if rule is None:
            message = "must be made of columns, operators and supported functions"
            refuse(message, clip(node.sql(dialect="spark")))
        part = self.settled(rule(node, self))
        if part.is_literal and kind not in _LITERALS:
            part = replace(part, is_literal=False)
        return part

    def settled(self, part: Part) -> Part:
        """The part, computed now if it is constant, and in a column of its own if it is long."""
        if part.is_constant:
            return part
        roots = part.value.meta.root_names()
        if not roots:
            return folded(part)
        if len(str(part.value)) < _LONG:
            return part
        stage = 1 + max(self._stage_of.get(name, -1) for name in roots)
        name = _COLUMN.format(len(self._stage_of))
        while len(self.stages) <= stage:
            self.stages.append([])
        self.stages[stage].append(part.value.alias(name))
        self._stage_of[name] = stage
        return Part(pl.col(name), part.type, part.checks, part.hidden)

    def _column(self, node: Expr) -> Part:
        name = column_name(node)
        if name in self.types:
            return self._read(name, self.types[name])
        # Not a column by itself: the field of a struct.
        parts = [part.name for part in node_parts(node)]
        for cut in range(len(parts) - 1, 0, -1):
            whole = ".".join(parts[:cut])
            if whole in self.types:
                read = self._read(whole, self.types[whole])
                return _field(read, parts[cut:])
        refuse("must be a column of its input", name)

    def _read(self, name: str, kind: str) -> Part:
        self.columns[name] = None
        value = pl.col(name)
        return Part(value, kind)


def _field(part: Part, names: list[str]) -> Part:
    value, kind = part.value, part.type
    for name in names:
        value, kind = value.struct.field(name), field_type(kind, name)
    return Part(value, kind)


def field_type(kind: str, name: str) -> str:
    """The type of a struct's field."""
    if not kind.startswith("struct<"):
        refuse("only a struct has fields", name)
    depth, start, fields = 0, 0, []
    inner = kind[len("struct<") : -1]
    for at, letter in enumerate(inner + ","):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            fields.append(inner[start:at])
            start = at + 1
    for field in fields:
        found, _, of = field.partition(":")
        if found == name:
            return of
    refuse("must be a field of the struct", name)


def constant(value: Any, kind: str) -> Part:
    """A part that is the same for all rows."""
    dtype = dtype_of(kind)
    literal = pl.lit(value) if dtype is None else pl.lit(value, dtype=dtype)
    return Part(literal, kind, is_constant=True, constant=value)


def folded(part: Part) -> Part:
    """A part that reads no column, computed now; one that fails is kept, to fail where it is evaluated."""
    for check in part.checks:
        # A value that is null everywhere may have checks that look at columns.
        if check.failed.meta.root_names() or pl.select(check.failed).item():
            return part
    return constant(pl.select(part.value).item(), part.type)


def null(kind: str = VOID) -> Part:
    """NULL."""
    return constant(None, kind)


def types_in(rows: pl.DataFrame) -> dict[str, str]:
    """Spark types of a frame's columns, for those that are not known before."""
    return {name: spark_type(dtype) for name, dtype in rows.schema.items() if spark_type(dtype) != UNKNOWN}
