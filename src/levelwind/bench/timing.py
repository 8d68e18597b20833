"""How time is taken: contenders in turn, round by round, as processes of their own where start-up counts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

Measured = Callable[[], float]
COMMAND = (sys.executable, "-m", "levelwind.cli.main")


def interleaved(
    contenders: Mapping[str, Measured], rounds: int, *, warm_up: bool = True
) -> dict[str, list[float]]:
    """Measure all contenders in every round, every other round in reverse order.

    Whatever slows the machine down for a while then slows all of them down, and a ratio within a round
    stays what it is. The warm-up round (files into the cache, bytecode on disk) is not counted.
    """
    seen: dict[str, list[float]] = {name: [] for name in contenders}
    if warm_up:
        for measured in contenders.values():
            measured()
    for i in range(rounds):
        names = list(contenders)
        for name in reversed(names) if i % 2 else names:
            seen[name].append(contenders[name]())
    return seen


def process_output(command: Sequence[str]) -> str:
    """What a process puts out; one that fails fails the benchmark, with its last line."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
        message = f"{' '.join(command)} ended with exit code {ended.returncode}: {last}"
        raise RuntimeError(message)
    return ended.stdout


def process_seconds(command: Sequence[str]) -> float:
    """Wall time of a process from its start to its end, all of its output read."""
    started = perf_counter()
    process_output(command)
    return perf_counter() - started
