"""A worker of a real cluster is lost in the midst of a run: the same rows come out, computed elsewhere."""

from __future__ import annotations

import sys
import time

import polars as pl
import pytest
import same_rows
from same_rows import HERE, Server, assert_same

from levelwind.runtime.commits import steps_of
from levelwind.runtime.recording import OPERATORS, read_statistics
from levelwind.runtime.rundir import RunDirectory
from levelwind.testing.loopback import LoopbackCluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="loopback hosts as Linux has them"),
]
WORKERS, LOST = 3, 1
FILES, ROWS, SEED = 16, 40, 5
WARM_UP, KILL_AT = 2, 7
PATIENCE_S = 600.0


@pytest.fixture(scope="module")
def cluster():
    with LoopbackCluster(WORKERS, memory="512m") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    same_rows.write_files(folder, same_rows.arrivals(SEED, FILES, ROWS))
    return folder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, inputs):
    folder = tmp_path_factory.mktemp("undisturbed")
    server = Server()
    said = server.run(same_rows.network(inputs, folder / "out"), nodes=1, run_dir=folder / "run")
    server.close()
    assert said.get("state") == "finished", said
    return folder / "out"


def wait_for_step(checkpoint, step):
    until = time.monotonic() + PATIENCE_S
    while max(steps_of(str(checkpoint)), default=-1) < step:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_lost_worker(cluster, inputs, undisturbed, tmp_path, monkeypatch):
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    settings = {**cluster.configuration, "spark.executorEnv.PYTHONPATH": str(HERE)}
    server = Server(cluster.master, settings, log=tmp_path / "log")
    nodes = [{"name": f"n{k + 1}", "host": host} for k, host in enumerate(cluster.hosts)]
    checkpoint = tmp_path / "checkpoint"
    document = same_rows.network(inputs, tmp_path / "out")
    try:
        server.send(document, nodes=nodes, planner="random", run_dir=tmp_path / "run", checkpoint=checkpoint)
        wait_for_step(checkpoint, KILL_AT)
        killed_in = max(steps_of(str(checkpoint))) + 1  # the step that runs now, if not the one after it
        cluster.kill_worker(LOST)
        said = server.receive()
    finally:
        server.close()
    assert said.get("state") == "finished", said
    assert said["depth"] > 1
    assert_same(tmp_path / "out", undisturbed)

    rows = read_statistics(tmp_path / "run" / "statistics", OPERATORS)
    home = pl.DataFrame([(node["name"], node["host"]) for node in nodes], ["node", "home"], orient="row")
    rows = rows.join(home, on="node").with_columns(at_home=pl.col("host") == pl.col("home"))
    before = rows.filter(pl.col("step").is_between(WARM_UP, killed_in - 1, closed="both"))
    share = before.get_column("at_home").mean()
    lost = cluster.hosts[LOST]
    after = rows.filter(pl.col("step") > killed_in + 1)
    print(
        f"killed in step {killed_in} of {said['steps']}; at home before: {share:.3f} of {before.height};"
        f" after: {after.filter(pl.col('home') != lost).get_column('at_home').mean():.3f} of the others"
    )
    assert share >= 0.95
    assert before.filter(pl.col("host") == lost).height > 0
    assert after.height > 0
    assert after.filter(pl.col("host") == lost).height == 0
    # What stood on the lost node was placed on others, and says why.
    gone = nodes[LOST]["name"]
    homeless = set(before.filter(pl.col("node") == gone).get_column("operator"))
    later = rows.filter(pl.col("step") > killed_in + 3, pl.col("operator").is_in(list(homeless)))
    assert later.height > 0
    assert gone not in set(later.get_column("node"))
    causes = {move["operator"]: move["cause"] for move in RunDirectory(tmp_path / "run").moves()}
    assert all(causes[name].startswith(f"{gone} was lost") for name in homeless)
