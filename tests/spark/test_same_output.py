"""On Spark the same rows come out whatever the plan, the number of nodes, the moves and the hops."""

from __future__ import annotations

import json
import random
import subprocess
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import duckdb
import polars as pl
import pytest
import same_rows
from same_rows import ALL, DEAD, LATENESS_S, OPERATORS, assert_same, rows_of

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
    [(2, "rod", "within", 1), (5, "random", "next", 2), (12, "random", "next", None)],
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
    said = carry_out(server, inputs, alone, tmp_path, nodes, "random", hops, seed)
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
    "trio": """SELECT x.t AS x_ts, x.v AS x_v, y.t AS y_ts, y.k AS y_k, z.t AS z_ts, z.x AS z_x,
                      greatest(x.t, y.t, z.t) AS join_time
               FROM chosen x, b y, a z WHERE abs(x.v - y.v) < 10 AND y.k = z.k
               AND greatest(x.t, y.t, z.t) - x.t <= 500000 AND greatest(x.t, y.t, z.t) - y.t <= 0
               AND greatest(x.t, y.t, z.t) - z.t <= 1000000""",
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
        for name in ("risky", "slide", "cut", "nest", "pair", "trio", "tail"):
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


# Odd inputs: each of these is a run of its own.

ODD = {
    "ts": "timestamp",
    "day": "date",
    "ok": "boolean",
    "raw": "binary",
    "price": "decimal(12,3)",
    "größe": "int",
    "two words": "string",
}
ODD_FRAME = {
    "ts": pl.Datetime("us", "UTC"),
    "day": pl.Date,
    "ok": pl.Boolean,
    "raw": pl.Binary,
    "price": pl.Decimal(12, 3),
    "größe": pl.Int32,
    "two words": pl.String,
}
BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 50, tzinfo=UTC)


def odd_rows(count, start=BEFORE_1970):
    rows = [
        (
            None if n % 7 == 2 else start + timedelta(seconds=n),
            date(1969, 12, 25) + timedelta(days=n),
            [True, False, None][n % 3],
            None if n % 5 == 4 else bytes([n, 0, 255]),
            Decimal(n) / 8,
            n - 3,
            f"a '{n}' \"ü\"\n",
        )
        for n in range(count)
    ]
    return pl.DataFrame(rows, schema=ODD_FRAME, orient="row")


def stream(folder, schema, **told):
    folder.mkdir(parents=True, exist_ok=True)
    source = {"format": "parquet", "path": str(folder), "maxFilesPerTrigger": 1}
    return {"schema": schema, "source": source, **told}


def put(folder, *frames):
    for number, frame in enumerate(frames):
        frame.write_parquet(folder / f"{number}.parquet")
        same_rows.os.utime(folder / f"{number}.parquet", (1_700_000_000 + number,) * 2)


def small(folder, streams, operators, outputs):
    return {
        "name": "odd",
        "streams": streams,
        "operators": operators,
        "outputs": {
            name: {"input": port, "sink": {"format": "parquet", "path": str(folder / "out" / name)}}
            for name, port in outputs.items()
        },
        "errors": {"sink": {"format": "parquet", "path": str(folder / "out" / DEAD)}},
    }


def run_small(server, folder, document, **asked):
    said = server.run(document, run_dir=folder / "run", **asked)
    assert said.get("state") == "finished", said
    return said


def test_odd_types_names_and_times(server, tmp_path):
    rows = odd_rows(20)
    streams = {"a": stream(tmp_path / "in", ODD, time="ts")}
    put(tmp_path / "in", rows)
    every = {
        "price": "sum(price)",
        "days": "max(day)",
        "all ok": "min(ok)",
        "n": "count(raw)",
        "größte": "max(`größe`)",
    }
    operators = [
        {"name": "good", "kind": "filter", "input": "a", "where": "ok or `größe` > 10"},
        {
            "name": "share",
            "kind": "map",
            "input": "good",
            "select": {"raw": "raw", "day": "day", "a share": "10 div `größe`", "two words": "`two words`"},
        },
        {
            "name": "win",
            "kind": "aggregate",
            "input": "a",
            "by": ["ok"],
            "window": {"size": "4s"},
            "compute": every,
        },
        {
            "name": "by_words",
            "kind": "aggregate",
            "input": "a",
            "by": ["two words", "day", "raw"],
            "window": {"size": "5s"},
            "compute": {"n": "count(*)"},
        },
        {"name": "unread", "kind": "filter", "input": "a", "where": "10 div `größe` > 0"},
    ]
    outputs = {"straight": "a", "once": "good", "twice": "good", "share": "share", "win": "win"}
    outputs["by_words"] = "by_words"
    run_small(server, tmp_path, small(tmp_path, streams, operators, outputs))
    out = tmp_path / "out"
    timed = rows.filter(pl.col("ts").is_not_null())
    good = timed.filter(pl.col("ok").fill_null(False) | (pl.col("größe") > 10))
    assert same_rows.difference(rows_of(out / "straight"), timed) == ""
    assert same_rows.difference(rows_of(out / "once"), good) == ""
    assert same_rows.difference(rows_of(out / "twice"), good) == ""
    shared = good.filter(pl.col("größe") != 0)
    assert rows_of(out / "share").height == shared.height
    assert set(rows_of(out / "share").get_column("raw")) == set(shared.get_column("raw"))
    assert rows_of(out / "by_words").height == timed.height
    starts = timed.select(
        (pl.col("ts").dt.epoch("us") // 4_000_000 * 4_000_000).alias("start"), "ok", "price"
    )
    wanted = starts.group_by("start", "ok").agg(pl.col("price").sum()).rows()
    ours = rows_of(out / "win").select(pl.col("window_start").dt.epoch("us"), "ok", "price").rows()
    assert sorted(ours, key=repr) == sorted(wanted, key=repr)
    dead = rows_of(out / DEAD)
    by_operator = dict(dead.group_by("operator").len().rows())
    zero = timed.filter(pl.col("größe") == 0).height
    assert by_operator == {"a": rows.height - timed.height, "share": zero, "unread": zero}
    told = [json.loads(row) for row in dead.filter(pl.col("operator") == "a").get_column("row")]
    assert all(set(row) == set(ODD) for row in told)


def test_empty_and_silent_streams(server, tmp_path):
    """A stream that never brings a row holds the others back until it counts as idle, or the run ends."""
    schema = {"ts": "timestamp", "v": "bigint"}
    frame = {"ts": pl.Datetime("us", "UTC"), "v": pl.Int64}
    streams = {
        "full": stream(tmp_path / "full", schema, time="ts"),
        "silent": stream(tmp_path / "silent", schema, time="ts"),
        "idle": stream(tmp_path / "idle", schema, time="ts", idle_after="1ms"),
    }
    start = datetime(2024, 1, 1, tzinfo=UTC)
    put(
        tmp_path / "full",
        *(
            pl.DataFrame([(start + timedelta(seconds=10 * f + i), i) for i in range(10)], frame, orient="row")
            for f in range(4)
        ),
    )
    put(tmp_path / "silent", pl.DataFrame(schema=frame))
    count = {"kind": "aggregate", "window": {"size": "5s"}, "compute": {"n": "count(*)"}}
    operators = [
        {"name": "held", "kind": "union", "inputs": ["full", "silent"]},
        {"name": "free", "kind": "union", "inputs": ["full", "idle"]},
        {"name": "late_count", "input": "held", **count},
        {"name": "soon_count", "input": "free", **count},
        {"name": "nothing", "input": "silent", **count},
    ]
    outputs = {"late_count": "late_count", "soon_count": "soon_count", "nothing": "nothing"}
    run_small(server, tmp_path, small(tmp_path, streams, operators, outputs))
    held, free = (same_rows.written(tmp_path / "out" / name) for name in ("late_count", "soon_count"))
    assert sum(frame.get_column("n").sum() for frame in held.values()) == 40
    assert sum(frame.get_column("n").sum() for frame in free.values()) == 40
    assert len(held) == 1
    assert len(free) > 1
    assert rows_of(tmp_path / "out" / "nothing") is None


def test_nothing_at_all(server, tmp_path):
    streams = {"a": stream(tmp_path / "in", {"ts": "timestamp", "v": "bigint"}, time="ts")}
    operators = [
        {
            "name": "win",
            "kind": "aggregate",
            "input": "a",
            "window": {"size": "1s"},
            "compute": {"n": "sum(v)"},
        }
    ]
    said = run_small(server, tmp_path, small(tmp_path, streams, operators, {"win": "win"}))
    assert said["steps"] == 1
    assert rows_of(tmp_path / "out" / "win") is None


def test_a_stream_without_time_is_refused(server, tmp_path):
    streams = {"a": stream(tmp_path / "in", {"v": "int"})}
    odd = [{"name": "odd", "kind": "filter", "input": "a", "where": "v % 2 = 1"}]
    for operators, port in (([], "a"), (odd, "odd")):
        said = server.run(small(tmp_path, streams, operators, {"out": port}), run_dir=tmp_path / "run")
        assert said["kind"] == "InputError"
        assert "streams.a.time" in said["error"]


def test_a_large_batch(server, tmp_path):
    """More rows than fit in one Arrow batch of Spark's, over several files of one batch."""
    schema = {"ts": "timestamp", "k": "int"}
    streams = {"a": stream(tmp_path / "in", schema, time="ts")}
    streams["a"]["source"]["maxFilesPerTrigger"] = 10
    start = datetime(2024, 1, 1, tzinfo=UTC)
    each = 250_000
    times = pl.select(pl.datetime_range(start, start + timedelta(seconds=each - 1), "1s")).to_series()
    frame = pl.DataFrame({"ts": times.dt.cast_time_unit("us"), "k": pl.arange(0, each, eager=True) % 7})
    put(tmp_path / "in", *[frame.cast({"k": pl.Int32})] * 2)
    operators = [
        {
            "name": "win",
            "kind": "aggregate",
            "input": "a",
            "by": "k",
            "window": {"size": "1h"},
            "compute": {"n": "count(*)"},
            "split": {"into": 2, "by": "k"},
        }
    ]
    run_small(server, tmp_path, small(tmp_path, streams, operators, {"win": "win"}))
    assert rows_of(tmp_path / "out" / "win").get_column("n").sum() == 2 * each
    assert len(same_rows.written(tmp_path / "out" / "win")) == 2  # what the batch closes, and the end
