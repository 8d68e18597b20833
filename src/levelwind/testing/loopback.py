"""A real Spark cluster on one machine: a standalone master, and each worker on a loopback address of its own.

Spark keeps a partition on a *host*. With workers on 127.0.0.2, 127.0.0.3, … each is a host of its own to
Spark, so that placement, the loss of a worker and its return can be tried on a laptop. A CPU cap per worker
makes hosts that can be overloaded, on fewer cores than there are workers. Linux only.

>>> with LoopbackCluster(workers=4) as cluster:  # doctest: +SKIP
...     builder = SparkSession.builder.master(cluster.master)
...     session = builder.config(map=cluster.configuration).getOrCreate()
...     cluster.cap(0.25)
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from levelwind.errors import LevelwindError, input_error
from levelwind.testing import sessions
from levelwind.testing.cgroups import ControlGroup, make_group

log = logging.getLogger(__name__)
Found = TypeVar("Found")

MASTER_HOST = "127.0.0.1"
MOST_WORKERS = 250
POLL_S = 0.05
PATIENCE_S = 60.0
# A daemon lives seconds and does little: no second compiler, no parallel collector, a small heap.
DAEMON_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Xmx192m",
    "-Dspark.master.rest.enabled=false",
)
# An executor works for longer, so it keeps its compilers.
EXECUTOR_OPTIONS = "-XX:+UseSerialGC -Xshare:auto"
LOGGING = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
"""
# Joins the groups named before "--", then becomes the command after it: children are in the groups from birth.
JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs"; shift; done; shift; exec "$@"'
_no_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ClusterStartError(LevelwindError):
    """A master or worker did not come up; ``logs`` is the directory that says why, and is kept."""

    def __init__(self, what: str, logs: Path) -> None:
        self.logs = logs
        super().__init__(f"{what}. Hint: the logs are kept in {logs}")


class LoopbackCluster:
    """A standalone Spark cluster on loopback addresses, up from ``with`` until the block's end.

    Every worker has one executor of one core. Whatever ends the block ends all processes; should this process
    be killed outright, a watchdog does it.

    Parameters
    ----------
    workers
        How many; worker ``k`` (from 0) is on ``hosts[k]``.
    cpu
        Cap per worker in cores, put on once the workers stand. An executor that starts under a small cap
        takes its time: rather call `cap` when the driver has its executors.
    memory
        Heap of an executor, as Spark writes it.
    patience_s
        How long the master, and then the workers, may take to come up.
    """

    def __init__(
        self,
        workers: int = 4,
        *,
        cpu: float | None = None,
        memory: str = "1g",
        patience_s: float = PATIENCE_S,
    ) -> None:
        if not 1 <= workers <= MOST_WORKERS:
            rule = f"is between 1 and {MOST_WORKERS}"
            raise input_error(rule, key="workers", value=workers)
        self.hosts = tuple(f"127.0.0.{k + 2}" for k in range(workers))
        self.memory_setting = memory
        self._cpu = cpu
        self._patience_s = patience_s
        self._directory: Path | None = None
        self._master_url = ""
        self._board = ""
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._sessions: set[int] = set()
        self._groups: tuple[ControlGroup, ...] = ()
        self._warned = False
        self.capped = False

    # -- life -------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Bring the cluster up; ``with`` does it for you."""
        if self._directory is not None:
            return self
        self._directory = Path(tempfile.mkdtemp(prefix="levelwind-loopback-"))
        atexit.register(self.close)
        try:
            self._start_watchdog()
            self._tell("directory", self._directory)
            self._write_settings()
            self._make_groups()
            self._start_master()
            for k in range(len(self.hosts)):
                self._launch_worker(k)
            self._wait_for(range(len(self.hosts)))
            if self._cpu is not None:
                self.cap(self._cpu)
        except ClusterStartError:
            self._clear(keep_logs=True)
            raise
        except BaseException:
            self._clear(keep_logs=False)
            raise
        return self

    def close(self) -> None:
        """End every process, and remove the groups and the logs. Closing twice does no harm."""
        self._clear(keep_logs=False)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- what a driver needs ----------------------------------------------------------------------------

    @property
    def master(self) -> str:
        """The master's address: ``spark://127.0.0.1:<port>``."""
        return self._master_url

    @property
    def directory(self) -> Path:
        """Where logs and Spark's scratch files are; it goes with the cluster."""
        if self._directory is None:
            rule = "is asked for while the cluster is up"
            raise input_error(rule, key="directory")
        return self._directory

    @property
    def configuration(self) -> dict[str, str]:
        """Spark settings of a driver on this cluster, the master's address left out."""
        return {
            "spark.driver.host": MASTER_HOST,
            "spark.driver.bindAddress": MASTER_HOST,
            "spark.cores.max": str(len(self.hosts)),
            "spark.executor.cores": "1",
            "spark.executor.memory": self.memory_setting,
            "spark.executor.extraJavaOptions": EXECUTOR_OPTIONS,
            "spark.pyspark.python": sys.executable,
            # Hosts are to be the ones we ask for, not the ones where most bytes happen to lie.
            "spark.shuffle.reduceLocality.enabled": "false",
            "spark.locality.wait": "3s",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{self._patience_s:g}s",
            # A lost worker is gone for good: a refused connection here means just that.
            "spark.shuffle.io.retryWait": "200ms",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
        }

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of a driver's process: the workers are to run this very Python."""
        return {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": MASTER_HOST}

    # -- workers ----------------------------------------------------------------------------------------

    def processes(self, k: int) -> tuple[int, ...]:
        """Pids of worker ``k``, its executor and that executor's Python processes."""
        daemon = self._daemons.get(self._host(k))
        return () if daemon is None else sessions.processes(daemon.pid)

    def memory(self, k: int) -> int:
        """Resident bytes of worker ``k``'s processes; memory that two of them share counts twice."""
        daemon = self._daemons.get(self._host(k))
        return 0 if daemon is None else sessions.resident_bytes(daemon.pid)

    def cpu_seconds(self, k: int) -> float:
        """CPU time of worker ``k``'s processes, those that have ended too if a control group counts it."""
        host = self._host(k)
        counted = self._groups[k].cpu_seconds() if self._groups else None
        if counted is not None:
            return counted
        daemon = self._daemons.get(host)
        return 0.0 if daemon is None else sessions.cpu_seconds(daemon.pid)

    def kill_worker(self, k: int) -> None:
        """Kill worker ``k``, its executor and its Python processes, as a power cut would."""
        self._end(self._host(k))

    def start_worker(self, k: int) -> None:
        """Bring worker ``k`` back after `kill_worker`, and wait until the master knows it.

        Its cap is lifted meanwhile, and so is free for the executor that a driver starts there: call `cap`
        again when the driver has it.
        """
        host = self._host(k)
        if host in self._daemons and self._daemons[host].poll() is None:
            return
        self._end(host)
        if self._groups:
            self._groups[k].cap(None)
        self._launch_worker(k)
        self._wait_for([k])

    def cap(self, cpu: float | None, *, worker: int | None = None) -> bool:
        """Cap every worker (or one) at so many cores, or lift the caps with None; True if that is in force.

        The cap holds for a worker's JVM, its executor and its Python processes together. Where the machine
        does not allow it, this is said once and all goes on without.
        """
        chosen = range(len(self.hosts)) if worker is None else [worker]
        for k in chosen:
            self._host(k)
        done = bool(self._groups) and all([self._groups[k].cap(cpu) for k in chosen])
        self.capped = done and cpu is not None
        if not done and cpu is not None and not self._warned:
            self._warned = True
            log.warning("CPU caps are not allowed on this machine: the workers run without")
        return done

    # -- inside -----------------------------------------------------------------------------------------

    def _host(self, k: int) -> str:
        if not 0 <= k < len(self.hosts):
            rule = f"is between 0 and {len(self.hosts) - 1}"
            raise input_error(rule, key="worker", value=k)
        return self.hosts[k]

    def _start_watchdog(self) -> None:
        command = [sys.executable, "-I", "-S", sessions.__file__, str(os.getpid())]
        self._watchdog = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        )

    def _tell(self, kind: str, value: object) -> None:
        if self._watchdog is not None and self._watchdog.stdin is not None:
            self._watchdog.stdin.write(f"{kind} {value}\n".encode())
            self._watchdog.stdin.flush()

    def _write_settings(self) -> None:
        """Settings of our own, so that those of an installed Spark do not get in the way."""
        for name, level in (("daemons", "info"), ("executors", "warn")):
            folder = self.directory / name
            folder.mkdir()
            (folder / "log4j2.properties").write_text(LOGGING.format(level=level))

    def _make_groups(self) -> None:
        made = []
        for k in range(len(self.hosts)):
            group = make_group(f"{self.directory.name}-{k}")
            for directory in group.directories:
                self._tell("group", directory)
            made.append(group)
        self._groups = tuple(made)

    def _start_master(self) -> None:
        arguments = ["--host", MASTER_HOST, "--port", "0", "--webui-port", "0"]
        self._launch(MASTER_HOST, "org.apache.spark.deploy.master.Master", arguments, ())
        # A worker that asks before there is a leader asks again 10 s later only: they start when it leads.
        patterns = (
            r"Starting Spark master at (spark://\S+)",
            r"MasterWebUI\S* to \S+ and started at \S+:(\d+)",
            r"elected (leader)",
        )

        def announced() -> list[str] | None:
            text = self._log(MASTER_HOST).read_text()
            found = [re.search(pattern, text) for pattern in patterns]
            return [match[1] for match in found if match] if all(found) else None

        self._master_url, port, _ = self._until(announced, "the master did not start", [MASTER_HOST])
        self._board = f"http://{MASTER_HOST}:{port}/json/"

    def _launch_worker(self, k: int) -> None:
        host = self.hosts[k]
        arguments = ["--host", host, "--port", "0", "--webui-port", "0", "--cores", "1"]
        arguments += ["--memory", self.memory_setting, "--work-dir", str(self.directory / f"work-{host}")]
        arguments.append(self.master)
        groups = self._groups[k].directories if self._groups else ()
        self._launch(host, "org.apache.spark.deploy.worker.Worker", arguments, groups)

    def _launch(self, host: str, main: str, arguments: Sequence[str], groups: Sequence[Path]) -> None:
        scratch = self.directory / f"scratch-{host}"
        scratch.mkdir(exist_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
        environment |= {
            "SPARK_HOME": str(_spark_home()),
            "SPARK_SCALA_VERSION": _scala_version(),
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_DIRS": str(scratch),
            # A worker hands its environment on: this is where executors look for theirs.
            "SPARK_CONF_DIR": str(self.directory / "executors"),
        }
        classes = f"{self.directory / 'daemons'}:{_spark_home() / 'jars' / '*'}"
        command = [_java(), *DAEMON_OPTIONS, "-cp", classes, main, *arguments]
        with self._log(host).open("ab") as output:
            daemon = subprocess.Popen(
                ["/bin/sh", "-c", JOIN, "sh", *map(str, groups), "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=environment,
                start_new_session=True,
            )
        self._daemons[host] = daemon
        self._sessions.add(daemon.pid)
        self._tell("session", daemon.pid)

    def _wait_for(self, workers: Sequence[int]) -> None:
        """Until the master lists these workers as alive."""
        wanted = {self.hosts[k] for k in workers}

        def listed() -> bool | None:
            return True if wanted <= self._alive() else None

        self._until(listed, "not all workers registered", sorted(wanted))

    def _alive(self) -> set[str]:
        with suppress(OSError, ValueError), _no_proxy.open(self._board, timeout=5) as answer:
            workers = json.load(answer)["workers"]
            return {worker["host"] for worker in workers if worker["state"] == "ALIVE"}
        return set()

    def _until(self, look: Callable[[], Found | None], failure: str, hosts: Sequence[str]) -> Found:
        until = time.monotonic() + self._patience_s
        while True:
            found = look()
            if found is not None:
                return found
            dead = [host for host in hosts if self._daemons[host].poll() is not None]
            if dead:
                raise ClusterStartError(f"{failure}: {', '.join(dead)} ended", self.directory)
            if time.monotonic() > until:
                raise ClusterStartError(f"{failure} within {self._patience_s:g} s", self.directory)
            time.sleep(POLL_S)

    def _log(self, host: str) -> Path:
        return self.directory / f"{host}.log"

    def _end(self, host: str) -> None:
        daemon = self._daemons.pop(host, None)
        if daemon is not None:
            sessions.end([daemon.pid])
            daemon.wait()

    def _clear(self, *, keep_logs: bool) -> None:
        if self._directory is None:
            return
        # A second interrupt must not stop the clearing half way; the watchdog is there for worse.
        interrupt = _ignore_interrupts()
        try:
            sessions.end(self._sessions)
            for daemon in self._daemons.values():
                daemon.wait()
            for group in self._groups:
                group.remove()
            if not keep_logs:
                shutil.rmtree(self._directory, ignore_errors=True)
            self._stop_watchdog()
        finally:
            interrupt()
        atexit.unregister(self.close)
        self._daemons.clear()
        self._sessions.clear()
        self._groups = ()
        self._directory = None
        self.capped = False

    def _stop_watchdog(self) -> None:
        if self._watchdog is not None:
            with suppress(BrokenPipeError):
                self._watchdog.communicate(b"done\n", timeout=10)
            self._watchdog = None


def _ignore_interrupts() -> Callable[[], object]:
    """Ignore Ctrl-C from here on; the result undoes it. Outside the main thread there is nothing to do."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:
        return lambda: None
    return lambda: signal.signal(signal.SIGINT, before)


def _spark_home() -> Path:
    """Where the installed PySpark keeps Spark; found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        rule = "is installed for a cluster on this machine"
        raise input_error(rule, key="pyspark")
    return Path(spec.origin).parent


def _scala_version() -> str:
    """Spark's scripts tell the worker, which needs it to start an executor; it stands in the jars' names."""
    jar = next(iter((_spark_home() / "jars").glob("spark-core_*.jar")))
    return jar.name.removeprefix("spark-core_").partition("-")[0]


def _java(environment: Mapping[str, str] = os.environ) -> str:
    """The Java that Spark's own scripts would take."""
    home = environment.get("JAVA_HOME")
    found = f"{home}/bin/java" if home else shutil.which("java")
    if found is None:
        rule = "is on the path, or JAVA_HOME says where it is"
        raise input_error(rule, key="java", hint="install Java 17 or later")
    return found
