"""Casts between times and strings or numbers."""

from __future__ import annotations

import polars as pl

from levelwind.operators.expressions.numbercasts import (
    between_decimals,
    float_to_integer,
    low_bits,
    truncated_quotient,
)
from levelwind.operators.expressions.quotients import exact_quotient
from levelwind.operators.expressions.shortening import shortened
from levelwind.operators.expressions.sparktypes import decimal_of, dtype_of
from levelwind.operators.expressions.timetexts import parsed_date, parsed_timestamp

SECOND_US = 1_000_000
_LARGEST = 2**63 - 1


def between_times(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """Among dates and timestamps, all in UTC."""
    dtype = dtype_of(target)
    assert dtype is not None
    if source != "date" and target != "date":
        return value.to_physical().cast(dtype)
    return value.cast(dtype)


def seconds_to_timestamp(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """Seconds since the epoch; those beyond all timestamps become the last one, as in Java."""
    micros = value.cast(pl.Int128) * SECOND_US
    return _timestamp(micros.clip(-_LARGEST - 1, _LARGEST).cast(pl.Int64))


def float_to_timestamp(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """Seconds since the epoch, cut to microseconds; null if that is no timestamp."""
    micros = value.cast(pl.Float64) * float(SECOND_US)
    return _timestamp(float_to_integer(micros, "double", "bigint"))


def decimal_to_timestamp(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """Seconds since the epoch, cut to microseconds."""
    digits = decimal_of(source)
    assert digits is not None
    units, scale = shortened(value.to_physical(), digits[0]), digits[1]
    if scale <= 6:
        micros = units * pl.lit(10 ** (6 - scale), dtype=pl.Int128)
    else:
        micros = truncated_quotient(units, pl.lit(10 ** (scale - 6), dtype=pl.Int128))
    # Java keeps the low 64 bits.
    return _timestamp(low_bits(micros))


def _timestamp(micros: pl.Expr) -> pl.Expr:
    return micros.cast(pl.Datetime("us", "UTC"))


def timestamp_to_integer(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """Whole seconds since the epoch, rounded down."""
    dtype = dtype_of(target)
    assert dtype is not None
    seconds = value.to_physical() // SECOND_US
    return seconds if target == "bigint" else seconds.cast(dtype, strict=False)


def timestamp_to_float(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """Seconds since the epoch."""
    seconds = exact_quotient(value.to_physical().cast(pl.Float64), float(SECOND_US))
    return seconds if target == "double" else seconds.cast(pl.Float32)


def timestamp_to_decimal(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """Seconds since the epoch."""
    micros = value.to_physical().cast(pl.Int128).reinterpret(dtype=pl.Decimal(38, 6))
    return between_decimals(micros, "decimal(38,6)", target)


def text_to_date(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """A date in one of the forms Spark reads."""
    return parsed_date(value)


def text_to_timestamp(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """A date and time in one of the forms Spark reads; UTC unless it names a zone."""
    return _timestamp(parsed_timestamp(value))


def text_to_local_timestamp(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """A date and time without regard to its zone."""
    return parsed_timestamp(value, zones=False).cast(pl.Datetime("us"))


def date_to_text(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """As ``2020-01-31``."""
    return year_text(value) + value.dt.strftime("-%m-%d")


def year_text(value: pl.Expr) -> pl.Expr:
    """Four digits; years beyond them have a sign."""
    year = value.dt.year()
    digits = year.abs().cast(pl.String).str.zfill(4)
    sign = pl.when(year < 0).then(pl.lit("-")).when(year > 9999).then(pl.lit("+")).otherwise(pl.lit(""))
    return sign + digits


def timestamp_to_text(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """As ``2020-01-31 12:00:00.5``, without zeros at the end of the fraction."""
    local = value.to_physical().cast(pl.Datetime("us"))
    text = year_text(local) + local.dt.strftime("-%m-%d %H:%M:%S")
    micros = local.dt.microsecond()
    part = pl.lit(".") + micros.cast(pl.String).str.zfill(6).str.strip_chars_end("0")
    return text + pl.when(micros == 0).then(pl.lit("")).otherwise(part)
