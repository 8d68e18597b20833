"""Partial results: what of a pane is kept for an aggregate call, how panes are merged, what comes out.

A call keeps one or more columns, each named ``<call>|<kind>``: the kind alone tells how it is merged, so
that a segment can be merged by anyone who reads it. Merging in any order gives the same whole numbers,
decimals and strings, and floats that differ by rounding only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import polars as pl

from levelwind.operators.aggregate_calls import AVG, COUNT, FIRST, LAST, MAX, MIN, SPREADS, SUM, Call
from levelwind.operators.rows import ORDER

PANE = "__pane"
TIME_OF = "__time"
_COUNT, _SUM, _MIN, _MAX, _NAN_MAX = "count", "sum", "min", "max", "nan_max"
_MEAN, _SQUARES, _SET = "mean", "squares", "set"
_VALUE, _AT, _RANK = "value", "at", "rank"
# Sums of whole numbers are exact up to here; a sum beyond it is an error, as in Spark.
_LARGEST = 2.0**63
_SHADOW = "shadow"


@dataclass(frozen=True, slots=True)
class Kept:
    """The columns a call keeps: how a pane's are computed from rows, and the result from the merged ones.

    ``overflow`` is a condition under which there is no result.
    """

    partial: Mapping[str, pl.Expr]
    result: pl.Expr
    overflow: pl.Expr | None = None


def keep(call: Call, *, ordered: bool) -> Kept:
    """What is kept for a call; ``ordered``: rows have a rank beside their time."""
    name = {kind: f"{call.text}|{kind}" for kind in _KINDS}
    column = pl.col(call.column) if call.column is not None else None
    if call.distinct:
        assert column is not None
        return Kept({name[_SET]: column.drop_nulls().unique()}, pl.col(name[_SET]).list.len().cast(pl.Int64))
    if call.function == COUNT:
        counted = pl.len() if column is None else column.count()
        return Kept({name[_COUNT]: counted.cast(pl.Int64)}, pl.col(name[_COUNT]))
    assert column is not None
    assert call.argument is not None
    of = call.argument.type
    if call.function in (SUM, AVG):
        return _sum(call, of, column, name)
    if call.function == MIN:
        return Kept({name[_MIN]: column.min()}, pl.col(name[_MIN]))
    if call.function == MAX:
        if of in ("float", "double"):  # there NaN is larger than any number
            return Kept({name[_NAN_MAX]: column.nan_max()}, pl.col(name[_NAN_MAX]))
        return Kept({name[_MAX]: column.max()}, pl.col(name[_MAX]))
    if call.function in (FIRST, LAST):
        return _edge(call, column, name, ordered=ordered)
    assert call.function in SPREADS
    return _spread(call, column, name)


def _sum(call: Call, of: str, column: pl.Expr, name: Mapping[str, str]) -> Kept:
    whole = of in ("tinyint", "smallint", "int", "bigint")
    wide = pl.Int64() if whole else pl.Decimal(38, _scale(of)) if of.startswith("decimal") else pl.Float64()
    partial = {name[_SUM]: column.cast(wide).sum(), name[_COUNT]: column.count().cast(pl.Int64)}
    total, count = pl.col(name[_SUM]), pl.col(name[_COUNT])
    overflow = None
    if of == "bigint":  # of smaller ones it would take more rows than there can be
        partial[name[_SHADOW]] = column.cast(pl.Float64).sum()
        if call.function == SUM:
            overflow = pl.col(name[_SHADOW]).abs() >= _LARGEST
    if call.function == AVG:
        total = pl.col(name[_SHADOW]) if of == "bigint" else total
        result = total / count if not of.startswith("decimal") else _decimal_average(total, count, call.type)
    else:
        result = total
    return Kept(partial, pl.when(count > 0).then(result).otherwise(None), overflow)


def _decimal_average(total: pl.Expr, count: pl.Expr, of: str) -> pl.Expr:
    scale = _scale(of)
    exact = total.cast(pl.Decimal(38, scale)) / count.cast(pl.Decimal(38, 0))
    return exact.cast(pl.Decimal(38, scale))


def _scale(of: str) -> int:
    return int(of.rstrip(")").rpartition(",")[2])


def _edge(call: Call, column: pl.Expr, name: Mapping[str, str], *, ordered: bool) -> Kept:
    """First and last by event time, then rank, then arrival; a null counts as a value."""
    by = [pl.col(TIME_OF), *([pl.col(ORDER)] if ordered else [])]
    sort = [expression.sort_by(by, maintain_order=True) for expression in (column, *by)]
    picked = [expression.first() if call.function == FIRST else expression.last() for expression in sort]
    names = [name[kind] for kind in (_VALUE, _AT, _RANK)[: len(picked)]]
    return Kept(dict(zip(names, picked, strict=True)), pl.col(names[0]))


def _spread(call: Call, column: pl.Expr, name: Mapping[str, str]) -> Kept:
    """Count, mean and sum of squared differences from it: merged without loss of digits [1].

    [1] T. Chan, G. Golub, R. LeVeque, Updating formulae and a pairwise algorithm for computing sample
        variances, 1979.
    """
    values = column.cast(pl.Float64)
    partial = {
        name[_COUNT]: values.count().cast(pl.Int64),
        name[_MEAN]: values.mean(),
        name[_SQUARES]: values.var(ddof=0) * values.count(),
    }
    count, squares = pl.col(name[_COUNT]), pl.col(name[_SQUARES])
    sample = call.function.endswith("samp")
    variance = squares / (count - 1 if sample else count)
    result = variance.sqrt() if call.function.startswith("stddev") else variance
    return Kept(partial, pl.when(count > (1 if sample else 0)).then(result).otherwise(None))


def merges(columns: Collection[str]) -> list[pl.Expr]:
    """How the columns that calls keep are merged, group by group."""
    return [_merge(column, columns).alias(column) for column in columns]


def _merge(column: str, columns: Collection[str]) -> pl.Expr:
    call, _, kind = column.rpartition("|")
    this = pl.col(column)
    if kind in _PLAIN:
        return _PLAIN[kind](this)
    if kind in (_VALUE, _AT, _RANK):
        by = [f"{call}|{part}" for part in (_AT, _RANK) if f"{call}|{part}" in columns]
        ordered = this.sort_by(by, maintain_order=True)
        return ordered.first() if call.startswith(FIRST) else ordered.last()
    count, mean = pl.col(f"{call}|{_COUNT}"), pl.col(f"{call}|{_MEAN}")
    merged = (count * mean).sum() / count.sum()
    return merged if kind == _MEAN else this.sum() + (count * (mean - merged) ** 2).sum()


_PLAIN: Mapping[str, Callable[[pl.Expr], pl.Expr]] = {
    _COUNT: pl.Expr.sum,
    _SUM: pl.Expr.sum,
    _SHADOW: pl.Expr.sum,
    _MIN: pl.Expr.min,
    _MAX: pl.Expr.max,
    _NAN_MAX: pl.Expr.nan_max,
    _SET: lambda this: this.explode().drop_nulls().unique(),
}
_KINDS = (*_PLAIN, _MEAN, _SQUARES, _VALUE, _AT, _RANK)
