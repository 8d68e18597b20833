"""A figure of seed 003: cases run in turns on a real cluster, drawn as curves or points, and judged.

Curves are rows that the outputs got, summed up over time; the band is the spread over the rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from levelwind.reproduce import style
from levelwind.reproduce.dcape_runs import Case, run_cases
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge

# Rounds, batches and seconds of each, quick and full.
ROUNDS, BATCHES, SECONDS = {True: 1, False: 3}, {True: 6, False: 20}, {True: 0.0, False: 60.0}
LINES = (style.BLUE, style.VERMILION, style.GREEN, style.ORANGE, style.PURPLE, style.SKY, style.BLACK)
Values = Mapping[str, Sequence[float]]
Checks = Callable[[Values], list[Check]]


def measure(item: Item) -> Result:
    """All cases of a figure, in turns, on one cluster."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        found = run_cases(folder, item["cases"], item["rounds"], item["batches"], item["seconds"])
    return {**item, **found}


@dataclass(kw_only=True)
class Curves:
    """A figure of curves over time, or of one figure against a number.

    Parameters
    ----------
    cases
        What is run, by the label of its curve.
    what
        What is drawn of each batch: ``rows``, ``memory``, or a figure of the manager's.
    against
        If given, the numbers on the x axis, by label: one point per case instead of a curve.
    checks
        From throughputs by label (one per round) to the parts of the claim.
    """

    TITLE: str
    paper: str
    claim: str
    cases: Mapping[str, Case]
    checks: Checks
    what: str = "rows"
    against: Mapping[str, float] | None = None
    measure: Callable[[Item], Result] = measure

    def cells(self, quick: bool, seed: int) -> list[Item]:
        """One piece of work: cases must take turns on the same cluster."""
        return [
            {
                "seed": seed,  # of nothing but the record: streams are the same in every run
                "cases": [asdict(case) for case in self.cases.values()],
                "rounds": ROUNDS[quick],
                "batches": BATCHES[quick],
                "seconds": SECONDS[quick],
            }
        ]

    def values(self, results: Sequence[Result]) -> dict[str, list[float]]:
        """The figure of every round, by label."""
        return {
            label: [_value(run, self.what) for result in results for run in result["runs"][case.name]]
            for label, case in self.cases.items()
        }

    def summarise(self, results: Sequence[Result]) -> Outcome:
        """Medians, and what the claim says of them."""
        found = self.values(results)
        ours: dict[str, Any] = {label: round(float(np.median(own)), 6) for label, own in found.items()}
        ours["connections"] = {
            label: results[0]["runs"][case.name][0]["connections"] for label, case in self.cases.items()
        }
        ours["capped"] = all(result["capped"] for result in results)
        return judge(self.paper, self.claim, ours, self.checks(found))

    def draw(self, results: Sequence[Result], path: Path) -> None:
        """Curves with their spread, or points."""
        with style.figure(path) as axes:
            if self.against is not None:
                self._draw_points(axes, results)
            else:
                for (label, case), colour in zip(self.cases.items(), LINES * 3, strict=False):
                    _draw_course(axes, [r["runs"][case.name] for r in results], self.what, label, colour)
                axes.set_xlabel("seconds once warm")
                axes.set_ylabel(AXES[self.what])
                axes.legend()

    def _draw_points(self, axes: Any, results: Sequence[Result]) -> None:
        assert self.against is not None
        found = self.values(results)
        at = [self.against[label] for label in found]
        middle = [float(np.median(own)) for own in found.values()]
        spread = [[m - min(own), max(own) - m] for m, own in zip(middle, found.values(), strict=True)]
        axes.errorbar(at, middle, yerr=np.array(spread).T, color=style.BLUE, marker="o", capsize=3)
        axes.set_xlabel("number")
        axes.set_ylabel(AXES[self.what])
        axes.set_ylim(bottom=0)


AXES = {
    "rows": "rows put out",
    "rate": "rows put out per second",
    "memory": "state of all nodes, bytes",
    "share": "share of CPU spent on operators",
    "cpu_s": "CPU seconds per node and second",
    "bytes_in": "bytes in per node and second",
    "memory_bytes": "bytes of memory per node",
}
MANAGER = ("cpu_s", "bytes_in", "memory_bytes")


def _value(run: Mapping[str, Any], what: str) -> float:
    steps = run["steps"]
    if what in ("rows", "rate"):
        return float(run["throughput"])
    if what == "share":
        return sum(s["working_s"] for s in steps) / max(sum(s["cpu_s"] for s in steps), 1e-9)
    if what == "memory":
        return float(np.mean([s["memory"] for s in steps]))
    return float(steps[-1]["manager"][what])


def _draw_course(
    axes: Any, runs: Sequence[Sequence[Mapping[str, Any]]], what: str, label: str, colour: str
) -> None:
    every = [run for of_result in runs for run in of_result]
    shortest = min(sum(step["wall_s"] for step in run["steps"]) for run in every)
    grid = np.linspace(0.0, shortest, 60)
    lines = []
    for run in every:
        at = np.concatenate([[0.0], np.cumsum([step["wall_s"] for step in run["steps"]])])
        if what == "rows":
            own = np.concatenate([[0.0], np.cumsum([step["rows"] for step in run["steps"]])])
        else:
            figures = [s["manager"][what] if what in MANAGER else s[what] for s in run["steps"]]
            own = np.array([figures[0], *figures], dtype=float)
        lines.append(np.interp(grid, at, own))
    axes.plot(grid, np.median(lines, axis=0), color=colour, label=label, linewidth=1.3)
    if len(lines) > 1:
        axes.fill_between(grid, np.min(lines, axis=0), np.max(lines, axis=0), color=colour, alpha=0.15)


# ---- parts of claims


def at_least(one: str, other: str, factor: float = 1.0) -> Checks:
    """The first is at least so many times the second, in the median over rounds."""

    def check(found: Values) -> list[Check]:
        ratio = float(np.median([a / max(b, 1e-9) for a, b in zip(found[one], found[other], strict=True)]))
        return [Check(passed=ratio >= factor, reason=f"{one} has {ratio:.2f} times what {other} has")]

    return check


def all_at_least(one: str, others: Sequence[str], factor: float) -> Checks:
    """Every other is at least so many times the first."""

    def check(found: Values) -> list[Check]:
        return [part for other in others for part in at_least(other, one, factor)(found)]

    return check


def at_most(limit: float) -> Checks:
    """All stay below a limit."""

    def check(found: Values) -> list[Check]:
        return [
            Check(passed=max(own) <= limit, reason=f"{label}: {max(own):.3g}") for label, own in found.items()
        ]

    return check
