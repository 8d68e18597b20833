"""Casts between strings and numbers, booleans and bytes; null where a string is malformed."""

from __future__ import annotations

import polars as pl

from levelwind.operators.expressions.javanumbers import java_text
from levelwind.operators.expressions.numbercasts import as_decimal
from levelwind.operators.expressions.sparktypes import MOST_DIGITS, decimal_of, dtype_of

# What Spark cuts off both ends before it reads a string: white space and control characters.
BLANKS = "".join(map(chr, range(33))) + "\x7f"
_TRUE = ["t", "true", "y", "yes", "1"]
_FALSE = ["f", "false", "n", "no", "0"]


def trimmed(value: pl.Expr) -> pl.Expr:
    """Without white space and control characters at both ends."""
    return value.str.strip_chars(BLANKS)


def text_to_integer(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """Digits with or without a sign."""
    dtype = dtype_of(target)
    assert dtype is not None
    return trimmed(value).cast(dtype, strict=False)


def text_to_float(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """What Java reads as a float, and NaN and infinity in any case.

    Hexadecimal floats, which Java reads too, are malformed here.
    """
    dtype = dtype_of(target)
    assert dtype is not None
    text = value.str.strip_chars(BLANKS[:33]).str.to_lowercase()
    # A number may end in the letter of its type.
    number = text.str.replace(r"^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)[fd]$", "$1")
    return number.cast(dtype, strict=False)


def text_to_decimal(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """A decimal number, with or without an exponent, rounded half up to the scale."""
    digits = decimal_of(target)
    assert digits is not None
    precision, scale = digits
    pattern = r"^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,9}))?$"
    text = trimmed(value)
    number = text.str.extract_groups(pattern)
    whole, part = number.struct.field("2"), number.struct.field("3").fill_null("")
    exponent = number.struct.field("4").fill_null("0").cast(pl.Int64, strict=False)
    all_digits = whole + part
    # The number is all_digits · 10^shift units; digits that are cut off below count for rounding.
    shift = exponent - part.str.len_bytes().cast(pl.Int64) + scale
    significant = all_digits.str.strip_chars_start("0")
    length = significant.str.len_bytes().cast(pl.Int64)
    kept = length + shift  # digits of the result before rounding
    sound = (all_digits != "") & ((kept <= precision) | (length == 0))
    padded = significant.str.pad_end(MOST_DIGITS + 1, "0")
    head = padded.str.slice(0, pl.when(length == 0).then(0).otherwise(kept.clip(0, MOST_DIGITS)))
    units = pl.when(head == "").then(pl.lit("0")).otherwise(head).cast(pl.Int128, strict=False)
    following = pl.when(kept >= 0).then(padded.str.slice(kept.clip(0, MOST_DIGITS + 1), 1))
    up = ((kept < length) & (following >= "5")).fill_null(False)
    units = pl.when(sound).then(units + up.cast(pl.Int128))
    units = pl.when(number.struct.field("1") == "-").then(-units).otherwise(units)
    return as_decimal(units, precision, scale)


def text_to_boolean(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """The words Spark knows, in any case."""
    text = trimmed(value).str.to_lowercase()
    return pl.when(text.is_in(_TRUE)).then(True).when(text.is_in(_FALSE)).then(False)


def float_to_text(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """As Java writes it."""
    return java_text(value)


def binary_to_text(value: pl.Expr, source: str, target: str) -> pl.Expr:
    """The bytes as UTF-8; null where they are not."""
    return value.cast(pl.String, strict=False)


