"""Functions of strings; they count characters, not bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import polars as pl

from levelwind.operators.expressions.arguments import argument
from levelwind.operators.expressions.builder import Builder, Rule, constant
from levelwind.operators.expressions.parts import (
    Part,
    eager,
    hidden_of,
    refuse,
    strict,
    unless_missing,
)

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_FAR = 2**31  # further than any string reaches


def text_of(node: Expr, build: Builder, function: str) -> Part:
    """An argument that is read as a string."""
    part = build.part(node)
    if part.type == "binary":
        refuse(f"{function} must have a string", "binary", "cast it to string first")
    return argument(part, "string", function)


def spread(part: Part, *others: Part) -> pl.Expr:
    """A constant as a column, if one of the others is: some functions of Polars ask for that."""
    if part.never_null and not all(other.is_constant for other in others):
        return pl.repeat(part.constant, pl.len(), dtype=pl.String)
    return part.value


def _one(name: str, compute: Callable[[pl.Expr], pl.Expr], kind: str = "string") -> Rule:
    def rule(node: Expr, build: Builder) -> Part:
        part = text_of(node.this, build, name)
        return strict([part], compute(part.value), kind)

    return rule


def _two(
    name: str, compute: Callable[[pl.Expr, pl.Expr], pl.Expr], kind: str, second: str = "expression"
) -> Rule:
    def rule(node: Expr, build: Builder) -> Part:
        left = text_of(node.this, build, name)
        right = text_of(node.args[second], build, name)
        return strict([left, right], compute(left.value, right.value), kind)

    return rule


def _reversed(value: pl.Expr) -> pl.Expr:
    """By code points; Polars' own keeps what combines together."""
    return value.str.split("").list.reverse().list.join("")


def _length(node: Expr, build: Builder) -> Part:
    part = build.part(node.this)
    if part.type == "binary":
        return strict([part], part.value.bin.size().cast(pl.Int32), "int")
    part = argument(part, "string", "length")
    return strict([part], _size(part.value).cast(pl.Int32), "int")


def _size(value: pl.Expr) -> pl.Expr:
    return value.str.len_chars().cast(pl.Int64)


def _trim(node: Expr, build: Builder) -> Part:
    """Without spaces, or the characters of another string, at one end or both."""
    part = text_of(node.this, build, "trim")
    given = node.args.get("expression")
    letters = constant(" ", "string") if given is None else text_of(given, build, "trim")
    strip = {
        "LEADING": part.value.str.strip_chars_start,
        "TRAILING": part.value.str.strip_chars_end,
    }.get(str(node.args.get("position") or ""), part.value.str.strip_chars)
    if letters.never_null:
        return strict([letters, part], strip(letters.constant) if letters.constant else part.value, "string")
    stripped = pl.when(letters.value == "").then(part.value).otherwise(strip(letters.value))
    return strict([letters, part], unless_missing([letters], stripped), "string")


def _substring(node: Expr, build: Builder) -> Part:
    """From a position that counts from 1, or from the end if it is negative; 0 means 1."""
    part = text_of(node.this, build, "substring")
    start = argument(build.part(node.args["start"]), "int", "substring")
    given = node.args.get("length")
    length = constant(2**31 - 1, "int") if given is None else argument(build.part(given), "int", "substring")
    position = start.value.cast(pl.Int64)
    if start.never_null and start.constant >= 0:
        first: pl.Expr = pl.lit(max(start.constant - 1, 0), dtype=pl.Int64)
    else:
        from_end = _size(part.value) + position
        first = pl.when(position > 0).then(position - 1).when(position < 0).then(from_end).otherwise(0)
    # What lies before the string counts as part of the length.
    last = first + length.value.cast(pl.Int64)
    begin = first.clip(0, _FAR)
    value = part.value.str.slice(begin, (last - begin).clip(0, _FAR))
    return strict([part, start, length], unless_missing([start, length], value), "string")


def _left(node: Expr, build: Builder) -> Part:
    part = text_of(node.this, build, "left")
    count = argument(build.part(node.expression), "int", "left")
    value = part.value.str.slice(0, count.value.cast(pl.Int64).clip(0, _FAR))
    return strict([part, count], unless_missing([count], value), "string")


def _right(node: Expr, build: Builder) -> Part:
    part = text_of(node.this, build, "right")
    count = argument(build.part(node.expression), "int", "right")
    start = (_size(part.value) - count.value.cast(pl.Int64)).clip(0, _FAR)
    return strict([part, count], unless_missing([count], part.value.str.slice(start)), "string")


def _concat(node: Expr, build: Builder) -> Part:
    if "safe" not in node.args:  # literals side by side, or a doubled quote: the tree does not tell which
        hint = "write a quote inside a string as \\'"
        refuse("strings must not stand side by side", node.sql(dialect="spark"), hint)
    parts = [text_of(child, build, "concat") for child in node.expressions]
    return _joined(parts)


def _joined(parts: list[Part]) -> Part:
    """One after the other; null if one is null, but all are evaluated."""
    if len(parts) == 1:
        return parts[0]
    value = pl.concat_str([part.value for part in parts])
    checks = tuple(check for part in parts for check in part.checks)
    return Part(value, "string", checks, hidden_of(parts))


def _piped(node: Expr, build: Builder) -> Part:
    """``||``, whose chain is one concatenation."""
    parts: list[Part] = []
    while type(node).__name__ == "DPipe":
        parts.append(text_of(node.expression, build, "'||'"))
        node = node.this
    return _joined([text_of(node, build, "'||'"), *reversed(parts)])


def _concat_ws(node: Expr, build: Builder) -> Part:
    """With a separator between; nulls are left out, but a null separator makes null."""
    separator, *parts = [text_of(child, build, "concat_ws") for child in node.expressions]
    values = [part.value for part in parts]
    if separator.never_null:
        return eager(parts, pl.concat_str(values, separator=separator.constant, ignore_nulls=True), "string")
    # Each value with the separator before it; the first one is cut off.
    pieces = [(separator.value + value).fill_null("") for value in values]
    joined = pl.concat_str(pieces).str.slice(_size(separator.value))
    return eager([separator, *parts], unless_missing([separator], joined), "string")


def _replace(node: Expr, build: Builder) -> Part:
    part = text_of(node.this, build, "replace")
    search = text_of(node.expression, build, "replace")
    given = node.args.get("replacement")
    by = constant("", "string") if given is None else text_of(given, build, "replace")
    if search.never_null and by.never_null:
        value = (
            part.value.str.replace_all(search.constant, by.constant, literal=True)
            if search.constant
            else part.value
        )
    else:
        whole = spread(part, search, by)
        pieces = whole.str.split(search.value).list.join(by.value)
        value = (
            pl.when(search.value == "")
            .then(pl.when(by.value.is_not_null()).then(part.value))
            .otherwise(pieces)
        )
    return strict([part, search, by], value, "string")


def _pad(node: Expr, build: Builder) -> Part:
    """Filled to a length at the left or right, and cut to it."""
    name = "lpad" if node.args["is_left"] else "rpad"
    part = text_of(node.this, build, name)
    length = argument(build.part(node.expression), "int", name)
    given = node.args.get("fill_pattern")
    fill = constant(" ", "string") if given is None else text_of(given, build, name)
    wanted = length.value.cast(pl.Int64).clip(0, _FAR)
    missing = (wanted - _size(part.value)).clip(0, _FAR)
    # Enough copies of the filling, of which the end is cut off.
    copies = pl.when(fill.value != "").then(missing // _size(fill.value) + 1).otherwise(0)
    filling = fill.value.repeat_by(copies).list.join("").str.slice(0, missing)
    kept = part.value.str.slice(0, wanted)
    whole = filling + kept if node.args["is_left"] else kept + filling
    return strict([part, length, fill], unless_missing([length, fill], whole), "string")


def _position(node: Expr, build: Builder) -> Part:
    """Where a string stands in another, from 1; 0 if it does not."""
    part = text_of(node.this, build, "instr")
    wanted = text_of(node.args["substr"], build, "instr")
    if node.args.get("position") is not None or node.args.get("occurrence") is not None:
        refuse("instr must have two arguments")
    before = spread(part, wanted).str.splitn(wanted.value, 2).struct.field("field_0")
    found = part.value.str.contains(wanted.value, literal=True)
    value = (
        pl.when(wanted.value == "")
        .then(pl.lit(1, dtype=pl.Int32))
        .when(found)
        .then(before.str.len_chars().cast(pl.Int32) + 1)
        .otherwise(pl.lit(0, dtype=pl.Int32))
    )
    return strict([part, wanted], unless_missing([part, wanted], value), "int")


RULES: Mapping[str, Rule] = {
    "Lower": _one("lower", lambda value: value.str.to_lowercase()),
    "Upper": _one("upper", lambda value: value.str.to_uppercase()),
    "Reverse": _one("reverse", _reversed),
    "Length": _length,
    "Trim": _trim,
    "Substring": _substring,
    "Left": _left,
    "Right": _right,
    "Concat": _concat,
    "DPipe": _piped,
    "ConcatWs": _concat_ws,
    "Replace": _replace,
    "Pad": _pad,
    "StrPosition": _position,
    "Contains": _two("contains", lambda a, b: a.str.contains(b, literal=True), "boolean"),
    "StartsWith": _two("startswith", lambda a, b: a.str.starts_with(b), "boolean"),
    "EndsWith": _two("endswith", lambda a, b: a.str.ends_with(b), "boolean"),
}
