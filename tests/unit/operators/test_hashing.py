"""Hashes: fixed values (checked against Spark itself in tests/spark), nulls, chaining, refusals."""

import datetime as dt
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levelwind.errors import LevelwindError
from levelwind.operators.hashing import instance_of, murmur3, xxhash64

NAN = float("nan")
# Values, their type, Spark's hash, Spark's xxhash64, the instance out of five.
GOLDEN = [
    (
        [0, 1, -1, 2**31 - 1, None],
        pl.Int32,
        [933211791, -559580957, -1604776387, 133916647, 42],
        [3614696996920510707, -6698625589789238999, 2017008487422258757, 1508894993788531228, 42],
        [2, 1, 2, 3, 2],
    ),
    (
        [0, 1, -1, 2**63 - 1, None],
        pl.Int64,
        [-1670924195, -1712319331, -939490007, -1604625029, 42],
        [-5252525462095825812, -7001672635703045582, 3858142552250413010, -3246596055638297850, 42],
        [3, 3, 0, 0, 2],
    ),
    (
        [0.0, -0.0, 1.5, NAN, None],
        pl.Float64,
        [-1670924195, -1670924195, 1290763749, -1281358385, 42],
        [-5252525462095825812, -5252525462095825812, 7738255526519901366, -3127944061524951246, 42],
        [3, 3, 1, 4, 2],
    ),
    (
        [0.0, -0.0, 1.5, NAN, None],
        pl.Float32,
        [933211791, 933211791, -221251528, -349261430, 42],
        [3614696996920510707, 3614696996920510707, 6163473420726370430, 2692338816207849720, 42],
        [2, 2, 0, 0, 2],
    ),
    (
        ["", "a", "key", "Ωμέγα", "x" * 33, None],
        pl.String,
        [142593372, 1485273170, -1837658645, 860117608, 156528433, 42],
        [
            -7444071767201028348,
            -8582455328737087284,
            7540006804610737327,
            -8421837940924553212,
            -2751654916054470392,
            42,
        ],
        [2, 1, 2, 3, 3, 2],
    ),
    (
        [True, False, None],
        pl.Boolean,
        [-559580957, 933211791, 42],
        [-6698625589789238999, 3614696996920510707, 42],
        [1, 2, 2],
    ),
    ([dt.date(2024, 2, 29), None], pl.Date, [653915859, 42], [4183429117450946631, 42], [1, 2]),
    (
        [dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC), None],
        pl.Datetime("us", "UTC"),
        [293907258, 42],
        [2906971207710284459, 42],
        [4, 2],
    ),
    ([Decimal("12.34"), None], pl.Decimal(10, 2), [-1028144669, 42], [-3802813071951760351, 42], [4, 2]),
    ([Decimal("12.34"), None], pl.Decimal(38, 2), [1123058251, 42], [804797035677707363, 42], [3, 2]),
]


@pytest.mark.parametrize(
    ("values", "dtype", "hashes", "longs", "instances"), GOLDEN, ids=lambda v: str(v)[:20]
)
def test_fixed_values(values, dtype, hashes, longs, instances):
    """These must never change: kept state stands where they say."""
    column = pl.Series(values, dtype=dtype)
    assert murmur3([column], [None]).to_list() == hashes
    assert xxhash64([column], [None]).to_list() == longs
    assert instance_of([column], 5).tolist() == instances


def test_result_types():
    column = pl.Series(["a"])
    assert murmur3([column], [None]).dtype == pl.Int32
    assert xxhash64([column], [None]).dtype == pl.Int64
    assert instance_of([column], 3).dtype == np.int64
    assert instance_of([column.head(0)], 3).tolist() == []


def test_instances_of_a_key_of_two_columns():
    columns = [pl.Series(["a", None, "b", None]), pl.Series([1, 1, None, None], dtype=pl.Int64)]
    assert instance_of(columns, 4).tolist() == [3, 2, 3, 2]
    assert instance_of(columns, 1).tolist() == [0, 0, 0, 0]


@given(st.lists(st.tuples(st.none() | st.text(), st.none() | st.integers(-(2**63), 2**63 - 1)), min_size=1))
def test_a_hash_depends_on_its_row_alone(rows):
    texts = pl.Series([text for text, _ in rows], dtype=pl.String)
    numbers = pl.Series([number for _, number in rows], dtype=pl.Int64)
    whole = xxhash64([texts, numbers], [None, None]).to_list()
    single = [xxhash64([texts[i : i + 1], numbers[i : i + 1]], [None, None])[0] for i in range(len(rows))]
    assert whole == single
    assert instance_of([texts, numbers], 3).tolist() == [value % 3 for value in whole]


@given(st.binary(max_size=80))
def test_murmur3_of_bytes_against_a_plain_translation(data):
    assert murmur3([pl.Series([data])], [None])[0] == plain_murmur3(data)


def plain_murmur3(data, seed=42):
    """Spark's algorithm in whole numbers of any size, straight from its definition."""
    low = 2**32 - 1

    def turn(word, bits):
        return ((word << bits) | (word >> (32 - bits))) & low

    whole = len(data) // 4 * 4
    words = [int.from_bytes(data[i : i + 4], "little") for i in range(0, whole, 4)]
    words += [(byte - 256 if byte > 127 else byte) & low for byte in data[whole:]]
    h = seed
    for word in words:
        h ^= turn(word * 0xCC9E2D51 & low, 15) * 0x1B873593 & low
        h = (turn(h, 13) * 5 + 0xE6546B64) & low
    h ^= len(data)
    h = (h ^ (h >> 16)) * 0x85EBCA6B & low
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & low
    h ^= h >> 16
    return h - 2**32 if h >= 2**31 else h


def test_nulls_leave_the_hash_as_it_is():
    some = pl.Series([3, 4], dtype=pl.Int32)
    nothing = pl.Series([None, None], dtype=pl.String)
    alone = xxhash64([some], [None]).to_list()
    assert xxhash64([nothing, some, nothing], [None] * 3).to_list() == alone
    assert xxhash64([some, pl.Series([None, None])], [None] * 2).to_list() == alone


def test_lists_and_structs_hash_as_their_parts_in_turn():
    lists = pl.Series([["a", "b"], [], None, ["c", None]])
    texts = [pl.Series(["a", None, None, "c"]), pl.Series(["b", None, None, None])]
    assert murmur3([lists], [None]).to_list() == murmur3(texts, [None, None]).to_list()
    structs = pl.Series([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}])
    parts = [pl.Series([1, None, None], dtype=pl.Int64), pl.Series(["x", None, "y"])]
    assert xxhash64([structs], [None]).to_list() == xxhash64(parts, [None, None]).to_list()
    hidden = pa.StructArray.from_arrays([pa.array([1, 2])], ["a"], mask=pa.array([False, True]))
    assert murmur3([pl.Series(hidden)], [None]).to_list() == [-1712319331, 42]


def test_a_timestamp_hashes_as_its_microseconds_whatever_its_unit():
    time = pl.Series([dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC), None], dtype=pl.Datetime("ms", "UTC"))
    assert murmur3([time], [None]).to_list() == [293907258, 42]


def test_what_cannot_be_hashed_is_refused():
    with pytest.raises(LevelwindError, match="lists of structs"):
        murmur3([pl.Series([[{"a": 1}]])], [None])
    with pytest.raises(LevelwindError, match="cannot be hashed"):
        murmur3([pl.Series("clock", [dt.time(1, 2)])], [None])
    with pytest.raises(ValueError, match="at least one"):
        murmur3([], [])
