"""The commands on runs, as far as they go without Spark: bad input, and runs that are over."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import polars as pl
import pytest

import levelwind
from levelwind.cli import live
from levelwind.cli.run import MASTER, failure_text
from levelwind.errors import RunError
from levelwind.frontend import load_network
from levelwind.frontend.writing import network_document
from levelwind.runtime.changes import Change
from levelwind.runtime.progress import Progress, percentile
from levelwind.runtime.rundir import Command, RunDirectory
from levelwind.spark.run import lock_checkpoint

WORKED = "examples/worked.yaml"
SOURCE = "{format: generator, shape: steady, rate: 10, duration: 5s, speed: max}"
RUNNABLE = f"""
name: small net
streams:
  p: {{schema: {{ts: timestamp, k: string, v: int}}, time: ts, source: {SOURCE}}}
operators:
  - {{name: keep, kind: filter, cost: 1us, selectivity: 1, input: p, where: "v > 0"}}
  - {{name: sum, kind: aggregate, cost: 1us, selectivity: 1, input: keep, by: [k],
     window: {{size: 1s}}, compute: {{n: "count(*)"}}, split: {{into: 2, by: k}}}}
  - {{name: still, kind: map, cost: 1us, selectivity: 1, input: p, select: {{k: k}}, movable: false}}
  - {{name: nailed, kind: map, cost: 1us, selectivity: 1, input: p, select: {{k: k}}, pinned: n1}}
  - {{name: ta, kind: map, cost: 1us, selectivity: 1, input: p, select: {{k: k}}, table: t}}
  - {{name: tb, kind: map, cost: 1us, selectivity: 1, input: p, select: {{k: k}}, table: t}}
outputs: {{o: {{input: sum, sink: {{format: parquet, path: ./out}}}}, q: {{input: ta}}}}
"""


@pytest.fixture
def network(write) -> Path:
    return write("net.yaml", RUNNABLE)


@pytest.fixture
def no_spark(monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("levelwind.spark.run.start_session", refuse)


@pytest.fixture
def over(tmp_path, network) -> RunDirectory:
    """A run that is over, with a few steps of statistics."""
    directory = RunDirectory(tmp_path / "over")
    told = {"name": "small net", "nodes": ["n1", "n2"], "cpu": {"n1": 1.0, "n2": 1.0}}
    directory.create(told, network_document(load_network(network).network))
    nodes = {
        name: {"load": 0.5, "cpu_s": 0.5, "operators": 3, "rows_in": 10, "rows_per_second": 10.0}
        for name in ("n1", "n2")
    }
    placement = dict.fromkeys(["keep", "sum[0]", "sum[1]", "still", "nailed", "ta", "tb"], "n1")
    batch = {"last": 1.0, "p50": 1.0, "p99": 1.0}
    directory.write_status(
        {"state": "finished", "steps": 8, "rows": 80, "outputs": {"o": 3}, "nodes": nodes, "moves": 0,
         "batch_seconds": batch, "placement": placement, "event_time": "2026-01-01T00:00:07+00:00"}
    )  # fmt: skip
    operators, steps = [], []
    for step in range(8):
        common = {"session": 1.0, "step": step, "time": 100.0 + step}
        operators += [
            {**common, "operator": name, "node": "n1", "host": "h", "cpu_s": 0.01, "rows_in": 10,
             "rows_out": 5, "rejected": 0, "state_bytes": 7}
            for name in placement
        ]  # fmt: skip
        steps.append(
            {**common, "wall_s": 1.0, "run_s": 1.0, "stream": "p", "rows": 10,
             "watermark": step * 1_000_000, "closing": False}
        )  # fmt: skip
    for name, rows in (("operators", operators), ("steps", steps)):
        pl.DataFrame(rows).write_parquet(directory.path / "statistics" / f"{name}-000000000.parquet")
    return directory


@pytest.mark.parametrize(
    ("arguments", "keys", "hint"),
    [
        (("--policy", "cor_bla"), ["policy"], "'cor_bal'"),
        (("--policy", "cor_bal", "--policy-set", "treshold=1"), ["cor_bal.treshold"], "'threshold'"),
        (("--policy-set", "threshold=1"), ["--policy-set"], None),
        (("--period", "1", "--moved-load-budget", "-1"), ["--period", "--moved-load-budget"], None),
        (("--period", "0s"), ["--period"], None),
        (("--planner", "rdo"), ["planner"], "'rod'"),
        (("--nodes", "0"), ["--nodes"], None),
        (("--nodes", "2", "--cluster", "examples/cluster.yaml"), ["--nodes"], "--cluster"),
        (("--master", "lokal[2]"), ["--master"], "local[2]"),
        (("--conf", "executor.memory=1g"), ["--conf"], None),
        (("--conf", "spark.x", "--master", "x", "--set", "y"), ["--set", "--conf", "--master"], None),
        (("--replan-after", "30"), ["--replan-after"], None),
        (("--replan-after", "soon", "--moves", "none.yaml"), ["--replan-after", ""], None),
        (("--checkpoint", "README.md"), ["--checkpoint"], None),
        (("--run-dir", "README.md/x"), ["--run-dir"], None),
        (("--placement", "none.json"), [""], "path"),
        (("--until-idel",), ["--until-idel"], "'--until-idle'"),
    ],
)
def test_bad_options_of_run(run, network, no_spark, tmp_path, arguments, keys, hint):
    before = sorted(tmp_path.iterdir())
    ended = run("run", network, *arguments)
    assert ended.problem_keys() == keys
    if hint is not None:
        assert hint in ended.json[0]["hint"]
    assert sorted(tmp_path.iterdir()) == before
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        (f", source: {SOURCE}", "", "streams.p"),
        ("shape: steady", "shape: stedy", "streams.p.source.shape"),
        (SOURCE, "{format: rate, rowsPerSecond: 5}", "streams.p.source"),
        (SOURCE, "{format: parquet, path: ./nowhere}", "streams.p.source.path"),
        (SOURCE, "{format: csv}", "streams.p.source.path"),
    ],
)
def test_networks_that_cannot_be_run(run, write, no_spark, tmp_path, old, new, key):
    assert old in RUNNABLE
    directory = tmp_path / "run"
    file = write("bad.yaml", RUNNABLE.replace(old, new))
    ended = run("run", file, "--nodes", 2, "--until-idle", "--run-dir", directory)
    assert key in ended.problem_keys()
    assert {problem["file"] for problem in ended.json} == {str(file)}
    assert not directory.exists()


def test_a_planning_network_without_an_end_is_not_run_until_it_ends(run, no_spark, tmp_path):
    ended = run("run", WORKED, "--nodes", 2, "--until-idle", "--run-dir", tmp_path / "run")
    assert ended.problem_keys() == ["streams.I1.source"]
    assert not (tmp_path / "run").exists()


def test_a_sink_that_holds_rows_is_refused_without_its_checkpoint(run, network, no_spark, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-0.parquet").write_text("old")
    ended = run("run", network, "--nodes", 2, "--run-dir", tmp_path / "run")
    assert ended.problem_keys() == ["outputs.o"]
    assert "--checkpoint" in ended.json[0]["hint"]
    assert not (tmp_path / "run").exists()


def test_a_directory_in_which_a_run_is_at_work_is_refused(run, network, no_spark, over):
    over.write_status({"state": "running"})  # by this process, which lives
    assert run("run", network, "--nodes", 2, "--run-dir", over.path).problem_keys() == ["--run-dir"]


def test_a_checkpoint_of_a_run_that_is_at_work_is_refused(run, network, no_spark, tmp_path):
    """Found only when the run starts, and bad input all the same."""
    checkpoint, directory = tmp_path / "state", tmp_path / "new"
    with lock_checkpoint(checkpoint):
        asked = ("--checkpoint", checkpoint, "--run-dir", directory, "--format", "json")
        ended = run("run", network, "--nodes", 2, *asked)
    assert ended.code == 2
    (problem,) = ended.json
    assert problem["key"] == "checkpoint"
    assert "Traceback" not in ended.err
    assert RunDirectory(directory).status()["state"] == "failed"


def test_no_plan_starts_nothing_and_exits_1(run, write, no_spark, tmp_path):
    torn = RUNNABLE.replace("table: t}", "table: t, pinned: n1}", 1).replace(
        "table: t}", "table: t, pinned: n2}"
    )
    ended = run("run", write("torn.yaml", torn), "--nodes", 2, "--run-dir", tmp_path / "run")
    assert ended.code == 1
    assert "finds no plan" in ended.err
    assert not (tmp_path / "run").exists()


def test_no_plan_for_a_group_starts_nothing_either_and_says_which(run, write, no_spark, tmp_path):
    torn = RUNNABLE.replace("table: t}", "table: t, pinned: n1}", 1).replace(
        "table: t}", "table: t, pinned: n2}"
    )
    nodes = [f"  - {{name: n{k}, properties: {{rack: {rack}}}}}" for k, rack in enumerate("xxy", start=1)]
    cluster = write("cluster.yaml", "\n".join(["nodes:", *nodes]))
    asked = ("run", write("torn.yaml", torn), "--run-dir", tmp_path / "run")
    ended = run(*asked, "--cluster", cluster, "--groups", "rack")
    assert ended.code == 1
    assert "finds no plan: infeasible" in ended.err
    *reasons, last = run(*asked, "--nodes", 2).err.splitlines()
    assert reasons
    assert ended.err.splitlines() == [*(line.replace("note: ", "note: group x: ") for line in reasons), last]
    assert not (tmp_path / "run").exists()


def test_moves_files_are_checked_whole(run, network, write, no_spark):
    moves = write(
        "moves.yaml",
        """
- {step: 1, operators: [keep, smu], to: n2}
- {step: -1, operator: keep, to: n2}
- {step: 2, operator: keep, to: n9}
- {step: 3, operator: still, to: n2}
- {step: 3, operator: nailed, to: n2}
- {step: 4, operator: ta, to: n2}
- {setp: 4, operator: keep, operators: [keep], to: n2}
- nonsense
""",
    )
    ended = run("run", network, "--nodes", 2, "--moves", moves)
    assert ended.problem_keys() == [
        "[0].operators", "[1].step", "[2].to", "[3].operator", "[4].operator", "[5].operator",
        "[6].setp", "[6].step", "[6].operator", "[7]",
    ]  # fmt: skip
    assert {problem["file"] for problem in ended.json} == {str(moves)}
    assert [problem["line"] for problem in ended.json][:4] == [2, 3, 4, 5]
    assert "'sum'" in ended.json[0]["hint"]
    assert "tb" in ended.json[5]["hint"]


@pytest.mark.parametrize("text", ["", "{step: 1}", "- [1]", "a: b: c"])
def test_what_is_no_moves_file(run, network, write, no_spark, text):
    ended = run("run", network, "--nodes", 2, "--moves", write("moves.yaml", text))
    assert ended.code == 2


def test_moves_of_a_split_operator_are_those_of_its_instances(network, write):
    from levelwind.cli.moves import read_moves
    from levelwind.model import Cluster

    text = json.dumps([
        {"step": 5, "operators": ["sum[1]"], "to": "n1", "cause": "because"},
        {"step": 2, "operators": ["sum", "keep"], "to": "n2"},
        {"step": 2, "operator": "nailed", "to": "n1"},
    ])  # fmt: skip
    moves = read_moves(write("m.json", text), load_network(network).network, Cluster.equal(2))
    assert [(move.step, move.operators, move.target) for move in moves] == [
        (2, ("sum[0]", "sum[1]", "keep"), "n2"),
        (2, ("nailed",), "n1"),
        (5, ("sum[1]",), "n1"),
    ]
    assert [move.cause for move in moves] == ["script", "script", "because"]


@pytest.mark.parametrize(
    "command",
    [("status",), ("stats",), ("stop",), ("move", "a", "--to", "n1"), ("add", "x.yaml"), ("remove", "a")],
    ids=lambda c: c[0],
)
def test_a_directory_that_is_no_run(run, tmp_path, command):
    name, *rest = command
    for path in (tmp_path, tmp_path / "none"):
        ended = run(name, path, *rest)
        assert ended.problem_keys() == ["RUN"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["status", "stats", "stop", "move", "add", "remove"])
def test_a_run_must_be_named(run, command):
    assert run(command).problem_keys() == ["RUN"]


def test_status_of_a_run_that_is_over(run, over):
    ended = run("status", over.path)
    assert ended.code == 0
    assert ended.json["state"] == "finished"
    assert ended.json["run"] == str(over.path)
    shown = run("status", over.path, "--format", "text")
    assert "small net: finished, 8 batches" in shown.out
    assert "50%" in shown.out
    assert "event time 2026-01-01 00:00:07" in shown.out


def test_a_run_that_died_without_a_word_has_failed(run, over):
    status = over.status()
    over.write_status({**status, "state": "running"})
    file = over.path / "status.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "pid": 2**22 + 1}))
    ended = run("status", over.path)
    assert ended.code == 1
    assert ended.json["state"] == "failed"
    assert run("stop", over.path).code == 1


def test_stop_and_move_on_a_run_that_is_over(run, over):
    ended = run("stop", over.path)
    assert (ended.code, ended.json["state"]) == (0, "finished")
    assert "not at work" in ended.err
    assert run("move", over.path, "keep", "--to", "n2").problem_keys() == ["RUN"]
    assert not list((over.path / "control").iterdir())


def test_stop_gives_up_after_a_while(run, over):
    over.write_status({"state": "running"})
    ended = run("stop", over.path, "--timeout", 0.2)
    assert (ended.code, ended.json["state"]) == (1, "running")
    assert over.take_commands() == [Command("stop")]


def test_move_checks_names_and_waits(run, over):
    over.write_status({**over.status(), "state": "running"})
    ended = run("move", over.path, "kep", "still", "--to", "n7")
    assert ended.problem_keys() == ["OPERATOR", "--to", "OPERATOR"]
    assert "'keep'" in ended.json[0]["hint"]
    late = run("move", over.path, "sum", "--to", "n2", "--timeout", 0.2)
    assert (late.code, late.json["moves"]) == (1, [])
    assert over.take_commands() == [Command("move", ("sum[0]", "sum[1]"), "n2")]
    there = run("move", over.path, "keep", "--to", "n1")
    assert (there.code, there.json["moves"]) == (0, [])
    assert run("move", over.path, "keep").problem_keys() == ["--to"]


ADDED = """
operators: [{name: big, kind: filter, input: keep, where: "v > 9"}]
outputs: {bigs: {input: big}}
"""


def test_what_is_added_is_checked_whole_before_anything_is_asked(run, write, over):
    over.write_status({**over.status(), "state": "running"})
    file = write("more.yaml", ADDED.replace("big,", "sum,").replace("keep", "kep").replace("bigs", "o"))
    ended = run("add", over.path, file)
    assert ended.problem_keys() == ["operators[0].name", "operators[0].input", "outputs.o", "outputs.o.input"]
    assert {problem["file"] for problem in ended.json} == {str(file)}
    assert [problem["line"] for problem in ended.json] == [2, 2, 3, 3]
    stream = write("s.yaml", "streams: {n: {schema: {a: int}, source: {format: rate, rowsPerSecond: 5}}}")
    refused = run("add", over.path, stream)
    assert refused.problem_keys() == ["streams.n"]
    assert refused.json[0]["file"] == str(stream)
    pinned = write("pinned.yaml", ADDED.replace("input: keep", "input: keep, pinned: n7"))
    assert run("add", over.path, pinned).problem_keys() == ["operators[0].pinned"]
    assert run("add", over.path, "none.yaml").problem_keys() == [""]
    assert over.take_commands() == []


def test_add_and_remove_wait_for_the_run_and_say_what_it_did(run, write, over, monkeypatch):
    over.write_status({**over.status(), "state": "running"})
    file = write("more.yaml", ADDED)
    late = run("add", over.path, file, "--timeout", 0.2)
    assert late.code == 1
    assert "next batch" in late.err
    assert over.take_commands() == []  # given up: it must not happen later, unawaited

    def answer(directory, command):
        change = Change(command.command, id=command.id, step=7, outputs=("bigs",), operators=("big",))
        directory.append_change(Change("add", id="another's"))
        directory.append_change(change)
        return directory.path / "control" / "read"

    monkeypatch.setattr(RunDirectory, "ask", answer)
    done = run("add", over.path, file)
    assert (done.code, done.json["step"], done.json["outputs"]) == (0, 7, ["bigs"])
    assert "removed bigs at batch 7" in run("remove", over.path, "q", "--format", "text").out


def test_remove_names_what_is_not_there_and_what_it_may_have_meant(run, over):
    over.write_status({**over.status(), "state": "running"})
    ended = run("remove", over.path, "p", "qq")
    assert ended.problem_keys() == ["QUERY", "QUERY"]
    assert [problem["value"] for problem in ended.json] == ["p", "qq"]
    assert "'q'" in ended.json[1]["hint"]
    assert run("remove", over.path, "o", "q").problem_keys() == ["QUERY"]  # nothing would be left
    assert over.take_commands() == []


def test_status_shows_changes_and_alarms(run, over):
    change = {"command": "add", "step": 7, "outputs": ["bigs"]}
    over.write_status({**over.status(), "changes": [change], "alarms": ["n1 was lost"]})
    shown = run("status", over.path, "--format", "text").out
    assert "added bigs at batch 7" in shown
    assert "alarm: n1 was lost" in shown


def test_status_shows_what_the_manager_spends(run, over):
    assert "manager" not in run("status", over.path, "--format", "text").out
    spent = {
        "cpu_s": 3.2e-5,
        "bytes_in": 2040.4,
        "bytes_out": 12.0,
        "memory_bytes": 17300.0,
        "longest_ms": 4.25,
    }
    over.write_status({**over.status(), "manager": spent})
    assert run("status", over.path).json["manager"] == spent
    shown = " ".join(run("status", over.path, "--format", "text").out.split())
    rates = "per node and second 32 µs of CPU, 2,040 bytes in, 12 out"
    assert f"manager: {rates}; 17 kB held per node; longest event 4.25 ms" in shown
    # After the first report there is no time yet that rates could be of.
    over.write_status(
        {**over.status(), "manager": {**spent, "cpu_s": None, "bytes_in": None, "bytes_out": None}}
    )
    shown = " ".join(run("status", over.path, "--format", "text").out.split())
    assert "manager: 17 kB held per node" in shown
    assert "per node and second" not in shown


def test_stats_in_both_forms(run, over):
    ended = run("stats", over.path)
    assert ended.code == 0
    assert ended.json["streams"]["p"]["rate"] == pytest.approx(10)
    assert ended.json["operators"]["keep"]["cost_s"] == pytest.approx(0.001)
    assert len(ended.json["operators"]["keep"]["series"]) == 5
    assert set(ended.json["nodes"]) == {"n1", "n2"}
    assert set(ended.json["queries"]) == {"o", "q", "(no output)"}
    shown = run("stats", over.path, "--format", "text")
    for word in ("offered", "µs/row", "sum[0]", "1000", "n2", "(no output)"):
        assert word in shown.out


def test_stats_lists_the_heaviest_of_many(run, over, monkeypatch):
    monkeypatch.setattr("levelwind.cli.stats.MOST_OPERATORS", 5)
    monkeypatch.setattr("levelwind.cli.stats.HEAVIEST", 2)
    shown = run("stats", over.path, "--format", "text").out
    assert "5 more" in shown


def test_stats_writes_a_network_that_can_be_planned(run, over, tmp_path):
    for name in ("measured.yaml", "measured.json"):
        file = tmp_path / name
        assert run("stats", over.path, "--network-out", file).code == 0
        ended = run("plan", file, "--nodes", 2, "--planner", "llf")
        assert ended.code == 0
        assert ended.err == ""  # every cost is stated
    assert run("stats", over.path, "--network-out", tmp_path / "no" / "x").problem_keys() == ["--network-out"]


def test_stats_before_the_first_step(run, over):
    for file in (over.path / "statistics").iterdir():
        file.unlink()
    assert run("stats", over.path).problem_keys() == ["RUN"]


def test_masters():
    for good in ("local", "local[*]", "local[2]", "local[2,4]", "spark://h:7077", "yarn", "k8s://https://h"):
        assert MASTER.fullmatch(good)
    for bad in ("", "local[]", "local[0]", "spark:/h", "2"):
        assert not MASTER.fullmatch(bad)


def test_the_line_of_a_failure_that_says_what_happened():
    java = (
        "An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: Job aborted: "
        "PythonException: Traceback (most recent call last):\n  File \"x.py\", line 3, in f\n    g()\n"
        "ValueError: no such luck\n\n\tat org.apache.spark.A.b(A.scala:1)\n"
    )  # fmt: skip
    assert failure_text(java) == "ValueError: no such luck"
    assert failure_text("operator 'a': bad; row {}\nmore") == "operator 'a': bad; row {}"
    assert failure_text(" ") == "no reason was given"


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1), (0.5, 50), (0.99, 99), (1.0, 100)])
def test_percentiles(share, expected):
    assert percentile(range(100, 0, -1), share) == expected


def test_commands_that_are_none_are_thrown_away(over, caplog):
    over.ask(Command("stop"))
    (over.path / "control" / "1.json").write_text("{")
    assert over.take_commands() == [Command("stop")]
    assert over.take_commands() == []
    assert "no command" in caplog.text


def test_the_first_interrupt_is_a_wish_and_the_second_is_heeded_at_once():
    import signal

    before = signal.getsignal(signal.SIGINT)
    with live.Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.asked == signal.SIGINT
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


class Running:
    """As much of a run as a watcher looks at."""

    def __init__(self, directory: RunDirectory) -> None:
        self.directory = directory
        self.network = type("Named", (), {"name": "small net"})
        self.progress = Progress()

    @property
    def status(self):
        return self.directory.status()


def test_off_a_terminal_a_line_now_and_then(over, capsys, monkeypatch):
    clock = iter([0.0, 1.0, 2.0, 7.0])
    monkeypatch.setattr(live.time, "monotonic", lambda: next(clock))
    with live.Watcher().watch(Running(over)) as watcher:
        for _ in range(3):
            watcher.on_step(None)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "rows 80" in lines[0]


def test_off_a_terminal_a_line_for_each_decision(over, capsys):
    running = Running(over)
    running.progress.decided = [{"operator": "trio", "reason": "aligned routing, since"}]
    with live.Watcher().watch(running) as watcher:
        watcher.on_step(None)
    assert "trio: aligned routing, since" in capsys.readouterr().err.splitlines()


def test_on_a_terminal_a_table_that_goes_away(over, monkeypatch):
    import io
    import sys

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with live.Watcher().watch(Running(over)) as watcher:
        watcher.on_step(None)
    assert "small net: finished" in screen.getvalue()
    assert "██████████··········" in screen.getvalue().replace("\x1b[0m\x1b[2m", "")
    assert screen.getvalue().rstrip().endswith("\x1b[2K")


def test_status_says_how_joins_are_spread_and_why(run, over):
    told = {"trio": {"method": "atr", "reason": "aligned routing, segments of 1 s of a"}}
    over.write_status({**over.status(), "spread": told})
    assert run("status", over.path).json["spread"] == told
    shown = run("status", over.path, "--format", "text")
    assert "trio: aligned routing, segments of 1 s of a" in shown.out


JOINED = """
streams:
  p: {schema: {ts: timestamp, v: int}, time: ts, source: {format: generator, shape: steady, rate: 5}}
  q: {schema: {ts: timestamp, v: int}, time: ts, source: {format: generator, shape: steady, rate: 5}}
operators:
  - {name: near, kind: multijoin, inputs: {a: p, b: q}, windows: {a: 1s, b: 2s}, where: a.v = b.v}
  - {name: wide, kind: multijoin, inputs: {a: p, b: q}, windows: {a: 1s, b: 2s}, where: a.v = b.v,
     diffuse: {method: atr, instances: 2}}
outputs: {o: {input: near}, w: {input: wide}}
"""


def test_windows_are_checked_before_anything_is_asked(run, write, tmp_path):
    live = RunDirectory(tmp_path / "live")
    live.create({"name": "j"}, network_document(load_network(write("joined.yaml", JOINED)).network))
    live.write_status({"state": "running"})
    assert run("windows", live.path, "nears", "a=5s").problem_keys() == ["JOIN"]
    wrong = run("windows", live.path, "near", "a=5", "b", "c=1s")
    assert [each["value"] for each in wrong.json] == ["a=5", "b"]
    assert [each["value"] for each in run("windows", live.path, "near", "c=1s").json] == ["c"]
    assert live.take_commands() == []
    for join in ("near", "wide"):  # the second is spread: asked for in time, but nobody answers
        assert run("windows", live.path, join, "a=5s", "b=500ms", "--timeout", 0.1).code == 1


def test_windows_wait_for_the_run_and_say_when(run, write, tmp_path, monkeypatch):
    live = RunDirectory(tmp_path / "live")
    live.create({"name": "j"}, network_document(load_network(write("joined.yaml", JOINED)).network))
    live.write_status({"state": "running"})
    asked = []

    def answer(directory, command):
        asked.append(command)
        directory.append_change(Change("windows", id=command.id, step=7, operators=("near",)))
        return directory.path / "control" / "read"

    monkeypatch.setattr(RunDirectory, "ask", answer)
    done = run("windows", live.path, "near", "a=5s", "b=500ms", "--format", "text")
    assert (done.code, asked[0].windows_s) == (0, {"a": 5.0, "b": 0.5})
    assert "new windows for near at batch 7" in done.out


def test_a_plug_in_that_fails_ends_the_run_and_is_named(run, network, tmp_path, how_to_package):
    """A cost model that asks for a property which the nodes do not have; Spark is not started for that."""
    theirs = how_to_package / "mypackage" / "costs.py"
    code = theirs.read_text()
    theirs.write_text(code.replace('"licence" in properties[k]', 'properties[k]["seats"]'))
    told = run(
        "run", network, "--nodes", 2, "--run-dir", tmp_path / "run", "--until-idle",
        "--policy", "balance", "--policy-set", "cost=licences:most=3",
    )  # fmt: skip
    assert told.code == 3
    assert "policy balance, with cost=licences:most=3, failed: KeyError: 'seats'" in told.err
    assert RunDirectory(tmp_path / "run").status()["state"] == "failed"


def test_a_run_that_a_plug_in_keeps_from_beginning_is_not_left_running(network, tmp_path):
    @dataclass(frozen=True)
    class Broken:
        name: ClassVar[str] = "broken"

        def propose(self, situation, *, rng):
            raise ZeroDivisionError

    found = load_network(network).network
    with pytest.raises(RunError, match=r"policy broken failed: ZeroDivisionError$"):
        levelwind.run(found, 2, run_dir=tmp_path / "run", policy=Broken())
    assert RunDirectory(tmp_path / "run").status()["state"] == "failed"


@pytest.mark.usefixtures("no_spark")
def test_what_a_policy_would_never_find_is_told_at_the_start(run, network, tmp_path):
    told = run(
        "run", network, "--nodes", 2, "--run-dir", tmp_path / "run", "--until-idle",
        "--policy", "balance", "--policy-set", "operators=sum[0],kepp",
    )  # fmt: skip
    notes = [line for line in told.err.splitlines() if line.startswith("note: policy")]
    said = "operators=kepp (did you mean 'keep'?) means no operator that there is"
    assert notes == [f"note: policy balance: {said}"]
