"""`levelwind run --groups` as a process: two groups, queries that move between them, and nothing lost."""

from __future__ import annotations

import json
import subprocess

import polars as pl
import pytest
from test_run_command import COMMAND

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


def test_a_query_moves_to_the_other_group_with_its_state(tmp_path):
    (tmp_path / "net.yaml").write_text(NETWORK)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    start = {"a": "n1", "a2": "n2", "b": "n1", "b2": "n2", "c": "n1"}
    (tmp_path / "placement.json").write_text(json.dumps(start))
    run = tmp_path / "run"
    ended = subprocess.run(
        [
            *COMMAND, "run", str(tmp_path / "net.yaml"), "--cluster", str(tmp_path / "cluster.yaml"),
            "--placement", str(tmp_path / "placement.json"), "--groups", "rack", "--period", "10ms",
            "--master", "local[2]", "--run-dir", str(run), "--until-idle",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    moves = [json.loads(line) for line in (run / "moves.jsonl").read_text().splitlines()]
    # One of the two queries that may move goes, whole, to the empty group; the other stays.
    assert {move["target"] for move in moves} == {"n3"}
    assert {move["operator"] for move in moves} in ({"a", "a2"}, {"b", "b2"})
    assert all("group x is at" in move["cause"] for move in moves)
    assert answer["outputs"]["three"] == SECONDS * RATE
    expected = [5 * RATE] * (SECONDS // 5) + [SECONDS % 5 * RATE]
    for name in ("one", "two"):
        rows = pl.read_parquet(tmp_path / name).sort("window_start")
        assert rows["n"].to_list() == expected
        assert rows["s"].sum() == sum(range(SECONDS * RATE))


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
