"""A table of odd values of every type, over which expressions are held against Spark."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl

UTC = dt.UTC
TYPES = {
    "k": "int",
    "t": "tinyint",
    "h": "smallint",
    "i": "int",
    "j": "int",
    "l": "bigint",
    "m": "bigint",
    "f": "float",
    "x": "double",
    "y": "double",
    "d": "decimal(10,2)",
    "e": "decimal(20,5)",
    "w": "decimal(38,10)",
    "s": "string",
    "u": "string",
    "v": "string",
    "g": "string",
    "b": "boolean",
    "c": "boolean",
    "dt": "date",
    "ts": "timestamp",
    "te": "timestamp",
    "n": "timestamp_ntz",
    "z": "binary",
    "a.i": "int",
}
NAN, INF = float("nan"), float("inf")
SMALL = [0, 0, 1, 1, 2, 3, 5, 7, -1, -2, -3, 10]
_DOUBLES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    2.5,
    1e10,
    1e-5,
    123456.789,
    1.005,
    2.675,
    1e300,
    -7.25,
    0.1,
    NAN,
    INF,
    -INF,
]
_DOUBLES += [1234567.0, 12345678.9, 1e7, 0.001, 0.00099, 3.0, 99.995, 2147483647.9, 9.223372036854775807e18]
_TEXTS = [
    "",
    "a",
    "abc",
    "ABC",
    "aé😀",
    "  pad ",
    "a%b_c",
    "x\ny",
    "e\u0301",
    "ß",
    "aaa",
    "abcabc",
    "tab\tx",
    "%",
    "İ",
]
_NUMBERS = [
    "1",
    " 2 ",
    "-3",
    "+4",
    "1.5",
    "abc",
    "",
    "1e3",
    "NaN",
    "-inf",
    "99999999999999999999",
    "0.005",
    "t",
    "no",
]
_NUMBERS += [
    "2147483648",
    "128",
    "1d",
    ".5",
    "5.",
    "-0",
    "1e-7",
    "TRUE",
    "0",
    "-128",
    "\t7\n",
    "0.995",
    "12345.678",
]
_TIMES = [
    "2020",
    "2020-5",
    "2020-05-06",
    "2020-5-6",
    " 2020-05-06 ",
    "2020-05-06T",
    "2020-05-06 x",
    "2020-02-30",
]
_TIMES += ["2020-05-06 1", "2020-05-06 01:02:03", "2020-05-06T01:02:03.5", "2020-05-06 01:02:03.1234567"]
_TIMES += [
    "2020-05-06 01:02:03+01:00",
    "2020-05-06 01:02:03Z",
    "2020-05-06 01:02:03 Europe/Paris",
    "1999-12-31 23:59",
]
_TIMES += [
    "2020-05-06 01:02:03UTC+1",
    "2020-05-06 24:00:00",
    "20200506",
    "06/05/2020",
    "2020-05-06 01:02:03 PST",
]
_TIMES += [
    "-0001-01-01",
    "2020-03-29 02:30:00 Europe/Paris",
    "2020-10-25 02:30:00 Europe/Paris",
    "x",
    "1582-10-10",
]


def _time(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


_STAMPS = [
    _time(2020, 2, 29, 12, 34, 56, 789012),
    _time(1970, 1, 1),
    _time(1969, 12, 31, 23, 59, 59, 500000),
    _time(2021, 1, 31, 23, 59, 59),
    _time(1582, 10, 10, 1),
    _time(9999, 12, 31, 23, 59, 59, 999999),
    _time(1900, 3, 1),
    _time(2020, 5, 10, 7),
    _time(2020, 5, 11, 0, 0, 1),
]


def _decimals(*texts: str) -> list[Decimal]:
    return [Decimal(text) for text in texts]


_POOLS: dict[str, Sequence[Any]] = {
    "t": [*SMALL, 127, -128],
    "h": [*SMALL, 32767, -32768],
    "i": [*SMALL, 2**31 - 1, -(2**31), 1234, -46341],
    "j": [*SMALL, 2**31 - 1, -(2**31), 99],
    "l": [*SMALL, 2**63 - 1, -(2**63), 2**31, 10**12, -(10**18)],
    "m": [*SMALL, 2**63 - 1, -(2**63), 3_037_000_500],
    "f": [*_DOUBLES[:12], 1e30, NAN, INF, -INF, 16777216.0, 3.4e38],
    "x": _DOUBLES,
    "y": _DOUBLES,
    "d": _decimals("0.00", "1.25", "-1.25", "99999999.99", "-99999999.99", "0.01", "2.50", "-7.00", "3.00"),
    "e": _decimals("0.00000", "1.50000", "-0.00001", "999999999999999.99999", "3.00000", "-2.50000"),
    "w": _decimals(
        "0", "9999999999999999999999999999.9999999999", "-1.0000000001", "3", "0.3333333333", "12.5"
    ),
    "s": _TEXTS,
    "u": _NUMBERS,
    "v": ["a", "b", "", "é", "%", "a%", "_", "abc", "x", "\\", "a\\%", "^a", "aa"],
    "g": _TIMES,
    "b": [True, False],
    "c": [True, False],
    "dt": [stamp.date() for stamp in _STAMPS],
    "ts": _STAMPS,
    "te": _STAMPS,
    "n": [stamp.replace(tzinfo=None) for stamp in _STAMPS],
    "z": [b"", b"a", "é".encode(), b"abc"],
    "a.i": SMALL,
}
DTYPES: dict[str, pl.DataType] = {
    "tinyint": pl.Int8(),
    "smallint": pl.Int16(),
    "int": pl.Int32(),
    "bigint": pl.Int64(),
    "float": pl.Float32(),
    "double": pl.Float64(),
    "decimal(10,2)": pl.Decimal(10, 2),
    "decimal(20,5)": pl.Decimal(20, 5),
    "decimal(38,10)": pl.Decimal(38, 10),
    "string": pl.String(),
    "boolean": pl.Boolean(),
    "date": pl.Date(),
    "timestamp": pl.Datetime("us", "UTC"),
    "timestamp_ntz": pl.Datetime("us"),
    "binary": pl.Binary(),
}


def table(rows: int = 90, seed: int = 7) -> pl.DataFrame:
    """Every odd value of every type at least once, in random company, and every seventh value null."""
    rng = random.Random(seed)
    columns = {"k": pl.Series(range(rows), dtype=pl.Int32)}
    for name, pool in _POOLS.items():
        values = list(pool) + [rng.choice(pool) for _ in range(rows - len(pool))]
        rng.shuffle(values)
        values = [None if rng.random() < 1 / 7 else value for value in values]
        columns[name] = pl.Series(values, dtype=DTYPES[TYPES[name]])
    return pl.DataFrame(columns)
