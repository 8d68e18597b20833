"""Figure 8 of seed 001 (6.20 of seed 000): recovery from connected plans over time, at load 0.9."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from levelwind.loads.arrays import Floats
from levelwind.reproduce import style
from levelwind.reproduce.figure_6_19 import ALGORITHMS
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.simulations import RUNS, below, cell, curves, figures, means, scenario_of
from levelwind.reproduce.statistics import by, rounded
from levelwind.sim.driver import simulate
from levelwind.sim.outcome import Moved
from levelwind.sim.statistics import load_correlation, load_std

TITLE = "Latency, load moved, deviation and correlation over time from connected plans at load 0.9"
LOAD = 0.9
DURATION_S = 120.0
MUCH_MORE = 2.0
QUEUES = "working off what the warm-up left in queues counts for more than moves do"
PANELS = {
    "latency_s": "mean latency, s (log)",
    "moved": "load moved so far, CPUs",
    "std": "mean std of node loads",
    "correlation": "mean correlation of node pairs",
}
PAPER = (
    "COR-RE-IMP moves much more than COR-SE-IMP; its last plan is nearer to COR-GLB's, its latency higher; "
    "COR-GLB moves less than COR-RE-IMP and does better"
)
CLAIM = (
    f"COR-RE-IMP moves at least {MUCH_MORE:g} times COR-SE-IMP's load, ends with less deviation of node "
    "loads, and has more mean latency; COR-GLB moves less than COR-RE-IMP and has less mean latency"
)


def cells(quick: bool, seed: int) -> list[Item]:
    """One algorithm in one run. Queues are as the warm-up leaves them, and COR-GLB's plan is moved to."""
    return [
        cell(quick, seed, run, name, LOAD, start="connected", clean=False, duration_s=DURATION_S)
        for run in range(RUNS[quick])
        for name in ALGORITHMS
    ]


def measure(item: Item) -> Result:
    """One simulation and its course, sample by sample."""
    scenario = scenario_of(item)
    outcome = simulate(scenario, seed=item["seed"])
    line = outcome.timeline
    cpu = np.ones(len(line.load))
    windows = [line.load[:, max(0, k - item["samples"]) : k] for k in range(1, len(line.at_s) + 1)]
    course = {
        "at_s": line.at_s.tolist(),
        "latency_s": [None if np.isnan(x) else x for x in line.latency_s.tolist()],
        "moved": accumulated(outcome.moves, line.at_s),
        # Of a window that is full: a standard deviation of two samples says nothing.
        "std": [load_std(w, cpu) if w.shape[1] == item["samples"] else None for w in windows],
        "correlation": [load_correlation(w) if w.shape[1] == item["samples"] else None for w in windows],
    }
    return {**item, **figures(outcome), "course": course}


def accumulated(moves: Sequence[Moved], at_s: Floats) -> list[float]:
    """Load moved up to each time."""
    return [sum((move.load for move in moves if move.at_s <= end), 0.0) for end in at_s.tolist()]


def summarise(results: Sequence[Result]) -> Outcome:
    """Latency run by run, the rest in the mean."""
    moved = {name: e[LOAD].mean for name, e in curves(results, ALGORITHMS, what="moved_load").items()}
    last = {name: course["std"][-1] for name, course in courses(results).items()}
    more = moved["cor_re_imp"] / moved["cor_se_imp"]
    checks = [
        Check(passed=more >= MUCH_MORE, reason=f"cor_re_imp moves {more:.2f} times what cor_se_imp moves"),
        Check(
            passed=last["cor_re_imp"] < last["cor_se_imp"],
            reason=f"cor_re_imp ends at {last['cor_re_imp']:.3f}, cor_se_imp at {last['cor_se_imp']:.3f}",
        ),
        Check(
            passed=moved["correlation"] < moved["cor_re_imp"],
            reason=f"correlation moves {moved['correlation']:.1f}, cor_re_imp {moved['cor_re_imp']:.1f}",
        ),
        *(
            Check(passed=check.passed, reason=f"{check.reason} ({QUEUES})")
            for name in ("cor_se_imp", "correlation")
            for check in below(results, name, "cor_re_imp", {LOAD: 1.0})
        ),
    ]
    ours = {
        "latency_ratio": {name: row[LOAD] for name, row in means(curves(results, ALGORITHMS)).items()},
        "moved_load": moved,
        "last_std": last,
        "last_correlation": {name: course["correlation"][-1] for name, course in courses(results).items()},
    }
    return judge(PAPER, CLAIM, rounded(ours), checks)


def courses(results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """The course of each algorithm, mean over runs; NaN where there is nothing yet."""
    groups = by(results, "algorithm")
    return {
        name: {
            what: np.array([r["course"][what] for r in groups[name]], dtype=float).mean(axis=0)
            for what in ("at_s", *PANELS)
        }
        for name in ALGORITHMS
    }


def draw(results: Sequence[Result], path: Path) -> None:
    """Four panels against time."""
    with style.figure(path, width=8.4, height=6.0, rows=2, columns=2, share_y=False) as panels:
        for axes, (what, title) in zip(panels, PANELS.items(), strict=True):
            for name, course in courses(results).items():
                axes.plot(
                    course["at_s"],
                    course[what],
                    color=style.COLOURS[name],
                    label=style.LABELS[name],
                    linewidth=1.2,
                )
            axes.set_ylabel(title)
            axes.set_xlim(0, DURATION_S)
        panels[0].set_yscale("log")
        style.plain_ticks(panels[0], (0.05, 0.1, 0.2, 0.5, 1, 2, 5), axis="y")
        for axes in panels[2:]:
            axes.set_xlabel("seconds since the algorithm began")
        style.legend_above(panels, columns=5)
