r"""Java's regular expressions as Rust's, which Polars uses.

Translated: ``\d``, ``\w``, ``\s`` and their opposites are ASCII in Java; ``.`` stops at five kinds of line
ends, not one; ``$`` also stands before a last line end; ``\h``, ``\Z``, ``\p{Alpha}`` and its like.
Refused, since Rust has no counterpart: look-ahead and look-behind, back references, possessive
quantifiers and atomic groups, ``\G``, ``\R``, ``\X``, quoting by ``\Q…\E``.
Different still: ``(?i)`` folds all letters, not just ASCII; ``\b`` sees all letters.
"""

from __future__ import annotations

import re
from functools import lru_cache

import polars as pl

_ENDS = r"\n\r\u0085\u2028\u2029"
_CLASSES = {
    "d": "0-9",
    "w": "A-Za-z0-9_",
    "s": r" \t\n\x0B\f\r",
    "h": r" \t\xA0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
}
_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7F",
    "Alpha": "A-Za-z",
    "Digit": "0-9",
    "Alnum": "A-Za-z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1F\x7F",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0B\f\r",
}
_AS_THEY_ARE = frozenset("bBAztnrfaxu") | frozenset("\\.+*?()|[]{}^$#&-~/'\"<>=!:;,@%`_ ")
_END = rf"(?:(?:\r\n|[{_ENDS}])?\z)"


class NotTranslatableError(Exception):
    """A pattern that Java takes and Rust does not."""


@lru_cache(maxsize=4096)
def translated(pattern: str) -> str:
    """The pattern for Rust.

    Raises
    ------
    re.error
        If Java would refuse it.
    NotTranslatableError
        If only Java would take it.
    """
    rust = _Translation(pattern).whole()
    try:
        pl.select(pl.lit("").str.contains(rust))
    except pl.exceptions.ComputeError as error:
        try:
            re.compile(pattern)  # a rough judge of what is a pattern at all
        except re.error:
            raise
        raise NotTranslatableError(pattern) from error
    return rust


class _Translation:
    """One pass over a pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.depth = 0  # of character classes
        flags = "".join(re.findall(r"\(\?([a-zA-Z]*)(?:-[a-zA-Z]*)?[:)]", pattern))
        if set(flags) - set("ismx"):
            raise NotTranslatableError(pattern)
        self.dot = "." if "s" in flags else f"[^{_ENDS}]"
        self.end = "$" if "m" in flags else _END

    def whole(self) -> str:
        found = []
        while self.at < len(self.pattern):
            found.append(self._next())
        return "".join(found)

    def _next(self) -> str:
        letter = self.pattern[self.at]
        self.at += 1
        if letter == "\\":
            return self._escaped()
        if letter == "[":
            self.depth += 1
            if self.pattern[self.at : self.at + 1] == "^":
                self.at += 1
                return "[^"
            return "["
        if self.depth:
            self.depth -= letter == "]"
            return (
                f"\\{letter}" if letter in "~-" and self.pattern[self.at : self.at + 1] == letter else letter
            )
        if letter == ".":
            return self.dot
        if letter == "$":
            return self.end
        if letter in "*+?}" and self.pattern[self.at : self.at + 1] == "+":
            raise NotTranslatableError(self.pattern)
        if letter == "(" and re.match(r"\?(?:[=!>]|<[=!])", self.pattern[self.at :]):
            raise NotTranslatableError(self.pattern)
        return letter

    def _escaped(self) -> str:
        if self.at == len(self.pattern):
            message = "a pattern must not end with a backslash"
            raise re.error(message)
        letter = self.pattern[self.at]
        self.at += 1
        if letter in "dwsh":
            return _CLASSES[letter] if self.depth else f"[{_CLASSES[letter]}]"
        if letter in "DWSH":
            return f"[^{_CLASSES[letter.lower()]}]"
        if letter in "pP":
            return self._property(letter)
        if letter == "Z" and not self.depth:
            return _END
        if letter == "e":
            return r"\x1B"
        if letter in _AS_THEY_ARE or not letter.isascii():
            return f"\\{letter}" if letter.isascii() else letter
        raise NotTranslatableError(self.pattern)

    def _property(self, letter: str) -> str:
        match = re.match(r"\{(\w+)\}|(\w)", self.pattern[self.at :])
        if match is None:
            message = "a property must have a name"
            raise re.error(message)
        self.at += match.end()
        name = match[1] or match[2]
        if name in _POSIX:
            sign = "^" if letter == "P" else ""
            return _POSIX[name] if self.depth and not sign else f"[{sign}{_POSIX[name]}]"
        if len(name) <= 2:
            return f"\\{letter}{{{name}}}"
        raise NotTranslatableError(self.pattern)
