"""Joins of several streams, and what a database says of them."""

from __future__ import annotations

import polars as pl
from arrivals import TYPES, bag, query, streams
from hypothesis import strategies as st

from levelwind.model import Column, Operator
from levelwind.model.operator import Multijoin
from levelwind.operators.multijoin import make_multijoin
from levelwind.operators.rows import BEGINNING, END, Arrived, RowType
from levelwind.operators.state import EMPTY

ALIASES = "abcdef"
READ = RowType(tuple(Column(name=name, type=kind) for name, kind in TYPES.items()), "ts")
# How many rows an input has at most, by the number of inputs: the cross product must stay small.
MOST = {2: 25, 3: 12, 4: 8, 5: 6, 6: 5}
# Each is about two inputs x and y, or x alone.
PARTS = [
    "x.k = y.k",
    "x.f = y.f",
    "x.k = y.v",
    "upper(x.s) = y.s",
    "x.v + 1 = y.v",
    "abs(x.v - y.v) < 2",
    "x.v between y.v - 1 and y.v + 2",
    "x.f > y.f - 1.5 and x.f < y.f + 1.5",
    "x.v <= y.v",
    "x.v <> y.v",
    "x.k = y.k or x.s = y.s",
    "x.k <=> y.k",
    "x.ts <= y.ts",
    "x.v + y.v > 0",
    "x.k = 1",
    "x.s is not null",
    "x.v * 2 > 1",
    "x.k + 1 > x.v",
    "true",
]


def kernel_of(where, windows, **options):
    """The kernel of a join of as many inputs as there are windows, in microseconds."""
    aliases = tuple(ALIASES[: len(windows)])
    sizes = {alias: window / 1e6 for alias, window in zip(aliases, windows, strict=True)}
    spec = Multijoin(aliases=aliases, windows_s=sizes, where=where)
    return make_multijoin(Operator(name="m", spec=spec), [READ] * len(windows), **options)


def naive(rows, windows, where, more=()):
    """Every group of the cross product that is a result, as a bag of rows."""
    aliases = ALIASES[: len(rows)]
    latest = f"greatest({', '.join(f'epoch_us({a}.ts)' for a in aliases)})"
    near = [f"{latest} - epoch_us({a}.ts) <= {w}" for a, w in zip(aliases, windows, strict=True)]
    columns = [f"epoch_us({a}.ts), {a}.k, {a}.v, {a}.f, {a}.s" for a in aliases]
    condition = (where or "true").replace("<=>", "IS NOT DISTINCT FROM")
    return bag(
        query(
            f"SELECT {', '.join(columns)}, {latest} FROM {', '.join(f'r{a} {a}' for a in aliases)}"
            f" WHERE {' AND '.join([*near, *more])} AND ({condition})",
            **{f"r{a}": frame for a, frame in zip(aliases, rows, strict=True)},
        )
    )


def plain(rows):
    """Rows that were put out, as a bag."""
    return bag(rows.with_columns(pl.selectors.datetime().to_physical()).rows())


def run(kernel, batches, check=lambda state, marks: None):
    """What a kernel puts out and rejects over batches of arrivals, each input's watermark END at the end."""
    state, outputs, rejected = EMPTY, [], []
    before = BEGINNING
    last = [Arrived(arrived.rows.clear(), END) for arrived in batches[-1]]
    for batch in (*batches, last):
        stepped = kernel.step(state, batch)
        again = kernel.step(state, batch)
        assert stepped.outputs[None].equals(again.outputs[None])
        assert all(at >= before for at in stepped.outputs[None]["join_time"].to_physical())
        outputs.append(stepped.outputs[None])
        rejected += stepped.rejected
        state = stepped.state
        before = min(arrived.watermark for arrived in batch)
        check(state, [arrived.watermark for arrived in batch])
    return pl.concat(outputs), rejected


@st.composite
def conditions(draw, inputs):
    """A condition over some inputs; now and then about three of them at once, or always true or false."""
    parts = []
    for _ in range(draw(st.integers(0, inputs + 1))):
        x, y = draw(st.permutations(ALIASES[:inputs]))[:2]
        parts.append(draw(st.sampled_from(PARTS)).replace("x.", f"{x}.").replace("y.", f"{y}."))
    if inputs > 2 and draw(st.booleans()):
        x, y, z = draw(st.permutations(ALIASES[:inputs]))[:3]
        parts.append(f"{x}.v + {y}.v > {z}.v")
    if draw(st.integers(0, 30)) == 7:
        parts.append("1 = 2")
    return " and ".join(f"({part})" for part in parts) or None


@st.composite
def worlds(draw, least=2, most=6):
    """Streams with their batches, windows of each, and a condition."""
    count = draw(st.integers(least, most))
    batches = draw(st.integers(1, 4))
    found = [
        draw(streams(batches=batches, most=draw(st.sampled_from([0, MOST[count], MOST[count]])), span=20))
        for _ in range(count)
    ]
    windows = [draw(st.integers(0, 12)) for _ in range(count)]
    return found, windows, draw(conditions(count))


def nothing_in_vain(windows):
    """Checks that no row is kept that can be in no group any more."""

    def check(state, marks):
        for input, window in enumerate(windows):
            other = min(mark for at, mark in enumerate(marks) if at != input)
            table = state.tables.get(ALIASES[input])
            kept = None if table is None or other == END else table.read()
            if kept is not None and kept.height:
                assert kept[f"{ALIASES[input]}.ts"].to_physical().min() + window >= other

    return check


def batches_of(found):
    return [list(batch) for batch in zip(*(stream.batches() for stream in found), strict=True)]
