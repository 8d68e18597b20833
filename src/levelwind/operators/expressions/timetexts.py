"""Dates and times as Spark's casts read them from strings.

Times without a date, which Spark reads as of today, and words such as ``now`` are malformed here: the
result of an operator must not depend on when it runs.
"""

from __future__ import annotations

import polars as pl

from levelwind.operators.expressions.civil import days, instant, time_of_day
from levelwind.operators.expressions.steps import VALUE, in_steps
from levelwind.operators.expressions.textcasts import trimmed
from levelwind.operators.expressions.timezones import offset_steps

_DATE = r"(?s)^([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?$"
_TIME = r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?(.*))?)?"
_TIMESTAMP = rf"(?s)^([+-]?\d{{4,6}})(?:-(\d{{1,2}})(?:-(\d{{1,2}})(?:[ T]{_TIME})?)?)?$"


def parsed_date(value: pl.Expr) -> pl.Expr:
    """A year, year and month, or date; what follows a date after a space or T does not matter."""
    steps = [
        {"parts": trimmed(pl.col(VALUE)).str.extract_groups(_DATE)},
        {"year": _number(1), "month": _number(2, 1), "day": _number(3, 1)},
        {"date": days(pl.col("year"), pl.col("month"), pl.col("day"))},
        {"found": pl.col("date").cast(pl.Int32, strict=False).cast(pl.Date)},
    ]
    return in_steps(value, steps, pl.Date())


def parsed_timestamp(value: pl.Expr, *, zones: bool = True) -> pl.Expr:
    """Microseconds since the epoch of a date with or without a time and a zone.

    Parameters
    ----------
    zones
        Whether the zone moves the time; if not, it must be sound all the same.
    """
    groups = pl.col("parts").struct
    fraction = groups.field("7").fill_null("").str.slice(0, 6).str.pad_end(6, "0")
    local, offset = pl.col("local"), pl.col("offset")
    steps = [
        {"parts": trimmed(pl.col(VALUE)).str.extract_groups(_TIMESTAMP)},
        {"year": _number(1), "month": _number(2, 1), "day": _number(3, 1)},
        {"hour": _number(4), "minute": _number(5), "second": _number(6)},
        {"micros": fraction.cast(pl.Int64, strict=False)},
        {
            "date": days(pl.col("year"), pl.col("month"), pl.col("day")),
            "of_day": time_of_day(pl.col("hour"), pl.col("minute"), pl.col("second"), pl.col("micros")),
        },
        {"local": instant(pl.col("date"), pl.col("of_day"))},
        {"zone": groups.field("8").fill_null("").str.strip_chars(" ")},
        *offset_steps("zone", "local", "offset"),
        {"found": local - offset if zones else pl.when(offset.is_not_null()).then(local)},
    ]
    return in_steps(value, steps, pl.Int64())


def _number(group: int, default: int = 0) -> pl.Expr:
    """One of the numbers of a text; the default where a sound text does not have it."""
    found = pl.col("parts").struct.field(str(group)).cast(pl.Int64, strict=False)
    return found if group == 1 else found.fill_null(default)
