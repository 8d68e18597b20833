"""Parts of a spread join: what they measure of rows of several eras, and which streams are linked."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from levelwind.frontend import parse_network
from levelwind.operators.multijoin import make_multijoin
from levelwind.operators.multijoin.order import mark_names
from levelwind.operators.rows import TIME, Arrived
from levelwind.operators.spreading.columns import ERA
from levelwind.operators.spreading.diffusion import make_diffusion
from levelwind.operators.state import State
from levelwind.runtime.program import Layout

STREAM = {"schema": {"ts": "timestamp", "v": "bigint"}, "time": "ts"}


def network(where, **others):
    join = {
        "name": "trio",
        "kind": "multijoin",
        "inputs": {"a": "p", "b": "q", "c": "r"},
        "windows": {"a": "1s", "b": "1s", "c": "1s"},
        "where": where,
        **others,
    }
    told = {"streams": {"p": STREAM, "q": STREAM, "r": STREAM}, "operators": [join]}
    return Layout(parse_network(told).network)


def kernel_of(of, make, name="trio", **others):
    operator = of.network.operators[name]
    return make(operator, [of.types[port] for port in operator.inputs], **others)


def twice(count):
    """Rows of one second, each in both of two eras, as around a change of masters."""
    times = np.linspace(0, 1_000_000, count).astype(np.int64)
    own = pl.DataFrame({"ts": pl.Series(times).cast(TIME), "v": pl.Series([1] * count)})
    return pl.concat([own.with_columns(pl.lit(era, pl.Int64).alias(ERA)) for era in (3, 4)])


def test_rows_of_different_eras_are_no_pair():
    kernel = kernel_of(network("a.v = b.v and b.v = c.v"), make_multijoin, together=ERA)
    marks = kernel.step(State(), [Arrived(twice(30), 0) for _ in "abc"]).state.marks
    for pair in ("ab", "ac", "bc"):
        near, agreed = (marks[name] for name in mark_names(*pair))
        assert near >= 30
        assert agreed == pytest.approx(near, rel=0.01)


@pytest.mark.parametrize(
    ("where", "linked"),
    [
        ("a.v < b.v and abs(b.v - c.v) < 3", ((0, 1), (1, 2))),
        ("a.v = b.v", ((0, 1),)),
        ("a.v + b.v = c.v", ()),
        ("a.v = b.v and b.v = c.v", ((0, 1), (0, 2), (1, 2))),
    ],
)
def test_an_era_links_nothing_and_the_router_knows_what_is_linked(where, linked):
    part = kernel_of(network(where), make_multijoin, together=ERA)
    assert part.condition.linked == linked
    spread = network(where, diffuse={"method": "auto", "instances": 2})
    sender = kernel_of(spread, make_diffusion, "trio[in]")
    assert sender.shape.unlinked == {(0, 1), (0, 2), (1, 2)} - set(linked)
    most = max(range(3), key=lambda stream: sum(stream in pair for pair in linked))
    assert sender.master == most
