"""Figure 5 of seed 001 (6.16 and 6.17 of seed 000): plans made at load 0.5 that then have to bear 0.8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from levelwind.reproduce import style
from levelwind.reproduce.figure_6_14 import PLANNERS, RIVALS
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.simulations import (
    EDGES,
    RUNS,
    TICKS,
    below,
    by_setting,
    cell,
    curves,
    figures,
    means,
    of_setting,
    scenario_of,
)
from levelwind.reproduce.statistics import rounded
from levelwind.sim.driver import simulate

TITLE = "Latency and load moved by LLF-BAL after the load rises from 0.5 to 0.8"
PLANNED_AT, RAISED_TO = 0.5, 0.8
PAPER = "from COR-GLB's plan less latency, and less load moved, than from LLF-GLB's and RAND-GLB's (bars)"
CLAIM = (
    "After the rise, COR-GLB's plan has less latency and needs less load moved than LLF's and RAND's, in "
    "table 2's setting, with a statistics window of 5 s, and with a period of 15 s"
)


def cells(quick: bool, seed: int) -> list[Item]:
    """One planner in one setting and run."""
    return [
        cell(quick, seed, run, planner, RAISED_TO, policy="llf_bal", setting=setting, **changes)
        for setting, changes in EDGES.items()
        for run in range(RUNS[quick])
        for planner in PLANNERS
    ]


def measure(item: Item) -> Result:
    """Plan at the low load, then record at the high one with that plan in place on empty queues."""
    raised = scenario_of(item)
    plan = simulate(replace(raised, load=PLANNED_AT, policy=None), seed=item["seed"]).placement
    return {**item, **figures(simulate(replace(raised, start=plan, planner=None), seed=item["seed"]))}


def summarise(results: Sequence[Result]) -> Outcome:
    """Latency run by run, moved load in the mean, in each setting."""
    moved = means(curves(results, PLANNERS, what="moved_load", over="setting"))
    found = {}
    for setting in EDGES:
        checks = []
        for rival in RIVALS:
            checks += below(of_setting(results, setting), "correlation", rival, {RAISED_TO: 1.0})
            mine, other = moved["correlation"][setting], moved[rival][setting]
            reason = f"from correlation's plan {mine:.2f} is moved, from {rival}'s {other:.2f}"
            checks.append(Check(passed=mine < other, reason=reason))
        found[setting] = checks
    ours = {"latency_ratio": means(curves(results, PLANNERS, over="setting")), "moved_load": moved}
    return judge(PAPER, CLAIM, rounded(ours), by_setting(found))


def draw(results: Sequence[Result], path: Path) -> None:
    """Bars by setting, latency on the left and moved load on the right."""
    with style.figure(path, width=8.4, columns=2, share_y=False) as panels:
        titles = ("latency ratio (log)", "load moved, CPUs")
        for axes, what, title in zip(panels, ("latency_ratio", "moved_load"), titles, strict=True):
            table = curves(results, PLANNERS, what=what, over="setting")
            for place, name in enumerate(PLANNERS):
                bars = [table[name][setting] for setting in EDGES]
                axes.bar(
                    [i + 0.2 * (place - 1.5) for i in range(len(EDGES))],
                    [e.mean for e in bars],
                    0.18,
                    yerr=[[e.mean - e.low for e in bars], [e.high - e.mean for e in bars]],
                    color=style.COLOURS[name],
                    error_kw={"elinewidth": 0.9, "capsize": 2, "ecolor": style.GREY},
                    label=style.LABELS[name],
                )
            axes.set_xticks(range(len(EDGES)), list(EDGES))
            axes.tick_params(axis="x", length=0)
            axes.set_ylabel(title)
        panels[0].set_yscale("log")
        style.plain_ticks(panels[0], TICKS, axis="y")
        panels[0].set_ylim(bottom=1)
        style.legend_above(panels, columns=4)
