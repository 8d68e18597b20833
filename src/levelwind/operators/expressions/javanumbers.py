"""Floats as Java writes them.

From 10⁻³ up to 10⁷ as a plain decimal number, else with one digit before the point and an exponent. The
digits are the fewest that read as the same float, as Java writes them since version 19; older versions
write more digits for some numbers, such as 1.9999999999999998E23 for 2.0E23.
"""

from __future__ import annotations

import polars as pl

from levelwind.operators.expressions.steps import VALUE, in_steps


def shortest_text(value: pl.Expr) -> pl.Expr:
    """The fewest digits that read as the float, in any notation that casts read."""
    return value.cast(pl.String)


def java_text(value: pl.Expr) -> pl.Expr:
    """A float as Java's ``toString`` gives it."""
    number, text = pl.col(VALUE), pl.col("text")
    plain = ((number.abs() >= 1e-3) & (number.abs() < 1e7)) | (number == 0) | number.is_null()
    groups = pl.col("groups").struct
    exponent = groups.field("3").fill_null("0").cast(pl.Int32, strict=False)
    digits, whole, rest = pl.col("digits"), pl.col("whole"), pl.col("rest")
    leading = pl.when(number < 0).then(pl.lit("-")).otherwise(pl.lit("")) + digits.str.slice(0, 1)
    infinite = pl.when(number > 0).then(pl.lit("Infinity")).otherwise(pl.lit("-Infinity"))
    scientific = leading + "." + rest + "E" + pl.col("power").cast(pl.String)
    steps = [
        {"text": number.cast(pl.String)},
        {"groups": text.str.strip_prefix("-").str.extract_groups(r"^(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$")},
        {"whole": groups.field("1")},
        {"all": whole + groups.field("2").fill_null("")},
        {"digits": pl.col("all").str.strip_chars_start("0")},
        {"power": exponent + _size(whole) - 1 - (_size(pl.col("all")) - _size(digits))},
        {"rest": digits.str.strip_chars_end("0").str.slice(1)},
        {"rest": pl.when(rest == "").then(pl.lit("0")).otherwise(rest)},
        {
            "java": pl.when(plain)
            .then(text)
            .when(number.is_nan())
            .then(pl.lit("NaN"))
            .when(number.is_infinite())
            .then(infinite)
            .otherwise(scientific)
        },
    ]
    return in_steps(value, steps, pl.String())


def _size(text: pl.Expr) -> pl.Expr:
    return text.str.len_bytes().cast(pl.Int32)
