"""`levelwind run` computes equal operators once: the same rows, also when the one that computes goes."""

from __future__ import annotations

import os
import signal

import polars as pl
import pytest
from test_run_command import Tried

# Starts Spark several times: run by make test-all.
pytestmark = [pytest.mark.spark, pytest.mark.slow]

# The beginning is the same in all: written as operators, in another spelling, and as queries.
NETWORK = """
name: same
streams:
  p:
    schema: {ts: timestamp, src: string, size: int}
    time: ts
    source: {format: generator, shape: steady, rate: 200, duration: LENGTH, speed: SPEED, batch: BATCH,
             seed: 3, columns: {src: {kind: zipf, values: 20, prefix: a},
                                size: {kind: uniform, low: 0, high: 99}}}
operators:
  - {name: big, kind: filter, input: p, where: "size >= 10"}
  - {name: sum, kind: aggregate, input: big, by: [src], window: {size: 20s}, compute: {total: "sum(size)"}}
  - {name: also_big, kind: filter, input: p, where: "(10 <= size)"}
  - {name: also_sum, kind: aggregate, input: also_big, by: [src], window: {size: 20s},
     compute: {total: "SUM( size )"}}
  - {name: other_sum, kind: aggregate, input: also_big, by: [src], window: {size: 20s},
     compute: {n: "count(*)"}, reusable: false}
queries:
  one: "SELECT src, max(size) AS m FROM p WHERE size > 50 GROUP BY src, window(ts, '20 seconds')"
  two: "SELECT src, min(size) AS m FROM p WHERE 50 < size GROUP BY src, window(ts, '20 seconds')"
outputs:
  sums: {input: sum, sink: {format: parquet, path: ./sums}}
  also_sums: {input: also_sum, sink: {format: parquet, path: ./also_sums}}
  others: {input: other_sum, sink: {format: parquet, path: ./others}}
  ones: {input: one, sink: {format: parquet, path: ./ones}}
  twos: {input: two, sink: {format: parquet, path: ./twos}}
"""
OUTPUTS = ("sums", "also_sums", "others", "ones", "twos")


def made(folder, *, length, speed="max", batch="1s"):
    tried = Tried(folder, "1s")
    text = NETWORK.replace("LENGTH", length).replace("SPEED", speed).replace("BATCH", batch)
    tried.network.write_text(text)
    return tried


def rows(tried, names=OUTPUTS):
    return {
        name: sorted(pl.read_parquet(tried.folder / name / "*.parquet").rows(), key=repr) for name in names
    }


def test_the_same_rows_with_and_without(tmp_path):
    shared, apart = made(tmp_path / "shared", length="50s"), made(tmp_path / "apart", length="50s")
    shared.run("--until-idle")
    apart.run("--until-idle", "--no-reuse")
    assert rows(shared) == rows(apart)
    seen = set(shared.ask("stats")["operators"])
    assert {"big", "sum", "other_sum", "one", "two"} <= seen
    assert not {"also_big", "also_sum"} & seen
    assert len(seen) < len(apart.ask("stats")["operators"])
    standing = shared.ask("status")["placement"]
    assert standing["also_sum"] == standing["sum"]


def test_the_one_that_computes_goes_and_the_other_goes_on(tmp_path):
    tried = made(tmp_path / "live", length="300s", speed="1", batch="30s")
    checkpoint = str(tried.folder / "checkpoint")
    with tried.started("--checkpoint", checkpoint) as process:
        tried.wait_for_steps(2, process)
        removed = tried.ask("remove", "sums", "ones", "--timeout", "300")
        assert "sum" in removed["operators"]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    answer = tried.run("--until-idle", "--checkpoint", checkpoint)
    assert set(answer["outputs"]) == {"also_sums", "others", "twos"}
    whole = made(tmp_path / "whole", length="300s", batch="30s")
    whole.run("--until-idle", "--no-reuse")
    kept = ("also_sums", "others", "twos")
    assert rows(tried, kept) == rows(whole, kept)


def test_a_run_goes_on_without_sharing_from_the_checkpoint_of_one_that_shared(tmp_path):
    tried = made(tmp_path / "live", length="300s", speed="1", batch="30s")
    checkpoint = str(tried.folder / "checkpoint")
    with tried.started("--checkpoint", checkpoint) as process:
        tried.wait_for_steps(1, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    tried.run("--until-idle", "--checkpoint", checkpoint, "--no-reuse")
    whole = made(tmp_path / "whole", length="300s", batch="30s")
    whole.run("--until-idle", "--no-reuse")
    assert rows(tried) == rows(whole)
