"""On Spark the same rows come out whatever the plan, the number of nodes, the moves and the hops."""

from __future__ import annotations

import json
import random
import subprocess
from datetime import date, timedelta
from decimal import Decimal

import duckdb
import polars as pl
import pytest
import same_rows
from same_rows import ALL, DEAD, EPOCH, FRAME, LATENESS_S, OPERATORS, Server, assert_same, rows_of

from levelwind.placement import planner_names

pytestmark = pytest.mark.spark
FILES, ROWS, SEED = 6, 40, 7
BOXES = [
    name
    for told in OPERATORS
    for name in (
        [f"{told['name']}[{i}]" for i in range(told["split"]["into"])] if "split" in told else [told["name"]]
    )
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(log=tmp_path_factory.mktemp("server") / "log")
    yield server
    server.close()


@pytest.fixture(scope="module")
def found():
    return same_rows.arrivals(SEED, FILES, ROWS)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, found):
    folder = tmp_path_factory.mktemp("inputs")
    same_rows.write_files(folder, found)
    return folder


@pytest.fixture(scope="module")
def alone(tmp_path_factory, server, inputs):
    """What one node puts out."""
    folder = tmp_path_factory.mktemp("alone")
    said = server.run(same_rows.network(inputs, folder / "out"), nodes=1, run_dir=folder / "run")
    assert said.get("state") == "finished", said
    assert said["steps"] == FILES + 1
    return folder / "out"


def some_moves(nodes, seed, steps=FILES):
    chance = random.Random(seed)
    return [
        {
            "step": chance.randrange(1, steps + 1),
            "operator": chance.choice(BOXES),
            "to": f"n{chance.randrange(nodes) + 1}",
        }
        for _ in range(10)
    ]


def carry_out(server, inputs, alone, folder, nodes, planner, hops, seed=None):
    document = same_rows.network(inputs, folder / "out", hops=hops)
    moves = [] if seed is None else some_moves(nodes, seed)
    said = server.run(document, nodes=nodes, planner=planner, moves=moves, run_dir=folder / "run")
    assert said.get("state") == "finished", said
    assert_same(folder / "out", alone)
    return said


@pytest.mark.parametrize(
    ("nodes", "planner", "hops", "seed"),
    [(2, "rod", "within", 1), (5, "random", "next", 2), (12, "random_node", "next", None)],
)
def test_a_few_plans(server, inputs, alone, tmp_path, nodes, planner, hops, seed):
    said = carry_out(server, inputs, alone, tmp_path, nodes, planner, hops, seed)
    assert said["nodes"] > 1
    assert (said["moved"] > 0) == (seed is not None)


@pytest.mark.slow
@pytest.mark.parametrize("hops", ["within", "next"])
@pytest.mark.parametrize("planner", planner_names())
def test_every_planner(server, inputs, alone, tmp_path, planner, hops):
    document = same_rows.network(inputs, tmp_path / "out", hops=hops)
    said = server.run(document, nodes=3, planner=planner, run_dir=tmp_path / "run")
    if said.get("kind") in ("InputError", "RunError"):
        pytest.skip(said["error"])
    assert said.get("state") == "finished", said
    assert_same(tmp_path / "out", alone)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("hops", ["within", "next"])
@pytest.mark.parametrize("nodes", [2, 5, 12])
def test_ten_moves(server, inputs, alone, tmp_path, nodes, hops, seed):
    said = carry_out(server, inputs, alone, tmp_path, nodes, "random_node", hops, seed)
    assert said["moved"] > 0


@pytest.mark.slow
def test_the_command_line_says_the_same(inputs, alone, tmp_path):
    file = same_rows.write_network(tmp_path / "net.yaml", same_rows.network(inputs, tmp_path / "out"))
    command = same_rows.command(file, "--until-idle", "--nodes", 2, "--run-dir", tmp_path / "run")
    ended = subprocess.run(
        command, env=same_rows.environment(), capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    assert_same(tmp_path / "out", alone)
    counted = {name: rows_of(alone / name).height for name in ALL}
    assert said["dead_letters"] == counted.pop(DEAD)
    assert said["outputs"] == counted


# What DuckDB says: each stream's rows that are in time, and SQL for what the operators mean.


def in_time(found):
    """The rows of each stream that are let in, with their times in microseconds; and the others."""
    admitted, refused = {}, 0
    for name, frames in found.items():
        watermark, taken = None, []
        for frame in frames:
            rows = frame.with_columns(pl.col("ts").dt.epoch("us").alias("t"))
            good = pl.col("t").is_not_null() & (True if watermark is None else pl.col("t") >= watermark)
            taken.append(rows.filter(good))
            refused += rows.height - taken[-1].height
            latest = rows.get_column("t").max()
            if latest is not None:
                mark = latest - LATENESS_S[name] * 1_000_000
                watermark = mark if watermark is None else max(watermark, mark)
        admitted[name] = pl.concat(taken).drop("ts")
    return admitted, refused


SQL = {
    "chosen": "SELECT t, k, v, x, d FROM a WHERE v % 3 <> 0",
    "risky": """SELECT t, k, CAST(trunc(1000.0 / (v - 50)) AS BIGINT) AS v, x * 2 AS x, d
                FROM b WHERE v >= 40 AND v <> 50""",
    "all_rows": """SELECT * FROM chosen UNION ALL SELECT t, k, v, x, d FROM b WHERE v < 40
                   UNION ALL SELECT * FROM risky""",
    "slide": """SELECT k, count(*) AS n, sum(v) AS s, avg(x) AS m, w * 1000000 AS window_start
                FROM (SELECT *, t // 1000000 - i AS w FROM all_rows, generate_series(0, 3) AS g(i))
                GROUP BY k, w""",
    "cut": """SELECT k, count(*) AS n, max(v) AS high, sum(d) AS d, t // 2000000 * 2000000 AS window_start
              FROM all_rows GROUP BY ALL""",
    "nest": """SELECT sum(n) AS n, count(*) AS groups, sum(d) AS d,
                      (window_start + 1999999) // 6000000 * 6000000 AS window_start
               FROM cut GROUP BY ALL""",
    "pair": """SELECT s.t AS some_ts, s.v AS some_v, c.k AS cut_k, c.n AS cut_n,
                      greatest(s.t, c.window_start + 1999999) AS join_time
               FROM chosen s JOIN cut c ON s.k = c.k AND abs(s.t - c.window_start - 1999999) <= 1000000""",
    "tail": "SELECT count(*) AS n, join_time // 2000000 * 2000000 AS window_start FROM pair GROUP BY ALL",
}


def test_duckdb_says_the_same(alone, found):
    admitted, refused = in_time(found)
    with duckdb.connect() as base:
        for name, rows in admitted.items():
            base.register(f"{name}_rows", rows.to_arrow())
            base.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_rows")
        for name, text in SQL.items():
            base.execute(f"CREATE TABLE {name} AS {text}")
        for name in ("risky", "slide", "cut", "nest", "pair", "tail"):
            ours = rows_of(alone / name)
            ours = ours.with_columns(pl.selectors.datetime().dt.epoch("us"))
            if name == "risky":
                ours = ours.rename({"ts": "t"})
            columns = [entry[0] for entry in base.execute(f"DESCRIBE {name}").fetchall()]
            theirs = base.execute(f"SELECT * FROM {name}").fetchall()
            assert len(theirs) == ours.height > 0
            both = [sorted(map(comparable, rows), key=repr) for rows in (ours.select(columns).rows(), theirs)]
            assert both[0] == both[1], name
        bad = base.execute("SELECT count(*) FROM b WHERE v = 50").fetchone()[0]
    assert refused > 0
    assert rows_of(alone / DEAD).height == refused + bad


def comparable(row):
    """Numbers as texts that are the same if they are the same within what floats can tell."""
    return tuple(
        f"{value:.9e}"
        if isinstance(value, float)
        else int(value * 100)
        if isinstance(value, Decimal)
        else value
        for value in row
    )
