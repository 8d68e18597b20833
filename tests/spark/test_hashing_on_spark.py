"""Our hashes are Spark's, bit for bit: one query over all types, with nulls and odd values."""

import datetime as dt
import random
from decimal import Decimal

import polars as pl
import pytest

from levelwind.operators.hashing import instance_of, murmur3, xxhash64

pytestmark = pytest.mark.spark

INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
LETTERS = ["a", "Z", "0", " ", "ä", "ß", "λ", "水", "𝄞", "🌊", "\x00", "\n"]
FLOATS = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.0, -1.5, 1e-45, 3.4e38]
TYPES = {
    **{kind: getattr(pl, f"Int{bits}") for kind, bits in INTEGERS.items()},
    "float": pl.Float32,
    "double": pl.Float64,
    "string": pl.String,
    "binary": pl.Binary,
    "boolean": pl.Boolean,
    "date": pl.Date,
    "timestamp": pl.Datetime("us", "UTC"),
    "decimal(9,3)": pl.Decimal(9, 3),
    "decimal(18,0)": pl.Decimal(18, 0),
    "decimal(19,4)": pl.Decimal(19, 4),
    "decimal(38,2)": pl.Decimal(38, 2),
    "array<string>": pl.List(pl.String),
    "struct<a:int,b:string>": pl.Struct({"a": pl.Int32, "b": pl.String}),
}
ROWS = 400


def number(rng, bits):
    """Any number of so many bits, small ones and the edges often."""
    few = rng.choice([1, 3, bits // 2, bits - 1, bits - 1])
    edges = [0, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]
    return rng.choice([*edges, rng.getrandbits(few), -rng.getrandbits(few), rng.getrandbits(few)])


def text(rng):
    return "".join(rng.choices(LETTERS, k=rng.choice([0, 1, 2, 3, 4, 7, 8, 15, 31, 32, 33, 63, 64, 100])))


def some_decimal(rng, kind):
    precision, scale = map(int, kind.removeprefix("decimal(").removesuffix(")").split(","))
    largest = 10 ** rng.randint(0, precision) - 1
    unscaled = rng.choice([0, largest, -largest, 128, -128, 255, -256, rng.randint(-largest, largest)])
    unscaled = max(-(10**precision) + 1, min(10**precision - 1, unscaled))
    return Decimal(unscaled).scaleb(-scale) if precision <= 28 else exact(unscaled, scale)


def exact(unscaled, scale):
    """A decimal of up to 38 digits, which the default context would round."""
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def value(rng, kind):
    if rng.random() < 0.15:
        return None
    if kind in INTEGERS:
        return number(rng, INTEGERS[kind])
    if kind in ("float", "double"):
        return rng.choice([*FLOATS, rng.gauss(0, 1), rng.gauss(0, 1e30)])
    if kind in ("string", "binary"):
        return text(rng) if kind == "string" else text(rng).encode()
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "date":
        return dt.date(1970, 1, 1) + dt.timedelta(days=rng.randint(-100_000, 100_000))
    if kind == "timestamp":
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=number(rng, 50))
    if kind.startswith("decimal"):
        return some_decimal(rng, kind)
    if kind.startswith("array"):
        return [rng.choice([None, text(rng)]) for _ in range(rng.choice([0, 1, 2, 5]))]
    return {"a": rng.choice([None, number(rng, 32)]), "b": rng.choice([None, text(rng)])}


def sample(seed=7):
    rng = random.Random(seed)
    return pl.DataFrame(
        {
            f"c{i}": pl.Series([value(rng, kind) for _ in range(ROWS)], dtype=dtype, strict=True)
            for i, (kind, dtype) in enumerate(TYPES.items())
        }
    )


@pytest.fixture(scope="module")
def compared():
    """The sample, and what Spark makes of it: the hash of every column, and of all of them together."""
    from pyspark.sql import SparkSession

    rows = sample()
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        numbered = rows.with_row_index("n").with_columns(pl.col("n").cast(pl.Int64))
        table = session.createDataFrame(numbered.to_arrow(compat_level=pl.CompatLevel.oldest()))
        assert [kind for _, kind in table.dtypes[1:]] == list(TYPES)
        columns = rows.columns
        hashes = [f"{f}({c}) AS {f}_{c}" for f in ("hash", "xxhash64") for c in columns]
        whole = ", ".join(columns)
        found = table.selectExpr(
            "n",
            *hashes,
            f"hash({whole}) AS hash",
            f"xxhash64({whole}) AS xxhash64",
            f"int(pmod(xxhash64({whole}), 7)) AS instance",
        ).toArrow()
    finally:
        session.stop()
    return rows, pl.DataFrame(found).sort("n")


@pytest.mark.parametrize("index", range(len(TYPES)), ids=list(TYPES))
def test_hashes_of_one_column_are_those_of_spark(compared, index):
    rows, spark = compared
    column, kind = rows[f"c{index}"], list(TYPES)[index]
    assert column.null_count() > 0
    for types in ([None], [kind]):
        assert murmur3([column], types).to_list() == spark[f"hash_c{index}"].to_list()
        assert xxhash64([column], types).to_list() == spark[f"xxhash64_c{index}"].to_list()


def test_hashes_of_whole_rows_are_those_of_spark(compared):
    rows, spark = compared
    columns = rows.get_columns()
    nothing = [None] * len(columns)
    assert murmur3(columns, nothing).to_list() == spark["hash"].to_list()
    assert xxhash64(columns, nothing).to_list() == spark["xxhash64"].to_list()
    assert instance_of(columns, 7).tolist() == spark["instance"].to_list()


def test_a_type_tells_what_the_column_does_not(compared):
    """A column that is held in wider numbers than its Spark type hashes as its Spark type does."""
    rows, spark = compared
    names = list(TYPES)
    for kind, wider in (("int", pl.Int64), ("float", pl.Float64), ("decimal(9,3)", pl.Decimal(38, 3))):
        index = names.index(kind)
        column = rows[f"c{index}"].cast(wider)
        assert murmur3([column], [kind]).to_list() == spark[f"hash_c{index}"].to_list()
        assert xxhash64([column], [kind]).to_list() == spark[f"xxhash64_c{index}"].to_list()
        assert murmur3([column], [None]).to_list() != spark[f"hash_c{index}"].to_list()


def test_where_a_column_starts_in_its_buffers_does_not_matter(compared):
    rows, spark = compared
    part, wanted = rows.slice(101, 77), spark.slice(101, 77)
    for index in range(len(TYPES)):
        assert xxhash64([part[f"c{index}"]], [None]).to_list() == wanted[f"xxhash64_c{index}"].to_list()
    pieces = pl.concat([rows.slice(0, 13), rows.slice(13)], rechunk=False)
    for index in range(len(TYPES)):
        assert murmur3([pieces[f"c{index}"]], [None]).to_list() == spark[f"hash_c{index}"].to_list()
