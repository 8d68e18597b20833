"""A run that goes on and on at one rate: memory and checkpoint must stay as they are.

The 160 aggregates of `many_queries` on 20,000 made-up rows a second, a batch each second, for three minutes
(``--full``: fifteen). Every five seconds the memory of the driver (Python and Java) and of its workers is
taken, each page by the share of the processes that have it, and the size of the checkpoint. The first third
is warm-up, in which the windows of a minute fill up. The last third stands against the second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from levelwind.bench.many_queries import ALL, RATE, STREAMS, document, made_up, stream_names
from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.bench.runtime_worlds import CORES, MASTER
from levelwind.model import Network
from levelwind.runtime.coordinator import Step
from levelwind.runtime.rundir import Command
from levelwind.spark.api import prepare
from levelwind.testing.sides import answer, network_of, ours

NAME = "steady"
MODULE = "levelwind.bench.steady"
SECONDS, FULL_SECONDS = 180, 900
EVERY_S = 5.0
GROWTH_LIMIT = 1.1


def levelwind_side(seconds: int, seed: int) -> dict[str, Any]:
    """The run, and what was seen of it every few seconds."""
    sources = {name: made_up(number, seed) | {"speed": "1"} for number, name in enumerate(stream_names())}
    told = document(ALL, sources) | {"trigger": "1s"}
    samples: list[dict[str, float]] = []
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:

        def sample(step: Step) -> None:
            now = time.monotonic()
            if not samples or now - samples[-1]["at_s"] >= EVERY_S:
                samples.append({"at_s": now, **_memory(), **_checkpoint(Path(folder, "checkpoint"))})

        taken = _run(network_of(told), Path(folder), seconds, sample)
    return {"samples": samples, "step_s": taken}


def _run(network: Network, folder: Path, batches: int, on_step: Callable[[Step], None]) -> list[float]:
    """Run so many batches; seconds of each. Nothing else is kept of them: it would count as the driver's."""
    taken: list[float] = []

    def note(step: Step) -> None:
        on_step(step)
        taken.append(step.wall_s)
        if len(taken) == batches:
            begun.directory.ask(Command("stop"))  # read before the next batch begins

    begun = prepare(network, CORES, master=MASTER, run_dir=folder, reuse=False, on_step=note)
    try:
        begun.start().wait()
    finally:
        begun.close()
    return taken


def _memory() -> dict[str, float]:
    """Megabytes of this process with its JVM (``driver_mb``) and of all below them (``workers_mb``)."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    here = Path("/proc/self").resolve().name
    driver, workers = _proportional(int(here)), 0.0
    for child in _below(int(here), children):
        name = _text(Path(f"/proc/{child}/comm")).strip()
        share = _proportional(child)
        if name == "java":
            driver += share
        else:
            workers += share
    return {"driver_mb": driver, "workers_mb": workers}


def _below(process: int, children: dict[int, list[int]]) -> Iterator[int]:
    for child in children.get(process, ()):
        yield child
        yield from _below(child, children)


def _proportional(process: int) -> float:
    """Megabytes of a process; a page that several have counts in parts. 0 if it has ended."""
    for line in _text(Path(f"/proc/{process}/smaps_rollup")).splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1e3
    return 0.0


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _checkpoint(folder: Path) -> dict[str, float]:
    files = size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size
        except OSError:  # gone meanwhile
            continue
        files += 1
    return {"checkpoint_mb": size / 1e6, "checkpoint_files": float(files)}


def run(settings: Settings, *, seconds: int | None = None) -> Result:
    """One run; the whole is in the details."""
    seconds = seconds or (FULL_SECONDS if settings.full else SECONDS)
    settings.step(f"{seconds} s at {STREAMS * RATE:,} rows a second")
    found = ours(MODULE, "ours", seconds=seconds, seed=settings.seed)
    samples = found["samples"]
    second, last = _thirds(samples)
    kinds = {
        "driver_mb": "driver",
        "workers_mb": "workers",
        "checkpoint_mb": "bytes of the checkpoint",
    }
    growth = {key: _middle(last, key) / _middle(second, key) for key in kinds}
    peak = max(each["checkpoint_mb"] for each in last) / max(each["checkpoint_mb"] for each in second)
    memory = [each["driver_mb"] + each["workers_mb"] for each in (*second, *last)]
    after, before = _both(last), _both(second)
    return Result(
        name=NAME,
        ours=Figure(label="memory, median of the last third", value=after, unit="MB"),
        baseline=Figure(label="memory, median of the second third", value=before, unit="MB"),
        ratio=before / after,
        spread=spread_of(memory),
        figures=[
            *(_limited(f"{name}, last third over second", growth[key]) for key, name in kinds.items()),
            _limited("largest checkpoint, last third over second", peak),
            *(
                Figure(label=f"{name}, last third", value=_middle(last, key), unit="MB")
                for key, name in kinds.items()
            ),
            Figure(
                label="files of the checkpoint, most",
                value=max(e["checkpoint_files"] for e in last),
                unit="files",
            ),
            Figure(label="a batch", value=median(found["step_s"]), unit="s"),
        ],
        notes=(f"{len(found['step_s'])} batches, {len(samples)} samples, one every {EVERY_S:g} s",),
        details=found,
    )


def _limited(label: str, value: float) -> Figure:
    return Figure(label=label, value=value, unit="times", limit=GROWTH_LIMIT)


def _thirds(samples: Sequence[dict[str, float]]) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    begin, end = samples[0]["at_s"], samples[-1]["at_s"]
    share = [(each["at_s"] - begin) / (end - begin) for each in samples]
    second = [each for each, at in zip(samples, share, strict=True) if 1 / 3 <= at < 2 / 3]
    return second, [each for each, at in zip(samples, share, strict=True) if at >= 2 / 3]


def _middle(samples: Sequence[dict[str, float]], key: str) -> float:
    return median(each[key] for each in samples)


def _both(samples: Sequence[dict[str, float]]) -> float:
    return median(each["driver_mb"] + each["workers_mb"] for each in samples)


if __name__ == "__main__":
    answer({"ours": levelwind_side})
