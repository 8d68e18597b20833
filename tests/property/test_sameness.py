"""The same rows come out whatever the plan, the moves, the hops, and wherever a run is killed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.frontend import parse_network
from levelwind.operators.rows import TIME
from levelwind.runtime.coordinator import Coordinator, Move
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.memory import forget
from levelwind.runtime.program import Layout
from levelwind.runtime.sinks import ParquetSink
from levelwind.runtime.staging import DEAD_LETTERS

SECOND = 1_000_000
SCHEMA = {"ts": "timestamp", "k": "string", "v": "bigint"}
OPERATORS = [
    {"name": "some", "kind": "filter", "input": "a", "where": "v % 3 <> 0"},
    {"name": "ways", "kind": "filter", "input": "b", "routes": {"low": "v < 40", "rest": "true"}},
    {"name": "risky", "kind": "map", "input": "ways.rest", "select": {"k": "k", "v": "1000 div (v - 50)"}},
    {"name": "both", "kind": "union", "inputs": ["some", "ways.low", "risky"]},
    {
        "name": "slide",
        "kind": "aggregate",
        "input": "both",
        "by": "k",
        "window": {"size": "4s", "slide": "1s"},
        "compute": {"n": "count(*)", "s": "sum(v)", "f": "first(v)", "l": "last(v)"},
    },
    {
        "name": "cut",
        "kind": "aggregate",
        "input": "both",
        "by": "k",
        "window": {"size": "2s"},
        "compute": {"n": "count(*)", "m": "max(v)"},
        "split": {"into": 3, "by": "k"},
    },
    {
        "name": "nest",
        "kind": "aggregate",
        "input": "cut",
        "window": {"size": "4s"},
        "compute": {"n": "sum(n)", "g": "count(*)", "f": "first(m)"},
    },
    {
        "name": "few",
        "kind": "aggregate",
        "input": "both",
        "by": "k",
        "window": {"rows": 4, "slide": 2},
        "compute": {"s": "sum(v)", "f": "first(v)"},
    },
    {
        "name": "soon",
        "kind": "aggregate",
        "input": "both",
        "by": "k",
        "window": {"size": "4s", "slide": "2s"},
        "timeout": "1s",
        "compute": {"n": "count(*)", "s": "sum(v)", "l": "last(v)"},
    },
    {
        "name": "brief",
        "kind": "aggregate",
        "input": "both",
        "by": "k",
        "window": {"rows": 3},
        "timeout": "2s",
        "compute": {"s": "sum(v)", "f": "first(v)"},
    },
    {"name": "pair", "kind": "join", "inputs": ["some", "cut"], "within": "1s", "where": "some.k = cut.k"},
    {
        "name": "trio",
        "kind": "multijoin",
        "inputs": {"x": "some", "y": "both", "z": "cut"},
        "windows": {"x": "1s", "y": "500ms", "z": "2s"},
        "where": "x.k = y.k and abs(y.v - z.n) < 20 and 100 div (x.v - 50) < 90",
    },
    {
        "name": "parted",
        "kind": "multijoin",
        "inputs": {"x": "a", "y": "b", "z": "a"},
        "windows": {"x": "2s", "y": "1s", "z": "0s"},
        "where": "x.k = y.k and y.k = z.k and x.v <> z.v",
        "split": {"into": 2, "by": "z.k"},
    },
    {
        "name": "tail",
        "kind": "aggregate",
        "input": "pair",
        "window": {"size": "2s"},
        "compute": {"n": "count(*)", "l": "last(`some.v`)"},
    },
]
SINKS = ("slide", "cut", "nest", "few", "soon", "brief", "pair", "trio", "parted", "tail", "risky")
NODES = ("n1", "n2", "n3")


def network(hops):
    told = {
        "name": "t",
        "hops": hops,
        "streams": {
            "a": {"schema": SCHEMA, "time": "ts", "lateness": "1s"},
            "b": {"schema": SCHEMA, "time": "ts"},
        },
        "operators": OPERATORS,
        "outputs": {name: {"input": name} for name in SINKS},
    }
    return parse_network(told).network


LAYOUTS = {hops: Layout(network(hops)) for hops in ("within", "next")}
BOXES = [box.name for box in LAYOUTS["within"].boxes]


class CrashError(Exception):
    """A process that is no more."""


class Mortal(InProcess):
    """Dies on demand, before or after its work."""

    def __init__(self):
        self.deaths = []

    def run(self, program, batch, rows):
        if self.deaths and self.deaths[0] == "before":
            self.deaths.pop(0)
            raise CrashError
        reports = super().run(program, batch, rows)
        if self.deaths and self.deaths[0] == "after":
            self.deaths.pop(0)
            raise CrashError
        return reports


class Shy(ParquetSink):
    """Dies before it publishes, on demand."""

    deaths: list[str]

    def publish(self, step, published):
        if self.deaths and self.deaths[0] == "publish":
            self.deaths.pop(0)
            raise CrashError
        super().publish(step, published)


class World:
    """One run of the network, brought back to life whenever it dies."""

    def __init__(self, folder, hops, placement):
        self.folder, self.layout, self.placement = Path(folder), LAYOUTS[hops], placement
        self.executor = Mortal()
        self.revive()

    def revive(self):
        forget()  # a new process remembers nothing
        sinks = {}
        for name in (*SINKS, DEAD_LETTERS):
            sinks[name] = Shy(str(self.folder / (name or "dead")))
            sinks[name].deaths = self.executor.deaths
        self.coordinator = Coordinator(
            self.layout,
            NODES,
            self.placement,
            directory=str(self.folder / "checkpoint"),
            executor=self.executor,
            sinks=sinks,
            clock=lambda: 0.0,
        )
        try:
            self.coordinator.recover()
        except CrashError:
            self.revive()

    def step(self, number, rows, moves, deaths):
        self.executor.deaths[:] = deaths
        for _ in range(len(deaths) + 1):
            try:
                last = self.coordinator.last
                if last is None or last.batch is None or last.batch < number:
                    self.coordinator.move(moves)
                    self.coordinator.step(rows, batch=number)
                return
            except CrashError:
                self.revive()

    def rows(self):
        self.executor.deaths.clear()
        self.coordinator.close()
        found = {}
        for name in (*SINKS, DEAD_LETTERS):
            files = sorted((self.folder / (name or "dead")).glob("*.parquet"))
            frame = pl.concat([pl.read_parquet(file) for file in files]) if files else None
            found[name] = None if frame is None else sorted(frame.rows(), key=repr)
        return found


@st.composite
def streams(draw):
    """Batches of two streams; stream a out of order within a second, sometimes late."""
    batches = []
    for number in range(draw(st.integers(2, 6))):
        reading = []
        for name in ("a", "b"):
            for _ in range(draw(st.integers(0, 2))):
                rows = draw(
                    st.lists(
                        st.tuples(st.integers(0, 12), st.sampled_from(["x", "y", None]), st.integers(0, 99)),
                        max_size=8,
                    )
                )
                # Half seconds, so that rows of one time are common.
                times = [(number * 6 + t) * SECOND // 2 for t, _, _ in rows]
                frame = pl.DataFrame(
                    {
                        "ts": pl.Series(times, dtype=pl.Int64).cast(TIME),
                        "k": pl.Series([k for _, k, _ in rows], dtype=pl.String),
                        "v": pl.Series([v for _, _, v in rows], dtype=pl.Int64),
                    }
                )
                reading.append([(name, frame)])
        batches.append(reading)
    return batches


placements = st.fixed_dictionaries({name: st.sampled_from(NODES) for name in BOXES})
moves = st.lists(
    st.builds(Move, operator=st.sampled_from(BOXES), target=st.sampled_from(NODES), cause=st.just("test")),
    max_size=3,
)
deaths = st.lists(st.sampled_from(["before", "after", "publish"]), max_size=2)
ALONE = dict.fromkeys(BOXES, "n1")


def outcome(hops, placement, batches, moved, died):
    folder = tempfile.mkdtemp()
    try:
        world = World(folder, hops, placement)
        for number, batch in enumerate(batches):
            world.step(number, batch, moved[number], died[number])
        return world.rows()
    finally:
        shutil.rmtree(folder)


@settings(max_examples=20)
@given(data=st.data(), batches=streams())
def test_same_rows(data, batches):
    nothing = [[]] * len(batches)
    alone = outcome("within", ALONE, batches, nothing, nothing)
    for hops in ("within", "next"):
        placement = data.draw(placements)
        moved = [data.draw(moves) for _ in batches]
        died = [data.draw(deaths) for _ in batches]
        assert outcome(hops, placement, batches, moved, died) == alone
