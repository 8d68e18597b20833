"""Hosts without an executor on a real cluster: named, done without or refused; late ones are awaited."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from test_run_command import COMMAND, WAIT_S, Tried

from levelwind.runtime.hosts import PATIENCE
from levelwind.runtime.recording import OPERATORS, read_statistics
from levelwind.runtime.rundir import RunDirectory
from levelwind.testing.loopback import LoopbackCluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="loopback hosts as Linux has them"),
]
DEAD = "127.0.0.77"
PLACEMENT = {"big": "n1", "share": "n2", "sum[0]": "n2", "sum[1]": "n3"}


@pytest.fixture(scope="module")
def running():
    with LoopbackCluster(2, memory="512m") as running:
        yield running


def command(running, tried, *more, **settings):
    told = {**running.configuration, **settings}
    where = ["--run-dir", str(tried.directory), "--master", running.master, "--until-idle"]
    conf = [text for key, value in told.items() for text in ("--conf", f"{key}={value}")]
    return [*COMMAND, "run", str(tried.network), *where, *conf, *more]


def run(running, asked):
    environment = {**os.environ, **running.environment}
    return subprocess.run(asked, capture_output=True, text=True, check=False, env=environment)


def cluster_file(tried, *hosts):
    nodes = [{"name": f"n{k}", "host": host} for k, host in enumerate(hosts, start=1)]
    path = tried.folder / "cluster.yaml"
    path.write_text(json.dumps({"nodes": nodes}))
    return str(path)


def test_a_host_that_never_answers_is_named_and_its_operators_are_placed_elsewhere(running, tmp_path):
    tried = Tried(tmp_path / "one", "8s")
    placement = tried.folder / "placement.json"
    placement.write_text(json.dumps(PLACEMENT))
    file = cluster_file(tried, running.hosts[0], DEAD, running.hosts[1])
    more = ("--cluster", file, "--placement", str(placement))
    ended = run(running, command(running, tried, *more, **{PATIENCE: "3s"}))
    assert ended.returncode == 0, ended.stderr
    (said,) = [line for line in ended.stderr.splitlines() if "no executor" in line]
    assert f"n2 ({DEAD})" in said
    assert ", ".join(running.hosts) in said
    moves = RunDirectory(tried.directory).moves()
    assert {move["operator"] for move in moves} == {"share", "sum[0]"}
    assert all(move["cause"].startswith("n2 was lost") for move in moves)
    assert "n2" not in json.loads((tried.directory / "status.json").read_text())["placement"].values()
    assert tried.sums() == tried.expected()[0]


def test_a_cluster_file_that_names_nobody_is_bad_input(running, tmp_path):
    tried = Tried(tmp_path / "none", "2s")
    file = cluster_file(tried, DEAD, "127.0.0.78")
    asked = command(running, tried, "--cluster", file, "--format", "json", **{PATIENCE: "3s"})
    ended = run(running, asked)
    assert ended.returncode == 2, ended.stderr
    (problem,) = json.loads(ended.stdout)
    assert problem["value"] == f"{DEAD}, 127.0.0.78"
    assert ", ".join(running.hosts) in problem["hint"]
    assert "Traceback" not in ended.stderr


def test_nodes_without_a_host_are_bound_also_if_executors_come_late(running, tmp_path):
    """A session begins at once, without one executor, as sessions on a standalone cluster do."""
    tried = Tried(tmp_path / "late", "8s")
    asked = command(running, tried, "--nodes", "2", **{"spark.scheduler.minRegisteredResourcesRatio": "0.0"})
    for k in range(2):
        running.kill_worker(k)
    with ThreadPoolExecutor(1) as pool:
        running_it = pool.submit(run, running, asked)
        until = time.monotonic() + WAIT_S
        while not (tried.directory / "spark.log").exists() and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(10.0)  # the session is there by now, or soon
        for k in range(2):
            running.start_worker(k)
        ended = running_it.result()
    assert ended.returncode == 0, ended.stderr
    rows = read_statistics(tried.directory / "statistics", OPERATORS)
    homes = rows.select("node", "host").unique().sort("node")
    assert homes.rows() == list(zip(("n1", "n2"), running.hosts, strict=True))
