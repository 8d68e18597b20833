"""What the benchmarks of the runtime stand on: files, lines, plans, schedules. No Spark is started here."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from levelwind.bench import deep, many_queries, moves, runtime_worlds, state, throughput, wide
from levelwind.bench.runtime_worlds import (
    WARM_UP,
    Seen,
    batch_seconds,
    line_through,
    steady,
    typical,
    write_files,
)
from levelwind.runtime.program import Layout, Program
from levelwind.testing import sides
from levelwind.testing.sides import network_of, side


def program(network, nodes, placement):
    return Program.of(Layout(network), nodes, placement)


# Shared helpers


def test_batches_are_timed_from_end_to_end():
    step: Any = None
    seen = [Seen(step=step, end_s=end) for end in (1.0, 3.0, 3.5)]
    assert batch_seconds(seen) == [2.0, 0.5]


@pytest.mark.parametrize(
    ("count", "left"),
    [(20, 20 - WARM_UP), (6, 3), (3, 2), (1, 1), (0, 0)],
    ids=["warm-up whole", "half is kept", "rounded in its favour", "a single one stays", "nothing"],
)
def test_warm_up_never_takes_more_than_half(count, left):
    values = [float(i) for i in range(count)]
    assert steady(values) == values[count - left :]


def test_too_little_has_no_typical_value():
    assert typical([]) is None
    assert typical([5.0, 1.0, 2.0, 3.0], warm_up=1) == 2.0


def test_a_line_and_what_it_explains():
    line = line_through([(1, 5.0), (2, 7.0), (3, 9.0)])
    assert (line.start, line.slope, line.r2) == pytest.approx((3.0, 2.0, 1.0))
    noisy = line_through([(0, 0.0), (0, 2.0), (1, 1.0), (1, 3.0)])
    assert (noisy.start, noisy.slope) == pytest.approx((1.0, 1.0))
    assert noisy.r2 == pytest.approx(0.2)
    assert line_through([(0, 4.0), (1, 4.0)]).r2 == 1.0


def test_the_last_query_ends_a_batch_and_only_common_ones_count():
    def progress(batch, second, *, rows=10, taken=500):
        stamp = f"2026-01-01T00:00:{second:02d}.000Z"
        return {
            "batchId": batch,
            "timestamp": stamp,
            "numInputRows": rows,
            "durationMs": {"triggerExecution": taken},
        }

    first = [progress(0, 0, rows=0), progress(0, 1), progress(1, 2), progress(2, 3)]
    second = [progress(0, 1, taken=900), progress(1, 4)]
    ends = runtime_worlds._common_ends([first, second], 3)
    start = runtime_worlds._end(progress(0, 0, taken=0))
    assert [end - start for end in ends] == pytest.approx([1.9, 4.5])


def test_files_are_in_the_order_of_their_times(tmp_path):
    written = write_files(tmp_path, many_queries._together({}, 0))
    assert written == 0
    assert write_files(tmp_path, state.tables(10, 2, 1, seed=0)) == state.FILL_BATCHES + 1
    paths = sorted(tmp_path.iterdir())
    times = [path.stat().st_mtime for path in paths]
    assert times == sorted(set(times))


def test_a_side_that_breaks_says_how(tmp_path, monkeypatch):
    (tmp_path / "sides.py").write_text(
        "import json, sys, time\n"
        "what = json.loads(sys.argv[2])['what']\n"
        "if what == 'break': raise ValueError('gone')\n"
        "if what == 'sleep': time.sleep(60)\n"
        "print('noise'); print(json.dumps({'side': sys.argv[1]}))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert side("sides", "a", what="answer") == {"side": "a"}
    assert side("sides", "a", what="break") == {"died": "exit code 1: ValueError: gone"}
    assert side("sides", "a", what="sleep", patience_s=0.5) == {"died": "no answer within 0.5 s"}
    with pytest.raises(RuntimeError, match="sides, a: exit code 1"):
        sides.ours("sides", "a", what="break")


def test_a_side_answers_with_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench", "double", json.dumps({"number": 21})])
    ended: list[int] = []
    monkeypatch.setattr(sides, "os", SimpleNamespace(_exit=ended.append))
    sides.answer({"double": lambda number: {"found": 2 * number}})
    assert json.loads(capsys.readouterr().out) == {"found": 42}
    assert ended == [0]


# The worlds


def test_160_aggregates_cheapest_windows_first():
    every = many_queries.aggregates(many_queries.ALL)
    assert len({(stream, shape.name) for stream, shape in every}) == 160
    assert {shape.size_s for _, shape in every[:40]} == {1}
    assert all((shape.size_s, shape.slide_s) == (60, 1) for _, shape in every[120:])
    sources = {name: many_queries.made_up(0, 0) for name in many_queries.stream_names()}
    network = network_of(many_queries.document(many_queries.ALL, sources))
    assert len(network.operators) == 160


def test_the_plain_query_asks_the_same():
    shape = many_queries.SHAPES[-1]
    assert shape.sql("t", by=("sub",)) == (
        "SELECT sub, src, dst, window, avg(size) AS mean_size FROM t "
        "GROUP BY sub, src, dst, window(ts, '60 seconds', '1 seconds')"
    )
    assert "window(ts, '1 seconds')" in many_queries.SHAPES[0].sql("t")


def test_both_layouts_of_the_files_hold_the_same_rows(tmp_path):
    many_queries.write_data(tmp_path, batches=2, seed=1)
    parts = [pq.read_table(tmp_path / name / "00002.parquet") for name in many_queries.stream_names()]
    whole = pq.read_table(tmp_path / many_queries.TOGETHER / "00002.parquet")
    assert sum(part.num_rows for part in parts) == whole.num_rows == 20_000
    assert whole.column("size").to_pylist() == [s for part in parts for s in part.column("size").to_pylist()]
    assert parts[0].column("src") != parts[1].column("src")


def test_the_largest_number_that_came_through_counts():
    curve = {
        10: {"batch_s": [1.0] * 8, "died": None},
        20: {"batch_s": [2.0] * 8, "died": None},
        40: {"batch_s": [9.0] * 8, "died": "out of memory"},
        80: {"batch_s": [9.0], "died": None},
    }
    assert many_queries._largest(curve) == (20, 2.0)
    assert many_queries._largest({})[0] == 0


def test_one_number_may_stand_for_both_baselines_and_one_may_be_missing():
    mine = {"batch_s": [1.0] * 8}
    through = {"batch_s": [4.0] * 8, "died": None, "finished": True, "start_s": 1.0}
    dead = {"batch_s": [], "died": "out of memory"}
    both = many_queries._result(mine, mine, {40: mine}, {40: through}, {4: through}, 45.0)
    labels = [figure.label for figure in both.figures]
    assert {"separate over ours, 40 alike", "grouped over ours, 40 alike"} <= set(labels)
    assert both.ratio == 4.0
    alone = many_queries._result(mine, mine, {40: mine}, {40: through}, {4: dead}, 45.0)
    assert all(np.isfinite(figure.value) for figure in alone.figures)
    assert any("4 grouped: died" in note for note in alone.notes)
    with pytest.raises(RuntimeError, match="out of memory"):
        many_queries._result(mine, mine, {}, {10: dead}, {}, 45.0)


def test_a_goal_is_judged_only_where_all_queries_ran():
    assert many_queries._share("x", 0.1, True, 40.0).ok is False
    assert many_queries._share("x", 0.1, False, 40.0).ok is None
    assert many_queries._share("x", 0.01, False, 40.0).ok is True


def test_wide_has_a_thousand_operators_and_no_hop():
    written = wide.document(wide.CHAINS)
    network = network_of(written)
    assert len(network.operators) == 1_000
    placed = wide.placement(written)
    made = program(network, ("n1", "n2"), placed)
    assert made.depth == 1
    assert 400 < list(placed.values()).count("n1") < 600


@pytest.mark.parametrize("hops", deep.HOPS)
def test_deep_has_the_hops_it_says(hops):
    network = network_of(deep.document("within"))
    assert program(network, ("n1", "n2", "n3", "n4"), deep.placement(hops)).depth == hops + 1


def test_deep_goes_through_all_plans_in_turn():
    stretches = deep.schedule(2)
    assert [hops for _, hops in stretches] == [0, 1, 3, 9, 9, 3, 1, 0]
    assert [b - a for (a, _), (b, _) in pairwise(stretches)] == [deep.STAY] * 7
    assert len(deep.scripted(stretches)) == 8 * deep.LENGTH


def test_throughput_closes_a_window_with_every_batch():
    first, second = throughput.tables(1_000, 2, seed=0)
    assert first.num_rows == second.num_rows == 1_000
    window = throughput.WINDOW_S * 1_000_000
    for table in (first, second):
        assert len({moment.value // window for moment in table.column("ts")}) == 1
    assert second.column("ts")[0].value - first.column("ts")[0].value == window


def test_state_fills_every_window_once_and_then_changes_some():
    found = list(state.tables(1_000, 20, 3, seed=0))
    filled = np.concatenate([table.column("key").to_numpy() for table in found[: state.FILL_BATCHES]])
    assert sorted(filled) == list(range(1_000))
    assert all(len(set(table.column("key").to_pylist())) == 20 for table in found[state.FILL_BATCHES :])


@pytest.mark.parametrize("name", moves.WORLDS)
def test_moves_opens_the_windows_it_says_and_hops_nowhere(name, tmp_path):
    world = moves.WORLDS[name]
    network = network_of(world.document(tmp_path))
    scattered = {each: f"n{1 + i % 2}" for i, each in enumerate(world.names)}
    assert program(network, ("n1", "n2"), scattered).depth == 1
    first = next(iter(world.tables(1)))
    for number, size in enumerate(world.sizes):
        if size:
            assert len(first.column(f"k{number}").unique()) == size


def test_moves_go_there_and_back():
    world = moves.World(sizes=(0, 0), acts=((1, (0,)), (2, (0, 1))), back=True)
    assert world.schedule(1) == [
        (WARM_UP, 0, "n2"),
        (WARM_UP + moves.GAP, 0, "n1"),
        (WARM_UP + 2 * moves.GAP, 1, "n2"),
        (WARM_UP + 3 * moves.GAP, 1, "n1"),
    ]
    assert len(world.schedule(3)) == 12


@pytest.mark.parametrize("name", ["size", "together"])
def test_no_aggregate_moves_twice(name):
    world = moves.WORLDS[name]
    moved = [each for _, number, _ in world.schedule(3) for each in world.acts[number][1]]
    assert sorted(moved) == list(range(len(world.sizes)))


def test_lines_of_moves_go_through_medians_and_through_what_was_read():
    def act(of, read, extra):
        return {
            "of": of,
            "bytes": read,
            "read_ms": 3 * read / 1e6,
            "state_bytes": of * 50,
            "batch_s": 1.0 + extra / 1e3,
            "quiet_s": 1.0,
        }

    acts = [act(1, 1e6, 10), act(1, 0, 12), act(1, 2e6, 900), act(3, 4e6, 32)]
    assert moves.reads(acts) == [(1.0, 3.0), (2.0, 6.0), (4.0, 12.0)]
    found = moves.fits("size", acts)
    assert (found["extra"].start, found["extra"].slope) == pytest.approx((2.0, 10.0))
    assert found["state"].slope == pytest.approx(50)
    assert found["read"].slope == pytest.approx(3)
    assert set(moves.fits("stateless", acts)) == {"extra"}
    assert moves.fits("stateless", acts[:1]) == {}
