"""Spark's two hash functions, to the bit, and the rule by which rows go to an operator's instances.

A row's hash is that of its columns in turn, each starting from what the one before has left; a null leaves
it as it is. Loops over the values are compiled: a hash is computed for every row that meets a split.

References
----------
[1] A. Appleby, MurmurHash3, 32 bits, https://github.com/aappleby/smhasher. Spark departs from it where a
    string's length is no multiple of four: each byte that is left over is mixed in as a word of its own.
[2] Y. Collet, XXH64, https://github.com/Cyan4973/xxHash.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from levelwind.errors import LevelwindError
from levelwind.frontend.columntypes import UNKNOWN

Array = NDArray[Any]

SEED = 42

# The cache does not see changes in functions of other files: all loops over values stand in this one.
compiled = njit(cache=True)

_LOW = np.uint64(0xFFFFFFFF)
_C1 = np.uint64(0xCC9E2D51)
_C2 = np.uint64(0x1B873593)
_STEP = np.uint64(0xE6546B64)
_FINAL_1 = np.uint64(0x85EBCA6B)
_FINAL_2 = np.uint64(0xC2B2AE35)

_PRIME_1 = np.uint64(0x9E3779B185EBCA87)
_PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3 = np.uint64(0x165667B19E3779F9)
_PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME_5 = np.uint64(0x27D4EB2F165667C5)


def murmur3(columns: Sequence[pl.Series], types: Sequence[str | None]) -> pl.Series:
    """Spark's ``hash(…)`` of every row: 32 bits of MurmurHash3, seed 42.

    Parameters
    ----------
    columns
        The values, all of one length.
    types
        The Spark type of each column where its Polars type does not tell, such as ``int`` for a column
        that is held in 64 bits; None where it does.
    """
    hashes = _hash(columns, types, _MURMUR3)
    return pl.Series("hash", hashes.astype(np.uint32).view(np.int32))


def xxhash64(columns: Sequence[pl.Series], types: Sequence[str | None]) -> pl.Series:
    """Spark's ``xxhash64(…)`` of every row: 64 bits of XXH64, seed 42. Arguments as for `murmur3`."""
    return pl.Series("xxhash64", _hash(columns, types, _XXHASH64).view(np.int64))


def instance_of(
    columns: Sequence[pl.Series], into: int, types: Sequence[str | None] | None = None
) -> NDArray[np.int64]:
    """The instance of a split operator, 0 to ``into`` − 1, that each row belongs to.

    It is ``pmod(xxhash64(columns), into)`` as Spark computes it. State is kept by this rule: a run that is
    taken up again finds the state of a key at the instance which this function names, so it must never
    change, not even for rows without a key (all null: instance 42 mod ``into``).

    Equal numbers of different types hash differently. Whoever splits two inputs by keys that are to meet
    gives both the same ``types``. Numbers of a type that is given as unknown are hashed as doubles, so that
    equal ones hash alike whatever they are held in.
    """
    hashes = _hash(columns, types or [None] * len(columns), _XXHASH64)
    instances: NDArray[np.int64] = np.mod(hashes.view(np.int64), np.int64(into))
    return instances


class _Kind(NamedTuple):
    """A hash function: its loops over words of 32 bits, of 64, of 128, and over runs of bytes."""

    ints: Callable[[Array, Array, Array, Array], None]
    longs: Callable[[Array, Array, Array, Array], None]
    wides: Callable[[Array, Array, Array, Array, Array], None]
    texts: Callable[[Array, Array, Array, Array, Array], None]


def _hash(columns: Sequence[pl.Series], types: Sequence[str | None], kind: _Kind) -> NDArray[np.uint64]:
    if not columns:
        message = "a hash needs at least one column"
        raise ValueError(message)
    height = len(columns[0])
    hashes = np.full(height, SEED, dtype=np.uint64)
    if height:
        rows = np.arange(height)
        for column, spark_type in zip(columns, types, strict=True):
            _mix(hashes, rows, _as_typed(column, spark_type), kind)
    return hashes


def _as_typed(column: pl.Series, spark_type: str | None) -> pl.Series:
    """The column in the type that Spark would hold it in, where that type is hashed in its own way."""
    wanted = _SIMPLE.get(spark_type or "")
    if spark_type == UNKNOWN and column.dtype.is_numeric():
        wanted = pl.Float64()
    if wanted is None and spark_type is not None and (found := _DECIMAL.fullmatch(spark_type)):
        wanted = pl.Decimal(int(found[1]), int(found[2]))
    return column if wanted is None or column.dtype == wanted else column.cast(wanted)


_SIMPLE: dict[str, pl.DataType] = {
    "tinyint": pl.Int32(),
    "smallint": pl.Int32(),
    "int": pl.Int32(),
    "bigint": pl.Int64(),
    "float": pl.Float32(),
    "double": pl.Float64(),
    "string": pl.String(),
    "date": pl.Date(),
}
_DECIMAL = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")


def _mix(hashes: Array, rows: Array, column: pl.Series, kind: _Kind) -> None:
    """Takes a column into the hashes of its rows; ``rows`` tells which hash each value belongs to."""
    dtype = column.dtype
    if isinstance(dtype, pl.Struct):
        for field in column.struct.fields:  # those of a null are null
            _mix(hashes, rows, column.struct.field(field), kind)
        return
    if isinstance(dtype, pl.List | pl.Array):
        _mix_lists(hashes, rows, column, kind)
        return
    valid = column.is_not_null().to_numpy() if column.has_nulls() else _ALL
    if isinstance(dtype, pl.String | pl.Binary | pl.Categorical | pl.Enum):
        kind.texts(hashes, rows, valid, *_text(column))
    elif isinstance(dtype, pl.Decimal):
        low, high = _unscaled(column)
        if dtype.precision <= 18:  # as Spark: such a number is held in a single word
            kind.longs(hashes, rows, valid, low)
        else:
            kind.wides(hashes, rows, valid, low, high)
    else:
        _mix_words(hashes, rows, valid, column, kind)


def _mix_words(hashes: Array, rows: Array, valid: Array, column: pl.Series, kind: _Kind) -> None:
    dtype = column.dtype
    if isinstance(dtype, pl.Null):
        return
    if isinstance(dtype, pl.Float32 | pl.Float64):
        # One zero and one value that is not a number, whatever their bits.
        floats = column.to_numpy().copy()
        floats[floats == 0] = 0
        floats[np.isnan(floats)] = np.nan
        if isinstance(dtype, pl.Float32):
            kind.ints(hashes, rows, valid, _read_only(floats.view(np.int32)))
        else:
            kind.longs(hashes, rows, valid, _read_only(floats.view(np.int64)))
        return
    if isinstance(dtype, pl.Datetime | pl.Duration):
        column = column.dt.cast_time_unit("us")
    elif isinstance(dtype, pl.UInt64):
        column = column.cast(pl.Int64)
    elif not isinstance(dtype, _WORDS):
        message = f"values of type {dtype} cannot be hashed (column {column.name!r})"
        raise LevelwindError(message)
    physical = column.to_physical()
    if physical.has_nulls():
        physical = physical.fill_null(False) if isinstance(dtype, pl.Boolean) else physical.fill_null(0)
    words = physical.to_numpy()
    if words.dtype.itemsize < 4 or words.dtype == np.int32:
        kind.ints(hashes, rows, valid, _read_only(words.astype(np.int32, copy=False)))
    else:
        kind.longs(hashes, rows, valid, _read_only(words.astype(np.int64, copy=False)))


_WORDS = (
    pl.Boolean, pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.Date,
)  # fmt: skip
# The form of Arrow in which texts lie one behind the other.
_OFFSETS = pl.CompatLevel.oldest()
# Stands for "no value is null".
_ALL = np.empty(0, dtype=np.bool_)


def _mix_lists(hashes: Array, rows: Array, column: pl.Series, kind: _Kind) -> None:
    """A list's hash is that of its elements in turn: the loops go through them in that very order."""
    if isinstance(column.dtype, pl.Array):
        column = column.arr.to_list()
    inner = column.dtype.inner  # type: ignore[attr-defined]
    if isinstance(inner, pl.Struct):
        message = f"lists of structs cannot be hashed (column {column.name!r})"
        raise LevelwindError(message)
    lengths = column.list.len().fill_null(0).to_numpy()
    if lengths.any():
        elements = column.filter(lengths > 0).explode()
        _mix(hashes, np.repeat(rows, lengths), elements, kind)


def _text(column: pl.Series) -> tuple[Array, Array]:
    """Where each text or binary value starts in the bytes of all (one place more than values), and those."""
    if not isinstance(column.dtype, pl.Binary):
        column = column.cast(pl.String)
    array = column.to_arrow(compat_level=_OFFSETS)
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    return places, np.frombuffer(data, dtype=np.uint8) if data else np.empty(0, dtype=np.uint8)


def _unscaled(column: pl.Series) -> tuple[Array, Array]:
    """The low and the high word of decimals, as whole numbers of their smallest unit."""
    array = column.to_arrow()
    words = np.frombuffer(array.buffers()[1], dtype=np.int64)[2 * array.offset :]
    pairs = words[: 2 * len(array)].reshape(-1, 2)
    return _read_only(pairs[:, 0].copy()), _read_only(pairs[:, 1].copy())


def _read_only(values: Array) -> Array:
    """One kind of array for the loops, which are compiled anew for every kind."""
    values.flags.writeable = False
    return values


# MurmurHash3. Words of 32 bits are held in 64, of which only the low half is ever looked at.


@compiled
def _murmur3_mix(h: np.uint64, k: np.uint64) -> np.uint64:
    k = (k * _C1) & _LOW
    k = ((k << np.uint64(15)) | (k >> np.uint64(17))) & _LOW
    h ^= (k * _C2) & _LOW
    h = ((h << np.uint64(13)) | (h >> np.uint64(19))) & _LOW
    return (h * np.uint64(5) + _STEP) & _LOW


@compiled
def _murmur3_end(h: np.uint64, length: np.uint64) -> np.uint64:
    h ^= length
    h ^= h >> np.uint64(16)
    h = (h * _FINAL_1) & _LOW
    h ^= h >> np.uint64(13)
    h = (h * _FINAL_2) & _LOW
    return h ^ (h >> np.uint64(16))


@compiled
def _murmur3_int(h: np.uint64, value: np.int64) -> np.uint64:
    return _murmur3_end(_murmur3_mix(h, np.uint64(value) & _LOW), np.uint64(4))


@compiled
def _murmur3_long(h: np.uint64, value: np.int64) -> np.uint64:
    word = np.uint64(value)
    h = _murmur3_mix(_murmur3_mix(h, word & _LOW), word >> np.uint64(32))
    return _murmur3_end(h, np.uint64(8))


@compiled
def _murmur3_bytes(h: np.uint64, data: Array, start: int, end: int) -> np.uint64:
    length = np.uint64(end - start)
    while end - start >= 4:
        h = _murmur3_mix(h, _word_32(data, start))
        start += 4
    while start < end:
        h = _murmur3_mix(h, np.uint64(np.int64(np.int8(data[start]))) & _LOW)
        start += 1
    return _murmur3_end(h, length & _LOW)


# XXH64.


@compiled
def _turn(word: np.uint64, bits: np.uint64) -> np.uint64:
    return (word << bits) | (word >> (np.uint64(64) - bits))


@compiled
def _xxhash64_end(h: np.uint64) -> np.uint64:
    h ^= h >> np.uint64(33)
    h *= _PRIME_2
    h ^= h >> np.uint64(29)
    h *= _PRIME_3
    return h ^ (h >> np.uint64(32))


@compiled
def _xxhash64_take_32(h: np.uint64, word: np.uint64) -> np.uint64:
    h ^= word * _PRIME_1
    return _turn(h, np.uint64(23)) * _PRIME_2 + _PRIME_3


@compiled
def _xxhash64_take_64(h: np.uint64, word: np.uint64) -> np.uint64:
    h ^= _turn(word * _PRIME_2, np.uint64(31)) * _PRIME_1
    return _turn(h, np.uint64(27)) * _PRIME_1 + _PRIME_4


@compiled
def _xxhash64_int(h: np.uint64, value: np.int64) -> np.uint64:
    return _xxhash64_end(_xxhash64_take_32(h + _PRIME_5 + np.uint64(4), np.uint64(value) & _LOW))


@compiled
def _xxhash64_long(h: np.uint64, value: np.int64) -> np.uint64:
    return _xxhash64_end(_xxhash64_take_64(h + _PRIME_5 + np.uint64(8), np.uint64(value)))


@compiled
def _xxhash64_round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _turn(lane + word * _PRIME_2, np.uint64(31)) * _PRIME_1


@compiled
def _xxhash64_merge(h: np.uint64, lane: np.uint64) -> np.uint64:
    h ^= _turn(lane * _PRIME_2, np.uint64(31)) * _PRIME_1
    return h * _PRIME_1 + _PRIME_4


@compiled
def _xxhash64_bytes(h: np.uint64, data: Array, start: int, end: int) -> np.uint64:
    length = np.uint64(end - start)
    if end - start >= 32:
        a, b, c, d = h + _PRIME_1 + _PRIME_2, h + _PRIME_2, h, h - _PRIME_1
        while end - start >= 32:
            a = _xxhash64_round(a, _word_64(data, start))
            b = _xxhash64_round(b, _word_64(data, start + 8))
            c = _xxhash64_round(c, _word_64(data, start + 16))
            d = _xxhash64_round(d, _word_64(data, start + 24))
            start += 32
        h = (
            _turn(a, np.uint64(1))
            + _turn(b, np.uint64(7))
            + _turn(c, np.uint64(12))
            + _turn(d, np.uint64(18))
        )
        h = _xxhash64_merge(_xxhash64_merge(_xxhash64_merge(_xxhash64_merge(h, a), b), c), d)
    else:
        h += _PRIME_5
    h += length
    while end - start >= 8:
        h = _xxhash64_take_64(h, _word_64(data, start))
        start += 8
    if end - start >= 4:
        h = _xxhash64_take_32(h, _word_32(data, start))
        start += 4
    while start < end:
        h ^= np.uint64(data[start]) * _PRIME_5
        h = _turn(h, np.uint64(11)) * _PRIME_1
        start += 1
    return _xxhash64_end(h)


@compiled
def _word_32(data: Array, at: int) -> np.uint64:
    """Four bytes, the lowest first."""
    return (
        np.uint64(data[at])
        | (np.uint64(data[at + 1]) << np.uint64(8))
        | (np.uint64(data[at + 2]) << np.uint64(16))
        | (np.uint64(data[at + 3]) << np.uint64(24))
    )


@compiled
def _word_64(data: Array, at: int) -> np.uint64:
    """Eight bytes, the lowest first."""
    return _word_32(data, at) | (_word_32(data, at + 4) << np.uint64(32))


@compiled
def _write_shortest(low: np.int64, high: np.int64, into: Array) -> int:
    """Writes a number of 128 bits into the end of 16 bytes, the highest first; returns where it starts.

    As Java does: no more bytes than are needed to tell the number and its sign.
    """
    for i in range(8):
        into[15 - i] = np.uint8((low >> (8 * i)) & 0xFF)
        into[7 - i] = np.uint8((high >> (8 * i)) & 0xFF)
    filler = np.uint8(0xFF) if high < 0 else np.uint8(0)
    start = 0
    while start < 15 and into[start] == filler and (into[start + 1] >= 128) == (high < 0):
        start += 1
    return start


# The loops over columns, for each of the two functions.


@compiled
def _murmur3_ints(hashes: Array, rows: Array, valid: Array, values: Array) -> None:
    for i in range(len(values)):
        if len(valid) == 0 or valid[i]:
            hashes[rows[i]] = _murmur3_int(hashes[rows[i]], values[i])


@compiled
def _murmur3_longs(hashes: Array, rows: Array, valid: Array, values: Array) -> None:
    for i in range(len(values)):
        if len(valid) == 0 or valid[i]:
            hashes[rows[i]] = _murmur3_long(hashes[rows[i]], values[i])


@compiled
def _murmur3_texts(hashes: Array, rows: Array, valid: Array, places: Array, data: Array) -> None:
    for i in range(len(places) - 1):
        if len(valid) == 0 or valid[i]:
            hashes[rows[i]] = _murmur3_bytes(hashes[rows[i]], data, places[i], places[i + 1])


@compiled
def _murmur3_wides(hashes: Array, rows: Array, valid: Array, low: Array, high: Array) -> None:
    data = np.empty(16, dtype=np.uint8)
    for i in range(len(low)):
        if len(valid) == 0 or valid[i]:
            start = _write_shortest(low[i], high[i], data)
            hashes[rows[i]] = _murmur3_bytes(hashes[rows[i]], data, start, 16)


@compiled
def _xxhash64_ints(hashes: Array, rows: Array, valid: Array, values: Array) -> None:
    for i in range(len(values)):
        if len(valid) == 0 or valid[i]:
            hashes[rows[i]] = _xxhash64_int(hashes[rows[i]], values[i])


@compiled
def _xxhash64_longs(hashes: Array, rows: Array, valid: Array, values: Array) -> None:
    for i in range(len(values)):
        if len(valid) == 0 or valid[i]:
            hashes[rows[i]] = _xxhash64_long(hashes[rows[i]], values[i])


@compiled
def _xxhash64_texts(hashes: Array, rows: Array, valid: Array, places: Array, data: Array) -> None:
    for i in range(len(places) - 1):
        if len(valid) == 0 or valid[i]:
            hashes[rows[i]] = _xxhash64_bytes(hashes[rows[i]], data, places[i], places[i + 1])


@compiled
def _xxhash64_wides(hashes: Array, rows: Array, valid: Array, low: Array, high: Array) -> None:
    data = np.empty(16, dtype=np.uint8)
    for i in range(len(low)):
        if len(valid) == 0 or valid[i]:
            start = _write_shortest(low[i], high[i], data)
            hashes[rows[i]] = _xxhash64_bytes(hashes[rows[i]], data, start, 16)


_MURMUR3 = _Kind(_murmur3_ints, _murmur3_longs, _murmur3_wides, _murmur3_texts)
_XXHASH64 = _Kind(_xxhash64_ints, _xxhash64_longs, _xxhash64_wides, _xxhash64_texts)
