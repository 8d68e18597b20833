"""What stands in the columns of made-up rows: drawn by counter, so that a row's values depend on it alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from levelwind.runtime.randomness import Counters, Floats, bits, normals, uniforms
from levelwind.runtime.source_options import OptionReader

KINDS = ("zipf", "uniform", "normal", "choice", "sequence", "constant")
MOST_VALUES = 1_000_000
MOST_WRITTEN = 100_000


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows to fill: a counter that no other row has, the row's number from 0, its event time.

    ``numbers`` is None unless a filling needs it (`Filling.numbered`): counting all rows before costs.
    """

    counters: Counters
    times: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64] | None = None


class Filling(Protocol):
    """The values of one column."""

    @property
    def numbered(self) -> bool:
        """Whether the rows' numbers are needed."""
        ...

    def values(self, rows: Rows, of: int, kind: pa.DataType) -> pa.Array:
        """The column for some rows; ``of`` is the key of its random numbers."""
        ...


class _Unnumbered:
    @property
    def numbered(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Zipf(_Unnumbered):
    """One of ``count`` values, the k-th with a chance in proportion to 1/k^exponent; counted from 0."""

    count: int
    exponent: float
    prefix: str

    def values(self, rows: Rows, of: int, kind: pa.DataType) -> pa.Array:
        """Found in the distribution's sums."""
        found = np.searchsorted(_zipf_sums(self.count, self.exponent), uniforms(of, rows.counters), "right")
        return _written(found, self.prefix, kind, range(self.count))


@lru_cache(maxsize=16)
def _zipf_sums(count: int, exponent: float) -> Floats:
    sums = np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -exponent)
    sums /= sums[-1]
    return sums[:-1]  # whatever lies beyond belongs to the last value


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform(_Unnumbered):
    """Any number from ``low`` to ``high``: both included where numbers are whole."""

    low: float
    high: float
    prefix: str

    def values(self, rows: Rows, of: int, kind: pa.DataType) -> pa.Array:
        """Spread over the range."""
        chances = uniforms(of, rows.counters)
        if _is_whole(kind) or pa.types.is_string(kind):
            low, high = math.ceil(self.low), math.floor(self.high)
            found = low + np.floor(chances * (high - low + 1)).astype(np.int64)
            return _written(found, self.prefix, kind, range(low, high + 1))
        return _numbers(self.low + chances * (self.high - self.low), kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Normal(_Unnumbered):
    """Numbers around ``mean``."""

    mean: float
    std: float

    def values(self, rows: Rows, of: int, kind: pa.DataType) -> pa.Array:
        """Whole numbers are rounded."""
        found = self.mean + self.std * normals(of, rows.counters)
        return _numbers(np.rint(found) if _is_whole(kind) else found, kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen(_Unnumbered):
    """One of the given values, by weight."""

    pool: pa.Array
    sums: tuple[float, ...]

    def values(self, rows: Rows, of: int, kind: pa.DataType) -> pa.Array:
        """Found in the sums of the weights."""
        found = np.searchsorted(np.asarray(self.sums[:-1]), uniforms(of, rows.counters), "right")
        return self.pool.take(pa.array(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """The row's number, in steps."""

    start: int
    step: int
    prefix: str

    @property
    def numbered(self) -> bool:
        """Yes."""
        return True

    def values(self, rows: Rows, of: int, kind: pa.DataType) -> pa.Array:
        """Counted over the whole stream."""
        assert rows.numbers is not None
        return _written(self.start + rows.numbers * self.step, self.prefix, kind)


@dataclass(frozen=True, slots=True)
class ByType(_Unnumbered):
    """What types get that have no numbers: a coin for booleans, the event time for times, random bytes."""

    def values(self, rows: Rows, of: int, kind: pa.DataType) -> pa.Array:
        """By the column's type."""
        if pa.types.is_boolean(kind):
            return pa.array(uniforms(of, rows.counters) < 0.5)
        if pa.types.is_binary(kind):
            words = pa.py_buffer(bits(of, rows.counters).astype("<u8"))
            return pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(rows.times), [None, words]).cast(
                kind
            )
        return pa.array(rows.times, type=pa.timestamp("us")).cast(kind, safe=False)


def read_filling(
    name: str, kind: pa.DataType, given: Mapping[str, Any] | None, reader: OptionReader
) -> Filling | None:
    """The filling of a column as the options say it, or the usual one of its type; problems to the reader."""
    if given is None:
        usual = _usual(name, kind)
        if usual is None:
            hint = f"give it in columns: {{{name}: {{kind: constant, value: …}}}}"
            reader.refuse("columns", f"there is no usual filling for {kind}", name, hint)
        return usual
    at = f"columns.{name}"
    if not isinstance(given, Mapping):
        reader.refuse(at, "must be a mapping with a kind", given)
        return None
    inner = OptionReader(given, at="")
    found = _read(inner, kind)
    for problem in inner.problems:
        reader.refuse(f"{at}.{problem.key}" if problem.key else at, problem.rule, problem.value, problem.hint)
    return found


_OPTIONS = {
    "zipf": ("values", "exponent", "prefix"),
    "uniform": ("low", "high", "prefix"),
    "normal": ("mean", "std"),
    "choice": ("values", "weights"),
    "sequence": ("start", "step", "prefix"),
    "constant": ("value",),
}
_NUMERIC = "numbers"
_WRITABLE = "numbers and strings"


def _read(reader: OptionReader, kind: pa.DataType) -> Filling | None:
    word = reader.choice("kind", KINDS)
    if word is None or reader.problems:
        return None
    reader.only(("kind", *_OPTIONS[word]), f"the kind {word}")
    if word not in ("choice", "constant"):
        fits = _is_number(kind) or (word != "normal" and pa.types.is_string(kind))
        if not fits:
            reader.refuse("kind", f"is for {_NUMERIC if word == 'normal' else _WRITABLE}", f"{word}, {kind}")
            return None
    made = _READERS[word](reader, kind)
    return None if reader.problems else made


def _read_zipf(reader: OptionReader, kind: pa.DataType) -> Filling | None:
    count = reader.integer("values", 1000)
    if count > MOST_VALUES:
        reader.refuse("values", f"must be at most {MOST_VALUES}", count)
        return None
    _check_fits(reader, "values", count - 1, kind)
    exponent = reader.number("exponent", 1.0)
    return Zipf(count=count, exponent=exponent, prefix=_prefix(reader, kind))


def _read_uniform(reader: OptionReader, kind: pa.DataType) -> Filling | None:
    low, high = reader.number("low", 0.0, least=-math.inf), reader.number("high", least=-math.inf)
    if reader.problems:
        return None
    whole = _is_whole(kind) or pa.types.is_string(kind)
    if low > high or (whole and math.ceil(low) > math.floor(high)):
        reader.refuse("high", "must not be below low", f"low {low:g}, high {high:g}")
    elif whole and high - low >= 2**53:
        reader.refuse("high", "is too far from low", f"low {low:g}, high {high:g}")
    else:
        _check_fits(reader, "low", low, kind)
        _check_fits(reader, "high", high, kind)
    return Uniform(low=low, high=high, prefix=_prefix(reader, kind))


def _read_normal(reader: OptionReader, kind: pa.DataType) -> Filling | None:
    mean, std = reader.number("mean", 0.0, least=-math.inf), reader.number("std", 1.0)
    # Box and Muller's numbers never reach nine: what fits there, fits.
    for edge in (mean - 9 * std, mean + 9 * std):
        _check_fits(reader, "std", edge, kind)
    return Normal(mean=mean, std=std)


def _read_choice(reader: OptionReader, kind: pa.DataType) -> Filling | None:
    values, weights = reader.raw("values"), reader.raw("weights")
    if not isinstance(values, list | tuple) or not values:
        reader.refuse("values", "must be a list of values", values)
        return None
    pool = _pool(reader, "values", list(values), kind)
    if weights is None:
        weights = [1.0] * len(values)
    try:
        parts = np.asarray([float(weight) for weight in weights])
    except (TypeError, ValueError):
        parts = np.zeros(0)
    if len(parts) != len(values) or not np.isfinite(parts).all() or (parts < 0).any() or not parts.sum():
        reader.refuse("weights", "must be a list of numbers, one per value, not all 0", weights)
    if reader.problems:
        return None
    return Chosen(pool=pool, sums=tuple((np.cumsum(parts) / parts.sum()).tolist()))


def _read_sequence(reader: OptionReader, kind: pa.DataType) -> Filling | None:
    least = -(2**63)
    start, step = reader.integer("start", 0, least=least), reader.integer("step", 1, least=least)
    return Sequence(start=start, step=step, prefix=_prefix(reader, kind))


def _read_constant(reader: OptionReader, kind: pa.DataType) -> Filling | None:
    pool = _pool(reader, "value", [reader.raw("value")], kind)
    return Chosen(pool=pool, sums=(1.0,))


_READERS = {
    "zipf": _read_zipf,
    "uniform": _read_uniform,
    "normal": _read_normal,
    "choice": _read_choice,
    "sequence": _read_sequence,
    "constant": _read_constant,
}


def _usual(name: str, kind: pa.DataType) -> Filling | None:
    """The filling of a column of which nothing is said."""
    if pa.types.is_decimal(kind):
        return Uniform(low=0.0, high=0.99 * min(100.0, 10.0 ** (kind.precision - kind.scale)), prefix="")
    if pa.types.is_floating(kind):
        return Uniform(low=0.0, high=1.0, prefix="")
    if _is_whole(kind):
        return Uniform(low=0, high=99, prefix="")
    if pa.types.is_string(kind):
        return Uniform(low=0, high=99, prefix=name)
    if pa.types.is_nested(kind):
        return None
    return ByType()


def _prefix(reader: OptionReader, kind: pa.DataType) -> str:
    if "prefix" in reader and not pa.types.is_string(kind):
        reader.refuse("prefix", "is for strings", f"{reader.raw('prefix')}, {kind}")
    return str(reader.raw("prefix") or "")


def _pool(reader: OptionReader, option: str, values: list[Any], kind: pa.DataType) -> pa.Array:
    """Given values as the column's type."""
    try:
        return pa.array(values, type=kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        pass
    try:  # a time or a decimal is written as text
        return pa.array(values).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        reader.refuse(option, f"must be of the column's type, {kind}", values)
        return pa.nulls(len(values), kind)


def _check_fits(reader: OptionReader, option: str, value: float, kind: pa.DataType) -> None:
    if pa.types.is_string(kind):
        return
    try:
        _numbers(np.asarray([math.trunc(value) if _is_whole(kind) else value], dtype=np.float64), kind)
    except pa.ArrowInvalid:
        reader.refuse(option, f"does not fit into {kind}", f"{value:g}")


def _is_whole(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _numbers(values: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind) and np.issubdtype(values.dtype, np.floating):
        # By way of the widest decimal: a cast from a float to few digits refuses what it would have to round.
        return pc.round(pa.array(values).cast(pa.decimal128(38, 12)), kind.scale).cast(kind, safe=False)
    return pa.array(values).cast(kind, safe=not pa.types.is_floating(kind))


def _written(
    values: npt.NDArray[np.int64], prefix: str, kind: pa.DataType, among: range | None = None
) -> pa.Array:
    """Whole numbers as the column's type; as text, after the prefix. ``among``: all there can be."""
    if not pa.types.is_string(kind):
        return _numbers(values, kind)
    if among is not None and len(among) <= MOST_WRITTEN:
        return _all_written(among, prefix).take(pa.array(values - among.start))
    digits = pa.array(values).cast(pa.string())
    return pc.binary_join_element_wise(prefix, digits, "") if prefix else digits


@lru_cache(maxsize=16)
def _all_written(among: range, prefix: str) -> pa.Array:
    """Few texts that many rows share are written once: it takes ten times as long as to copy them."""
    return _written(np.arange(among.start, among.stop), prefix, pa.string())
