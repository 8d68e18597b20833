"""Casts between strings and numbers, booleans and bytes; null where a string is malformed."""

from __future__ import annotations

import polars as pl

from levelwind.operators.expressions.javanumbers import java_text
from levelwind.operators.expressions.numbercasts import as_decimal
from levelwind.operators.expressions.sparktypes import MOST_DIGITS, decimal_of, dtype_of
from levelwind.operators.expressions.steps import VALUE, in_steps

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
    groups = pl.col("number").struct
    exponent = groups.field("4").fill_null("0").cast(pl.Int64, strict=False)
    length, kept, padded = pl.col("length"), pl.col("kept"), pl.col("padded")
    head = padded.str.slice(0, kept.clip(0, MOST_DIGITS))
    following = pl.when(kept >= 0).then(padded.str.slice(kept.clip(0, MOST_DIGITS + 1), 1))
    up = ((kept < length) & (following >= "5")).fill_null(False)
    size = pl.when(head == "").then(pl.lit("0")).otherwise(head).cast(pl.Int128, strict=False)
    units = pl.when(pl.col("sound")).then(size + up.cast(pl.Int128))
    signed = pl.when(groups.field("1") == "-").then(0 - pl.col("units")).otherwise(pl.col("units"))
    steps: list[dict[str, pl.Expr]] = [
        {"number": trimmed(pl.col(VALUE)).str.extract_groups(pattern)},
        {"part": groups.field("3").fill_null("")},
        {"digits": groups.field("2") + pl.col("part")},
        {"significant": pl.col("digits").str.strip_chars_start("0")},
        {"length": _size(pl.col("significant")), "padded": _padded(pl.col("significant"))},
        # Digits of the result before it is rounded: the number is its digits times a power of ten.
        {"kept": pl.when(length > 0).then(length + exponent - _size(pl.col("part")) + scale).otherwise(0)},
        {"sound": (pl.col("digits") != "") & (kept <= precision)},
        {"units": units},
        {"signed": signed},
        {"decimal": as_decimal(pl.col("signed"), precision, scale)},
    ]
    return in_steps(value, steps, pl.Decimal(precision, scale))


def _size(text: pl.Expr) -> pl.Expr:
    return text.str.len_bytes().cast(pl.Int64)


def _padded(text: pl.Expr) -> pl.Expr:
    """With zeros behind, up to as many digits as are looked at."""
    return text.str.pad_end(MOST_DIGITS + 1, "0")


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
