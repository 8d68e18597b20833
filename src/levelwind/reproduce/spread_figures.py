"""Figures 4 and 7 to 16 of seed 004: what each varies, what the paper says, and whether it is so here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from levelwind.reproduce import spread_joins, style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.spread_joins import ALL, FEW, RUNS, SPREAD, cell
from levelwind.reproduce.statistics import Estimate, by, extent, rounded

Curves = dict[str, dict[float, Estimate]]
Checks = Callable[[Mapping[str, Curves]], list[Check]]

COLOURS = {
    "atr": style.BLUE,
    "ctr": style.VERMILION,
    "atr_unoptimised": style.SKY,
    "ctr_unoptimised": style.ORANGE,
    "semantics_unaware": style.GREY,
    "centralised": style.BLACK,
}
LABELS = {
    "atr": "ATR",
    "ctr": "CTR",
    "atr_unoptimised": "ATR, unoptimised",
    "ctr_unoptimised": "CTR, unoptimised",
    "semantics_unaware": "semantics-unaware",
    "centralised": "one host",
}
# A setting of the paper's own, and one in which rows have few partners, at rates that keep hosts as busy.
PRINTED = "as printed"
SMALL = "few partners"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    PRINTED: {},
    SMALL: {"partners": FEW, "rates": (100.0, 160.0), "duration_s": 120.0},
}


@dataclass(kw_only=True)
class SpreadFigure:
    """One figure: a quantity over a key of the cells, a curve per algorithm, a panel per setting.

    ``over_time``: what was found so far is drawn instead, over the time of the runs.
    """

    TITLE: str
    paper: str
    claim: str
    checks: Checks
    over: str
    values: Sequence[float]
    what: str = "groups_per_s"
    algorithms: Sequence[str] = SPREAD
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: SETTINGS)
    x_label: str = ""
    y_label: str = "groups per second"
    over_time: bool = False

    measure = staticmethod(spread_joins.measure)

    def cells(self, quick: bool, seed: int) -> list[Item]:
        """One algorithm at one value in one setting and run."""
        values = self.values[::2] if quick and len(self.values) > 3 else self.values
        return [
            cell(quick, seed, run, name, setting=setting, **{**changes, self.over: value})
            for setting, changes in self.settings.items()
            for value in values
            for run in range(RUNS[quick])
            for name in self.algorithms
        ]

    def curves(self, results: Sequence[Result]) -> dict[str, Curves]:
        """By setting, algorithm and value: mean over runs, and extremes."""
        return {
            setting: {
                name: {at: extent([r[self.what] for r in cells]) for at, cells in by(own, self.over).items()}
                for name, own in by(rows, "algorithm").items()
            }
            for setting, rows in by(results, "setting").items()
        }

    def summarise(self, results: Sequence[Result]) -> Outcome:
        """The claim, judged on the means."""
        found = self.curves(results)
        ours = {
            setting: {name: {at: e.mean for at, e in row.items()} for name, row in table.items()}
            for setting, table in found.items()
        }
        return judge(self.paper, self.claim, rounded(ours), self.checks(found))

    def draw(self, results: Sequence[Result], path: Path) -> None:
        """A panel for each setting."""
        tables = self.curves(results)
        with style.figure(path, width=4.6 * len(tables) + 0.4, columns=len(tables), share_y=False) as panels:
            listed = [panels] if len(tables) == 1 else panels
            for axes, (setting, table) in zip(listed, tables.items(), strict=True):
                axes.set_title(setting)
                axes.set_xlabel(self.x_label)
                axes.set_ylabel(self.y_label)
                if self.over_time:
                    _draw_totals(axes, by(results, "algorithm"))
                    continue
                for name, row in table.items():
                    # Points of a single value would lie above each other.
                    at = list(row) if len(self.values) > 1 else [LABELS[name]]
                    style.curve(axes, at, list(row.values()), colour=COLOURS[name], label=LABELS[name])
                if len(self.values) == 1:
                    axes.set_ylim(bottom=0)
            style.legend_above(listed, columns=min(3, len(self.algorithms)))


def _draw_totals(axes: Any, results: Mapping[str, Sequence[Result]]) -> None:
    """All groups so far, over time: the mean of the runs, and their extremes."""
    for name, runs in results.items():
        totals = np.array([run["total"] for run in runs])
        at = np.linspace(0.0, runs[0]["duration_s"], totals.shape[1])
        axes.plot(at, totals.mean(axis=0), color=COLOURS[name], label=LABELS[name], linewidth=1.3)
        axes.fill_between(at, totals.min(axis=0), totals.max(axis=0), color=COLOURS[name], alpha=0.15)


def _mean(curve: Mapping[float, Estimate]) -> float:
    return sum(e.mean for e in curve.values()) / len(curve)


def _ratio(table: Curves, one: str, other: str, at: float) -> float:
    return table[one][at].mean / max(table[other][at].mean, 1e-12)


def _above(table: Curves, setting: str, better: Sequence[str], worse: Sequence[str]) -> list[Check]:
    """That some algorithms find more than others, in the mean over all values."""
    return [
        Check(
            passed=_mean(table[one]) > _mean(table[other]),
            reason=f"{setting}: {one} finds {_mean(table[one]):.4g}, {other} {_mean(table[other]):.4g}",
        )
        for one in better
        for other in worse
    ]


def _gains(table: Curves, setting: str, one: str, other: str) -> Check:
    """That one algorithm gains on another from the first value to the last."""
    at = sorted(table[one])
    first, last = _ratio(table, one, other, at[0]), _ratio(table, one, other, at[-1])
    text = f"{setting}: {one} over {other} goes from {first:.3f} to {last:.3f}"
    return Check(passed=last > first, reason=text)


def _peak(found: Mapping[str, Curves]) -> list[Check]:
    checks = []
    for setting, table in found.items():
        row = {at: e.mean for at, e in table["atr"].items()}
        best = max(row, key=lambda at: row[at])
        inside = min(row) < best < max(row)
        checks.append(Check(passed=inside, reason=f"{setting}: the best segment is {best:g} s, at an end"))
    return checks


def _first_join(found: Mapping[str, Curves]) -> list[Check]:
    checks = []
    for setting, table in found.items():
        checks += _above(table, setting, SPREAD, ("semantics_unaware", "centralised"))
        checks += _above(table, setting, ["atr"], ["ctr"])
    return checks


def _second_join(found: Mapping[str, Curves]) -> list[Check]:
    checks = []
    for setting, table in found.items():
        checks += _above(table, setting, SPREAD, ("semantics_unaware", "centralised"))
        checks += _above(table, setting, ["ctr"], ["atr"])
    return checks


def _quick_routing(found: Mapping[str, Curves]) -> list[Check]:
    return [
        Check(passed=e.mean <= 20, reason=f"{setting}: {name} takes {e.mean:.1f} µs per row at {at:g}")
        for setting, table in found.items()
        for name, row in table.items()
        for at, e in row.items()
    ]


def _scales(found: Mapping[str, Curves]) -> list[Check]:
    checks = []
    for setting, table in found.items():
        checks += _above(table, setting, SPREAD, ("semantics_unaware",))
        checks += _above(table, setting, ["atr"], ["atr_unoptimised"])
        checks += _above(table, setting, ["ctr"], ["ctr_unoptimised"])
    return checks


def _less_traffic(found: Mapping[str, Curves]) -> list[Check]:
    checks = []
    for setting, table in found.items():
        checks += _above(table, setting, ["atr_unoptimised"], ["atr"])
        checks += _above(table, setting, ["ctr_unoptimised"], ["ctr"])
    return checks


def _ctr_gains(found: Mapping[str, Curves]) -> list[Check]:
    return [_gains(table, setting, "ctr", "atr") for setting, table in found.items()]


def _atr_gains(found: Mapping[str, Curves]) -> list[Check]:
    return [_gains(table, setting, "atr", "ctr") for setting, table in found.items()]


_NEWS = {"vectors": True, "hosts": 6, "equal": True, "rates": (10.0, 16.0)}
_CURVES = "Curves only"
FIGURES: Mapping[str, SpreadFigure] = {
    "spread_figure_4": SpreadFigure(
        TITLE="Groups found against the segment length of aligned routing",
        paper=f"{_CURVES}: throughput has a peak between short and long segments",
        claim="The best segment length is neither the shortest nor the longest tried",
        checks=_peak,
        over="segment_s",
        values=(0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0),
        algorithms=("atr",),
        x_label="segment length, s",
    ),
    "spread_figure_7": SpreadFigure(
        TITLE="Groups found by six hosts, windows of 60 s, near vectors of 40 dimensions",
        paper=f"{_CURVES}: ATR and CTR above one host and semantics-unaware routing, ATR above CTR",
        claim="ATR and CTR find more than one host and than semantics-unaware routing; ATR more than CTR",
        checks=_first_join,
        over="window_s",
        values=(60,),
        algorithms=("atr", "ctr", "semantics_unaware", "centralised"),
        settings={"J1": _NEWS},
        x_label="seconds",
        y_label="groups found so far",
        over_time=True,
    ),
    "spread_figure_8": SpreadFigure(
        TITLE="Groups found by six hosts, windows of 120 s, near vectors of 40 dimensions",
        paper=f"{_CURVES}: ATR and CTR above one host and semantics-unaware routing, CTR above ATR",
        claim="ATR and CTR find more than one host and than semantics-unaware routing; CTR more than ATR",
        checks=_second_join,
        over="window_s",
        values=(120,),
        algorithms=("atr", "ctr", "semantics_unaware", "centralised"),
        settings={"J2": _NEWS},
        x_label="seconds",
        y_label="groups found so far",
        over_time=True,
    ),
    "spread_figure_9": SpreadFigure(
        TITLE="Time to route a row, windows of 60 s",
        paper=f"{_CURVES}: tens of microseconds",
        claim="At most 20 µs per row",
        checks=_quick_routing,
        over="window_s",
        values=(60,),
        what="route_us",
        settings={"J1": _NEWS},
        y_label="µs per row",
    ),
    "spread_figure_10": SpreadFigure(
        TITLE="Time to route a row, windows of 120 s",
        paper=f"{_CURVES}: tens of microseconds",
        claim="At most 20 µs per row",
        checks=_quick_routing,
        over="window_s",
        values=(120,),
        what="route_us",
        settings={"J2": _NEWS},
        y_label="µs per row",
    ),
    "spread_figure_11": SpreadFigure(
        TITLE="Groups found against the number of hosts, four streams",
        paper=f"{_CURVES}: ATR and CTR scale, better than their unoptimised forms and the baseline",
        claim="ATR and CTR find more than semantics-unaware routing and than their unoptimised forms",
        checks=_scales,
        over="hosts",
        values=(5, 10, 20, 30, 40),
        algorithms=ALL[:-1],
        settings={PRINTED: {"streams": 4}, SMALL: {**SETTINGS[SMALL], "streams": 4}},
        x_label="hosts",
    ),
    "spread_figure_12": SpreadFigure(
        TITLE="Rows and partial groups received per second against the number of hosts, four streams",
        paper=f"{_CURVES}: ATR and CTR use much less bandwidth than their unoptimised forms",
        claim="ATR and CTR send less than their unoptimised forms",
        checks=_less_traffic,
        over="hosts",
        values=(5, 10, 20, 30, 40),
        what="received_per_s",
        algorithms=("atr", "ctr", "atr_unoptimised", "ctr_unoptimised"),
        settings={PRINTED: {"streams": 4}, SMALL: {**SETTINGS[SMALL], "streams": 4}},
        x_label="hosts",
        y_label="received per second",
    ),
    "spread_figure_13": SpreadFigure(
        TITLE="Groups found against the number of streams, windows of 20 s",
        paper=f"{_CURVES}: ATR better for 2 and 3 streams, CTR for more",
        claim="CTR gains on ATR with the number of streams",
        checks=_ctr_gains,
        over="streams",
        values=(2, 3, 4, 5, 6),
        settings={
            PRINTED: {"window_s": 20, "duration_s": 100.0},
            SMALL: {**SETTINGS[SMALL], "window_s": 20, "duration_s": 100.0},
        },
        x_label="streams",
    ),
    "spread_figure_14": SpreadFigure(
        TITLE="Groups found against the window, three streams",
        paper=f"{_CURVES}: ATR better for small windows, CTR for large ones",
        claim="CTR gains on ATR with the window",
        checks=_ctr_gains,
        over="window_s",
        values=(10, 20, 30, 40, 50),
        x_label="window, s",
    ),
    "spread_figure_15": SpreadFigure(
        TITLE="Groups found against selectivity, three streams",
        paper=f"{_CURVES}: CTR better for low selectivity, ATR for high",
        claim="ATR gains on CTR with selectivity",
        checks=_atr_gains,
        over="selectivity",
        values=(0.2, 0.4, 0.6, 0.8, 1.0),
        settings={PRINTED: {"duration_s": 100.0}},
        x_label="selectivity",
    ),
    "spread_figure_16": SpreadFigure(
        TITLE="Groups found against burstiness, three streams",
        paper=f"{_CURVES}: CTR better under bursty streams",
        claim="CTR gains on ATR with burstiness",
        checks=_ctr_gains,
        over="burstiness",
        values=(0.0, 0.25, 0.5, 0.75, 1.0),
        x_label="burstiness θ",
    ),
}
