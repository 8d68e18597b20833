"""A network with an operator of every kind, files for it, and runs of it: what several tests share.

Run as a program it keeps one Spark session and carries out a run per line of its input, so that many plans
can be tried without starting Spark anew.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl

HERE = Path(__file__).parent
LEVELWIND = [sys.executable, "-m", "levelwind.cli.main"]
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
LATENESS_S = {"a": 2, "b": 1}
SCHEMA = {"ts": "timestamp", "k": "string", "v": "bigint", "x": "double", "d": "decimal(10,2)"}
FRAME = {
    "ts": pl.Datetime("us", "UTC"),
    "k": pl.String,
    "v": pl.Int64,
    "x": pl.Float64,
    "d": pl.Decimal(10, 2),
}
RATES = {"a": [40, 60, 50, 90, 20, 40, 70, 30], "b": [30, 20, 60, 10, 50, 40, 20, 70]}
OPERATORS = [
    {"name": "some", "kind": "filter", "input": "a", "where": "v % 3 <> 0"},
    {"name": "ways", "kind": "filter", "input": "b", "routes": {"low": "v < 40", "rest": "true"}},
    {
        "name": "risky",
        "kind": "map",
        "input": "ways.rest",
        "select": {"k": "k", "v": "1000 div (v - 50)", "x": "x * 2", "d": "d"},
    },
    {
        "name": "plain",
        "kind": "map",
        "input": "some",
        "select": {"k": "k", "v": "v", "x": "x", "d": "d"},
    },
    {"name": "both", "kind": "union", "inputs": ["plain", "ways.low", "risky"]},
    {
        "name": "slide",
        "kind": "aggregate",
        "input": "both",
        "by": "k",
        "window": {"size": "4s", "slide": "1s"},
        "compute": {"n": "count(*)", "s": "sum(v)", "m": "avg(x)", "f": "first(v)", "l": "last(v)"},
    },
    {
        "name": "cut",
        "kind": "aggregate",
        "input": "both",
        "by": "k",
        "window": {"size": "2s"},
        "compute": {"n": "count(*)", "high": "max(v)", "d": "sum(d)"},
        "split": {"into": 3, "by": "k"},
    },
    {
        "name": "nest",
        "kind": "aggregate",
        "input": "cut",
        "window": {"size": "6s"},
        "compute": {"n": "sum(n)", "groups": "count(*)", "d": "sum(d)"},
    },
    {
        "name": "few",
        "kind": "aggregate",
        "input": "both",
        "by": "k",
        "window": {"rows": 6, "slide": 2},
        "compute": {"s": "sum(v)", "f": "first(v)", "m": "avg(x)"},
    },
    {"name": "pair", "kind": "join", "inputs": ["some", "cut"], "within": "1s", "where": "some.k = cut.k"},
    {
        "name": "trio",
        "kind": "multijoin",
        "inputs": {"x": "some", "y": "b", "z": "a"},
        "windows": {"x": "500ms", "y": "0s", "z": "1s"},
        "where": "abs(x.v - y.v) < 10 and y.k = z.k",
    },
    {
        "name": "tail",
        "kind": "aggregate",
        "input": "pair",
        "window": {"size": "2s"},
        "compute": {"n": "count(*)", "l": "last(`some.v`)"},
    },
    {
        "name": "run_sum",
        "kind": "custom",
        "input": "some",
        "function": "same_rows:running",
        "schema": {"ts": "timestamp", "k": "string", "n": "bigint", "total": "bigint"},
    },
]
SINKS = ("slide", "cut", "nest", "few", "pair", "trio", "tail", "risky", "run_sum")
DEAD = "dead"
ALL = (*SINKS, DEAD)


def running(rows, state):
    """A custom function with memory: how many rows and what sum, by key, up to each row."""
    before = {} if state is None else {k: (n, total) for k, n, total in state.rows()}
    out = []
    for ts, k, v in rows.select("ts", "k", "v").rows():
        n, total = before.get(k, (0, 0))
        before[k] = (n + 1, total + v)
        out.append((ts, k, *before[k]))
    schema = {"ts": FRAME["ts"], "k": pl.String, "n": pl.Int64, "total": pl.Int64}
    kept = [(k, *both) for k, both in before.items()]
    new = pl.DataFrame(kept, schema={"k": pl.String, "n": pl.Int64, "total": pl.Int64}, orient="row")
    return pl.DataFrame(out, schema=schema, orient="row"), new


def network(inputs, sinks, *, hops="within", format="parquet"):
    """The network as a document; its files under ``inputs``, what it puts out under ``sinks``."""
    options = {"maxFilesPerTrigger": 1}
    if format == "csv":
        options["header"] = "true"
    streams = {
        name: {
            "schema": SCHEMA,
            "time": "ts",
            "lateness": f"{lateness}s",
            "rate": RATES[name],
            "source": {"format": format, "path": str(Path(inputs, name)), **options},
        }
        for name, lateness in LATENESS_S.items()
    }
    costs = {"cost": 1e-4, "selectivity": 0.5, "bytes": 50}
    priced = [{**told, **costs, "selectivity": 0.01 if "join" in told["kind"] else 0.5} for told in OPERATORS]
    outputs = {
        name: {"input": name, "sink": {"format": "parquet", "path": str(Path(sinks, name))}} for name in SINKS
    }
    return {
        "name": "same",
        "hops": hops,
        "streams": streams,
        "operators": priced,
        "outputs": outputs,
        "errors": {"on_error": "dead_letter", "sink": {"format": "parquet", "path": str(Path(sinks, DEAD))}},
    }


def arrivals(seed, files, rows):
    """The rows of each stream, file by file: out of order, a few late, a few without time."""
    chance = random.Random(seed)
    found = {}
    for name in LATENESS_S:
        frames = []
        for number in range(files):
            taken = []
            for _ in range(rows if chance.random() < 0.9 else 0):
                # Half seconds, so that rows of one time are common.
                at = EPOCH + timedelta(seconds=2 * number + chance.randrange(6) / 2)
                # Not among the first: a kill may bring several files into one batch, before any watermark.
                if chance.random() < 0.02 and number > 3:
                    at -= timedelta(seconds=30)
                taken.append(
                    (
                        None if chance.random() < 0.01 else at,
                        chance.choice(["x", "y", "z", "ü w", None]),
                        chance.randrange(100),
                        chance.random(),
                        Decimal(chance.randrange(10**6)) / 100,
                    )
                )
            frames.append(pl.DataFrame(taken, schema=FRAME, orient="row"))
        found[name] = frames
    return found


def write_files(folder, found, *, start=0, format="parquet"):
    """A file for each frame; the times of the files say in which order they came."""
    for name, frames in found.items():
        Path(folder, name).mkdir(parents=True, exist_ok=True)
        for number, frame in enumerate(frames, start):
            path = Path(folder, name, f"{number:04d}.{format}")
            aside = path.with_name(f".{path.name}")
            if format == "parquet":
                write_sized(frame, aside, 20_000 - 10 * number)
            else:
                text = frame.with_columns(pl.col("ts").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ"))
                if format == "csv":
                    text.with_columns(pl.col(pl.Float64).cast(pl.String)).write_csv(aside)
                else:
                    text.with_columns(pl.col("d").cast(pl.String)).write_ndjson(aside)
            os.utime(aside, (1_700_000_000 + number,) * 2)
            aside.rename(path)


def write_sized(frame, path, size):
    """A parquet file of a given size. Of files in one batch Spark reads the largest first.

    So the first must be the largest, if their order is to be the same where a kill puts two in one batch.
    """
    padding = 0
    for _ in range(4):
        frame.write_parquet(path, metadata={"padding": " " * padding})
        if path.stat().st_size == size:
            return
        padding += size - path.stat().st_size
    raise AssertionError(f"{path.stat().st_size} bytes instead of {size}")


def written(folder):
    """What lies in a sink, file by file."""
    return {path.name: pl.read_parquet(path) for path in sorted(Path(folder).glob("[!.]*.parquet"))}


def rows_of(folder):
    """All rows of a sink; None if it has none."""
    frames = [frame for frame in written(folder).values() if frame.height]
    return pl.concat(frames) if frames else None


def ordered(frame):
    """Rows in an order of their own, floats last in it: they may differ in the last digits."""
    floats = [name for name, kind in frame.schema.items() if kind.is_float()]
    exact = [index for index, name in enumerate(frame.columns) if name not in floats]
    inexact = [index for index, name in enumerate(frame.columns) if name in floats]

    def place(row):
        return repr([row[i] for i in exact]), [(row[i] is None, row[i] or 0.0) for i in inexact]

    return sorted(frame.rows(), key=place)


def difference(found, wanted):
    """Why two frames do not hold the same rows; empty if they do. Floats are the same within 1e-9."""
    if found is None or wanted is None:
        return "" if found is wanted else f"{found} instead of {wanted}"
    if found.columns != wanted.columns or found.dtypes != wanted.dtypes:
        return f"{found.schema} instead of {wanted.schema}"
    if found.height != wanted.height:
        lost = wanted.join(found, on=found.columns, how="anti", nulls_equal=True)
        more = found.join(wanted, on=found.columns, how="anti", nulls_equal=True)
        return f"{found.height} rows instead of {wanted.height}; lost {lost}, more {more}"
    for one, other in zip(ordered(found), ordered(wanted), strict=True):
        if not all(map(_same, one, other)):
            return f"{one} instead of {other}"
    return ""


def _same(one, other):
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return one == other


def assert_same(sinks, reference, names=ALL):
    """The sinks under one folder hold what those under another do."""
    wrong = {name: difference(rows_of(Path(sinks, name)), rows_of(Path(reference, name))) for name in names}
    assert not {name: text for name, text in wrong.items() if text}


def environment():
    """Of a process that is to find the custom function."""
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": "ignore"}


def command(network_file, *arguments):
    """The command line of a run on this machine."""
    return [
        *LEVELWIND,
        "run",
        str(network_file),
        "--master",
        "local[2]",
        "--conf",
        "spark.sql.shuffle.partitions=2",
        "--format",
        "json",
        *map(str, arguments),
    ]


def write_network(path, document):
    path.write_text(json.dumps(document, indent=1))
    return path


class Server:
    """One Spark session in a process of its own, which carries out runs."""

    def __init__(self, master="local[2]", settings=None, log=None):
        asked = json.dumps({"master": master, "settings": settings or {}})
        self.log = open(log, "ab") if log else subprocess.DEVNULL  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "same_rows.py"), asked],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=environment(),
            text=True,
        )

    def run(self, document, **asked):
        """Carry out a run to its end; what it says. An error is said under ``error``."""
        self.send(document, **asked)
        return self.receive()

    def send(self, document, **asked):
        self.process.stdin.write(json.dumps({"network": document, **asked}, default=str) + "\n")
        self.process.stdin.flush()

    def receive(self):
        for line in self.process.stdout:
            if line.startswith(MARK):
                return json.loads(line[len(MARK) :])
        raise AssertionError("the process has ended")

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        if self.log is not subprocess.DEVNULL:
            self.log.close()


MARK = "answer: "


def _serve():
    import levelwind
    from levelwind.errors import LevelwindError
    from levelwind.spark.session import start_session

    told = json.loads(sys.argv[1])
    session = start_session(told["master"], told["settings"])
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            said = _carry_out(levelwind, session, **asked)
        except LevelwindError as error:
            said = {"error": str(error), "kind": type(error).__name__}
        except Exception as error:
            import traceback

            traceback.print_exc()
            said = {"error": str(error)[:3000], "kind": type(error).__name__}
        print(MARK + json.dumps(said), flush=True)
    session.stop()


def _carry_out(levelwind, session, *, network, nodes=2, moves=(), stop_after=None, until_idle=True, **asked):
    from levelwind.frontend import parse_network
    from levelwind.spark.api import ScriptedMove, prepare

    parsed = parse_network(network).network
    scripted = [ScriptedMove(step=m["step"], operators=(m["operator"],), target=m["to"]) for m in moves]
    seen = []
    begun = prepare(
        parsed,
        nodes if isinstance(nodes, int) else levelwind.Cluster(nodes=[levelwind.Node(**n) for n in nodes]),
        spark=session,
        moves=scripted,
        until_idle=until_idle,
        on_step=seen.append,
        **asked,
    )
    begun.start()
    while not begun.wait(0.05):
        if stop_after is not None and len(seen) >= stop_after:
            begun.stop()
            break
    return {
        "state": begun.state,
        "steps": len(seen),
        "depth": max((step.program.depth for step in seen), default=0),
        "moved": sum(len(step.commit.moves) for step in seen),
        "nodes": len(set(begun.placement.values())),
        "status": {key: begun.status[key] for key in ("rows", "outputs", "dead_letters")},
        "notes": begun.notes,
    }


if __name__ == "__main__":
    _serve()
