"""The figures of seed 003, chapters 4 to 6, as experiments that share one runner on a real cluster.

The paper's cluster had five machines for queries, runs of thirty minutes and web server logs; here workers of
one machine are capped, streams are made up, and a full run counts at least 60 s of three rounds. Curves are
rows that the outputs got, summed up over time; the band is the spread over the rounds.
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
    checks: Callable[[Values], list[Check]]
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


def at_least(one: str, other: str, factor: float = 1.0) -> Callable[[Values], list[Check]]:
    """The first is at least so many times the second, in the median over rounds."""

    def check(found: Values) -> list[Check]:
        ratio = float(np.median([a / max(b, 1e-9) for a, b in zip(found[one], found[other], strict=True)]))
        return [Check(passed=ratio >= factor, reason=f"{one} has {ratio:.2f} times what {other} has")]

    return check


def all_at_least(one: str, others: Sequence[str], factor: float) -> Callable[[Values], list[Check]]:
    """Every other is at least so many times the first."""

    def check(found: Values) -> list[Check]:
        return [part for other in others for part in at_least(other, one, factor)(found)]

    return check


def at_most(limit: float) -> Callable[[Values], list[Check]]:
    """All stay below a limit."""

    def check(found: Values) -> list[Check]:
        return [
            Check(passed=max(own) <= limit, reason=f"{label}: {max(own):.3g}") for label, own in found.items()
        ]

    return check


# ---- the figures


def _nodes(
    number: int, planner: str, counts: Sequence[int] = (1, 2, 3, 4, 5), **more: Any
) -> dict[str, Case]:
    return {
        f"{count} node{'s' if count > 1 else ''}": Case(number=number, nodes=count, planner=planner, **more)
        for count in counts
    }


def _patterns(number: int, nodes: int, **more: Any) -> dict[str, Case]:
    return {
        name: Case(number=number, nodes=nodes, planner=name, **more) for name in ("round_robin", "grouping")
    }


def _policies(number: int, nodes: int) -> dict[str, Case]:
    plain = _patterns(number, nodes)
    moved = {
        f"{name} + degradation": Case(number=number, nodes=nodes, planner=name, policy="degradation")
        for name in plain
    }
    return plain | moved


MORE = ("2 nodes", "3 nodes", "4 nodes", "5 nodes")
SMALL = "A small plan put on more nodes is no slower than on one"
LARGE = "More nodes put out more"
GROUPED = "Grouping puts out at least as much as round robin"
REQUESTS = (0, 10, 50, 200)
COPIES = (1, 4, 8, 16, 24)


def _requests() -> dict[str, Case]:
    return {f"{n} a second": Case(number=2, nodes=1, planner="round_robin", requests=n) for n in REQUESTS}


def _copies() -> dict[str, Case]:
    return {f"{n} plans": Case(number=0, nodes=1, planner="round_robin", copies=n) for n in COPIES}


def _footprint(title: str, what: str, paper: str, claim: str, limit: float) -> Curves:
    five = {"five nodes": Case(number=3, nodes=5, planner="round_robin", policy="degradation")}
    return Curves(TITLE=title, paper=paper, claim=claim, cases=five, what=what, checks=at_most(limit))


def _small(title: str, number: int, window_s: float) -> Curves:
    return Curves(
        TITLE=title,
        paper="one to five machines have the same throughput",
        claim=f"{SMALL}, within 10%",
        cases=_nodes(number, "round_robin", window_s=window_s),
        checks=all_at_least("1 node", MORE, 0.9),
    )


def _grown(title: str, number: int, planner: str) -> Curves:
    return Curves(
        TITLE=title,
        paper="more machines have more throughput, five 25% to 33% more than one",
        claim=f"{LARGE}: five nodes at least a quarter more than one",
        cases=_nodes(number, planner),
        checks=at_least("5 nodes", "1 node", 1.25),
    )


def _rivals(title: str, number: int, nodes: int, **more: Any) -> Curves:
    return Curves(
        TITLE=title,
        paper="grouping has more throughput than round robin",
        claim=GROUPED,
        cases=_patterns(number, nodes, **more),
        checks=at_least("grouping", "round_robin"),
    )


def _redistributed(title: str, number: int, nodes: int, factor: float) -> Curves:
    return Curves(
        TITLE=title,
        paper="redistribution doubles what round robin puts out (plan 2); grouping gains 5% to 10%",
        claim=f"Degradation by output rate puts out at least {factor:g} times what round robin alone does",
        cases=_policies(number, nodes),
        checks=at_least("round_robin + degradation", "round_robin", factor),
    )


FIGURES: dict[str, Curves] = {
    "dcape_4_3": Curves(
        TITLE="Throughput of one node with more and more control messages",
        paper="50 messages a second cost nothing",
        claim="50 messages a second cost less than a tenth of the throughput",
        cases=_requests(),
        what="rate",
        against={f"{n} a second": float(n) for n in REQUESTS},
        checks=at_least("50 a second", "0 a second", 0.9),
    ),
    "dcape_4_5": Curves(
        TITLE="Output rate of one node with more and more connections",
        paper="falls beyond 8 to 12 connections",
        claim="16 plans with as many rows in all put out less per second than 4",
        cases=_copies(),
        what="rate",
        against={f"{n} plans": 2.0 * n for n in COPIES},
        checks=at_least("4 plans", "16 plans"),
    ),
    "dcape_4_6": Curves(
        TITLE="Share of CPU that goes into operators, by number of connections",
        paper="falls with the number of connections",
        claim="24 plans with as many rows in all leave a smaller share to operators than one",
        cases=_copies(),
        what="share",
        against={f"{n} plans": 2.0 * n for n in COPIES},
        checks=at_least("1 plans", "24 plans"),
    ),
    "dcape_4_8": _footprint(
        "CPU of the manager over time, plan 3 on five nodes",
        "cpu_s",
        "rarely used",
        "Below 1% of a CPU per node",
        0.01,
    ),
    "dcape_4_9": _footprint(
        "Network use of the manager over time",
        "bytes_in",
        "400 bytes a second in",
        "Below 10 kB per node and second",
        1e4,
    ),
    "dcape_4_10": _footprint(
        "Memory of the manager over time", "memory_bytes", "below 20 MB", "Below 4 MB per node", 4e6
    ),
    "dcape_5_4": _small("Plan 1 as five single-stream operators, 1 to 5 nodes, round robin", 0, 10.0),
    "dcape_5_5": _small("Plan 1 with windows of 2 s, 1 to 5 nodes, round robin", 1, 2.0),
    "dcape_5_6": _small("Plan 1 with windows of 10 s, 1 to 5 nodes, round robin", 1, 10.0),
    "dcape_5_7": _grown("Plan 2, 1 to 5 nodes, round robin", 2, "round_robin"),
    "dcape_5_8": _grown("Plan 2, 1 to 5 nodes, grouping", 2, "grouping"),
    "dcape_5_9": _grown("Plan 3, 1 to 5 nodes, grouping", 3, "grouping"),
    "dcape_5_10": _grown("Plan 4, 1 to 5 nodes, grouping", 4, "grouping"),
    "dcape_5_11": Curves(
        TITLE="State of plan 4 over time, 1 to 5 nodes, grouping",
        paper="a single machine runs out of memory after twenty minutes",
        claim="One node alone holds no more state than five together: windows bound it",
        cases=_nodes(4, "grouping"),
        what="memory",
        checks=at_least("5 nodes", "1 node", 0.8),
    ),
    "dcape_5_12": _rivals("Plan 1 with windows of 60 s on four nodes: both patterns", 1, 4, window_s=60.0),
    "dcape_5_14": Curves(
        TITLE="Plan 2 on 2, 4 and 5 nodes: both patterns",
        paper="grouping always wins",
        claim=GROUPED,
        cases={
            f"{name} on {nodes}": case for nodes in (2, 4, 5) for name, case in _patterns(2, nodes).items()
        },
        checks=lambda found: [
            part
            for nodes in (2, 4, 5)
            for part in at_least(f"grouping on {nodes}", f"round_robin on {nodes}")(found)
        ],
    ),
    "dcape_5_15": _rivals("Plan 3 on four nodes: both patterns", 3, 4),
    "dcape_5_16": _rivals("Plan 4 on five nodes: both patterns", 4, 5),
    "dcape_6_3": Curves(
        TITLE="Plan 2, a join moved back and forth, against leaving it",
        paper="moving an operator every minute costs nothing",
        claim="A join that is moved again and again costs less than 3% of the throughput",
        cases={
            "left alone": Case(number=2, nodes=2, planner="grouping", window_s=20.0),
            "moved": Case(number=2, nodes=2, planner="grouping", window_s=20.0, move_every=20),
        },
        checks=at_least("moved", "left alone", 0.97),
    ),
    "dcape_6_4": _redistributed("Plan 2 on three nodes, with redistribution and without", 2, 3, 1.1),
    "dcape_6_5": _redistributed("Plan 3 on two nodes, with redistribution and without", 3, 2, 1.05),
    "dcape_6_6": _redistributed("Plan 3 on three nodes, with redistribution and without", 3, 3, 1.05),
}
