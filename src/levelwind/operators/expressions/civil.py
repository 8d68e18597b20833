"""Calendar arithmetic on integer expressions; null where the parts make no date or time."""

from __future__ import annotations

import polars as pl

DAY_US = 86_400_000_000
SECOND_US = 1_000_000


def days(year: pl.Expr, month: pl.Expr, day: pl.Expr) -> pl.Expr:
    """Days since the epoch of a date in the proleptic Gregorian calendar.

    Polars' own way raises on a date that does not exist. This is Howard Hinnant's ``days_from_civil``
    (https://howardhinnant.github.io/date_algorithms.html), which counts years from March.
    """
    leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
    short = month.is_in([4, 6, 9, 11])
    longest = (
        pl.when(month == 2)
        .then(pl.when(leap).then(29).otherwise(28))
        .otherwise(pl.when(short).then(30).otherwise(31))
    )
    exists = month.is_between(1, 12) & (day >= 1) & (day <= longest)
    shifted = pl.when(month <= 2).then(year - 1).otherwise(year)
    era = shifted // 400
    year_of_era = shifted - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return pl.when(exists).then(era * 146_097 + day_of_era - 719_468)


def time_of_day(hour: pl.Expr, minute: pl.Expr, second: pl.Expr, micros: pl.Expr) -> pl.Expr:
    """Microseconds since midnight."""
    exists = (hour < 24) & (minute < 60) & (second < 60)
    return pl.when(exists).then(((hour * 60 + minute) * 60 + second) * SECOND_US + micros)


def instant(day: pl.Expr, of_day: pl.Expr) -> pl.Expr:
    """Microseconds since the epoch; null beyond what 64 bits hold."""
    return (day.cast(pl.Int128) * DAY_US + of_day).cast(pl.Int64, strict=False)
