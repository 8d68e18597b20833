"""A real cluster on loopback addresses: nodes on chosen hosts, caps that hold, workers lost and back."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from levelwind.errors import InputError, LevelwindError
from levelwind.testing import cgroups
from levelwind.testing.cgroups import ControlGroup
from levelwind.testing.loopback import ClusterStartError, LoopbackCluster

# Starts a cluster: run by make test-all.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.skipif(sys.platform != "linux", reason="loopback hosts and sessions as Linux has them"),
]
WORKERS = 3
ROUNDS = 20
CAP = 0.25

# A driver of its own: a process can have one Spark context only, and this one has settings of its own. It
# reads a command per line and answers with a line of JSON.
DRIVER = """
import json, os, sys, time
from pyspark import SparkConf, SparkContext
from levelwind.model import Cluster, Node
from levelwind.spark.hosts import Binding, executor_hosts
from levelwind.spark.sticky import Sticky, on_nodes

settings = json.loads(sys.argv[1])
conf = SparkConf().setAll(list(settings["configuration"].items()))
context = SparkContext(conf=conf.setMaster(settings["master"]).setAppName("loopback"))
nodes = len(settings["hosts"])
Binding(context, Cluster(nodes=[Node(name=f"n{k}", host=h) for k, h in enumerate(settings["hosts"])])).wait()
sticky = Sticky(context, settings["hosts"])


def run(node, payloads):
    return [(node, os.environ.get("SPARK_LOCAL_IP"), sorted(bytes(p).decode() for p in payloads))]


def spin(node, payloads):
    until = time.monotonic() + float(b"".join(payloads).decode() or 0)
    while time.monotonic() < until:
        pass
    return []


def exchanged(pairs):
    return sticky.exchange(context.parallelize([(k, text.encode()) for k, text in pairs], nodes))


def answer(command, value):
    if command == "round":
        return on_nodes(exchanged(value), run).collect()
    if command == "spin":
        return on_nodes(exchanged(value), spin).count()
    if command == "unread":  # pids of the Python workers, which leave their payloads to be read by others
        return on_nodes(exchanged(value), lambda node, payloads: [os.getpid()]).collect()
    if command == "lineage":
        return exchanged([])._jrdd.toDebugString()
    if command == "hosts":
        return [executor_hosts(context), sticky.present()]


for line in sys.stdin:
    try:
        print(json.dumps({"value": answer(*json.loads(line))}), flush=True)
    except Exception as error:
        print(json.dumps({"error": str(error)}), flush=True)
context.stop()
"""


class Driver:
    def __init__(self, master, hosts, configuration, environment):
        settings = json.dumps({"master": master, "hosts": hosts, "configuration": configuration})
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | environment,
            text=True,
        )

    def send(self, command, value=None):
        self.process.stdin.write(json.dumps([command, value]) + "\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        assert line, "the driver has ended"
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["value"]

    def ask(self, command, value=None):
        self.send(command, value)
        return self.receive()

    def places(self):
        """Where each node's partition runs in one exchange."""
        return [host for _, host, _ in self.ask("round", [])]

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def cluster():
    with LoopbackCluster(WORKERS, memory="512m") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def wanted(cluster):
    """Hosts of the nodes, in an order that chance would hardly hit upon 20 times."""
    return [*cluster.hosts[::-1]]


@pytest.fixture(scope="module")
def driver(cluster, wanted):
    driver = Driver(cluster.master, wanted, cluster.configuration, cluster.environment)
    yield driver
    driver.close()


def gone(directory, sessions):
    """No process is left that names the directory, or that belongs to one of these sessions."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and "\nState:\tZ" not in (entry / "status").read_text():
                if str(directory).encode() in (entry / "cmdline").read_bytes():
                    return False
                if os.getsid(int(entry.name)) in sessions:
                    return False
        except OSError:
            continue
    return True


def within(seconds, look):
    until = time.monotonic() + seconds
    while not look():
        if time.monotonic() > until:
            return False
        time.sleep(0.2)
    return True


def test_every_worker_has_an_executor_and_its_payloads(cluster, driver, wanted):
    assert driver.places() == wanted  # the very first exchange
    hosts, present = driver.ask("hosts")
    assert sorted(hosts) == sorted(cluster.hosts)
    assert present == wanted
    pairs = [(k % WORKERS, f"payload {k}") for k in range(4 * WORKERS)]
    found = driver.ask("round", pairs)
    for node, _, payloads in found:
        assert payloads == sorted(text for k, text in pairs if k == node)
    assert [node for node, _, _ in found] == list(range(WORKERS))
    for k in range(WORKERS):
        assert len(cluster.processes(k)) >= 3  # worker, executor, Python daemon
        assert cluster.memory(k) > 2**20
        assert cluster.cpu_seconds(k) > 0


def test_a_partition_stays_on_the_chosen_host(driver, wanted):
    hits = sum(
        place == host for _ in range(ROUNDS) for place, host in zip(driver.places(), wanted, strict=True)
    )
    assert hits >= 0.95 * ROUNDS * WORKERS


def test_a_number_that_is_no_node_fails_the_task(driver):
    with pytest.raises(RuntimeError, match="is the number of a node"):
        driver.ask("round", [(WORKERS, "lost")])


def test_a_cap_holds(cluster, driver, wanted):
    if not cluster.cap(CAP, worker=0):
        pytest.skip("no CPU caps on this machine")
    assert cluster.capped
    driver.send("spin", [(wanted.index(cluster.hosts[0]), "6")])
    time.sleep(2)
    before, start = cluster.cpu_seconds(0), time.monotonic()
    time.sleep(3)
    used = (cluster.cpu_seconds(0) - before) / (time.monotonic() - start)
    driver.receive()
    assert cluster.cap(None)
    assert not cluster.capped
    assert used <= 0.3
    if os.getloadavg()[0] < (os.cpu_count() or 1):  # else others may take what the cap leaves it
        assert used >= 0.2


def test_a_lost_worker_is_done_without_until_it_is_back(cluster, driver, wanted):
    lost = 1
    node = wanted.index(cluster.hosts[lost])
    pids = set(cluster.processes(lost))
    cluster.kill_worker(lost)
    assert not cluster.processes(lost)
    assert gone("no such directory", pids)
    places = driver.places()
    assert places[node] != cluster.hosts[lost]
    assert within(30, lambda: driver.ask("hosts")[1][node] is None)
    # Nobody waits for a host that is known to be away: no round takes as long as spark.locality.wait.
    driver.places()
    rest = [k for k in range(WORKERS) if k != node]
    start = time.monotonic()
    for _ in range(5):
        places = driver.places()
        assert places[node] != cluster.hosts[lost]
        assert [places[k] for k in rest] == [wanted[k] for k in rest]
    assert time.monotonic() - start < 5 * 3
    cluster.start_worker(lost)
    assert within(60, lambda: driver.ask("hosts")[1] == wanted)
    assert within(60, lambda: driver.places() == wanted)


def test_nothing_is_left_after_close():
    with LoopbackCluster(1, memory="512m") as cluster:
        directory, pids = cluster.directory, cluster.processes(0)
        groups = cluster._groups[0].directories
        assert not gone(directory, set())
    assert gone(directory, set(pids))
    assert not directory.exists()
    assert not any(group.exists() for group in groups)
    cluster.close()
    with pytest.raises(LevelwindError, match="not up"):
        cluster.processes(0)


@pytest.mark.slow
def test_nothing_is_left_of_a_process_that_was_killed():
    code = """
import time
from levelwind.testing.loopback import LoopbackCluster
with LoopbackCluster(1) as cluster:
    print(cluster.directory, *cluster.processes(0), flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        directory, *pids = process.stdout.readline().split()
        process.send_signal(signal.SIGKILL)
    assert pids
    assert within(20, lambda: gone(directory, {int(pid) for pid in pids}) and not Path(directory).exists())


@pytest.mark.slow
def test_a_failed_start_names_its_logs_and_leaves_no_process():
    with pytest.raises(ClusterStartError) as caught:
        LoopbackCluster(1, memory="plenty").start()
    logs = caught.value.logs
    try:
        assert str(logs) in str(caught.value)
        assert "--memory" in (logs / "127.0.0.2.log").read_text()
        assert gone(logs, set())
    finally:
        for path in sorted(logs.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        logs.rmdir()


def test_embedded_the_exchange_is_a_bare_shuffle():
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    driver = Driver("local[2]", ["somewhere", None], settings, {"PYSPARK_PYTHON": sys.executable})
    try:
        assert driver.ask("round", [(1, "b"), (0, "a"), (1, "c")]) == [
            [0, os.environ.get("SPARK_LOCAL_IP"), ["a"]],
            [1, os.environ.get("SPARK_LOCAL_IP"), ["b", "c"]],
        ]
        assert "Union" not in driver.ask("lineage")
        large = [(node, "x" * 200_000) for node in (0, 1)]
        used = {pid for _ in range(4) for pid in driver.ask("unread", large)}
        assert len(used) <= 4  # two stages on two cores; with input unread each task has a new one
    finally:
        driver.close()


@pytest.mark.parametrize("workers", [0, 251])
def test_the_number_of_workers_has_limits(workers):
    with pytest.raises(InputError):
        LoopbackCluster(workers)


def test_caps_of_both_versions(tmp_path):
    first = ControlGroup(cpu=tmp_path, account=tmp_path, version=1)
    assert first.cap(CAP)
    assert (tmp_path / "cpu.cfs_quota_us").read_text() == "25000"
    assert first.cap(None)
    assert (tmp_path / "cpu.cfs_quota_us").read_text() == "-1"
    (tmp_path / "cpuacct.usage").write_text("1500000000\n")
    assert first.cpu_seconds() == 1.5
    second = ControlGroup(cpu=tmp_path, account=tmp_path, version=2)
    assert second.cap(CAP)
    assert (tmp_path / "cpu.max").read_text() == "25000 100000"
    assert second.cap(None)
    assert (tmp_path / "cpu.max").read_text() == "max 100000"
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    assert second.cpu_seconds() == 2.5


def test_where_caps_are_not_allowed_it_is_said_once(monkeypatch, caplog):
    monkeypatch.setattr(cgroups, "_mounts", lambda: iter(()))
    group = cgroups.make_group("levelwind-no-such")
    assert group.directories == ()
    assert group.cpu_seconds() is None
    cluster = LoopbackCluster(1)
    cluster._groups = (group,)
    with caplog.at_level(logging.WARNING):
        assert not cluster.cap(CAP)
        assert not cluster.cap(CAP)
    assert not cluster.capped
    assert len(caplog.records) == 1
