"""``levelwind simulate``: both forms of the answer, the files it writes, and what it refuses."""

from __future__ import annotations

import hashlib

import pytest

SCENARIO = """
generate: {chains: 4, length: 3}
nodes: 2
workload: {kind: periodic}
load: 0.7
planner: llf
warmup: 10s
duration: 10s
"""
KEYS = [
    "latency_ratio", "latency_ms", "load_std", "load_std_bound", "load_correlation", "load_spread",
    "held_out", "moves", "moved_load", "tuples", "rows_held", "output_rate", "events_per_second",
]  # fmt: skip


@pytest.fixture
def scenario(write):
    return write("scenario.yaml", SCENARIO)


def test_json_has_the_contracts_keys(run, scenario):
    ended = run("simulate", scenario)
    assert ended.code == 0
    assert list(ended.json) == KEYS
    assert list(ended.json["latency_ms"]) == ["mean", "p50", "p99"]
    assert list(ended.json["held_out"]) == ["load_std", "load_correlation"]
    assert ended.json["latency_ratio"] > 1
    assert ended.json["latency_ms"]["p50"] < ended.json["latency_ms"]["p99"]
    assert ended.json["tuples"] > 1000
    assert ended.json["moves"] > 0


def test_text_is_a_table(run, scenario):
    ended = run("simulate", scenario, "--format", "text")
    assert ended.code == 0
    assert ended.out.splitlines()[2].startswith("latency ratio")
    assert all(len(line) <= 80 for line in ended.out.splitlines())


def test_the_seed_decides_everything_but_the_speed(run, scenario, tmp_path):
    found = {}
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        trace = tmp_path / f"{name}.csv"
        answer = run("simulate", scenario, "--seed", seed, "--trace", trace).json
        answer.pop("events_per_second")
        found[name] = (answer, hashlib.sha256(trace.read_bytes()).hexdigest())
    assert found["a"] == found["b"]
    assert found["a"][1] != found["c"][1]


def test_the_trace_tells_every_event_by_name(run, scenario, tmp_path):
    trace = tmp_path / "trace.csv"
    run("simulate", scenario, "--trace", trace)
    lines = trace.read_text().splitlines()
    assert lines[0] == "at_s,event,name,node,latency_s"
    kinds = {line.split(",")[1] for line in lines[1:]}
    assert kinds == {"arrived", "finished", "delivered", "result", "suspended", "resumed"}
    result = next(line.split(",") for line in lines if ",result," in line)
    assert result[2].endswith("o3")
    assert float(result[4]) > 0
    times = [float(line.split(",")[0]) for line in lines[1:]]
    assert times == sorted(times)


def test_a_long_trace_has_one_head(run, write, tmp_path):
    trace = tmp_path / "trace.csv"
    run("simulate", write("long.yaml", SCENARIO.replace("duration: 10s", "duration: 40s")), "--trace", trace)
    lines = trace.read_text().splitlines()
    assert len(lines) > 66_000  # more than the simulator hands out at once
    assert sum(line.startswith("at_s") for line in lines) == 1


def test_the_plot_is_a_picture(run, scenario, tmp_path):
    picture = tmp_path / "plot.png"
    assert run("simulate", scenario, "--plot", picture).code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_bad_input_is_told_with_its_place(run, write):
    text = SCENARIO.replace("duration: 10s", "duration: 10") + "perod: 1s\n"
    ended = run("simulate", write("bad.yaml", text))
    assert ended.problem_keys() == ["duration", "perod"]
    assert [problem["line"] for problem in ended.json] == [8, 9]
    assert run("simulate", "nowhere.yaml").code == 2


def test_files_that_cannot_be_written_are_refused_before_any_work(run, scenario, tmp_path):
    for option in ("--plot", "--trace"):
        assert run("simulate", scenario, option, tmp_path / "no" / "such").problem_keys() == [option]


def test_the_example_runs(run):
    ended = run("simulate", "examples/bursts.yaml")
    assert ended.code == 0
    assert ended.json["latency_ratio"] < 5


def test_editors_get_a_schema(run):
    assert run("schema", "--scenario").json["title"] == "Levelwind scenario"
    assert run("schema", "--scenario", "--cluster").problem_keys() == ["--scenario"]
