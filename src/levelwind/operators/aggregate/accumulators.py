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
from levelwind.operators.aggregate_rows import is_summed_plainly, misfit_of, result_of
from levelwind.operators.rows import ORDER

PANE = "__pane"
TIME_OF = "__time"
_COUNT, _SUM, _MIN, _MAX, _NAN_MAX = "count", "sum", "min", "max", "nan_max"
_MEAN, _SQUARES, _SET = "mean", "squares", "set"
_VALUE, _AT, _RANK = "value", "at", "rank"
_PIECES = ("piece0", "piece1", "piece2", "piece3")


@dataclass(frozen=True, slots=True)
class Kept:
    """The columns a call keeps: how a pane's are computed from rows, and the result from the merged ones.

    Attributes
    ----------
    partial
        What is kept, by column.
    result
        The result, from what is kept and from ``parts``.
    parts
        What is to be worked out from the kept columns before the result.
    reason
        Why there is no result, null where there is one.
    decimal
        The type of a result that comes as digits without their point.
    """

    partial: Mapping[str, pl.Expr]
    result: pl.Expr
    parts: tuple[pl.Expr, ...] = ()
    reason: pl.Expr | None = None
    decimal: str | None = None

    @property
    def certain(self) -> bool:
        """Whether the result is there in one step and cannot fail."""
        return not self.parts and self.reason is None


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
    count = {name[_COUNT]: column.count().cast(pl.Int64)}
    if of == "bigint" or of.startswith("decimal"):
        return _exact_sum(call, of, column, name, count)
    # Of smaller integers it would take more rows than there can be to leave 64 bits.
    wide = pl.Float64() if of in ("float", "double") else pl.Int64()
    total = pl.col(name[_SUM]) / pl.col(name[_COUNT]) if call.function == AVG else pl.col(name[_SUM])
    result = pl.when(pl.col(name[_COUNT]) > 0).then(total).otherwise(None)
    return Kept({name[_SUM]: column.cast(wide).sum(), **count}, result)


def _exact_sum(
    call: Call, of: str, column: pl.Expr, name: Mapping[str, str], count: Mapping[str, pl.Expr]
) -> Kept:
    """A sum that may leave 64 bits: of pieces of 32 bits, each of which cannot, put together at the end."""
    pieces = 2 if of == "bigint" else 4
    value = column.to_physical().cast(pl.Int128)
    partial = dict(count)
    for piece in range(pieces):
        last = piece == pieces - 1
        shifted = value // _piece(piece) if piece else value
        part = shifted if last else shifted % _piece(1)
        partial[name[_PIECES[piece]]] = part.cast(pl.Int64).sum()
    kept = [pl.col(name[_PIECES[piece]]).cast(pl.Int128) for piece in range(pieces)]
    number, total = f"{call.placeholder}/0", f"{call.placeholder}/1"
    low = kept[1] * _piece(1) + kept[0]
    if call.type == "double":
        mean = low.cast(pl.Float64) / pl.col(name[_COUNT])
        return Kept(partial, pl.when(pl.col(name[_COUNT]) > 0).then(mean).otherwise(None))
    parts = [pl.col(name[_COUNT]).cast(pl.Int128).alias(number)]
    if of == "bigint":
        parts.append(low.alias(total))
        return Kept(partial, result_of(call), tuple(parts), misfit_of(call))
    high = kept[3] * _piece(1) + kept[2]
    if is_summed_plainly(call):
        parts.append((high * _piece(2) + low).alias(total))
    else:
        parts += [high.alias(total), low.alias(f"{call.placeholder}/2")]
    return Kept(partial, result_of(call), tuple(parts), misfit_of(call), call.type)


def _piece(number: int) -> pl.Expr:
    return pl.lit(2 ** (32 * number), dtype=pl.Int128)


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
    # Without values there is no mean: 0/0 would be NaN, and stay NaN whatever is merged with it later.
    merged = pl.when(count.sum() > 0).then((count * mean).sum() / count.sum())
    return merged if kind == _MEAN else this.sum() + (count * (mean - merged) ** 2).sum()


_PLAIN: Mapping[str, Callable[[pl.Expr], pl.Expr]] = {
    _COUNT: pl.Expr.sum,
    _SUM: pl.Expr.sum,
    **dict.fromkeys(_PIECES, pl.Expr.sum),
    _MIN: pl.Expr.min,
    _MAX: pl.Expr.max,
    _NAN_MAX: pl.Expr.nan_max,
    _SET: lambda this: this.explode().drop_nulls().unique(),
}
_KINDS = (*_PLAIN, _MEAN, _SQUARES, _VALUE, _AT, _RANK)
