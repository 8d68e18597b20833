"""Figure 4 of seed 001 (6.15 of seed 000): how much node loads vary under the global algorithms' plans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from levelwind.reproduce import figure_6_14, style
from levelwind.reproduce.figure_6_14 import PHASES, PLANNERS, RIVALS, of_phases
from levelwind.reproduce.outcome import Check, Outcome, Result, judge
from levelwind.reproduce.simulations import LOADS, curves, means, share
from levelwind.reproduce.statistics import Estimate, by, extent, rounded

TITLE = "Mean standard deviation of node loads under the global algorithms' plans"
MUCH, CLOSE = 0.5, 1.5
PAPER = "COR-GLB much below LLF-GLB and RAND-GLB, very close to the lower bound (curves without numbers)"
CLAIM = (
    "COR-GLB's mean standard deviation of node loads is at most half of LLF's and RAND's at every load (even "
    f"phases), and at most {CLOSE} times the lower bound (even and random phases)"
)
cells = figure_6_14.cells
measure = figure_6_14.measure


def summarise(results: Sequence[Result]) -> Outcome:
    """On the statistics window that the plans were made from, as the paper has it; what came then beside."""
    checks: list[Check] = []
    ours: dict[str, Any] = {}
    for phases in PHASES:
        rows = of_phases(results, phases)
        # With random phases all load together rises and falls, which no plan can help.
        for rival in RIVALS if phases == "even" else ():
            worst = max(share(rows, "correlation", rival, what="load_std").values())
            reason = f"{phases} phases: correlation has {worst:.2f} of {rival}'s deviation"
            checks.append(Check(passed=worst <= MUCH, reason=reason))
        most = max(over_bound(rows, "correlation").values())
        reason = f"{phases} phases: correlation has {most:.2f} times the bound"
        checks.append(Check(passed=most <= CLOSE, reason=reason))
        ours[f"{phases}_phases"] = {
            "over_bound": {name: over_bound(rows, name) for name in PLANNERS},
            "held_out": means(curves(rows, PLANNERS, what="held_out_load_std")),
        }
    return judge(PAPER, CLAIM, rounded(ours), checks)


def over_bound(rows: Sequence[Result], name: str) -> dict[float, float]:
    """Deviation over the bound by load: ratio of means over runs."""
    mine = [r for r in rows if r["algorithm"] == name]
    return {
        load: sum(r["load_std"] for r in group) / sum(r["load_std_bound"] for r in group)
        for load, group in by(mine, "load").items()
    }


def draw(results: Sequence[Result], path: Path) -> None:
    """Deviation against load, with the bound."""
    with style.figure(path, width=8.4, columns=2) as panels:
        for axes, phases in zip(panels, PHASES, strict=True):
            rows = of_phases(results, phases)
            for name, row in curves(rows, PLANNERS, what="load_std").items():
                style.curve(
                    axes,
                    LOADS,
                    list(row.values()),
                    colour=style.COLOURS[name],
                    marker=style.MARKERS[name],
                    label=style.LABELS[name],
                )
            style.curve(
                axes, LOADS, _bound(rows), colour=style.GREY, marker="_", line=":", label="lower bound"
            )
            axes.set_title(f"{phases} phases")
            style.plain_ticks(axes, LOADS)
            axes.set_xlabel("system load level")
        panels[0].set_ylim(bottom=0)
        panels[0].set_ylabel("mean standard deviation of node loads")
        style.legend_above(panels, columns=5)


def _bound(rows: Sequence[Result]) -> list[Estimate]:
    return [extent([r["load_std_bound"] for r in group]) for group in by(rows, "load").values()]
