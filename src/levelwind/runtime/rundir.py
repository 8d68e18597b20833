"""The directory of a run: what it is, how it fares, what it has measured, and what others ask of it.

::

    run.json      what runs: network, nodes, checkpoint, process
    network.json  the network as it runs
    status.json   how it fares after the last step; written anew each time
    moves.jsonl   every move, one a line
    decisions.jsonl  what the manager decided and why, refused proposals included; how joins are spread
    changes.jsonl what was added to the network and removed from it while it ran, one a line
    statistics/   per operator and batch, and per batch, as parquet
    control/      commands from other terminals, one file each; taken away once read
    spark.log     what Spark printed
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from levelwind.errors import input_error
from levelwind.runtime.changes import Change
from levelwind.runtime.durable import write_whole

logger = logging.getLogger(__name__)
RUNNING, STOPPED, FINISHED, FAILED = "running", "stopped", "finished", "failed"


class Command(msgspec.Struct, frozen=True):
    """What another terminal asks: ``stop``, ``move`` operators, ``add`` or ``remove`` queries, ``windows``.

    What is added is a mapping of the shape of a network file, whose relative paths start from ``base``.
    """

    command: str
    operators: tuple[str, ...] = ()
    target: str = ""
    cause: str = "asked for"
    queries: tuple[str, ...] = ()
    added: dict[str, Any] = {}
    base: str = ""
    windows_s: dict[str, float] = {}
    id: str = ""


class RunDirectory:
    """A run's directory, for the run itself and for those who look at it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def find(cls, path: Path) -> RunDirectory:
        """The directory of a run that was started."""
        found = cls(path)
        if not (path / "run.json").is_file():
            rule = "must be the directory of a run"
            hint = "levelwind run says at its start where that is"
            raise input_error(rule, key="RUN", value=str(path), hint=hint)
        return found

    @property
    def network_file(self) -> Path:
        """The network as it runs, in the form of a network file."""
        return self.path / "network.json"

    @property
    def log_file(self) -> Path:
        """What Spark printed."""
        return self.path / "spark.log"

    def create(self, told: Mapping[str, Any], network: Mapping[str, Any]) -> None:
        """Begin: say what runs."""
        (self.path / "control").mkdir(parents=True, exist_ok=True)
        (self.path / "statistics").mkdir(exist_ok=True)
        for command in (self.path / "control").glob("*.json"):
            command.unlink(missing_ok=True)  # meant for a run that is over
        self.write_network(network)
        self._write("run.json", {**told, "pid": os.getpid(), "started": time.time()})

    def write_network(self, network: Mapping[str, Any]) -> None:
        """Say what runs from now on."""
        self._write(self.network_file.name, network)

    def read(self) -> dict[str, Any]:
        """What runs."""
        return self._read("run.json")

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Say how the run fares."""
        self._write("status.json", {**status, "pid": os.getpid(), "time": time.time()})

    def status(self) -> dict[str, Any]:
        """How the run fares; a run that died without a word is ``failed``."""
        status = self._read("status.json")
        if status.get("state") == RUNNING and not _alive(status.get("pid")):
            status["state"] = FAILED
        return status

    def is_running(self) -> bool:
        """Whether a process is at work on it."""
        return self.status().get("state") == RUNNING

    def ask(self, command: Command) -> Path:
        """Leave a command for the run; returns the file, which is gone once it was read."""
        path = self.path / "control" / f"{time.time_ns()}-{uuid4().hex[:6]}.json"
        write_whole(path, msgspec.json.encode(command))
        return path

    def take_commands(self) -> list[Command]:
        """The commands that others have left, in order. What is no command is thrown away."""
        found = []
        for path in sorted((self.path / "control").glob("[0-9]*.json")):
            try:
                found.append(msgspec.json.decode(path.read_bytes(), type=Command))
            except (msgspec.DecodeError, FileNotFoundError) as error:
                logger.warning("%s is no command: %s", path, error)
            path.unlink(missing_ok=True)
        return found

    def append_move(self, record: Mapping[str, Any]) -> None:
        """Note a move."""
        self._append("moves.jsonl", record)

    def moves(self) -> list[dict[str, Any]]:
        """All moves so far."""
        return self._lines("moves.jsonl")

    def append_decision(self, record: Mapping[str, Any]) -> None:
        """Note what the manager, or the router of a spread join, decided."""
        self._append("decisions.jsonl", record)

    def append_change(self, change: Change) -> None:
        """Note what became of the wish to change the network."""
        self._append("changes.jsonl", change)

    def changes(self) -> list[Change]:
        """All changes of the network so far, refused ones among them."""
        return [msgspec.convert(line, Change) for line in self._lines("changes.jsonl")]

    def _append(self, name: str, record: Any) -> None:
        with open(self.path / name, "ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")

    def _lines(self, name: str) -> list[dict[str, Any]]:
        path = self.path / name
        if not path.exists():
            return []
        lines = path.read_bytes().split(b"\n")[:-1]  # the last may be half written
        return [msgspec.json.decode(line) for line in lines]

    def _write(self, name: str, told: Mapping[str, Any]) -> None:
        write_whole(self.path / name, msgspec.json.format(msgspec.json.encode(told), indent=1))

    def _read(self, name: str) -> dict[str, Any]:
        path = self.path / name
        return msgspec.json.decode(path.read_bytes()) if path.exists() else {}


def _alive(pid: int | None) -> bool:
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
