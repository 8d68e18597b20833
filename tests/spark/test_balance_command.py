"""`levelwind run --policy` as a process, and queries that are added to a live run and taken out of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import polars as pl
import pytest
from test_run_command import COMMAND, Tried

# Starts Spark several times: run by make test-all.
pytestmark = [pytest.mark.spark, pytest.mark.slow]

HEAVY = """
name: heavy
streams:
  p: {schema: {ts: timestamp, v: int}, time: ts,
      source: {format: generator, shape: steady, rate: 200, duration: 18s, speed: max, batch: 1s, seed: 3}}
operators:
  - {name: a, kind: model, input: p, cost: 500us, selectivity: 1}
  - {name: b, kind: model, input: p, cost: 500us, selectivity: 1}
  - {name: c, kind: model, input: p, cost: 500us, selectivity: 1}
  - {name: d, kind: model, input: p, cost: 500us, selectivity: 1, movable: false}
outputs: {one: {input: a}, two: {input: b}, three: {input: c}, four: {input: d}}
"""
MORE = """
operators:
  - {name: top, kind: aggregate, input: big, by: [src], window: {size: 2s}, compute: {most: "max(size)"}}
queries:
  few: "SELECT src, count(*) AS n FROM p GROUP BY src, window(ts, '4 seconds')"
outputs:
  tops: {input: top, sink: {format: parquet, path: ./tops}}
  fews: {input: few}
"""
STREAM = """
streams:
  q: {schema: {ts: timestamp, n: long}, time: ts,
      source: {format: generator, shape: steady, rate: 100, duration: 5s, columns: {n: {kind: sequence}}}}
operators:
  - {name: other, kind: filter, input: q, where: "n >= 0"}
outputs:
  others: {input: other, sink: {format: parquet, path: ./others}}
"""


def moves_of(tried):
    return [json.loads(line) for line in (tried.directory / "moves.jsonl").read_text().splitlines()]


def run_heavy(folder, *policy, text=HEAVY):
    """All operators begin on the first of two nodes; the run, and its answer."""
    tried = Tried(folder / "heavy", "1s")
    tried.network.write_text(text)
    placement = tried.folder / "placement.json"
    placement.write_text(json.dumps(dict.fromkeys("abcd", "n1")))
    answer = tried.run(
        "--placement", str(placement), "--policy", *policy, "--period", "10ms", "--until-idle"
    )  # fmt: skip
    return tried, answer


def test_a_policy_moves_operators_off_a_node_that_has_all_of_them(tmp_path):
    tried, answer = run_heavy(tmp_path, "cor_se_imp", "--policy-set", "threshold=0.05")
    assert answer["moves"] >= 1
    moves = moves_of(tried)
    assert moves[0]["source"] == "n1"
    assert moves[0]["target"] == "n2"
    assert moves[0]["cause"].startswith("exchanges by correlation")
    status = tried.ask("status")
    standing = status["placement"]
    assert standing["d"] == "n1"
    # The manager has had many reports, and spent something, but by far not a node.
    spent = status["manager"]
    assert set(spent) == {"cpu_s", "bytes_in", "bytes_out", "memory_bytes", "longest_ms"}
    assert all(value > 0 for value in spent.values())
    assert spent["cpu_s"] < 0.5
    assert spent["memory_bytes"] < 10_000_000
    # One or two: where a machine is busy, equal operators are measured as unequal, and a second may not fit.
    assert list(standing.values()).count("n2") in (1, 2)
    assert answer["outputs"] == dict.fromkeys(("one", "two", "three", "four"), 18 * 200)


@pytest.mark.usefixtures("how_to_package")
def test_the_cost_model_of_the_how_to_balances_a_run(tmp_path):
    text = HEAVY.replace("selectivity: 1", "selectivity: 1, properties: {licence: x}")
    tried, answer = run_heavy(tmp_path, "balance", "--policy-set", "cost=licences", text=text)
    # Four licences on one node that bears four: two of them go. Operators that are measured as idle stay.
    assert answer["moves"] in (1, 2)
    assert list(tried.ask("status")["placement"].values()).count("n2") == answer["moves"]
    assert moves_of(tried)[0]["cause"].startswith("evens out cost: from a node of cost 1.00 to one of 0.00")


def test_degradation_brings_an_operator_to_those_that_it_sends_to(tmp_path):
    """What it sends counts, CPU only as a limit; the rows are those that DuckDB gives."""
    tried = Tried(tmp_path / "sending", "20s")
    # Work enough on the node that sends for it to have more CPU in use than the other, whatever is measured.
    load = "operators:\n  - {name: load, kind: model, input: p, cost: 1ms, selectivity: 1, movable: false}"
    text = tried.network.read_text().replace("operators:", load)
    tried.network.write_text(f"{text}  loads: {{input: load}}\n")
    placement = tried.folder / "placement.json"
    away = {"load": "n1", "big": "n1", "share": "n2", "sum[0]": "n2", "sum[1]": "n2"}
    placement.write_text(json.dumps(away))
    answer = tried.run(
        "--placement", str(placement), "--policy", "degradation", "--policy-set", "cost=output_rate",
        "--period", "10ms", "--until-idle",
    )  # fmt: skip
    (move,) = moves_of(tried)
    assert (move["operator"], move["source"], move["target"]) == ("big", "n1", "n2")
    assert move["cause"].startswith("its node's cost rose")
    assert "removes 3 connections" in move["cause"]
    assert tried.ask("status")["placement"] == away | {"big": "n2"}
    sums, bad = tried.expected()
    assert tried.sums() == sums
    assert answer["dead_letters"] == bad
    assert answer["outputs"]["loads"] == answer["rows"] == 20 * 200


def test_replan_parts_what_is_heavy_and_the_rows_are_the_same(tmp_path):
    tried, answer = run_heavy(tmp_path, "replan")
    moves = moves_of(tried)
    assert 1 <= len(moves) <= 3
    assert answer["moves"] == len(moves)
    assert {(move["source"], move["target"]) for move in moves} == {("n1", "n2")}
    assert "d" not in {move["operator"] for move in moves}
    # All put the same rows out, and one of them could not move.
    folders = {name: tried.directory / "outputs" / name for name in ("one", "two", "three", "four")}
    found = {name: sorted(pl.read_parquet(at / "*.parquet").rows()) for name, at in folders.items()}
    assert len(found["four"]) == 18 * 200
    assert all(rows == found["four"] for rows in found.values())


def test_queries_come_and_go_while_it_runs_and_a_restart_goes_on_with_what_is_there(tmp_path):
    # Long enough to be at work all the time; the second run takes the rest in a few large batches.
    tried = Tried(tmp_path / "live", "300s")
    paced = tried.network.read_text().replace("speed: max, batch: 1s", "speed: 1, batch: 30s")
    tried.network.write_text(paced)
    more, stream = tried.folder / "more.yaml", tried.folder / "stream.yaml"
    more.write_text(MORE)
    stream.write_text(STREAM)
    checkpoint = str(tried.folder / "checkpoint")
    with tried.started("--checkpoint", checkpoint) as process:
        before = tried.wait_for_steps(2, process)
        added = tried.ask("add", str(more), "--timeout", "300")
        assert added["outputs"] == ["tops", "fews"]
        assert "top" in added["operators"]
        assert tried.ask("add", str(more), code=2)  # the names are taken now
        assert tried.ask("add", str(stream), "--timeout", "300")["outputs"] == ["others"]
        removed = tried.ask("remove", "parts", "fews", "--timeout", "300")
        assert {"share", "few"} <= set(removed["operators"])
        status = tried.ask("status")
        assert list(status["outputs"]) == ["sums", "tops", "others"]
        assert [change["command"] for change in status["changes"]] == ["add", "add", "remove"]
        kept = {name: node for name, node in before["placement"].items() if name != "share"}
        assert kept.items() <= status["placement"].items()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    # The same file as at first: what was added and removed since still counts.
    answer = tried.run("--until-idle", "--checkpoint", checkpoint)
    assert list(answer["outputs"]) == ["sums", "tops", "others"]
    assert tried.sums() == tried.expected()[0]
    tops = pl.read_parquet(tried.folder / "tops" / "*.parquet")
    sums = pl.read_parquet(tried.folder / "sums" / "*.parquet")
    # From the batch on in which it came, it has the windows that the others have.
    assert tops.join(sums, on=["src", "window_start"], how="anti").is_empty()
    assert set(tops["window_start"]) == {t for t in sums["window_start"] if t >= tops["window_start"].min()}
    others = pl.read_parquet(tried.folder / "others" / "*.parquet")
    assert others.height == others.unique("n").height == 500


OVERLOADED = """
name: overloaded
streams:
  p: {schema: {ts: timestamp, v: int}, time: ts,
      source: {format: generator, shape: steady, rate: 200, duration: 30s, speed: max, batch: 1s, seed: 3,
               columns: {v: {kind: sequence}}}}
operators:
  - {name: load, kind: model, input: p, cost: 500us, selectivity: 1}
  - {name: low, kind: multijoin, inputs: {a: p, b: p}, windows: {a: 1s, b: 1s}, where: "a.v = b.v",
     shed: {rows: 100000}}
  - {name: whole, kind: multijoin, inputs: {a: p, b: p}, windows: {a: 1s, b: 1s}, where: "a.v = b.v + 0"}
outputs:
  some: {input: low, sink: {format: parquet, path: ./some}}
  all: {input: whole, sink: {format: parquet, path: ./all}}
"""


def test_under_overload_those_that_may_shed_do(tmp_path):
    """A tenth of a core is asked for where there is a twentieth."""
    tried = Tried(tmp_path / "overloaded", "1s")
    tried.network.write_text(OVERLOADED)
    cluster = tried.folder / "cluster.yaml"
    cluster.write_text("nodes: [{name: n1, cpu: 0.05}]\n")
    where = ["--run-dir", str(tried.directory), "--cluster", str(cluster), "--master", "local[2]"]
    command = [*COMMAND, "run", str(tried.network), *where, "--period", "10ms", "--until-idle"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    found = {name: pl.read_parquet(tried.folder / name / "*.parquet").height for name in ("some", "all")}
    assert found["all"] == 200 * 30
    assert found["some"] < found["all"]
    # Every row is read on both sides, and the sides lose the same rows.
    assert answer["shed"] == 2 * (found["all"] - found["some"])
    decisions = [json.loads(line) for line in (tried.directory / "decisions.jsonl").read_text().splitlines()]
    assert {each["operator"] for each in decisions if each["what"] == "shed"} == {"low"}
