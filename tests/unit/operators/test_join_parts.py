"""Parts of a spread join take rows that are sent again, whatever the windows of rows that they held."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from levelwind.diffusion.coordinated import Path
from levelwind.diffusion.router import AGAIN, KEEPS, LOOKS
from levelwind.frontend import parse_network
from levelwind.operators.rows import END, TIME, Arrived
from levelwind.operators.spreading import make_join_part
from levelwind.operators.spreading.columns import ERA, KNOWN, ROLE, SLOT, SPAN
from levelwind.operators.spreading.paths import path_rows
from levelwind.operators.state import State
from levelwind.runtime.program import Layout

SECOND = 1_000_000


def part(method):
    stream = {"schema": {"ts": "timestamp", "v": "bigint"}, "time": "ts"}
    join = {"name": "m", "kind": "multijoin", "inputs": {"a": "p", "b": "q"}, "where": "a.v <> b.v"}
    told = {"windows": {"a": "1s", "b": "1s"}, "diffuse": {"method": method, "instances": 1}}
    document = {
        "streams": {"p": stream, "q": stream},
        "operators": [{**join, **told}],
        "outputs": {"o": {"input": "m"}},
    }
    layout = Layout(parse_network(document).network)
    operator = next(box.operator for box in layout.boxes if box.name == "m[0]")
    return make_join_part(operator, [layout.types[port] for port in operator.inputs])


def rows(seconds, **told):
    times = pl.Series([second * SECOND for second in seconds], dtype=pl.Int64).cast(TIME)
    own = {name: pl.Series([value] * len(seconds)) for name, value in told.items()}
    return pl.DataFrame({"ts": times, "v": pl.Series(seconds, dtype=pl.Int64), **own})


def test_an_aligned_part_takes_rows_that_are_sent_again():
    kernel = part("atr")
    # Of the rows held, the window is a second: they are given up to 99.
    old = {ERA: 0, SPAN: SECOND, KNOWN: False}
    state = kernel.step(
        State(), [Arrived(rows([0, 100], **old), 100 * SECOND), Arrived(rows([]), 100 * SECOND)]
    ).state
    again, new = (
        {ERA: 1, SPAN: 60 * SECOND, KNOWN: True},
        {ERA: 1, SPAN: 60 * SECOND, KNOWN: False},
    )
    # Two that are known make no group, and one of an era before none with a new one.
    inputs = [rows([50], **again), pl.concat([rows([51], **again), rows([101], **new)])]
    stepped = kernel.step(state, [Arrived(each, 101 * SECOND) for each in inputs])
    assert stepped.outputs[None].select("a.v", "b.v").rows() == [(50, 101)]
    late = kernel.step(
        stepped.state, [Arrived(rows([]), 102 * SECOND), Arrived(rows([102], **new), 102 * SECOND)]
    )
    assert late.outputs[None].select("a.v", "b.v").rows() == [(50, 102)]


def path(era, until_s, window_s):
    """All rows of an era are in one slot, which the one host answers for."""
    laid = [
        Path(
            era=era,
            slot=0,
            stream=k,
            order=np.array([1 - k]),
            first=0,
            serve=np.array([[0]]),
            until_us=until_s * SECOND,
        )
        for k in range(2)
    ]
    return path_rows(laid, [window_s * SECOND] * 2)


@pytest.mark.parametrize("closing", [False, True])
def test_a_hop_takes_rows_that_are_sent_again(closing):
    kernel = part("ctr")
    old, new, again = (
        {ERA: era, SLOT: 0, ROLE: KEEPS + LOOKS + more} for era, more in ((0, 0), (1, 0), (1, AGAIN))
    )
    told = [rows([0, 100], **old), rows([]), path(0, 100, 1)]
    state = kernel.step(State(), [Arrived(each, 100 * SECOND) for each in told]).state
    both = pl.concat([rows([51], **again), rows([101], **new)])
    told = [rows([50], **again), both, path(1, 200, 60)]
    state = kernel.step(state, [Arrived(each, 101 * SECOND) for each in told]).state
    until = END if closing else 150 * SECOND
    nothing = [rows([]), rows([]), path(1, 200, 60).clear()]
    stepped = kernel.step(state, [Arrived(each, until) for each in nothing])
    assert stepped.outputs[None].select("a.v", "b.v").rows() == [(50, 101)]
