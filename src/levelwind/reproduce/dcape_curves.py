"""A figure of seed 003: cases run in turns on a real cluster, drawn as curves or points, and judged.

Curves are rows that the outputs got, summed up over time; the band is the spread over the rounds. Figures
share their runs: see `dcape_pass`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from levelwind.reproduce import style
from levelwind.reproduce.dcape_causes import batch_of
from levelwind.reproduce.dcape_pass import EFFORTS, run_together
from levelwind.reproduce.dcape_runs import Case, added_s, has_moved
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge

# Rows per second of a first look: with fewer, what a batch costs by itself would hide the rest.
FEWER = 0.5
LINES = (style.BLUE, style.VERMILION, style.GREEN, style.ORANGE, style.PURPLE, style.SKY, style.BLACK)
Values = Mapping[str, Sequence[float]]
Checks = Callable[[Values], list[Check]]


def measure(item: Item) -> Result:
    """One figure alone; several are better measured by `run_together`, which runs what they share once."""
    cases = [Case(**case) for case in item["cases"]]
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return {**item, **run_together({"": cases}, EFFORTS[item["quick"]], Path(folder))[""]}


@dataclass(kw_only=True)
class Curves:
    """A figure of curves over time, or of one figure against a number.

    Parameters
    ----------
    cases
        What is run, by the label of its curve.
    what
        What is drawn of each batch: ``rows``, ``fullest_state``, or a figure of the manager's.
    against
        If given, the numbers on the x axis, by label: one point per case instead of a curve.
    along
        What these are numbers of.
    checks
        From throughputs by label (one per round) to the parts of the claim.
    judged
        What of a run the claim is about, if not what is drawn.
    first_look
        Labels that the claim cannot do without: with ``--quick`` only these are run. None: all.
    set_up
        What is otherwise than in the paper.
    """

    TITLE: str
    paper: str
    claim: str
    cases: Mapping[str, Case]
    checks: Checks
    what: str = "rows"
    against: Mapping[str, float] | None = None
    along: str = ""
    judged: str = ""
    first_look: tuple[str, ...] | None = None
    set_up: tuple[str, ...] = ()
    measure: Callable[[Item], Result] = measure

    def chosen(self, quick: bool) -> dict[str, Case]:
        """What is run, by label."""
        if not quick:
            return dict(self.cases)
        labels = self.cases if self.first_look is None else self.first_look
        return {
            label: replace(case, rows=FEWER * case.rows) for label in labels for case in [self.cases[label]]
        }

    def cells(self, quick: bool, seed: int) -> list[Item]:
        """One piece of work: cases must take turns on the same cluster."""
        return [
            {
                "seed": seed,  # of nothing but the record: streams are the same in every run
                "quick": quick,
                "cases": [asdict(case) for case in self.chosen(quick).values()],
                "effort": asdict(EFFORTS[quick]),
            }
        ]

    def runs(self, results: Sequence[Result]) -> dict[str, list[Result]]:
        """All runs that have what is drawn, by label: of the first ones less was written down."""
        return {
            label: [
                run
                for result in results
                for run in result["runs"][case.name]
                if self.what != STATE or STATE in run["steps"][0]
            ]
            for label, case in self.chosen(results[0]["quick"]).items()
        }

    def values(self, results: Sequence[Result]) -> dict[str, list[float]]:
        """The figure of every round, by label."""
        cases, what = self.chosen(results[0]["quick"]), self.judged or self.what
        return {
            label: [_value(run, what, cases[label]) for run in own]
            for label, own in self.runs(results).items()
        }

    def summarise(self, results: Sequence[Result]) -> Outcome:
        """Medians and spread, and what the claim says of them."""
        found, runs = self.values(results), self.runs(results)
        ours: dict[str, Any] = {label: round(float(np.median(own)), 6) for label, own in found.items()}
        # What is drawn begins when a policy has moved what it would.
        between = {label: own[0]["connections_at_the_end"] for label, own in runs.items()}
        if any(between.values()):
            ours["connections"] = between
        # Why one curve is below another.
        ours["batch"] = {label: batch_of(own) for label, own in runs.items()}
        if self.judged:
            ours["throughput"] = {
                label: round(float(np.median([run["throughput"] for run in own])))
                for label, own in runs.items()
            }
        ours["spread"] = {label: [round(min(own), 6), round(max(own), 6)] for label, own in found.items()}
        ours["rounds"] = min(len(own) for own in found.values())
        ours["capped"] = all(result["capped"] for result in results)
        return judge(self.paper, self.claim, ours, self.checks(found), self.set_up)

    def draw(self, results: Sequence[Result], path: Path) -> None:
        """Curves with their spread, or points."""
        with style.figure(path) as axes:
            if self.against is not None:
                self._draw_points(axes, results)
            else:
                for (label, own), colour in zip(self.runs(results).items(), LINES * 3, strict=False):
                    _draw_course(axes, own, self.what, label, colour)
                axes.set_xlabel("seconds once warm")
                axes.legend()
            axes.set_ylabel(AXES[self.what])
            axes.set_ylim(bottom=0)
            if self.what != "share":
                style.with_prefixes(axes.yaxis)

    def _draw_points(self, axes: Any, results: Sequence[Result]) -> None:
        assert self.against is not None
        found = self.values(results)
        at = [self.against[label] for label in found]
        middle = [float(np.median(own)) for own in found.values()]
        spread = [[m - min(own), max(own) - m] for m, own in zip(middle, found.values(), strict=True)]
        axes.errorbar(at, middle, yerr=np.array(spread).T, color=style.BLUE, marker="o", capsize=3)
        axes.set_xlabel(self.along)


STATE = "fullest_state"
AXES = {
    "rows": "rows put out",
    "rate": "rows put out per second",
    STATE: "state of the fullest node, bytes",
    "share": "share of CPU spent on operators",
    "cpu_s": "CPU seconds per node and second, so far",
    "bytes_in": "bytes in per node and second, so far",
    "memory_bytes": "bytes of memory per node",
}
MANAGER = ("cpu_s", "bytes_in", "memory_bytes")


def _value(run: Mapping[str, Any], what: str, case: Case) -> float:
    steps = run["steps"]
    if what in ("rows", "rate"):
        return float(run["throughput"])
    if what == "undisturbed":
        # A case that is there to be moved, and was not, says nothing for moves.
        moved = case.move_every is None or has_moved([run])
        return 1.0 - added_s([run]) / 60.0 if moved else 0.0
    if what == "share":
        return sum(s["working_s"] for s in steps) / max(sum(s["cpu_s"] for s in steps), 1e-9)
    if what == STATE:
        return float(np.mean([s[STATE] for s in steps]))
    spent = steps[-1]["manager"][what]
    return float("nan") if spent is None else float(spent)


def _draw_course(axes: Any, runs: Sequence[Mapping[str, Any]], what: str, label: str, colour: str) -> None:
    shortest = min(sum(step["wall_s"] for step in run["steps"]) for run in runs)
    grid = np.linspace(0.0, shortest, 60)
    lines = []
    for run in runs:
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
    """Every other that was measured is at least so many times the first; one must be there."""

    def check(found: Values) -> list[Check]:
        return [
            part
            for other in [other for other in others if other in found] or others
            for part in at_least(other, one, factor)(found)
        ]

    return check


def at_most(limit: float) -> Checks:
    """All stay below a limit."""

    def check(found: Values) -> list[Check]:
        return [
            Check(passed=max(own) <= limit, reason=f"{label}: {max(own):.3g}") for label, own in found.items()
        ]

    return check
