"""A Kafka broker on this machine, for as long as a test needs it.

To try things out by hand, ``python -m levelwind.testing.kafka --port 9092 TOPIC…`` runs one until Ctrl-C.
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NoReturn
from uuid import uuid4

from levelwind.errors import LevelwindError, input_error
from levelwind.testing import sessions

HOST = "127.0.0.1"
START_S = 90.0
STOP_S = 15.0
POLL_S = 0.1
# It lives for a test and does little: no second compiler, no parallel collector, a small heap.
OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m")
# One node that is broker and controller at once; inner topics as small as they go.
SETTINGS = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{control}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@{host}:{control}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
"""
LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""
# Asks the kernel to be killed when the parent dies (prctl's first option), then becomes the command.
DIE_WITH_PARENT = (
    "import ctypes, os, signal, sys; ctypes.CDLL(None).prctl(1, signal.SIGKILL); "
    "os.getppid() == int(sys.argv[1]) or sys.exit(1); os.execvp(sys.argv[2], sys.argv[2:])"
)
CREATE_TOPICS, CREATE_TOPICS_VERSION = 19, 2
NOT_YET = (5, 7, 15, 41)  # no leader, timed out, coordinator or controller not there: soon over
ALREADY_THERE = 36


class KafkaError(LevelwindError):
    """The broker did not come up, or refused what it was asked."""


def jars() -> Path | None:
    """The directory that ``scripts/kafka`` fills: ``broker`` and ``connector``; None if it was not run."""
    found = Path(os.environ.get("LEVELWIND_KAFKA") or Path(sys.prefix, "kafka"))
    return found if (found / "ready").exists() else None


def connector_jars() -> str:
    """Spark's Kafka connector as its setting ``spark.jars`` wants it."""
    return ",".join(sorted(str(path) for path in (_jars() / "connector").glob("*.jar")))


class KafkaBroker:
    """A broker of one node, empty at first; to be used in a ``with`` statement.

    It is ended with the block, with its data; if this process is killed, the kernel ends it.

    Parameters
    ----------
    port
        Where it listens; 0 for a free port.

    Attributes
    ----------
    servers
        What clients take as ``kafka.bootstrap.servers``.
    log
        What the broker has to say; the end of it is in the error if it does not come up.
    """

    def __init__(self, port: int = 0) -> None:
        self._jars = _jars() / "broker"
        self.directory = Path(tempfile.mkdtemp(prefix="levelwind-kafka-"))
        self.log = self.directory / "log"
        self.servers = ""
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> KafkaBroker:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> None:
        free, control = _free_ports()
        self._port = self._port or free
        settings = self.directory / "server.properties"
        settings.write_text(
            SETTINGS.format(host=HOST, port=self._port, control=control, data=self.directory / "data")
        )
        (self.directory / "log4j2.properties").write_text(LOGGING)
        cluster = base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        with self.log.open("ab") as log:
            command = self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings))
            if subprocess.run(command, stdout=log, stderr=log, check=False).returncode:
                self._fail("Kafka could not make its storage")
            self._process = subprocess.Popen(
                self._java("kafka.Kafka", str(settings)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait_until_ready()
        self.servers = f"{HOST}:{self._port}"

    def _java(self, main: str, *arguments: str) -> list[str]:
        home = os.environ.get("JAVA_HOME")
        java = f"{home}/bin/java" if home else "java"
        # Its settings for logging first, so that they are found before any other.
        command = [java, *OPTIONS, "-cp", f"{self.directory}:{self._jars}/*", main, *arguments]
        return [sys.executable, "-I", "-S", "-c", DIE_WITH_PARENT, str(os.getpid()), *command]

    def _wait_until_ready(self) -> None:
        """Until a request that needs the controller is answered: making no topic at all."""
        assert self._process is not None
        until = time.monotonic() + START_S
        while True:
            with suppress(OSError):
                self._ask_for_topics({})
                return
            if self._process.poll() is not None:
                self._fail("Kafka ended before it was ready")
            if time.monotonic() > until:
                self._fail(f"Kafka was not ready within {START_S:g} s")
            time.sleep(POLL_S)

    def _fail(self, what: str) -> NoReturn:
        said = self.log.read_text(errors="replace")[-2000:]
        message = f"{what}. Hint: the last it said is:\n{said}"
        raise KafkaError(message)

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic. Kafka is asked again while it is still finding its feet."""
        until = time.monotonic() + START_S
        while True:
            error, message = self._ask_for_topics({name: partitions})[name]
            if error == 0:
                return
            if error not in NOT_YET or time.monotonic() > until:
                what = "is there already" if error == ALREADY_THERE else f"error {error} {message}"
                refusal = f"topic {name!r} was not made: {what}"
                raise KafkaError(refusal)
            time.sleep(POLL_S)

    def _ask_for_topics(self, topics: dict[str, int]) -> dict[str, tuple[int, str]]:
        """Kafka's own request to make topics; its error number and message by topic.

        Spoken by hand, since the request is small, and a client library is not.
        """
        body = struct.pack(">i", len(topics))
        for name, partitions in topics.items():
            # One copy of each partition, anywhere, with no settings of its own.
            body += _text(name) + struct.pack(">ihii", partitions, 1, 0, 0)
        body += struct.pack(">i?", int(START_S * 1000), False)
        header = struct.pack(">hhi", CREATE_TOPICS, CREATE_TOPICS_VERSION, 0) + _text("levelwind")
        with socket.create_connection((HOST, self._port), timeout=START_S) as connection:
            connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
            with connection.makefile("rb") as stream:
                answer = stream.read(struct.unpack(">i", _exactly(stream.read(4), 4))[0])
        return _topic_errors(answer)

    def close(self) -> None:
        """End the broker and remove its data. Closing twice does no harm."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
            sessions.end([self._process.pid])
            self._process.wait()
            self._process = None
        shutil.rmtree(self.directory, ignore_errors=True)


def _topic_errors(answer: bytes) -> dict[str, tuple[int, str]]:
    """From the answer: its number, how long we should have waited, then name, error and message of each."""
    count = struct.unpack_from(">i", _exactly(answer[:12], 12), 8)[0]
    at = 12
    found = {}
    for _ in range(count):
        (length,) = struct.unpack_from(">h", answer, at)
        name = answer[at + 2 : at + 2 + length].decode()
        at += 2 + length
        error, length = struct.unpack_from(">hh", answer, at)
        length = max(length, 0)  # -1: no message
        found[name] = (error, answer[at + 4 : at + 4 + length].decode())
        at += 4 + length
    return found


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) < size:
        message = "the connection was closed"
        raise ConnectionError(message)
    return data


def _free_ports() -> tuple[int, int]:
    """Two ports that nobody listens on now."""
    with socket.socket() as one, socket.socket() as other:
        one.bind((HOST, 0))
        other.bind((HOST, 0))
        return one.getsockname()[1], other.getsockname()[1]


def _jars() -> Path:
    found = jars()
    if found is None:
        rule, hint = "must be fetched before a broker can be started", "run scripts/kafka"
        raise input_error(rule, key="kafka", hint=hint)
    return found


def main() -> None:
    """Run a broker until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="levelwind.testing.kafka", description="A Kafka broker to try out.")
    parser.add_argument("--port", type=int, default=0, help="where it listens; a free port if not stated")
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="topics to make, of one partition")
    asked = parser.parse_args()
    # Ended by a signal, it leaves nothing behind either.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt), KafkaBroker(asked.port) as broker:
        for topic in asked.topics:
            broker.create_topic(topic)
        print(f"kafka.bootstrap.servers: {broker.servers}", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
