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

import json
import logging
import re
import sys
import urllib.request
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from levelwind.errors import LevelwindError, input_error
from levelwind.model import Cluster, Node
from levelwind.testing import sessions
from levelwind.testing.cgroups import ControlGroup, make_group
from levelwind.testing.daemons import ClusterStartError, Daemons

__all__ = ["ClusterStartError", "LoopbackCluster"]

log = logging.getLogger(__name__)

MASTER_HOST = "127.0.0.1"
MOST_WORKERS = 250
PATIENCE_S = 120.0
# The master says all this once it leads. A worker that asks before asks again 10 s later only.
ANNOUNCED = (
    r"Starting Spark master at (spark://\S+)",
    r"MasterWebUI\S* to \S+ and started at \S+:(\d+)",
    r"elected (leader)",
)
_no_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))


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
        self.capped = False
        self.master = ""
        self._cpu = cpu
        self._heap = memory
        self._patience_s = patience_s
        self._daemons_or_none: Daemons | None = None
        self._groups: tuple[ControlGroup, ...] = ()
        self._board = ""
        self._warned = False

    def start(self) -> Self:
        """Bring the cluster up; ``with`` does it for you."""
        if self._daemons_or_none is not None:
            return self
        self._daemons_or_none = Daemons()
        try:
            self._make_groups()
            self._start_master()
            for k in range(len(self.hosts)):
                self._launch_worker(k)
            self._wait_for(self.hosts)
            if self._cpu is not None:
                self.cap(self._cpu)
        except BaseException as error:
            self._clear(keep_logs=isinstance(error, ClusterStartError))
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

    @property
    def directory(self) -> Path:
        """Where logs and Spark's scratch files are; it goes with the cluster."""
        return self._daemons.directory

    @property
    def configuration(self) -> dict[str, str]:
        """Spark settings of a driver on this cluster; its master is `master`."""
        return {
            "spark.driver.host": MASTER_HOST,
            "spark.driver.bindAddress": MASTER_HOST,
            "spark.cores.max": str(len(self.hosts)),
            "spark.executor.cores": "1",
            "spark.executor.memory": self._heap,
            "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
            "spark.pyspark.python": sys.executable,
            # Hosts are to be the ones that are asked for, not those where most bytes happen to lie.
            "spark.shuffle.reduceLocality.enabled": "false",
            "spark.locality.wait": "3s",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{self._patience_s:g}s",
            # A refused connection on this machine means that the worker is gone.
            "spark.shuffle.io.retryWait": "200ms",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
        }

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of a driver's process: the workers are to run this very Python."""
        return {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": MASTER_HOST}

    def processes(self, k: int) -> tuple[int, ...]:
        """Pids of worker ``k``, its executor and that executor's Python processes."""
        session = self._daemons.session(self._host(k))
        return () if session is None else sessions.processes(session)

    def memory(self, k: int) -> int:
        """Resident bytes of worker ``k``'s processes; memory that two of them share counts twice."""
        session = self._daemons.session(self._host(k))
        return 0 if session is None else sessions.resident_bytes(session)

    def cpu_seconds(self, k: int) -> float:
        """CPU time of worker ``k``'s processes, those that have ended too if a control group counts it."""
        session = self._daemons.session(self._host(k))
        counted = self._groups[k].cpu_seconds()
        if counted is not None:
            return counted
        return 0.0 if session is None else sessions.cpu_seconds(session)

    def kill_worker(self, k: int) -> None:
        """Kill worker ``k``, its executor and its Python processes, as a power cut would."""
        self._daemons.end(self._host(k))

    def start_worker(self, k: int) -> None:
        """Bring worker ``k`` back after `kill_worker`, and wait until the master knows it.

        It comes back without a cap, as the executor that a driver starts there has yet to come up: call `cap`
        when it is there.
        """
        host = self._host(k)
        if self._daemons.runs(host):
            return
        self._daemons.end(host)
        self._groups[k].cap(None)
        self._launch_worker(k)
        self._wait_for([host])

    def nodes(self, cpu: float = 1.0, *, count: int | None = None) -> Cluster:
        """The workers, or the first ``count``, as nodes ``n1``, ``n2``, … with so much CPU each."""
        return Cluster(
            nodes=tuple(
                Node(name=f"n{k}", cpu=cpu, host=host) for k, host in enumerate(self.hosts[:count], start=1)
            )
        )

    def cap(self, cpu: float | None, *, worker: int | None = None) -> bool:
        """Cap every worker (or one) at so many cores, or lift the cap with None; True if that is in force.

        The cap holds for a worker's JVM, its executor and its Python processes together. Where the machine
        does not allow it, this is said once and all goes on without.
        """
        chosen = range(len(self.hosts)) if worker is None else [worker]
        if cpu is not None and not cpu > 0:
            rule = "is a number of cores above 0, or None"
            raise input_error(rule, key="cpu", value=cpu)
        hosts = [self._host(k) for k in chosen]
        done = all([self._groups[k].cap(cpu) for k in chosen])
        if worker is None or cpu is not None:
            self.capped = done and cpu is not None
        if not done and cpu is not None and not self._warned:
            self._warned = True
            log.warning("CPU caps are not allowed on this machine: %s run without", ", ".join(hosts))
        return done

    @property
    def _daemons(self) -> Daemons:
        if self._daemons_or_none is None:
            what = "the cluster is not up. Hint: use it inside its with block"
            raise LevelwindError(what)
        return self._daemons_or_none

    def _host(self, k: int) -> str:
        if not 0 <= k < len(self.hosts):
            rule = f"is between 0 and {len(self.hosts) - 1}"
            raise input_error(rule, key="worker", value=k)
        return self.hosts[k]

    def _make_groups(self) -> None:
        name = self.directory.name
        self._groups = tuple(make_group(f"{name}-{k}") for k in range(len(self.hosts)))
        for group in self._groups:
            self._daemons.own(group.directories)

    def _start_master(self) -> None:
        arguments = ["--host", MASTER_HOST, "--port", "0", "--webui-port", "0"]
        self._daemons.launch(MASTER_HOST, "org.apache.spark.deploy.master.Master", arguments)

        def announced() -> list[str] | None:
            text = self._daemons.log(MASTER_HOST).read_text(errors="replace")
            found = [match[1] for match in (re.search(pattern, text) for pattern in ANNOUNCED) if match]
            return found if len(found) == len(ANNOUNCED) else None

        self.master, port, _ = self._daemons.until(
            announced, "the master did not start", [MASTER_HOST], patience_s=self._patience_s
        )
        self._board = f"http://{MASTER_HOST}:{port}/json/"

    def _launch_worker(self, k: int) -> None:
        host = self.hosts[k]
        arguments = ["--host", host, "--port", "0", "--webui-port", "0", "--cores", "1"]
        arguments += ["--memory", self._heap, "--work-dir", str(self.directory / f"work-{host}")]
        groups = self._groups[k].directories
        main = "org.apache.spark.deploy.worker.Worker"
        self._daemons.launch(host, main, [*arguments, self.master], groups)

    def _wait_for(self, hosts: Iterable[str]) -> None:
        """Until the master lists these hosts' workers as alive."""
        wanted = set(hosts)
        self._daemons.until(
            lambda: wanted <= self._alive() or None,
            "not all workers registered",
            sorted(wanted),
            patience_s=self._patience_s,
        )

    def _alive(self) -> set[str]:
        with suppress(OSError, ValueError), _no_proxy.open(self._board, timeout=5) as answer:
            workers = json.load(answer)["workers"]
            return {worker["host"] for worker in workers if worker["state"] == "ALIVE"}
        return set()

    def _clear(self, *, keep_logs: bool) -> None:
        if self._daemons_or_none is not None:
            self._daemons_or_none.close(keep_logs=keep_logs)
            self._daemons_or_none = None
        self._groups = ()
        self.capped = False
