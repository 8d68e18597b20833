"""Digests and hashes of values.

Those of hashlib and zlib are computed value by value, each distinct value once: there is no other way
to them from here.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from levelwind.operators.expressions.arguments import argument
from levelwind.operators.expressions.builder import Builder, Rule
from levelwind.operators.expressions.parts import Part, eager, strict
from levelwind.operators.expressions.sparktypes import VOID

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_SHA2: Mapping[int, Callable[[bytes], str]] = {
    0: lambda data: hashlib.sha256(data).hexdigest(),
    224: lambda data: hashlib.sha224(data).hexdigest(),
    256: lambda data: hashlib.sha256(data).hexdigest(),
    384: lambda data: hashlib.sha384(data).hexdigest(),
    512: lambda data: hashlib.sha512(data).hexdigest(),
}


def _of_bytes(name: str, digest: Callable[[bytes], object], dtype: pl.DataType, kind: str) -> Rule:
    def rule(node: Expr, build: Builder) -> Part:
        child = node.this if name == "md5" else node.expressions[0]
        part = argument(build.part(child), "binary", name)
        value = part.value.map_batches(
            lambda values: _each(values, digest, dtype), return_dtype=dtype, is_elementwise=True
        )
        return strict([part], value, kind)

    return rule


def _each(values: pl.Series, digest: Callable[[bytes], object], dtype: pl.DataType) -> pl.Series:
    known = {value: digest(value) for value in values.drop_nulls().unique().to_list()}
    return pl.Series(values.name, [known.get(value) for value in values.to_list()], dtype=dtype)


def _sha2(node: Expr, build: Builder) -> Part:
    """By length in bits; null for a length there is no digest of."""
    part = argument(build.part(node.this), "binary", "sha2")
    length = argument(build.part(node.args["length"]), "int", "sha2")

    def digests(sides: Sequence[pl.Series]) -> pl.Series:
        values, lengths = (side.to_list() for side in sides)
        if len(lengths) != len(values):
            lengths = lengths * len(values)
        found = [
            _SHA2[bits](value) if value is not None and bits in _SHA2 else None
            for value, bits in zip(values, lengths, strict=True)
        ]
        return pl.Series(sides[0].name, found, dtype=pl.String)

    value = pl.map_batches([part.value, length.value], digests, return_dtype=pl.String, is_elementwise=True)
    return strict([part, length], value, "string")


def _hash(name: str, dtype: pl.DataType, kind: str) -> Rule:
    """Spark's own hashes of any number of columns; a null leaves the hash as it was."""

    def rule(node: Expr, build: Builder) -> Part:
        parts = [build.part(child) for child in node.expressions]
        types = [None if part.type == VOID else part.type for part in parts]

        def hashes(columns: Sequence[pl.Series]) -> pl.Series:
            from levelwind.operators import hashing

            compute = hashing.murmur3 if name == "hash" else hashing.xxhash64
            height = max(map(len, columns))
            full = [c if len(c) == height else c.new_from_index(0, height) for c in columns]
            return compute(full, types)

        value = pl.map_batches(
            [part.value for part in parts], hashes, return_dtype=dtype, is_elementwise=True
        )
        return eager(parts, value, kind)

    return rule


RULES: Mapping[str, Rule] = {
    "MD5": _of_bytes(
        "md5", lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest(), pl.String(), "string"
    ),
    "crc32": _of_bytes("crc32", zlib.crc32, pl.Int64(), "bigint"),
    "SHA2": _sha2,
    "hash": _hash("hash", pl.Int32(), "int"),
    "xxhash64": _hash("xxhash64", pl.Int64(), "bigint"),
}
