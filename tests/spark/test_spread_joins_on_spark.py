"""On Spark a spread multijoin puts out what the plain one does, with moves and with the driver killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
import same_rows
from same_rows import difference, rows_of

pytestmark = pytest.mark.spark
FILES, ROWS = 5, 30
NODES = 3
WHERE = {
    2: "abs(p.v - q.v) < 9",
    3: "abs(p.v - q.v) < 12 and q.k = r.k",
    4: "abs(p.v - q.v) < 9 and q.k = r.k and s.v <= p.v",
}


def network(inputs, sinks, streams, diffuse=None, hops="within"):
    document = same_rows.network(inputs, sinks, hops=hops)
    aliases = "pqrs"[:streams]
    join = {
        "name": "trio",
        "kind": "multijoin",
        "inputs": {alias: "ab"[i % 2] for i, alias in enumerate(aliases)},
        "windows": {alias: f"{(2, 1, 1.5, 0.5)[i]}s" for i, alias in enumerate(aliases)},
        "where": WHERE[streams],
        "cost": 1e-5,
        "selectivity": 0.01,
    }
    if diffuse:
        join["diffuse"] = diffuse
    sink = {"format": "parquet", "path": str(sinks / "trio")}
    return {**document, "operators": [join], "outputs": {"trio": {"input": "trio", "sink": sink}}}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    same_rows.write_files(folder, same_rows.arrivals(5, FILES, ROWS))
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory, server, inputs):
    """What the plain join puts out, by the number of streams."""
    found = {}

    def of(streams):
        if streams not in found:
            folder = tmp_path_factory.mktemp("plain")
            said = server.run(network(inputs, folder / "out", streams), nodes=1, run_dir=folder / "run")
            assert said.get("state") == "finished", said
            found[streams] = rows_of(folder / "out" / "trio")
            assert found[streams].height > 50
        return found[streams]

    return of


def parts(streams, diffuse):
    from levelwind.frontend import parse_network
    from levelwind.rewrite import split

    told = network(Path("in"), Path("out"), streams, diffuse)
    return [operator.name for operator in split(parse_network(told).network).operators]


def carry_out(server, inputs, expected, folder, streams, diffuse, hops, seed):
    chance = random.Random(seed)
    names = parts(streams, diffuse)
    moves = [
        {
            "step": chance.randrange(1, FILES),
            "operator": chance.choice(names),
            "to": f"n{chance.randrange(NODES) + 1}",
        }
        for _ in range(10)
    ]
    document = network(inputs, folder / "out", streams, diffuse, hops)
    said = server.run(document, nodes=NODES, planner="random", moves=moves, run_dir=folder / "run")
    assert said.get("state") == "finished", said
    assert not difference(rows_of(folder / "out" / "trio"), expected)
    return said


@pytest.mark.parametrize(
    ("streams", "diffuse", "hops"),
    [
        (3, {"method": "atr", "instances": 2, "segment": "1s"}, "within"),
        (3, {"method": "ctr", "instances": 2}, "next"),
    ],
)
def test_same_rows_with_moves(server, inputs, plain, tmp_path, streams, diffuse, hops):
    said = carry_out(server, inputs, plain(streams), tmp_path, streams, diffuse, hops, 1)
    assert said["moved"] > 0


CASES = [
    (streams, method, instances, hops)
    for streams in (2, 3, 4)
    for method, instances in (("atr", 2), ("atr", 4), ("ctr", 3), ("auto", 2))
    for hops in ("within", "next")
]


@pytest.mark.slow
@pytest.mark.parametrize(("streams", "method", "instances", "hops"), CASES)
def test_same_rows_in_many_cases(server, inputs, plain, tmp_path, streams, method, instances, hops):
    diffuse = {"method": method, "instances": instances}
    if method == "atr":
        diffuse["segment"] = "1s"
    seed = CASES.index((streams, method, instances, hops))
    said = carry_out(server, inputs, plain(streams), tmp_path, streams, diffuse, hops, seed)
    assert said["moved"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("method", "hops"), [("atr", "within"), ("ctr", "next"), ("auto", "within")])
def test_same_rows_after_the_driver_was_killed(inputs, plain, tmp_path, method, hops):
    document = network(inputs, tmp_path / "out", 3, {"method": method, "instances": 2}, hops)
    file = same_rows.write_network(tmp_path / "net.yaml", document)
    arguments = [
        "--until-idle",
        "--nodes",
        NODES,
        "--planner",
        "random",
        "--checkpoint",
        tmp_path / "checkpoint",
    ]
    killed = []
    for turn in range(3):
        process = subprocess.Popen(
            same_rows.command(file, *arguments, "--run-dir", tmp_path / f"run{turn}"),
            env=same_rows.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        if turn < 2:
            commits = tmp_path / "checkpoint" / "commits"
            until = time.monotonic() + 300
            while time.monotonic() < until and process.poll() is None:
                if commits.exists() and len(list(commits.iterdir())) > turn + 1:
                    break
                time.sleep(0.01)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            killed.append(process.returncode == -signal.SIGKILL)
        else:
            out, _ = process.communicate(timeout=600)
            assert process.returncode == 0
            assert json.loads(out)
    # Both were alive, with commits behind them and files ahead.
    assert killed == [True, True]
    assert not difference(rows_of(tmp_path / "out" / "trio"), plain(3))
