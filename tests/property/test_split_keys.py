"""Rows that belong together meet in one instance of a split operator, whatever types their keys have."""

from __future__ import annotations

from itertools import product

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.errors import InputError
from levelwind.frontend import parse_network
from levelwind.model import Port
from levelwind.operators.hashing import instance_of
from levelwind.operators.join import make_join
from levelwind.operators.rows import BEGINNING, TIME, Arrived
from levelwind.operators.state import EMPTY
from levelwind.runtime.delivery import parted
from levelwind.runtime.program import Layout

NUMBERS = {
    "tinyint": pl.Int8,
    "smallint": pl.Int16,
    "int": pl.Int32,
    "bigint": pl.Int64,
    "float": pl.Float32,
    "double": pl.Float64,
}
TEXTS = {"string": pl.String, "varchar(5)": pl.String, "char(3)": pl.String}
PAIRS = [*product(NUMBERS, NUMBERS), *product(TEXTS, TEXTS)]
VALUES = st.one_of(st.none(), st.integers(-128, 127))


def layout(left, right, where="a.k = b.j", by=("a.k", "b.j")):
    split = {"into": 3, **({"by": list(by)} if by else {})}
    told = {
        "streams": {
            "a": {"schema": {"ts": "timestamp", "k": left, "n": "int"}, "time": "ts"},
            "b": {"schema": {"ts": "timestamp", "j": right, "n": "int"}, "time": "ts"},
        },
        "operators": [
            {
                "name": "pair",
                "kind": "join",
                "inputs": ["a", "b"],
                "within": "1h",
                "where": where,
                "split": split,
            }
        ],
        "outputs": {"o": {"input": "pair"}},
    }
    return Layout(parse_network(told).network)


def frame(name, keys, kind):
    dtype = {**NUMBERS, **TEXTS}[kind]
    values = [None if key is None else str(key) if dtype == pl.String else key for key in keys]
    return pl.DataFrame(
        {
            "ts": pl.Series(range(len(keys)), dtype=pl.Int64).cast(TIME),
            name: pl.Series(values, dtype=dtype),
            "n": pl.Series(range(len(keys)), dtype=pl.Int32),
        }
    )


def joined(of, left, right):
    kernel = make_join(of.boxes[0].operator, [of.types[Port(source=name)] for name in ("a", "b")])
    out = kernel.step(EMPTY, [Arrived(left, BEGINNING), Arrived(right, BEGINNING)]).outputs[None]
    return sorted(out.select("a.n", "b.n").rows())


@settings(max_examples=60)
@given(st.sampled_from(PAIRS), st.lists(VALUES, max_size=30), st.lists(VALUES, max_size=30))
def test_a_split_join_finds_the_pairs_of_a_whole_one(kinds, lefts, rights):
    of = layout(*kinds)
    left, right = frame("k", lefts, kinds[0]), frame("j", rights, kinds[1])
    shares = {name: {} for name in ("a", "b")}
    for name, rows in (("a", left), ("b", right)):
        for part, share in parted(of, Port(source=name), rows):
            shares[name][part.instance] = share
    found = []
    for instance in range(3):
        both = shares["a"].get(instance), shares["b"].get(instance)
        if both[0] is not None and both[1] is not None:
            found += joined(of, *both)
    assert sorted(found) == joined(of, left, right)


def test_equal_types_are_hashed_as_they_are():
    """State of split joins was laid out by this."""
    for kind in (*NUMBERS, "string"):
        for cut in layout(kind, kind).cuts["pair"]:
            assert cut.types == (None,)


@pytest.mark.parametrize("by", [("a.k",), ("b.j",), ()])
def test_what_a_split_leaves_open_the_condition_says(by):
    (left, right) = layout("int", "bigint", by=by).cuts["pair"]
    assert (left.columns, right.columns) == (("k",), ("j",))
    assert (left.types, right.types) == (("bigint",), (None,))


@pytest.mark.parametrize(
    ("where", "by"),
    [
        ("a.k < b.j", ("a.k", "b.j")),
        ("a.k = b.j", ("a.n", "b.n")),
        ("a.k = b.j or a.n = b.n", ("a.k", "b.j")),
        ("a.k + 1 = b.j", ("a.k", "b.j")),
        ("a.k < b.j", ()),
    ],
)
def test_a_split_that_would_tear_pairs_apart_is_refused(where, by):
    with pytest.raises(InputError) as raised:
        layout("int", "bigint", where, by)
    assert [problem.key for problem in raised.value.problems] == ["operators.pair.split.by"]


def test_types_that_no_hash_compares_are_refused():
    with pytest.raises(InputError):
        layout("decimal(10,2)", "int")


@given(st.lists(st.integers(-128, 127), min_size=1))
def test_numbers_of_an_unknown_type_go_to_one_instance_whatever_they_are_held_in(values):
    dtypes = [*NUMBERS.values(), pl.Decimal(10, 2), pl.UInt32 if min(values) >= 0 else pl.Int64]
    found = [instance_of([pl.Series(values, dtype=dtype)], 7, ["unknown"]).tolist() for dtype in dtypes]
    assert all(each == found[0] for each in found)
