"""Times in a format that is given, as ``to_timestamp(text, format)`` reads them.

The letters are Java's: ``y M d H h m s S a X x Z`` and literal text. Where a format leaves something out
it is that of 1970-01-01 00:00:00.
"""

from __future__ import annotations

import re
from itertools import groupby

import polars as pl

from levelwind.operators.expressions.civil import days, instant, time_of_day
from levelwind.operators.expressions.parts import refuse
from levelwind.operators.expressions.steps import VALUE, in_steps
from levelwind.operators.expressions.timezones import offset_steps

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_SHORT_MONTHS = [month[:3] for month in _MONTHS]
_ONE_OR_TWO = r"\d{1,2}"
_TWO = r"\d{2}"
_FIELDS: dict[str, tuple[str, str]] = {
    "y": ("year", r"-?\d{4}"),
    "yyyy": ("year", r"-?\d{4}"),
    "yy": ("short_year", _TWO),
    "M": ("month", _ONE_OR_TWO),
    "MM": ("month", _TWO),
    "MMM": ("month_name", "(?i:" + "|".join(_SHORT_MONTHS) + ")"),
    "MMMM": ("month_name", "(?i:" + "|".join(_MONTHS) + ")"),
    "d": ("day", _ONE_OR_TWO),
    "dd": ("day", _TWO),
    "H": ("hour", _ONE_OR_TWO),
    "HH": ("hour", _TWO),
    "h": ("half_hour", _ONE_OR_TWO),
    "hh": ("half_hour", _TWO),
    "m": ("minute", _ONE_OR_TWO),
    "mm": ("minute", _TWO),
    "s": ("second", _ONE_OR_TWO),
    "ss": ("second", _TWO),
    "a": ("half", "(?i:AM|PM)"),
    "X": ("zone", r"Z|[+-]\d{2}(?:\d{2})?"),
    "XX": ("zone", r"Z|[+-]\d{4}"),
    "XXX": ("zone", r"Z|[+-]\d{2}:\d{2}"),
    "x": ("zone", r"[+-]\d{2}(?:\d{2})?"),
    "xx": ("zone", r"[+-]\d{4}"),
    "xxx": ("zone", r"[+-]\d{2}:\d{2}"),
    "Z": ("zone", r"[+-]\d{4}"),
}


def _regex(pattern: str) -> str:
    """A regular expression with a named group per field."""
    found: list[str] = []
    seen: set[str] = set()
    for piece in re.findall(r"'(?:[^']|'')*'|[A-Za-z]+|[^A-Za-z']+|'", pattern):
        if piece[0] == "'":
            found.append(re.escape(piece[1:-1].replace("''", "'") if len(piece) > 2 else "'"))
        elif not piece[0].isalpha():
            if set(piece) & set("[]{}#"):
                refuse("a time format must be made of fields and literal text", pattern)
            found.append(re.escape(piece))
        else:
            for letters in ("".join(run) for _, run in groupby(piece)):
                found.append(_field(letters, pattern, seen))
    if "half_hour" in seen and "half" not in seen:
        refuse("a time format with 'h' must have 'a'", pattern)
    return f"(?s)^{''.join(found)}$"


def _field(letters: str, pattern: str, seen: set[str]) -> str:
    if letters[0] == "S" and len(letters) <= 9:
        name, regex = "fraction", rf"\d{{1,{len(letters)}}}"
    elif letters in _FIELDS:
        name, regex = _FIELDS[letters]
    else:
        refuse("a time format must be made of the letters y M d H h m s S a X x Z", pattern)
    if name in seen:
        refuse("a time format must have each field once", pattern)
    seen.add(name)
    return f"(?P<{name}>{regex})"


def formatted_timestamp(value: pl.Expr, pattern: str) -> pl.Expr:
    """Microseconds since the epoch; null where a text does not have the format."""
    regex = _regex(pattern)
    names = set(re.findall(r"\(\?P<(\w+)>", regex))
    groups = pl.col("parts").struct

    def number(name: str, default: int) -> pl.Expr:
        if name not in names:
            return pl.lit(default, dtype=pl.Int64)
        return groups.field(name).cast(pl.Int64, strict=False)

    year, month, hour = number("year", 1970), number("month", 1), number("hour", 0)
    micros = pl.lit(0, dtype=pl.Int64)
    if "short_year" in names:
        year = number("short_year", 0) + 2000
    if "month_name" in names:
        month = _month_by_name(groups.field("month_name"))
    if "half_hour" in names:
        half, afternoon = number("half_hour", 0), groups.field("half").str.to_lowercase() == "pm"
        hour = pl.when(half.is_between(1, 12)).then(half % 12 + 12 * afternoon.cast(pl.Int64))
    if "fraction" in names:
        fraction = groups.field("fraction").str.pad_end(6, "0").str.slice(0, 6)
        micros = fraction.cast(pl.Int64, strict=False)
    steps: list[dict[str, pl.Expr]] = [
        {"parts": pl.col(VALUE).str.extract_groups(regex), "matched": pl.col(VALUE).str.contains(regex)},
        {"year": year, "month": month, "day": number("day", 1)},
        {"hour": hour, "minute": number("minute", 0), "second": number("second", 0), "micros": micros},
        {
            "date": days(pl.col("year"), pl.col("month"), pl.col("day")),
            "of_day": time_of_day(pl.col("hour"), pl.col("minute"), pl.col("second"), pl.col("micros")),
        },
        {"local": pl.when(pl.col("matched")).then(instant(pl.col("date"), pl.col("of_day")))},
    ]
    if "zone" in names:
        steps += [{"zone": groups.field("zone")}, *offset_steps("zone", "local", "offset")]
        steps += [{"found": pl.col("local") - pl.col("offset")}]
    return in_steps(value, steps, pl.Int64())


def _month_by_name(name: pl.Expr) -> pl.Expr:
    known = [month.lower() for month in _SHORT_MONTHS]
    short = name.str.slice(0, 3).str.to_lowercase()
    return short.replace_strict(known, list(range(1, 13)), default=None, return_dtype=pl.Int64)
