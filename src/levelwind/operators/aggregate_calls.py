"""Aggregates taken apart: the calls of aggregate functions, and what is computed from their results.

``sum(size) / count(*) + 1`` becomes the calls ``sum(size)`` and ``count(*)``, each with a column to put its
result in, and the expression that is left, which reads those columns. Calls that are written twice are
made once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from levelwind.errors import input_error
from levelwind.frontend.columntypes import INTEGERS
from levelwind.frontend.expressions import clip, is_aggregate, parse_expression
from levelwind.model.frozen import frozen_mapping
from levelwind.operators.expressions import Scalar, compile_tree

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

COUNT, SUM, AVG, MIN, MAX, FIRST, LAST = "count", "sum", "avg", "min", "max", "first", "last"
SPREADS = ("stddev_samp", "stddev_pop", "var_samp", "var_pop")
_DECIMAL = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
# By sqlglot's class of node; it reads var_samp as variance.
_NAMES = {
    "Count": COUNT,
    "Sum": SUM,
    "Avg": AVG,
    "Min": MIN,
    "Max": MAX,
    "First": FIRST,
    "Last": LAST,
    "Stddev": "stddev_samp",
    "StddevSamp": "stddev_samp",
    "StddevPop": "stddev_pop",
    "Variance": "var_samp",
    "VariancePop": "var_pop",
}
_SYNONYMS = {"mean": AVG, "stddev": "stddev_samp", "variance": "var_samp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of an aggregate function.

    Attributes
    ----------
    function
        ``count``, ``sum``, ``avg``, ``min``, ``max``, ``first``, ``last``, ``stddev_samp``, ``stddev_pop``,
        ``var_samp`` or ``var_pop``: every other spelling has become one of these.
    distinct
        Whether equal values count once (``count`` alone has that).
    arguments
        What it is called on; nothing for ``count(*)``, several only for ``count``.
    column
        Where `Computation.arguments` puts the values it is called on; None for ``count(*)``.
    placeholder
        The column that the finals read its result from.
    type
        The Spark type of its result.
    text
        The call in words; different calls have different texts.
    """

    function: str
    distinct: bool
    arguments: tuple[Scalar, ...]
    column: str | None
    placeholder: str
    type: str
    text: str

    @property
    def argument(self) -> Scalar | None:
        """What it is called on, the first if there are several; None for ``count(*)``."""
        return self.arguments[0] if self.arguments else None


@dataclass(frozen=True, slots=True)
class Computation:
    """All that an aggregate computes: the calls, and the output columns in terms of their results."""

    calls: tuple[Call, ...]
    finals: Mapping[str, Scalar]
    # The placeholder behind each output column that is just the result of a call.
    plain: Mapping[str, str] = field(default_factory=frozen_mapping)

    def arguments(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series | None]:
        """The columns that calls are made on, row by row, and why a row has none (see `split_rejected`).

        ``count(a, b)`` looks at the rows in which neither is null: its column is null in the others, and
        holds both values as one where equal ones count once.
        """
        columns: dict[str, pl.Series] = {}
        reasons: list[pl.Series | None] = []
        for call in self.calls:
            if call.column is None or call.column in columns:
                continue
            found = [scalar(rows) for scalar in call.arguments]
            reasons += [failed for _, failed in found]
            columns[call.column] = _counted([values for values, _ in found], distinct=call.distinct)
        made = [values.alias(name) for name, values in columns.items()]
        return pl.DataFrame(height=rows.height).with_columns(made), first_reason(reasons)

    def results(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series | None]:
        """The output columns, from rows with the columns of ``by`` and all placeholders."""
        columns, reasons = [], []
        for name, scalar in self.finals.items():
            values, failed = scalar(rows)
            columns.append(values.alias(name))
            reasons.append(failed)
        return pl.DataFrame(height=rows.height).with_columns(columns), first_reason(reasons)


def first_reason(reasons: Iterable[pl.Series | None]) -> pl.Series | None:
    """The first reason of each row, None if no row has one."""
    found = [reason for reason in reasons if reason is not None and reason.null_count() < len(reason)]
    return pl.select(pl.coalesce(found)).to_series() if found else None


def _counted(values: list[pl.Series], *, distinct: bool) -> pl.Series:
    """The values of one call as one column."""
    if len(values) == 1:
        return values[0]
    whole = pl.struct(*(each.alias(str(i)) for i, each in enumerate(values))) if distinct else pl.lit(True)
    there = pl.all_horizontal(*(each.is_not_null() for each in values))
    return pl.select(pl.when(there).then(whole)).to_series()


def split_compute(compute: Mapping[str, str], types: Mapping[str, str]) -> Computation:
    """Takes the expressions of an aggregate apart.

    Parameters
    ----------
    compute
        Expression by output column.
    types
        Spark type by column of the input.
    """
    splitter = _Splitter(types)
    left = {name: splitter.without_calls(text) for name, text in compute.items()}
    calls = tuple(splitter.calls.values())
    known = {**types, **{call.placeholder: call.type for call in calls}}
    placeholders = {call.placeholder for call in calls}
    return Computation(
        calls,
        frozen_mapping({name: compile_tree(tree, known) for name, tree in left.items()}),
        frozen_mapping({name: tree.name for name, tree in left.items() if tree.name in placeholders}),
    )


@dataclass(slots=True)
class _Splitter:
    """Collects the calls of several expressions."""

    types: Mapping[str, str]
    calls: dict[tuple[str, ...], Call] = field(default_factory=dict)
    columns: dict[tuple[bool, tuple[str, ...]], str] = field(default_factory=dict)

    def without_calls(self, text: str) -> Expr:
        """The expression with a column in the place of each call; the parsed tree stays as it is."""
        from sqlglot import expressions as exp

        parsed = parse_expression(text)
        if parsed.tree is None:
            fault = parsed.faults[0]
            raise input_error(fault.rule, value=fault.value, hint=fault.hint)

        def placed(node: Expr) -> Expr:
            return exp.column(self.call(node).placeholder, quoted=True) if is_aggregate(node) else node

        return parsed.tree.transform(placed)

    def call(self, node: Expr) -> Call:
        """The call at a node, made once for equal ones."""
        function, distinct, arguments = _taken_apart(node)
        texts = tuple(argument.sql(dialect="spark") for argument in arguments)
        known = self.calls.get((function, str(distinct), *texts))
        if known is not None:
            return known
        column = None
        if arguments:
            # Without distinct, all that count asks of several values is whether one is null.
            key = (distinct and len(texts) > 1, texts)
            column = self.columns.setdefault(key, f"__argument_{len(self.columns)}")
        scalars = tuple(compile_tree(argument.copy(), self.types) for argument in arguments)
        call = Call(
            function=function,
            distinct=distinct,
            arguments=scalars,
            column=column,
            placeholder=f"__call_{len(self.calls)}",
            type=_result_type(function, scalars, node),
            text=f"{function}({'distinct ' if distinct else ''}{', '.join(texts) or '*'})",
        )
        self.calls[function, str(distinct), *texts] = call
        return call


def _taken_apart(node: Expr) -> tuple[str, bool, tuple[Expr, ...]]:
    """Function, distinct and arguments of a call."""
    from sqlglot import expressions as exp

    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        return _SYNONYMS.get(name, name), False, tuple(node.expressions)
    function = _NAMES[type(node).__name__]
    if isinstance(node.this, exp.Star):
        return function, False, ()
    if isinstance(node.this, exp.Distinct):
        return function, True, tuple(node.this.expressions)
    return function, False, (node.this, *node.expressions)


def _result_type(function: str, arguments: tuple[Scalar, ...], node: Expr) -> str:
    """The Spark type of a call's result; refuses what the function is not defined on."""
    if function == COUNT:
        return "bigint"
    of = arguments[0].type
    if function in (FIRST, LAST):
        return of
    if function in (MIN, MAX):
        if of.partition("<")[0] in ("array", "map", "struct"):
            raise _refused(node, function, "values that have an order", of)
        return of
    decimal = _DECIMAL.fullmatch(of)
    if decimal is None and of not in (*INTEGERS, "float", "double"):
        raise _refused(node, function, "numbers", of)
    if function in SPREADS:
        return "double"
    if decimal is not None:
        precision, scale = int(decimal[1]), int(decimal[2])
        more, finer = (10, 0) if function == SUM else (4, 4)
        return f"decimal({min(precision + more, 38)},{min(scale + finer, 38)})"
    return "bigint" if function == SUM and of in INTEGERS else "double"


def _refused(node: Expr, function: str, what: str, of: str) -> Exception:
    text = clip(node.sql(dialect="spark").lower())
    return input_error(
        f"{function} must be given {what}", value=f"{text}, which is {of}", hint="cast it first"
    )
