"""Joins of two to six streams over batches of any cut against one cross product over all rows."""

from __future__ import annotations

from arrivals import streams
from groups import ALIASES, kernel_of, naive, plain, run
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.operators.rows import END

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


@settings(max_examples=400)
@given(worlds())
def test_groups_are_those_of_one_cross_product(world):
    found, windows, where = world
    batches = [list(batch) for batch in zip(*(stream.batches() for stream in found), strict=True)]
    rows, rejected = run(kernel_of(where, windows), batches, nothing_in_vain(windows))
    assert not rejected
    assert plain(rows) == naive([stream.rows for stream in found], windows, where)
