"""`levelwind probe` on a real cluster on loopback addresses, and on a local master."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from levelwind.frontend import load_cluster
from levelwind.model import Cluster, Node
from levelwind.spark.probe import latency_matrix
from levelwind.testing.loopback import LoopbackCluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.skipif(sys.platform != "linux", reason="loopback hosts as Linux has them"),
]
COMMAND = [sys.executable, "-m", "levelwind.cli.main", "probe", "--format", "json"]


def probe(*arguments, **environment):
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_round_trips_between_hosts(tmp_path):
    with LoopbackCluster(2) as running:
        nodes = "\n".join(f"  - {{name: n{i}, host: {host}}}" for i, host in enumerate(running.hosts))
        (tmp_path / "cluster.yaml").write_text(f"nodes:\n{nodes}\n")
        file = tmp_path / "latency.csv"
        told = probe(
            "--cluster", str(tmp_path / "cluster.yaml"), "--master", running.master, "--output", str(file),
            *(text for key, value in running.configuration.items() for text in ("--conf", f"{key}={value}")),
            **running.environment,
        )  # fmt: skip
    assert told.returncode == 0, told.stderr
    answer = json.loads(told.stdout)
    (aa, ab), (ba, bb) = answer["latency_ms"]
    assert aa == bb == 0.0
    assert 0.0 < ab < 50.0
    assert 0.0 < ba < 50.0
    (tmp_path / "cluster.yaml").write_text(f"nodes:\n{nodes}\nlatency: latency.csv\n")
    assert load_cluster(tmp_path / "cluster.yaml").latency_ms[0][1] == pytest.approx(ab, rel=1e-3)


def test_one_host_has_nothing_to_measure():
    told = probe("--nodes", "2", "--master", "local[2]")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["latency_ms"] == [[0.0, 0.0], [0.0, 0.0]]


def test_what_was_not_measured_is_missing():
    cluster = Cluster(nodes=(Node(name="a"), Node(name="b"), Node(name="c")))
    trips = {("h1", "h2"): 4.0}
    assert latency_matrix(cluster, ["h1", "h2", "h3"], trips) == [
        [0.0, 2.0, None], [2.0, 0.0, None], [None, None, 0.0],
    ]  # fmt: skip
