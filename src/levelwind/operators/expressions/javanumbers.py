"""Floats as Java writes them.

From 10⁻³ up to 10⁷ as a plain decimal number, else with one digit before the point and an exponent. The
digits are the fewest that read as the same float, as Java writes them since version 19; older versions
write one digit more for a few numbers, such as 2.0E-3 against 2.0E-3.
"""

from __future__ import annotations

import polars as pl


def shortest_text(value: pl.Expr) -> pl.Expr:
    """The fewest digits that read as the float, in any notation that casts read."""
    return value.cast(pl.String)


def java_text(value: pl.Expr) -> pl.Expr:
    """A float as Java's ``toString`` gives it."""
    text = value.cast(pl.String)
    size = value.abs()
    plain = ((size >= 1e-3) & (size < 1e7)) | (value == 0)
    return (
        pl.when(plain | value.is_null())
        .then(text)
        .when(value.is_nan())
        .then(pl.lit("NaN"))
        .when(value.is_infinite())
        .then(pl.when(value > 0).then(pl.lit("Infinity")).otherwise(pl.lit("-Infinity")))
        .otherwise(_scientific(text))
    )


def _scientific(text: pl.Expr) -> pl.Expr:
    """From plain or exponent notation to one digit before the point."""
    sign = pl.when(text.str.starts_with("-")).then(pl.lit("-")).otherwise(pl.lit(""))
    number = text.str.strip_prefix("-").str.extract_groups(r"^(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$")
    whole = number.struct.field("1")
    part = number.struct.field("2").fill_null("")
    exponent = number.struct.field("3").fill_null("0").cast(pl.Int32, strict=False)
    digits = (whole + part).str.strip_chars_start("0")
    zeros = (whole + part).str.len_bytes().cast(pl.Int32) - digits.str.len_bytes().cast(pl.Int32)
    power = exponent + whole.str.len_bytes().cast(pl.Int32) - 1 - zeros
    digits = digits.str.strip_chars_end("0")
    rest = digits.str.slice(1)
    rest = pl.when(rest == "").then(pl.lit("0")).otherwise(rest)
    return sign + digits.str.slice(0, 1) + pl.lit(".") + rest + pl.lit("E") + power.cast(pl.String)
