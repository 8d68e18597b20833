"""Spark's daemons as child processes: started with settings of their own, watched, ended without trace."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from levelwind.errors import LevelwindError, input_error
from levelwind.testing import sessions

Found = TypeVar("Found")

POLL_S = 0.05
# A daemon lives for a test and does little: no second compiler, no parallel collector, a small heap.
OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Xmx192m",
    "-Dspark.master.rest.enabled=false",
)
LOGGING = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
"""
# Joins the groups named before "--", then becomes the command after it: its children are born into them.
JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs"; shift; done; shift; exec "$@"'


class ClusterStartError(LevelwindError):
    """A master or worker did not come up; ``logs`` is the directory that says why, and is kept."""

    def __init__(self, what: str, logs: Path) -> None:
        self.logs = logs
        super().__init__(f"{what}. Hint: the logs are kept in {logs}")


class Daemons:
    """One daemon per host, each a session of its own, with a directory for their logs and scratch files.

    Made, it is to be closed: by `close`, else at the interpreter's exit, else by a watchdog.
    """

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="levelwind-loopback-"))
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._sessions: set[int] = set()
        self._groups: list[Path] = []
        self._closed = False
        atexit.register(self.close)
        command = [sys.executable, "-I", "-S", sessions.__file__, str(os.getpid())]
        self._watchdog = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        )
        self._tell("directory", self.directory)
        # Settings of our own, so that those of an installed Spark do not get in the way.
        for name, level in (("daemons", "info"), ("executors", "warn")):
            (self.directory / name).mkdir()
            (self.directory / name / "log4j2.properties").write_text(LOGGING.format(level=level))

    def own(self, groups: Iterable[Path]) -> None:
        """Take control groups into care: they go with the daemons."""
        for group in groups:
            self._groups.append(group)
            self._tell("group", group)

    def launch(self, host: str, main: str, arguments: Sequence[str], groups: Sequence[Path] = ()) -> None:
        """Start a daemon that binds to the host, in these control groups from the start."""
        scratch = self.directory / f"scratch-{host}"
        scratch.mkdir(exist_ok=True)
        home = spark_home()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
        environment |= {
            "SPARK_HOME": str(home),
            "SPARK_SCALA_VERSION": _scala_version(home),
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_DIRS": str(scratch),
            # A worker hands its environment on: this is where executors look for theirs.
            "SPARK_CONF_DIR": str(self.directory / "executors"),
        }
        # Straight to Java: Spark's script would start one Java to learn how to start the other.
        classes = f"{self.directory / 'daemons'}:{home / 'jars' / '*'}"
        command = [_java(), *OPTIONS, "-cp", classes, main, *arguments]
        with self.log(host).open("ab") as output:
            daemon = subprocess.Popen(
                ["/bin/sh", "-c", JOIN, "sh", *map(str, groups), "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=environment,
                start_new_session=True,
            )
        self._running[host] = daemon
        self._sessions.add(daemon.pid)
        self._tell("session", daemon.pid)

    def session(self, host: str) -> int | None:
        """The session of the host's daemon and all that it started; None if there is no such daemon."""
        daemon = self._running.get(host)
        return None if daemon is None else daemon.pid

    def runs(self, host: str) -> bool:
        """Whether the host's daemon itself is alive."""
        return host in self._running and self._running[host].poll() is None

    def log(self, host: str) -> Path:
        """What the host's daemon has to say."""
        return self.directory / f"{host}.log"

    def end(self, host: str) -> None:
        """Kill the host's daemon with all that it started."""
        daemon = self._running.pop(host, None)
        if daemon is not None:
            sessions.end([daemon.pid])
            daemon.wait()

    def until(
        self, look: Callable[[], Found | None], failure: str, hosts: Sequence[str], *, patience_s: float
    ) -> Found:
        """What ``look`` finds at last; a `ClusterStartError` if one of the daemons ends or time is up."""
        until = time.monotonic() + patience_s
        while True:
            found = look()
            if found is not None:
                return found
            dead = [host for host in hosts if not self.runs(host)]
            what = f"{failure}: {', '.join(dead)} ended" if dead else f"{failure} within {patience_s:g} s"
            if dead or time.monotonic() > until:
                raise ClusterStartError(what, self.directory)
            time.sleep(POLL_S)

    def close(self, *, keep_logs: bool = False) -> None:
        """End every process, and remove the groups and the logs. Closing twice does no harm."""
        if self._closed:
            return
        # A second interrupt must not stop this half way.
        restore = _ignore_interrupts()
        try:
            sessions.end(self._sessions)
            for daemon in self._running.values():
                daemon.wait()
            sessions.remove_groups(self._groups)
            if not keep_logs:
                shutil.rmtree(self.directory, ignore_errors=True)
            with suppress(BrokenPipeError):
                self._watchdog.communicate(b"done\n", timeout=10)
        finally:
            restore()
        self._closed = True
        atexit.unregister(self.close)

    def _tell(self, kind: str, value: object) -> None:
        if self._watchdog.stdin is not None:
            self._watchdog.stdin.write(f"{kind} {value}\n".encode())
            self._watchdog.stdin.flush()


def spark_home() -> Path:
    """Where the installed PySpark keeps Spark; found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        rule = "is installed for a cluster on this machine"
        raise input_error(rule, key="pyspark")
    return Path(spec.origin).parent


def _ignore_interrupts() -> Callable[[], object]:
    """Ignore Ctrl-C from here on; the result undoes it. Outside the main thread there is nothing to do."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:
        return lambda: None
    return lambda: signal.signal(signal.SIGINT, before)


def _scala_version(home: Path) -> str:
    """Spark's scripts tell the worker, which needs it to start an executor; it stands in the jars' names."""
    jar = next(iter((home / "jars").glob("spark-core_*.jar")))
    return jar.name.removeprefix("spark-core_").partition("-")[0]


def _java() -> str:
    """The Java that Spark's own scripts would take."""
    home = os.environ.get("JAVA_HOME")
    found = f"{home}/bin/java" if home else shutil.which("java")
    if found is None:
        rule = "is on the path, or JAVA_HOME says where it is"
        raise input_error(rule, key="java", hint="install Java 17 or later")
    return found
