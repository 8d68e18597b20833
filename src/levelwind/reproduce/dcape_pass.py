"""All runs that figures of seed 003 and their benchmark need, each setting once a round, whoever shows it.

Rounds follow each other, every second one backwards, so that whatever else the machine does falls on all
settings. Every run is written to a file as it ends: a pass that was interrupted goes on where it stopped, and
figures that are asked for later find their runs there, as long as what runs is the same.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from multiprocessing import get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic
from typing import Any

from levelwind.errors import RunError
from levelwind.reproduce.dcape_runs import CAP, Case, run_due

FILE = "dcape_runs.jsonl"
POLL_S = 1.0
# What a run depends on: the packages that it goes through, and these of this one.
PACKAGES = (
    "model", "frontend", "rewrite", "loads", "placement", "balance", "control", "operators", "runtime",
    "spark",
)  # fmt: skip
MODULES = (
    "reproduce/dcape_runs.py", "reproduce/query_plans.py", "planning.py", "plugins.py", "testing/loopback.py",
    "testing/cgroups.py",
)  # fmt: skip
# Earlier states of the sources, by the state that ran the same: in between only what is written down of a
# run has changed (and which settings there are).
RAN_THE_SAME: dict[str, tuple[str, ...]] = {"0e0097ed103c7ca1": ("09b66b2b88cdc2bd",)}
Runs = dict[str, list[dict[str, Any]]]
Tick = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How often every setting is run, and for how many batches and seconds once warm."""

    rounds: int
    batches: int
    seconds: float


EFFORTS = {
    True: Effort(rounds=1, batches=3, seconds=0.0),
    False: Effort(rounds=3, batches=5, seconds=60.0),
}


class Kept:
    """Runs in a file, a line each. Those of other code or with another effort are left alone."""

    def __init__(self, path: Path, effort: Effort, code: str) -> None:
        self.path, self.code = path, code
        self._by = {"code": code, "effort": asdict(effort), "cap": CAP}
        self._taken = [{**self._by, "code": each} for each in (code, *RAN_THE_SAME.get(code, ()))]
        self._found: dict[tuple[str, int], dict[str, Any]] = {}
        self._read = 0
        self.refresh()

    def refresh(self) -> None:
        """Read what has come since; a line that was cut off by a crash is as if it had never been."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
        except ValueError:
            return
        if entry["by"] in self._taken:
            self._found[entry["case"], entry["round"]] = entry["run"]

    def add(self, case: Case, number: int, run: Mapping[str, Any]) -> None:
        """Write a run down; a process that is killed after this has it kept."""
        entry = {"case": case.name, "round": number, "by": self._by, "run": run}
        with self.path.open("ab+") as file:
            # Whatever was cut off ends here.
            file.seek(0, os.SEEK_END)
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(json.dumps(entry).encode() + b"\n")

    def has(self, case: Case, number: int) -> bool:
        """Whether a setting was run in a round."""
        return (case.name, number) in self._found

    def of(self, case: Case) -> list[dict[str, Any]]:
        """All runs of a setting, by round."""
        own = sorted(number for name, number in self._found if name == case.name)
        return [{"round": number, **self._found[case.name, number]} for number in own]

    def common(self, cases: Iterable[Case], rounds: int) -> Runs:
        """Runs of these settings, of the rounds that all of them have: what may be compared."""
        every = list(cases)
        whole = [number for number in range(rounds) if all(self.has(case, number) for case in every)]
        return {
            case.name: [{"round": number, **self._found[case.name, number]} for number in whole]
            for case in every
        }


def distinct(cases: Iterable[Case]) -> list[Case]:
    """Every setting once. Those that are compared stand side by side: same plan, same nodes."""

    def beside(case: Case) -> tuple[Any, ...]:
        what = case.copies > 0, case.number, case.window_s, case.copies, case.nodes, case.requests
        return *what, case.apart, case.planner, case.policy or "", case.move_every or 0

    return sorted(set(cases), key=beside)


def due(rounds: Mapping[Case, range], done: Callable[[Case, int], bool]) -> list[list[Case]]:
    """What is still to be run in each round, in order: there and back. Settings say which rounds they have.

    Examples
    --------
    >>> two = {Case(number=2, nodes=2, planner=name): range(2) for name in ("round_robin", "grouping")}
    >>> left = due(two, lambda case, number: number == 0 and case.planner == "grouping")
    >>> [[case.planner for case in each] for each in left]
    [['round_robin'], ['round_robin', 'grouping']]
    """
    order = distinct(rounds)
    return [
        [
            case
            for case in (order if number % 2 == 0 else order[::-1])
            if number in rounds[case] and not done(case, number)
        ]
        for number in range(max((own.stop for own in rounds.values()), default=0))
    ]


def run_missing(
    rounds: Mapping[Case, range],
    effort: Effort,
    directory: Path,
    *,
    most_s: float | None = None,
    tick: Tick = lambda done, total, what: None,
    code: str | None = None,
    one_round: Callable[..., None] | None = None,
) -> Kept:
    """Every setting in its rounds: what the file in ``directory`` lacks is run now.

    Parameters
    ----------
    most_s
        After so many seconds no further run begins.
    code
        What tells one state of the code from another; that of the sources here if not given.
    one_round
        Instead of runs on a cluster, for tests.
    """
    kept = Kept(directory / FILE, effort, code or code_digest())
    left = due(rounds, kept.has)
    began, total, most = monotonic(), sum(map(len, rounds.values())), len(left)
    for number, cases in enumerate(left):
        spent = monotonic() - began
        if not cases or (most_s is not None and spent >= most_s):
            continue

        def told(of: int = number) -> None:
            kept.refresh()
            undone = sum(map(len, due(rounds, kept.has)))
            tick(total - undone, total, f"round {of + 1} of {most}")

        (one_round or _in_a_process)(
            kept, number, cases, effort, None if most_s is None else most_s - spent, told
        )
        kept.refresh()
    return kept


def run_together(
    figures: Mapping[str, Sequence[Case]], effort: Effort, directory: Path, **more: Any
) -> dict[str, dict[str, Any]]:
    """Runs of every figure's settings, by figure: from the file in ``directory``, or made now.

    ``more`` is as for `run_missing`. When time is over figures get the rounds that all their settings have;
    none at all is a failed run.
    """
    every = {case: range(effort.rounds) for cases in figures.values() for case in cases}
    kept = run_missing(every, effort, directory, **more)
    found = {name: kept.common(cases, effort.rounds) for name, cases in figures.items()}
    without = [name for name, runs in found.items() if not all(runs.values())]
    if without:
        text = f"no round of {', '.join(without)} was finished in time. {_goes_on(kept)}"
        raise RunError(text)
    return {name: summed_up(runs) for name, runs in found.items()}


def summed_up(runs: Runs) -> dict[str, Any]:
    """Runs by setting, whether caps were in force in all of them, and how long they took."""
    every = [run for own in runs.values() for run in own]
    return {
        "runs": runs,
        "capped": all(run["capped"] for run in every),
        "seconds": sum(run["seconds"] for run in every),
    }


def _goes_on(kept: Kept) -> str:
    return f"Hint: what was run is kept in {kept.path}, and the same command goes on from there"


def _in_a_process(
    kept: Kept, number: int, cases: list[Case], effort: Effort, most_s: float | None, told: Callable[[], None]
) -> None:
    """A round in a process of its own, with a fresh cluster: Spark has one context in each."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = get_context("spawn").Process(
            target=_round, args=(kept, number, cases, effort, most_s, folder)
        )
        process.start()
        try:
            while process.is_alive():
                process.join(POLL_S)
                told()
        finally:
            # Whatever ends the wait ends the round; the cluster's watchdog ends its workers.
            if process.is_alive():
                process.kill()
                process.join()
        if process.exitcode:
            died = Path(folder, "died")
            why = died.read_text() if died.exists() else f"exit code {process.exitcode}"
            text = f"round {number + 1} of the query plans broke off: {why}. {_goes_on(kept)}"
            raise RunError(text)


def _round(
    kept: Kept, number: int, cases: list[Case], effort: Effort, most_s: float | None, folder: str
) -> None:
    def keep(of: int, case: Case, run: dict[str, Any]) -> None:
        kept.add(case, of, run)

    Thread(target=_end_with_parent, daemon=True).start()
    try:
        if code_digest() != kept.code:
            raise RunError("the sources were changed meanwhile, and runs of both would be mixed")  # noqa: EM101
        run_due(
            folder,
            [(number, case) for case in cases],
            keep,
            effort.batches,
            effort.seconds,
            most_s=most_s,
        )
    except BaseException as error:
        Path(folder, "died").write_text(f"{type(error).__name__}: {error}"[:500])
        traceback.print_exc()
        os._exit(1)
    # Spark's threads are not waited for: it ends with this process.
    os._exit(0)


def _end_with_parent() -> None:
    """Nobody who asked is left: a killed command must not leave a cluster at work."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@cache
def code_digest() -> str:
    """Digest of the sources that runs go through. O(their bytes)."""
    root, found = Path(__file__).parents[1], sha256()
    files = [path for package in PACKAGES for path in (root / package).rglob("*.py")]
    for path in sorted([*files, *(root / module for module in MODULES)]):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]
