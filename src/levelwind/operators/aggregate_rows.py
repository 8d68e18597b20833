"""Aggregates of rows that are all at hand, by Spark's rules.

What differs from Polars: the sum of nothing is null; sums of integers and decimals are exact, and leaving
their type is an error of that result; NaN is larger than any number; a decimal's average is a decimal,
half rounded up; equal values are counted once with NaN and zero in one form each; the sample variance
of one value is null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import polars as pl
import pyarrow as pa

from levelwind.operators.aggregate_calls import AVG, COUNT, FIRST, LAST, MAX, MIN, SUM, Call

_DECIMAL = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
MOST_DIGITS_SUMMED_PLAINLY = 27  # 10^27 times any number of rows there can be stays below 2^127
_LARGEST = pl.lit(10**38, dtype=pl.Int128)
_HALF = pl.lit(2**64, dtype=pl.Int128)
_WIDE = pl.Int128()
_SUMS = (SUM, AVG)


def aggregate_rows(
    calls: Sequence[Call], rows: pl.DataFrame, group: str
) -> tuple[pl.DataFrame, pl.Series | None]:
    """One row per value of ``group``, in order of appearance: that column and the calls' placeholders.

    ``first`` and ``last`` go by the order of the rows. Costs O(rows) per call.

    Parameters
    ----------
    calls
        What is computed.
    rows
        The column ``group`` and the calls' argument columns (see `Computation.arguments`).

    Returns
    -------
    The results, and why a result is missing (see `split_rejected`).
    """
    parts = [
        part.alias(f"{call.placeholder}/{i}") for call in calls for i, part in enumerate(_parts(call, rows))
    ]
    found = rows.group_by(group, maintain_order=True).agg(parts)
    results = [result_of(call).alias(call.placeholder) for call in calls]
    lost = [misfit_of(call) for call in calls if call.function in _SUMS]
    whole = found.select(group, *results, pl.coalesce(*lost, pl.lit(None, pl.String)).alias("/reason"))
    reasons = whole.get_column("/reason")
    decimals = [as_decimal(whole.get_column(c.placeholder), c.type) for c in calls if _is_decimal_sum(c)]
    whole = whole.drop("/reason").with_columns(decimals)
    return whole, reasons if reasons.null_count() < len(reasons) else None


def _parts(call: Call, rows: pl.DataFrame) -> Iterator[pl.Expr]:
    """What Polars computes for a call: one column, more where the result is put together afterwards."""
    if call.column is None:
        yield pl.len().cast(pl.Int64)
        return
    values, of = pl.col(call.column), rows.schema[call.column]
    if call.function == COUNT:
        yield (values.drop_nulls().n_unique() if call.distinct else values.count()).cast(pl.Int64)
    elif call.function in (FIRST, LAST):
        yield values.first() if call.function == FIRST else values.last()
    elif call.function == MIN:
        yield values.min()
    elif call.function == MAX:
        yield values.nan_max() if of.is_float() else values.max()
    elif call.function in _SUMS:
        yield values.count().cast(_WIDE)
        yield from _sums(call, values, call.arguments[0].type)
    else:
        kind, _, population = call.function.partition("_")
        degrees = 1 if population == "samp" else 0
        numbers = values.cast(pl.Float64)
        yield numbers.var(ddof=degrees) if kind == "var" else numbers.std(ddof=degrees)


def _sums(call: Call, values: pl.Expr, of: str) -> Iterator[pl.Expr]:
    """The sum of the values, in two halves if it may not fit 128 bits; of floats what is asked for."""
    decimal = _DECIMAL.fullmatch(of)
    if decimal is None and call.type == "double":
        numbers = values.cast(pl.Float64)
        yield numbers.sum() if call.function == SUM else numbers.mean()
    elif decimal is None or int(decimal[1]) <= MOST_DIGITS_SUMMED_PLAINLY:
        yield values.to_physical().cast(_WIDE).sum()
    else:
        yield (values.to_physical() // _HALF).sum()
        yield (values.to_physical() % _HALF).sum()


def result_of(call: Call) -> pl.Expr:
    """A call's result from what Polars computed; of decimals the digits without the point."""
    first = pl.col(f"{call.placeholder}/0")
    if call.function not in _SUMS:
        return first
    some = pl.when(first > 0)
    if call.type == "double":
        return some.then(pl.col(f"{call.placeholder}/1"))
    result = pl.when((first > 0) & misfit_of(call).is_null()).then(_exact(call))
    return result.cast(pl.Int64) if call.type == "bigint" else result


def misfit_of(call: Call) -> pl.Expr:
    """Why a sum or an average does not fit its type, null where it does."""
    if call.type == "double":
        return pl.lit(None, pl.String)
    if call.type == "bigint":
        fits = _total(call).is_between(-(2**63), 2**63 - 1)
    else:
        fits = (_total(call).abs() < _LARGEST) & (_exact(call).abs() < _LARGEST)
    return pl.when(~fits).then(pl.lit(f"{call.text}: the result does not fit {call.type}"))


def is_summed_plainly(call: Call) -> bool:
    """Whether a sum of exact numbers stays within 128 bits, whatever the rows."""
    decimal = _DECIMAL.fullmatch(call.arguments[0].type)
    return decimal is None or int(decimal[1]) <= MOST_DIGITS_SUMMED_PLAINLY


def _total(call: Call) -> pl.Expr:
    """The sum, put together from its halves; 10^38 stands for anything beyond 128 bits."""
    first = pl.col(f"{call.placeholder}/1")
    if is_summed_plainly(call):
        return first
    low = pl.col(f"{call.placeholder}/2")
    high = first + low // _HALF
    return pl.when(high.abs() < 2**63 - 1).then(high * _HALF + low % _HALF).otherwise(_LARGEST)


def _exact(call: Call) -> pl.Expr:
    """The sum, or the average with its half rounded away from zero."""
    total = _total(call)
    if call.function == SUM:
        return total
    scales = [
        int(match[2]) for kind in (call.arguments[0].type, call.type) if (match := _DECIMAL.fullmatch(kind))
    ]
    finer = pl.lit(10 ** (scales[1] - scales[0]), dtype=_WIDE)
    # Of no values the result is null; the division must only not fail.
    count = pl.max_horizontal(f"{call.placeholder}/0", pl.lit(1, dtype=_WIDE))
    whole, part = total.abs() // count, total.abs() % count
    two = pl.lit(2, dtype=_WIDE)
    digits = whole * finer + (two * part * finer + count) // (two * count)
    return pl.when(whole < _LARGEST // finer).then(total.sign() * digits).otherwise(_LARGEST)


def _is_decimal_sum(call: Call) -> bool:
    return call.function in _SUMS and call.type.startswith("decimal")


def as_decimal(digits: pl.Series, kind: str) -> pl.Series:
    """Digits without a point as a decimal of a type; its point is set, no digit moves."""
    match = _DECIMAL.fullmatch(kind)
    assert match is not None
    array = digits.cast(pl.Decimal(38, 0)).to_arrow()
    placed = pa.Array.from_buffers(
        pa.decimal128(int(match[1]), int(match[2])),
        len(array),
        array.buffers(),
        array.null_count,
        array.offset,
    )
    return pl.Series(digits.name, placed)
