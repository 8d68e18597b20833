"""A spread multijoin puts out the rows of the plain one, whatever method, plan, moves, hops and crashes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sameness import CrashError, Mortal, Shy

from levelwind.frontend import parse_network
from levelwind.operators.rows import TIME
from levelwind.runtime.coordinator import Coordinator, Move
from levelwind.runtime.memory import forget
from levelwind.runtime.program import Layout
from levelwind.runtime.staging import DEAD_LETTERS

HALF = 500_000
SCHEMA = {"ts": "timestamp", "k": "string", "v": "bigint"}
NODES = ("n1", "n2", "n3")
WHERE = {
    2: "abs(a.v - b.v) < 3",
    3: "abs(a.v - b.v) < 4 and (b.k = c.k or b.v > c.v)",
    4: "abs(a.v - b.v) < 5 and c.v <> d.v and a.v <= d.v + 8",
    5: "abs(a.v - b.v) < 4 and b.k = c.k and abs(c.v - d.v) < 3 and d.k = e.k",
    6: "abs(a.v - b.v) < 4 and b.k = c.k and abs(c.v - d.v) < 3 and d.k = e.k and a.v <= f.v",
}


def near(left, right):
    """A condition in Python."""
    return (left["v"] - right["v"]).abs() < 4


def join_of(name, aliases, diffuse, *, pairs=None):
    inputs = {alias: "pq"[i % 2] if i < 3 else "big" for i, alias in enumerate(aliases)}
    windows = {alias: f"{(1.5, 2, 0.5, 3, 1, 0.5)[i]}s" for i, alias in enumerate(aliases)}
    join = {"name": name, "kind": "multijoin", "inputs": inputs, "windows": windows}
    if pairs:
        join["pairs"] = pairs
    else:
        join["where"] = WHERE[len(aliases)]
    if diffuse:
        join["diffuse"] = diffuse
    return join


def document(operators, last, hops):
    after = {
        "name": "after",
        "kind": "aggregate",
        "input": last,
        "window": {"size": "2s"},
        "compute": {"n": "count(*)"},
    }
    return {
        "name": "t",
        "hops": hops,
        "streams": {
            "p": {"schema": SCHEMA, "time": "ts", "lateness": "1s"},
            "q": {"schema": SCHEMA, "time": "ts"},
        },
        "operators": [
            {"name": "big", "kind": "filter", "input": "q", "where": "v > 2"},
            *operators,
            after,
        ],
        "outputs": {"trio": {"input": "trio"}, "after": {"input": "after"}},
    }


def network(streams, diffuse, hops):
    told = document([join_of("trio", "abcdef"[:streams], diffuse)], "trio", hops)
    told["operators"][-1]["compute"]["f"] = "first(`a.v`)"
    return parse_network(told).network


def two_joins(diffuse, hops):
    """Two spread joins; one reads what the other finds."""
    renamed = {
        "name": "found",
        "kind": "map",
        "input": "trio",
        "select": {"ts": "join_time", "k": "`a.k`", "v": "`b.v`"},
    }
    second = {
        "name": "again",
        "kind": "multijoin",
        "inputs": {"x": "found", "y": "p"},
        "windows": {"x": "1s", "y": "1.5s"},
        "where": "abs(x.v - y.v) < 2",
    }
    if diffuse:
        second["diffuse"] = {**diffuse, "instances": 2}
    return parse_network(document([join_of("trio", "abc", diffuse), renamed, second], "again", hops)).network


def by_pairs(diffuse, hops):
    """With a condition in Python."""
    asked = [
        {"inputs": ["a", "b"], "function": f"{__name__}:near"},
        {"inputs": ["b", "c"], "function": f"{__name__}:near"},
    ]
    return parse_network(document([join_of("trio", "abc", diffuse, pairs=asked)], "trio", hops)).network


OTHERS = {"two joins": two_joins, "pairs": by_pairs}


SPREAD = {
    "atr": {"method": "atr", "instances": 3, "segment": "1s"},
    "ctr": {"method": "ctr", "instances": 3},
    "auto": {"method": "auto", "instances": 2},
}
_LAYOUTS = {}


def layout(streams, method, hops):
    key = streams, method, hops
    if key not in _LAYOUTS:
        make = OTHERS.get(streams)
        diffuse = SPREAD.get(method)
        _LAYOUTS[key] = Layout(make(diffuse, hops) if make else network(streams, diffuse, hops))
    return _LAYOUTS[key]


class World:
    def __init__(self, folder, layout, placement):
        self.folder, self.layout, self.placement = Path(folder), layout, placement
        self.executor = Mortal()
        self.revive()

    def revive(self):
        forget()
        sinks = {}
        for name in ("trio", "after", DEAD_LETTERS):
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

    def close_and_go_on(self):
        """As ``--until-idle``, and then another run on the same checkpoint."""
        self.executor.deaths.clear()
        self.coordinator.close()
        self.revive()

    def rows(self):
        self.executor.deaths.clear()
        self.coordinator.close()
        found = {}
        for name in ("trio", "after"):
            files = sorted((self.folder / name).glob("*.parquet"))
            frames = [pl.read_parquet(file) for file in files]
            found[name] = sorted(pl.concat(frames).rows(), key=repr) if frames else []
        return found


@st.composite
def batches(draw):
    told = []
    for number in range(draw(st.integers(2, 7))):
        reading = []
        for name in ("p", "q"):
            rows = draw(
                st.lists(st.tuples(st.integers(0, 8), st.sampled_from("xy"), st.integers(0, 9)), max_size=6)
            )
            jump = draw(st.sampled_from([0, 0, 0, 0, 40]))
            times = [(number * 5 + t + (jump if name == "p" else 0)) * HALF for t, _, _ in rows]
            frame = pl.DataFrame(
                {
                    "ts": pl.Series(times, dtype=pl.Int64).cast(TIME),
                    "k": pl.Series([k for _, k, _ in rows], dtype=pl.String),
                    "v": pl.Series([v for _, _, v in rows], dtype=pl.Int64),
                }
            )
            reading.append([(name, frame)])
        told.append(reading)
    return told


def outcome(of, placement, told, moved, died, closed=(), look=None):
    folder = tempfile.mkdtemp()
    try:
        world = World(folder, of, placement)
        for number, batch in enumerate(told):
            world.step(number, batch, moved[number], died[number])
            if number in closed:
                world.close_and_go_on()
        if look is not None:
            look(world)
        return world.rows()
    finally:
        shutil.rmtree(folder)


def check(method, streams, data, told):
    nothing = [[]] * len(told)
    # Most runs are closed once or twice on their way, and go on.
    closed = data.draw(st.sets(st.integers(0, len(told) - 1), max_size=2))
    plain = layout(streams, None, "within")
    expected = outcome(plain, {box.name: "n1" for box in plain.boxes}, told, nothing, nothing, closed)
    hops = data.draw(st.sampled_from(["within", "next"]))
    spread = layout(streams, method, hops)
    names = [box.name for box in spread.boxes]
    placement = {name: data.draw(st.sampled_from(NODES)) for name in names}
    moved = [
        [
            Move(
                operator=data.draw(st.sampled_from(names)),
                target=data.draw(st.sampled_from(NODES)),
                cause="test",
            )
            for _ in range(data.draw(st.integers(0, 2)))
        ]
        for _ in told
    ]
    died = [data.draw(st.lists(st.sampled_from(["before", "after", "publish"]), max_size=1)) for _ in told]
    assert outcome(spread, placement, told, moved, died, closed) == expected
    return len(expected["trio"]), len(expected["after"])


@pytest.mark.parametrize("streams", [2, 3, 4])
@pytest.mark.parametrize("method", ["atr", "ctr", "auto"])
@settings(max_examples=6)
@given(data=st.data(), told=batches())
def test_same_rows_as_the_plain_join(method, streams, data, told):
    check(method, streams, data, told)


@pytest.mark.parametrize("streams", [5, 6, "two joins", "pairs"])
@pytest.mark.parametrize("method", ["atr", "ctr", "auto"])
def test_same_rows_of_many_streams_of_two_joins_and_of_conditions_in_python(method, streams):
    found = []

    @settings(max_examples=3)
    @given(data=st.data(), told=batches())
    def same(data, told):
        found.append(check(method, streams, data, told))

    same()
    assert max(groups for groups, _ in found) > 0, "no example has a group"
