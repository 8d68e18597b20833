"""Figure 9 of seed 001 (6.21 of seed 000): table 2's parameters varied one at a time, at load 0.9."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levelwind.reproduce import simulations, style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.simulations import RUNS, TABLE_2, cell, curves, draw_latencies, means, share
from levelwind.reproduce.statistics import rounded

TITLE = "Sensitivity of the correlation-based and largest-load-first algorithms at load 0.9"
LOAD = 0.9
STATIC = ("correlation", "llf", "steady")
DYNAMIC = ("cor_se_imp", "llf_bal", "steady_pairs")
ALGORITHMS = (*STATIC, *DYNAMIC)
VALUES = {
    "nodes": (5, 10, 20, 40),
    "per_node": (2, 5, 10, 20, 50),
    "window_s": (5.0, 10.0, 20.0, 40.0),
    "samples": (5, 10, 20),
    "period_s": (5.0, 10.0, 15.0, 20.0),
    "ratio": (2.0, 4.0, 8.0),
}
LABELS = {
    "nodes": "nodes",
    "per_node": "operators per node",
    "window_s": "statistics window, s",
    "samples": "samples in the window",
    "period_s": "period, s",
    "ratio": "high rate / low rate",
}
# What the paper excepts: too few operators to balance.
FEW = {"per_node": (2, 5)}
STEADY, ALMOST = 3.0, 0.5
PAPER = (
    "correlation-based algorithms insensitive but for few operators per node; LLF bad with few nodes, few "
    "operators, long periods, large ratios, and static LLF nearly as good with many operators (curves)"
)
CLAIM = (
    f"COR-GLB and COR-SE-IMP stay within {STEADY:g} times their latency in table 2's setting, 5 or fewer "
    "operators per node aside, and have less than LLF-GLB and LLF-BAL at every value; static COR-GLB has at "
    f"least {ALMOST} of LLF-GLB's at 50 operators per node"
)
measure = simulations.measure


def cells(quick: bool, seed: int) -> list[Item]:
    """One algorithm with one parameter changed, in one run; all begin at connected plans."""
    runs = 1 if quick else RUNS[quick]
    return [
        cell(quick, seed, run, name, LOAD, start="connected", **{parameter: value})
        for parameter, value in _points()
        for run in range(runs)
        for name in ALGORITHMS
    ]


def varied(results: Sequence[Result], parameter: str) -> list[Result]:
    """The results in which nothing but this parameter differs from table 2."""
    others = VALUES.keys() - {parameter}
    return [r for r in results if all(r[other] == TABLE_2[other] for other in others)]


def summarise(results: Sequence[Result]) -> Outcome:
    """Means against table 2's, and rivals run by run."""
    checks = []
    ours = {}
    for parameter in VALUES:
        rows = varied(results, parameter)
        table = means(curves(rows, ALGORITHMS, over=parameter))
        ours[parameter] = table
        for name, rival in (("correlation", "llf"), ("cor_se_imp", "llf_bal")):
            usual = table[name][TABLE_2[parameter]]
            for value, mean in table[name].items():
                if value not in FEW.get(parameter, ()):
                    reason = f"{name} has {mean:.3g} at {parameter} {value:g}{_unseen(parameter, value)}, "
                    reason += f"{usual:.3g} in table 2's setting"
                    checks.append(Check(passed=mean <= STEADY * usual, reason=reason))
            for value, part in share(rows, name, rival, over=parameter).items():
                reason = f"{name} has {part:.3f} of {rival}'s latency at {parameter} {value:g}"
                checks.append(Check(passed=part <= 1, reason=reason))
    most = max(VALUES["per_node"])
    part = share(varied(results, "per_node"), "correlation", "llf", over="per_node")[most]
    reason = f"correlation has {part:.2f} of llf's latency at {most} operators per node, still much less"
    checks.append(Check(passed=part >= ALMOST, reason=reason))
    return judge(PAPER, CLAIM, rounded(ours), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """A panel for each parameter; algorithms that go on moving operators have dashes."""
    with style.figure(path, width=9.6, height=6.0, rows=2, columns=3) as panels:
        for axes, parameter in zip(panels, VALUES, strict=True):
            axes.set_xscale("log")
            style.plain_ticks(axes, VALUES[parameter])
            axes.set_xlabel(LABELS[parameter])
        draw_latencies(
            panels, [curves(varied(results, p), ALGORITHMS, over=p) for p in VALUES], dashed=DYNAMIC
        )


def _unseen(parameter: str, value: float) -> str:
    """A word where the statistics do not show a whole period."""
    setting = {**TABLE_2, parameter: value}
    return " (a window shorter than the period)" if setting["window_s"] < setting["period_s"] else ""


def _points() -> list[tuple[str, float]]:
    """Every parameter with every value; table 2's own only once."""
    points = [(p, v) for p, values in VALUES.items() for v in values if v != TABLE_2[p]]
    return [("nodes", TABLE_2["nodes"]), *points]
