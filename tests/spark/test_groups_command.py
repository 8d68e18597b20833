"""`levelwind run --groups` as a process: two groups, queries that move between them, and nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import polars as pl
import pytest
from test_run_command import COMMAND

from levelwind.runtime.recording import OPERATORS, read_statistics
from levelwind.testing.loopback import LoopbackCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SECONDS, RATE = 24, 200
NETWORK = f"""
name: groups
streams:
  p: {{schema: {{ts: timestamp, v: long}}, time: ts,
      source: {{format: generator, shape: steady, rate: {RATE}, duration: {SECONDS}s, speed: max, batch: 1s,
               columns: {{v: {{kind: sequence}}}}}}}}
operators:
  - {{name: a, kind: model, input: p, cost: 400us, selectivity: 1}}
  - {{name: a2, kind: aggregate, input: a, window: {{size: 5s}}, compute: {{n: "count(*)", s: "sum(v)"}}}}
  - {{name: b, kind: model, input: p, cost: 400us, selectivity: 1}}
  - {{name: b2, kind: aggregate, input: b, window: {{size: 5s}}, compute: {{n: "count(*)", s: "sum(v)"}}}}
  - {{name: c, kind: model, input: p, cost: 400us, selectivity: 1, movable: false}}
outputs:
  one: {{input: a2, sink: {{format: parquet, path: ./one}}}}
  two: {{input: b2, sink: {{format: parquet, path: ./two}}}}
  three: {{input: c, sink: {{format: parquet, path: ./three}}}}
"""
CLUSTER = """
nodes:
  - {name: n1, properties: {rack: x}}
  - {name: n2, properties: {rack: x}}
  - {name: n3, properties: {rack: y}}
"""


def run_in(folder, cluster, start, *options, environment=None):
    """Run the network to its end: what it answers, and what it moved."""
    (folder / "net.yaml").write_text(NETWORK)
    (folder / "cluster.yaml").write_text(cluster)
    (folder / "placement.json").write_text(json.dumps(start))
    run = folder / "run"
    ended = subprocess.run(
        [
            *COMMAND, "run", str(folder / "net.yaml"), "--cluster", str(folder / "cluster.yaml"),
            "--placement", str(folder / "placement.json"), "--groups", "rack", "--period", "10ms",
            "--run-dir", str(run), "--until-idle", *options,
        ],
        capture_output=True, text=True, check=False, env=os.environ | (environment or {}),
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    moves = [json.loads(line) for line in (run / "moves.jsonl").read_text().splitlines()]
    return json.loads(ended.stdout), moves


def assert_one_moved_and_all_rows_are_there(folder, answer, moves, target):
    # One of the two queries that may move goes, whole, to the empty group; the other stays.
    assert {move["target"] for move in moves} == {target}
    assert {move["operator"] for move in moves} in ({"a", "a2"}, {"b", "b2"})
    assert all("group x is at" in move["cause"] for move in moves)
    assert answer["outputs"]["three"] == SECONDS * RATE
    expected = [5 * RATE] * (SECONDS // 5) + [SECONDS % 5 * RATE]
    for name in ("one", "two"):
        rows = pl.read_parquet(folder / name).sort("window_start")
        assert rows["n"].to_list() == expected
        assert rows["s"].sum() == sum(range(SECONDS * RATE))


def test_a_query_moves_to_the_other_group_with_its_state(tmp_path):
    start = {"a": "n1", "a2": "n2", "b": "n1", "b2": "n2", "c": "n1"}
    answer, moves = run_in(tmp_path, CLUSTER, start, "--master", "local[2]")
    assert_one_moved_and_all_rows_are_there(tmp_path, answer, moves, "n3")


@pytest.mark.skipif(sys.platform != "linux", reason="loopback hosts as Linux has them")
def test_a_query_moves_between_groups_of_hosts(tmp_path):
    """A real cluster: each group is an executor of its own, and what moves runs there from then on."""
    with LoopbackCluster(2, memory="512m") as cluster:
        home = dict(zip(("n1", "n2"), cluster.hosts, strict=True))
        nodes = [
            f"  - {{name: {name}, host: {home[name]}, properties: {{rack: {rack}}}}}"
            for name, rack in (("n1", "x"), ("n2", "y"))
        ]
        conf = [part for key, value in cluster.configuration.items() for part in ("--conf", f"{key}={value}")]
        answer, moves = run_in(
            tmp_path, "\n".join(["nodes:", *nodes]), dict.fromkeys(("a", "a2", "b", "b2", "c"), "n1"),
            "--master", cluster.master, *conf, environment=cluster.environment,
        )  # fmt: skip
    assert_one_moved_and_all_rows_are_there(tmp_path, answer, moves, "n2")
    ran = read_statistics(tmp_path / "run" / "statistics", OPERATORS)
    gone, step = [move["operator"] for move in moves], max(move["step"] for move in moves)
    moved = pl.col("operator").is_in(gone) & (pl.col("step") >= step)
    # Spark runs a task elsewhere if its host is busy for too long: seldom.
    for rows, host in ((ran.filter(moved), home["n2"]), (ran.filter(~moved), home["n1"])):
        assert rows.height > 0
        assert (rows["host"] == host).mean() >= 0.9


def test_a_cluster_without_the_property_is_refused(tmp_path):
    (tmp_path / "net.yaml").write_text(NETWORK)
    (tmp_path / "cluster.yaml").write_text(CLUSTER.replace(", properties: {rack: y}", ""))
    ended = subprocess.run(
        [
            *COMMAND, "run", str(tmp_path / "net.yaml"), "--cluster", str(tmp_path / "cluster.yaml"),
            "--groups", "rack", "--until-idle",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "n3.properties" in ended.stderr + ended.stdout
