"""`levelwind windows` changes windows of a live join: what comes later goes by them, nothing else changes."""

from __future__ import annotations

import os
import signal

import duckdb
import polars as pl
import pytest
from test_run_command import Tried

# Starts Spark several times: run by make test-all.
pytestmark = [pytest.mark.spark, pytest.mark.slow]
NETWORK = """
name: joined
streams:
  p: {schema: {ts: timestamp, v: int}, time: ts, source: {format: generator, shape: steady, rate: 20,
      duration: 120s, speed: 4, batch: 4s, seed: 1, columns: {v: {kind: uniform, low: 0, high: 9}}}}
  q: {schema: {ts: timestamp, v: int}, time: ts, source: {format: generator, shape: steady, rate: 20,
      duration: 120s, speed: 4, batch: 4s, seed: 2, columns: {v: {kind: uniform, low: 0, high: 9}}}}
operators:
  - {name: near, kind: multijoin, inputs: {a: p, b: q}, windows: {a: 1s, b: 1s}, where: abs(a.v - b.v) < 1
     SPREAD}
  - {name: twin, kind: multijoin, inputs: {a: p, b: q}, windows: {a: 1s, b: 1s}, where: abs(a.v - b.v) < 1
     SPREAD}
  - {name: ps, kind: filter, input: p, where: "true"}
  - {name: qs, kind: filter, input: q, where: "true"}
outputs:
  near: {input: near, sink: {format: parquet, path: ./near}}
  twin: {input: twin, sink: {format: parquet, path: ./twin}}
  ps: {input: ps, sink: {format: parquet, path: ./ps}}
  qs: {input: qs, sink: {format: parquet, path: ./qs}}
"""
OLD_S, NEW_S = 1, 3


def groups(tried, name):
    rows = pl.read_parquet(tried.folder / name / "*.parquet")
    return sorted(rows.select("a_ts", "a_v", "b_ts", "b_v").rows())


def naive(tried, window_s, since=None):
    p, q = (pl.read_parquet(tried.folder / name / "*.parquet") for name in ("ps", "qs"))
    late = "" if since is None else f" AND greatest(p.ts, q.ts) > TIMESTAMPTZ '{since}'"
    found = duckdb.sql(
        "SELECT p.ts, p.v, q.ts, q.v FROM p, q WHERE p.v = q.v AND abs(epoch_us(p.ts) - epoch_us(q.ts))"
        f" <= {window_s} * 1000000{late}"
    )
    assert p.height
    assert q.height
    return sorted(pl.DataFrame(found.arrow()).rows())


@pytest.mark.parametrize("spread", ["", ", diffuse: {method: auto, instances: 2}"])
def test_windows_of_a_live_join_grow(tmp_path, spread):
    tried = Tried(tmp_path / "live", "1s")
    tried.network.write_text(NETWORK.replace("SPREAD", spread))
    checkpoint = str(tmp_path / "checkpoint")
    with tried.started("--checkpoint", checkpoint) as process:
        tried.wait_for_steps(3, process)
        done = tried.ask("windows", "near", f"a={NEW_S}s", f"b={NEW_S}s", "--timeout", "120")
        assert done["operators"] == ["near"]
        reached = tried.status["event_time"]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    tried.run("--until-idle", "--checkpoint", checkpoint)
    # The twin was computed by the other until their windows differed.
    assert groups(tried, "twin") == naive(tried, OLD_S)
    found = set(groups(tried, "near"))
    assert set(naive(tried, OLD_S)) < found <= set(naive(tried, NEW_S))
    assert len(found) == len(groups(tried, "near"))
    # Once as much time has gone by as the windows have grown, nothing is missing.
    since = f"{pl.Series([reached]).str.to_datetime(time_zone='UTC').dt.offset_by('3s')[0]}"
    later = naive(tried, NEW_S, since)
    assert later
    assert set(later) <= found
