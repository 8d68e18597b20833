"""Processes by session: what runs in one, how much it uses, and the end of it.

A session holds a process and all that it started, also what has moved to a process group of its own (Spark's
Python daemon does) or has lost its parent. Run as a script, this file is the watchdog of a `LoopbackCluster`:
it ends the sessions it was told of once the process that started it is gone, however it went. It imports the
standard library alone, to start in no time.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
LOOK_S = 0.5
END_S = 10.0
_STATE, _SESSION, _USER, _SYSTEM, _RESIDENT = 0, 3, 11, 12, 21


def processes(session: int) -> tuple[int, ...]:
    """Pids of a session's processes, the dead ones that nobody has waited for left out."""
    return tuple(pid for pid, fields in _all_fields() if _lives_in(fields, session))


def resident_bytes(session: int) -> int:
    """Resident memory of a session's processes; pages that two of them share count twice."""
    pages = sum(int(fields[_RESIDENT]) for _, fields in _all_fields() if _lives_in(fields, session))
    return pages * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(session: int) -> float:
    """CPU time of the processes that a session has now; what ended before is not in it."""
    ticks = sum(
        int(fields[_USER]) + int(fields[_SYSTEM]) for _, fields in _all_fields() if _lives_in(fields, session)
    )
    return ticks / os.sysconf("SC_CLK_TCK")


def end(sessions: Iterable[int]) -> None:
    """Kill every process of these sessions, and those that they start meanwhile, until there is none."""
    left = set(sessions)
    until = time.monotonic() + END_S
    while left and time.monotonic() < until:
        found = [(pid, fields) for pid, fields in _all_fields() if fields[_STATE] not in "ZX"]
        for pid, fields in found:
            if int(fields[_SESSION]) in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        left &= {int(fields[_SESSION]) for _, fields in found}
        if left:
            time.sleep(0.02)


def remove_groups(groups: Iterable[Path]) -> None:
    """Remove control groups; one that still has a dying process in it is tried again for a while."""
    for group in groups:
        until = time.monotonic() + 2.0
        while group.exists():
            try:
                group.rmdir()
            except OSError:
                if time.monotonic() > until:
                    break
                time.sleep(0.02)


def _lives_in(fields: list[str], session: int) -> bool:
    return fields[_STATE] not in "ZX" and int(fields[_SESSION]) == session


def _all_fields() -> Iterable[tuple[int, list[str]]]:
    """Of every process the fields of its ``stat`` that follow the name (which may hold spaces)."""
    for entry in os.listdir(PROC):
        if entry.isdigit():
            with suppress(OSError):
                text = (PROC / entry / "stat").read_text(errors="replace")
                yield int(entry), text[text.rindex(")") + 2 :].split()


def watch(parent: int) -> None:
    """Read sessions, groups and directories from the standard input; clear all up when the parent is gone.

    A line ``done`` ends the watch with nothing done.
    """
    told: dict[str, list[str]] = {"session": [], "group": [], "directory": []}
    rest = b""
    while os.getppid() == parent:
        if not select.select([0], [], [], LOOK_S)[0]:
            continue
        chunk = os.read(0, 65536)
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line == b"done":
                return
            kind, _, value = line.decode().partition(" ")
            told[kind].append(value)
    end(int(value) for value in told["session"])
    remove_groups(Path(value) for value in told["group"])
    for directory in told["directory"]:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    watch(int(sys.argv[1]))
