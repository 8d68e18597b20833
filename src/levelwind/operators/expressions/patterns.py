"""``like``, ``ilike`` and ``rlike``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from levelwind.operators.expressions.arguments import constant_of
from levelwind.operators.expressions.builder import Builder, Rule
from levelwind.operators.expressions.javaregex import NotTranslatableError, translated
from levelwind.operators.expressions.parts import Part, refuse, strict
from levelwind.operators.expressions.text import text_of

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Match = Callable[[pl.Expr], pl.Expr]
_SPECIAL = frozenset("\\.+*?()|[]{}^$#&-~")


class _BadPatternError(Exception):
    """A pattern that fails every row it meets."""


def _like_pieces(pattern: str, escape: str) -> list[str | None]:
    """What a pattern is made of: texts, and None for any number of characters, "" for just one."""
    pieces: list[str | None] = []
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            following = next(letters, None)
            if following is None or following not in ("_", "%", escape):
                raise _BadPatternError
            letter = following
        elif letter == "%":
            pieces.append(None)
            continue
        elif letter == "_":
            pieces.append("")
            continue
        if pieces and pieces[-1]:
            pieces[-1] += letter
        else:
            pieces.append(letter)
    return pieces


def _like_match(pattern: str, escape: str) -> Match:
    """A test of a pattern; the common forms need no regular expression."""
    pieces = _like_pieces(pattern, escape)
    texts = [piece for piece in pieces if piece]
    if "" not in pieces and len(texts) <= 1:
        text = texts[0] if texts else ""
        shape = tuple(bool(piece) for piece in pieces)
        if shape in ((), (True,)):
            return lambda value: value == text
        if shape == (True, False):
            return lambda value: value.str.starts_with(text)
        if shape == (False, True):
            return lambda value: value.str.ends_with(text)
        if shape == (False, True, False):
            return lambda value: value.str.contains(text, literal=True)
    regex = "".join(".*" if p is None else "." if p == "" else _quoted(p) for p in pieces)
    return lambda value: value.str.contains(f"(?s)\\A{regex}\\z")


def _quoted(text: str) -> str:
    return "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in text)


def _regex_match(pattern: str) -> Match:
    try:
        regex = translated(pattern)
    except re.error:
        raise _BadPatternError from None
    return lambda value: value.str.contains(regex)


def _matched(left: Part, right: Part, make: Callable[[str], Match], what: str) -> Part:
    """A string held against a pattern, which may differ from row to row."""
    reason = f"invalid pattern of {what}"
    if right.is_constant:
        if right.constant is None:
            return strict([left, right], pl.lit(None, dtype=pl.Boolean), "boolean")
        try:
            value = make(right.constant)(left.value)
        except _BadPatternError:
            return strict([left, right], pl.lit(None, dtype=pl.Boolean), "boolean", reason)
        return strict([left, right], value, "boolean")

    def each(sides: Sequence[pl.Series]) -> pl.Series:
        texts, patterns = sides
        if len(texts) != len(patterns):
            texts = texts.new_from_index(0, len(patterns))
        found = pl.Series(texts.name, [None], dtype=pl.Boolean).new_from_index(0, len(texts))
        frame = pl.DataFrame({"text": texts})
        for pattern in patterns.drop_nulls().unique().to_list():
            try:
                matches = frame.select(make(pattern)(pl.col("text"))).to_series()
            except _BadPatternError:
                continue
            found = matches.zip_with((patterns == pattern).fill_null(False), found)
        return found

    value = pl.map_batches([left.value, right.value], each, return_dtype=pl.Boolean, is_elementwise=True)
    return strict([left, right], value, "boolean", reason)


def _like(node: Expr, build: Builder, escape: str = "\\") -> Part:
    name = "ilike" if type(node).__name__ == "ILike" else "like"
    left, right = text_of(node.this, build, name), text_of(node.expression, build, name)
    if name == "ilike":
        left = strict([left], left.value.str.to_lowercase(), "string")
        right = build.settled(strict([right], right.value.str.to_lowercase(), "string"))
        escape = escape.lower()
    part = _matched(left, right, lambda pattern: _like_match(pattern, escape), name)
    return strict([part], ~part.value, "boolean") if node.args.get("negate") else part


def _escape(node: Expr, build: Builder) -> Part:
    letter = constant_of(build.part(node.expression), "like", "the escape character")
    if not isinstance(letter, str) or len(letter) != 1:
        refuse("the escape of like must be one character", letter)
    return _like(node.this, build, letter)


def _rlike(node: Expr, build: Builder) -> Part:
    left, right = text_of(node.this, build, "rlike"), text_of(node.expression, build, "rlike")
    try:
        return _matched(left, right, _regex_match, "rlike")
    except NotTranslatableError as reason:
        refuse("a pattern of rlike must do without what Rust's regular expressions lack", reason)


RULES: Mapping[str, Rule] = {
    "Like": _like,
    "ILike": _like,
    "Escape": _escape,
    "RegexpLike": _rlike,
}
