"""Compiled expressions at work: a frame in, a value per row and the reasons of failed rows out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from levelwind.errors import InputError, Problem
from levelwind.frontend.columntypes import UNKNOWN
from levelwind.frontend.expressions import clip, node_parts, parse_expression
from levelwind.operators.expressions.builder import Builder, types_in
from levelwind.operators.expressions.parts import Part, refuse
from levelwind.operators.expressions.rules import RULES
from levelwind.operators.expressions.shortcuts import Shortcut, shortcut
from levelwind.operators.expressions.sparktypes import dtype_of

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Result = tuple[pl.Series, pl.Series | None]
_VALUE = "value"


@dataclass(frozen=True, slots=True)
class _Program:
    """What is asked of Polars for one frame.

    ``stages`` put long parts in columns of their own. ``screened`` is the value and what else is null if
    a row fails; only if one of them has a null, ``failed`` is asked, and only if it has a true, ``reason``.
    """

    type: str
    columns: tuple[str, ...]
    stages: tuple[tuple[pl.Expr, ...], ...]
    screened: tuple[pl.Expr, ...]
    failed: pl.Expr | None
    reason: pl.Expr | None
    shortcut: Shortcut | None

    @classmethod
    def of(cls, tree: Expr, part: Part, builder: Builder) -> _Program:
        screens = [*part.hidden, part.value] if part.checks else []
        failed = reason = None
        if part.checks:
            failed = pl.any_horizontal([check.failed for check in part.checks])
            reasons = [pl.when(check.failed).then(check.reason) for check in part.checks]
            reason = pl.coalesce(reasons) if len(reasons) > 1 else reasons[0]
        return cls(
            type=part.type,
            columns=tuple(builder.columns),
            stages=tuple(map(tuple, builder.stages)),
            screened=(
                part.value.alias(_VALUE),
                *(screen.alias(f"{_VALUE}{at}") for at, screen in enumerate(screens[:-1])),
            ),
            failed=failed,
            reason=reason,
            shortcut=shortcut(tree, builder),
        )

    def run(self, rows: pl.DataFrame) -> Result:
        height = rows.height
        if self.shortcut is not None:
            return self.shortcut(rows), None
        if height == 0 and (dtype := dtype_of(self.type)) is not None:
            return pl.Series(_VALUE, [], dtype=dtype), None
        for stage in self.stages:
            rows = rows.with_columns(_evaluated(stage, rows))
        columns = _evaluated(self.screened, rows)
        values = columns[0]
        if self.failed is None or not any(column.null_count() for column in columns):
            return values, None
        assert self.reason is not None
        if not rows.select_seq(self.failed).to_series().any():
            return values, None
        (reasons,) = _evaluated((self.reason,), rows)
        if values.null_count() < height:
            values = values.zip_with(reasons.is_null(), pl.Series([None], dtype=values.dtype))
        return values, reasons


def _evaluated(expressions: Sequence[pl.Expr], rows: pl.DataFrame) -> list[pl.Series]:
    """The values of some expressions, constants repeated for every row."""
    try:
        columns = rows.select_seq(expressions).get_columns()
    except (pl.exceptions.InvalidOperationError, pl.exceptions.ShapeError):
        # Polars found one of them to be constant which does not look so, such as a branch never taken.
        columns = [rows.select_seq(expression).to_series() for expression in expressions]
    height = rows.height
    return [column if len(column) == height else _repeated(column, height) for column in columns]


def _repeated(values: pl.Series, height: int) -> pl.Series:
    return values.new_from_index(0, height) if height else values.clear()


@dataclass(frozen=True, slots=True)
class Scalar:
    """An expression that gives one value per row.

    Called with a frame, it returns the values, and the reasons why rows failed: null where a row is
    sound, None if all are. The value of a failed row is null.

    ``type`` is the Spark type of the values, or ``unknown`` if a column's type is only known from the
    frame; ``columns`` are the names of the columns it reads.
    """

    text: str
    type: str
    columns: tuple[str, ...]
    _program: _Program | None
    _compile: Callable[[Mapping[str, str]], _Program] = field(repr=False, compare=False)
    _programs: dict[tuple[str, ...], _Program] = field(default_factory=dict, repr=False, compare=False)

    def __call__(self, rows: pl.DataFrame) -> Result:
        """The values for the rows of a frame, and the reasons of those that failed."""
        if self._program is not None:
            return self._program.run(rows)
        return self._for(rows).run(rows)

    def _for(self, rows: pl.DataFrame) -> _Program:
        """The program for the types that the columns have in this frame."""
        types = types_in(rows)
        key = tuple(types.get(name, UNKNOWN) for name in self.columns)
        program = self._programs.get(key)
        if program is None:
            program = self._programs.setdefault(key, self._compile(types))
        return program


def compile_scalar(text: str, types: Mapping[str, str]) -> Scalar:
    """Compile a Spark SQL expression.

    Parameters
    ----------
    types
        Spark type by column name; may be ``unknown``.

    Raises
    ------
    InputError
        If Spark would refuse the expression for these types, or its result cannot be computed exactly.
    """
    parsed = parse_expression(text)
    if parsed.tree is None:
        raise InputError([Problem(rule=f.rule, value=f.value, hint=f.hint) for f in parsed.faults])
    return compile_tree(parsed.tree, types)


def compile_tree(tree: Expr, types: Mapping[str, str]) -> Scalar:
    """Compile a tree from `parse_expression`, which is left as it is."""
    text = tree.sql(dialect="spark")
    known = {name: kind for name, kind in types.items() if kind != UNKNOWN}

    def compile_for(found: Mapping[str, str]) -> _Program:
        builder = Builder({**found, **known}, RULES)
        try:
            part = builder.part(tree)
        except RecursionError:
            refuse("must not nest this deep", clip(text))
        return _Program.of(tree, part, builder)

    read = _columns(tree)
    if all(_owner(parts, known) is not None for parts in read):
        program = compile_for({})
        return Scalar(text, program.type, program.columns, program, compile_for)
    names = dict.fromkeys(_owner(parts, types) or ".".join(parts) for parts in read)
    return Scalar(text, UNKNOWN, tuple(names), None, compile_for)


def _columns(tree: Expr) -> list[list[str]]:
    """The parts of every column's name in a tree."""
    found: list[list[str]] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        if type(node).__name__ in ("Column", "Dot"):
            found.append([part.name for part in node_parts(node)])
        elif type(node).__name__ != "DataType":
            stack += reversed(list(node.iter_expressions()))
    return found


def _owner(parts: Sequence[str], types: Mapping[str, str]) -> str | None:
    """The column that a name stands for: itself, or a struct of which it is a field."""
    for cut in range(len(parts), 0, -1):
        name = ".".join(parts[:cut])
        if name in types:
            return name
    return None


def passing(scalar: Scalar, rows: pl.DataFrame) -> Result:
    """The rows for which a condition holds, and the reasons of failed rows; NULL counts as false."""
    values, reasons = scalar(rows)
    if values.dtype != pl.Boolean:
        if values.dtype == pl.Null:
            return pl.Series(_VALUE, [False], dtype=pl.Boolean).new_from_index(0, rows.height), reasons
        refuse("a condition must be a boolean", scalar.text)
    return (values.fill_null(False) if values.null_count() else values), reasons


__all__ = ["Scalar", "compile_scalar", "compile_tree", "passing"]
