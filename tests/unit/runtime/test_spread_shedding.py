"""A spread join leaves out the rows that the plain one does, and counts them once."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from levelwind.frontend import parse_network
from levelwind.operators.rows import TIME, Arrived
from levelwind.operators.spreading.diffusion import make_diffusion
from levelwind.operators.state import State
from levelwind.runtime.coordinator import Coordinator
from levelwind.runtime.hearsay import diffusions
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.memory import forget
from levelwind.runtime.program import Layout
from levelwind.runtime.progress import Progress
from levelwind.runtime.sinks import ParquetSink
from levelwind.runtime.staging import DEAD_LETTERS

SECOND, NODES = 1_000_000, ("n1", "n2", "n3")
STREAM = {"schema": {"ts": "timestamp", "v": "bigint", "w": "bigint"}, "time": "ts"}


def layout(diffuse, *, shed=15, where="a.v = b.v and b.v = c.v and 12 / a.w > 2 and b.w > 1"):
    join = {
        "name": "trio",
        "kind": "multijoin",
        "inputs": {"a": "p", "b": "q", "c": "q"},
        "windows": {"a": "2s", "b": "1500ms", "c": "3s"},
        "where": where,
    }
    join |= {"diffuse": diffuse} if diffuse else {}
    join |= {"shed": {"rows": shed}} if shed else {}
    return Layout(
        parse_network(
            {
                "streams": {"p": STREAM, "q": STREAM},
                "operators": [join],
                "outputs": {"out": {"input": "trio"}},
            }
        ).network
    )


def rows_of(rng, number, count=30):
    """Rows of one second, with a time or without."""
    times = np.sort(rng.integers(0, SECOND, count)) + number * SECOND
    clock = pl.Series("ts", times).cast(TIME)
    clock = clock.scatter(int(rng.integers(count)), None)
    return pl.DataFrame(
        [clock, pl.Series("v", rng.integers(0, 6, count)), pl.Series("w", rng.integers(0, 8, count))]
    )


def read(folder, columns):
    frames = [pl.read_parquet(file).select(columns) for file in sorted(folder.glob("*.parquet"))]
    return sorted(pl.concat(frames).rows(), key=repr)


class Run:
    """A run in this process: what came out, what was rejected, how much was left out."""

    def __init__(self, folder, of, *, shares=None, steps=8):
        forget()
        progress, rng = Progress(), np.random.default_rng(11)
        names = [box.name for box in of.boxes]
        coordinator = Coordinator(
            of,
            NODES,
            {name: NODES[i % len(NODES)] for i, name in enumerate(names)},
            directory=str(folder / "checkpoint"),
            executor=InProcess(),
            sinks={name: ParquetSink(str(folder / (name or "dead"))) for name in ("out", DEAD_LETTERS)},
        )
        coordinator.shed(shares or {})
        for number in range(steps):
            rows = [("p", rows_of(rng, number)), ("q", rows_of(rng, number))]
            progress.add(coordinator.step([rows]))
        coordinator.close()
        self.shed = progress.shed
        self.rows = read(folder / "out", pl.all())
        self.dead = read(folder / "dead", pl.col("row", "reason"))


@pytest.mark.parametrize("method", ["atr", "ctr"])
@pytest.mark.parametrize("share", [None, 0.6])
def test_the_same_rows_are_left_out_as_by_the_plain_join(tmp_path, method, share):
    diffuse = {"method": method, "instances": 3}
    diffuse |= {"segment": "500ms"} if method == "atr" else {}
    plain = Run(tmp_path / "plain", layout(None), shares={"trio": share} if share else None)
    spread = Run(tmp_path / "spread", layout(diffuse), shares={"trio[in]": share} if share else None)
    assert len(plain.rows) > 50
    assert plain.shed > 50
    assert spread.rows == plain.rows
    assert spread.dead == plain.dead
    assert spread.shed == plain.shed


@pytest.mark.parametrize("method", ["atr", "ctr"])
def test_rows_that_fail_by_themselves_are_not_sent(tmp_path, method):
    """Rows of b with a small w are in no group; of a, those on which the condition fails are rejected."""
    where = "a.v = b.v and b.v = c.v and 12 / a.w > 2 and b.w > 6"
    plain = Run(tmp_path / "plain", layout(None, shed=None, where=where))
    of = layout({"method": method, "instances": 3}, shed=None, where=where)
    spread = Run(tmp_path / "spread", of)
    assert spread.rows == plain.rows
    assert spread.dead == plain.dead
    assert any("ivision by zero" in reason for _, reason in plain.dead)
    (box,) = diffusions(of)
    kernel = make_diffusion(box.operator, [of.types[port] for port in box.operator.inputs])
    p, q = (rows_of(np.random.default_rng(seed), 0, 100) for seed in (1, 2))
    stepped = kernel.step(State(), [Arrived(rows, 0) for rows in (p, q, q)])
    sent = {
        alias: {w for route, rows in stepped.outputs.items() if route[-1] == alias for w in rows["w"]}
        for alias in "abc"
    }
    assert sent == {"a": {0, 1, 2, 3, 4, 5}, "b": {7}, "c": set(range(8))}
