"""The query plans of seed 003 on a real cluster: throughput of `grouping` against `round_robin`.

By number of nodes, and with policies and planners of ours beside. Up to five workers on this machine, each
capped at a part of a core. The four plans of `query_plans` run as fast as they can with ``hops: next``: a
batch takes as long as its fullest node. Throughput is rows that the outputs got per second of wall time, once
warm. Contenders take turns, round after round, so that whatever else the machine does falls on all of them;
those that a promise is about have more rounds than those that only fill the table.

The full version is long. It runs whatever the figures of seed 003 show in the same pass, each run once for
both: `levelwind reproduce dcape` into the same folder finds all its runs there. They are kept as they end,
and the same command goes on where it was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from levelwind.balance.costs.prediction import Work, expected_work, fitted, relative_errors
from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.reproduce.dcape import FIGURES, LEFT, MOVED
from levelwind.reproduce.dcape_causes import batch_of, why_slower
from levelwind.reproduce.dcape_pass import EFFORTS, Effort, run_missing, summed_up
from levelwind.reproduce.dcape_runs import CAP, Case, added_s, has_moved

NAME = "dcape"
PATTERNS = ("round_robin", "grouping")
# What of ours stands beside the patterns: planners, and a policy that begins from round robin.
BESIDE, OUR_POLICY = ("resilient", "correlation"), "replan"
# Rounds of the pairs of patterns, of the policy that begins from round robin, of what stands beside, and of
# what only fills the table. The short version leaves the last two for last: it may have no time for them.
ROUNDS = range(3), range(3), range(2, 3), range(2, 3)
FULL_ROUNDS = range(5), range(3), range(2), range(1)
SHORT = Effort(rounds=len(ROUNDS[0]), batches=5, seconds=0.0)
# Seconds after which no further run of the short version begins.
MOST_S = 7.5 * 60.0
# The promises. Below `NOTHING` there is nothing to regain.
NOTHING_LOST, REGAINED, NOTHING, MOVE_COST = 0.10, 0.5, 0.03, 0.03
Runs = Mapping[str, Sequence[Mapping[str, Any]]]


def cases(full: bool) -> dict[Case, range]:
    """What is run, in the order of the table, and in which rounds."""
    pairs, regained, beside, table = FULL_ROUNDS if full else ROUNDS
    found: dict[Case, range] = {}

    def add(rounds: range, *wanted: Case) -> None:
        for case in wanted:
            found[case] = max(rounds, found.get(case, range(0)), key=len)

    for number in (2, 3, 4) if full else (2,):
        start = [_case(number, 3, planner) for planner in PATTERNS]
        add(pairs, *start)
        add(regained, replace(start[0], policy="degradation"))
        add(beside, replace(start[1], policy="degradation"))
        add(beside, *_ours(number, 3))
    add(beside, _case(1, 1), _case(1, 3), _case(2, 1))
    add(table, MOVED)
    if full:
        add(regained, LEFT, MOVED)
        add(beside, _case(1, 5), _case(1, 5, "grouping"))
        one = _case(1, 3, "grouping")
        add(beside, one, replace(one, policy="degradation"), *_ours(1, 3))
        for number in (1, 2, 3, 4):
            add(table, _case(number, 1))
            add(table, *(_case(number, nodes, planner) for nodes in (2, 4, 5) for planner in PATTERNS))
    return found


def _case(number: int, nodes: int, planner: str = "round_robin") -> Case:
    return Case(number=number, nodes=nodes, planner=planner)


def _ours(number: int, nodes: int) -> list[Case]:
    planned = [_case(number, nodes, planner) for planner in BESIDE]
    return [*planned, replace(_case(number, nodes), policy=OUR_POLICY)]


def run(settings: Settings) -> Result:
    """Everything, and a line for each case in the notes."""
    wanted = cases(settings.full)
    if settings.repeat:
        wanted = dict.fromkeys(wanted, range(settings.repeat))
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        kept = run_missing(
            with_figures(wanted) if settings.full else wanted,
            EFFORTS[False] if settings.full else SHORT,
            (settings.full and settings.directory) or Path(folder),
            most_s=None if settings.full else MOST_S,
            tick=lambda done, total, what: settings.step(f"{done} of {total} runs, {what}"),
        )
    return summary(summed_up({case.name: kept.of(case) for case in wanted}), wanted)


def with_figures(wanted: Mapping[Case, range]) -> dict[Case, range]:
    """These settings and those of all figures, each in the rounds that either wants."""
    shown = {
        case: range(EFFORTS[False].rounds)
        for figure in FIGURES.values()
        for case in figure.chosen(quick=False).values()
    }
    return {case: max(shown.get(case, range(0)), own, key=len) for case, own in {**shown, **wanted}.items()}


def summary(found: Mapping[str, Any], wanted: Iterable[Case]) -> Result:
    """The promises as figures with limits, medians of pairs of the same round."""
    runs: Runs = found["runs"]
    done = [case for case in wanted if runs[case.name]]
    left_out = [case.name for case in wanted if not runs[case.name]]
    table = _Table(runs, done)
    pair = _case(2, 3, "grouping"), _case(2, 3)
    mine, base = (list(table.rates(case).values()) for case in pair)
    notes = [*_notes(found, done), *table.causes(), *_predicted(found, done)]
    if left_out:
        notes.append(f"left out, as the time was over: {'; '.join(left_out)}")
    return Result(
        name=NAME,
        ours=Figure(label=f"throughput of {pair[0].name}", value=median(mine), unit="rows/s"),
        baseline=Figure(label=f"of {pair[1].name}", value=median(base), unit="rows/s"),
        ratio=table.ratio(*pair),
        spread=spread_of(table.ratios(*pair)),
        figures=[figure for case in done for figure in table.promises(case)],
        notes=notes,
        # A full pass has its batches in a file of its own.
        details={"throughput": {case.name: table.rates(case) for case in done}, "seconds": found["seconds"]},
    )


class _Table:
    """What was measured, and what is promised of it. Limits are upper bounds."""

    def __init__(self, runs: Runs, done: Sequence[Case]) -> None:
        self.runs, self.done = runs, done

    def rates(self, case: Case) -> dict[int, float]:
        """Throughput by round."""
        return {each["round"]: each["throughput"] for each in self.runs[case.name]}

    def ratios(self, one: Case, other: Case) -> list[float]:
        """Of throughputs, in the rounds that both have."""
        mine, theirs = self.rates(one), self.rates(other)
        return [mine[number] / theirs[number] for number in mine if number in theirs]

    def ratio(self, one: Case, other: Case) -> float:
        """Of throughputs, in the median; both must have run in the same round, see `met`."""
        return median(self.ratios(one, other))

    def met(self, one: Case, other: Case) -> bool:
        """Whether both ran in the same round: when time is over, the last one may lack some."""
        return one in self.done and other in self.done and bool(self.ratios(one, other))

    def promises(self, case: Case) -> list[Figure]:
        """What is promised of a case beside others."""
        if case.apart:
            return [] if case.move_every is None else self._moved(case)
        if case.policy == "degradation":
            return self._regained(case) if case.planner == "round_robin" else self._beside(case)
        if case.policy is not None:
            return []
        return [*self._alone(case), *self._patterns(case)]

    def _alone(self, case: Case) -> list[Figure]:
        """One node beside several: a small plan loses nothing, a larger one gains."""
        alone = _case(case.number, 1)
        if case.nodes == 1 or case.planner not in PATTERNS or not self.met(alone, case):
            return []
        if case.number < 2:
            limit = 1.0 + NOTHING_LOST
        elif case.planner == "grouping" and case.nodes == max(each.nodes for each in self._peers(case)):
            limit = 1.0
        else:
            return []
        label = f"plan {case.number}: one node over {case.nodes} by {case.planner}"
        return [Figure(label=label, value=self.ratio(alone, case), unit="share", limit=limit)]

    def _patterns(self, case: Case) -> list[Figure]:
        """Grouping beside round robin: no slower, and with fewer connections."""
        rival = _case(case.number, case.nodes, "grouping")
        if case.number < 2 or case.planner != "round_robin" or not self.met(rival, case):
            return []
        where = f"plan {case.number} on {case.nodes}: "
        opened, theirs = (self.runs[c.name][0]["connections"] for c in (rival, case))
        # The promise is about pairs that took turns; a single round fills the table.
        limit = 1.0 if len(self.rates(rival)) > 1 else None
        return [
            Figure(
                label=f"{where}round_robin over grouping",
                value=self.ratio(case, rival),
                unit="share",
                limit=limit,
            ),
            Figure(
                label=f"{where}connections of grouping over those of round_robin",
                value=opened / max(theirs, 1),
                unit="share",
                limit=0.99,
            ),
        ]

    def causes(self) -> list[str]:
        """Where grouping is slower than round robin, and why."""
        lines = []
        for case in self.done:
            rival = replace(case, planner="grouping")
            if case.number < 2 or case != _case(case.number, case.nodes) or not self.met(case, rival):
                continue
            if self.ratio(case, rival) > 1.0:
                why = why_slower(self.runs[rival.name], self.runs[case.name])
                lines.append(f"{rival.name} is slower than round_robin: {why}")
        return lines

    def _regained(self, case: Case) -> list[Figure]:
        """How much of what separates round robin from the best is still missing with the policy."""
        plain = replace(case, policy=None)
        if not self.met(case, plain):
            return []
        rivals = [c for c in self._peers(case) if c.nodes == case.nodes and self.met(c, plain)]
        best, reached = max(self.ratio(c, plain) for c in rivals), self.ratio(case, plain)
        missing = (best - reached) / (best - 1.0) if best > 1.0 + NOTHING else 0.0
        label = f"plan {case.number} on {case.nodes}: share not regained by {case.policy}"
        return [Figure(label=label, value=missing, unit="share", limit=REGAINED)]

    def _beside(self, case: Case) -> list[Figure]:
        """Grouping with degradation beside the best of ours."""
        own = [c for c in _ours(case.number, case.nodes) if self.met(c, case)]
        if not own:
            return []
        best = max(own, key=lambda c: self.ratio(c, case))
        name = best.planner if best.policy is None else f"{best.planner} + {best.policy}"
        label = f"plan {case.number} on {case.nodes}: grouping + degradation over {name}"
        return [Figure(label=label, value=self.ratio(case, best), unit="share", limit=1.0)]

    def _moved(self, case: Case) -> list[Figure]:
        """What a move adds to the batches after it, of a minute; and throughput beside that without moves."""
        label = "seconds that moving a join adds, of a minute"
        own = self.runs[case.name]
        # Nothing that did not happen costs nothing.
        added = added_s(own) / 60.0 if has_moved(own) else 1.0
        figures = [Figure(label=label, value=added, unit="share", limit=MOVE_COST)]
        still = replace(case, move_every=None)
        if self.met(still, case):
            label = f"throughput without moves over that with one every {case.move_every} batches"
            figures.append(Figure(label=label, value=self.ratio(still, case), unit="share"))
        return figures

    def _peers(self, case: Case) -> list[Case]:
        """Whatever ran the same plan as its planner has it."""
        return [c for c in self.done if c.number == case.number and not c.apart]


def _notes(found: Mapping[str, Any], done: Sequence[Case]) -> list[str]:
    caps = f"capped at {CAP} core each" if found["capped"] else "NOT capped: this machine does not allow it"
    lines = [f"workers {caps}; medians over the rounds"]
    for case in done:
        own = found["runs"][case.name]
        batch = batch_of(own)
        lines.append(
            f"{case.name}: {median(each['throughput'] for each in own):.0f} rows/s in {len(own)} rounds, "
            f"{own[0]['connections']} connections at first, {own[-1]['connections_at_the_end']} at the end, "
            f"{median(each['moves'] for each in own):.0f} moves; a batch: "
            f"{batch['wall_s']:.2f} s, fullest node {batch['fullest_cpu_s']:.2f} CPU s "
            f"of {batch['cpu_s']:.2f} in all, {batch['sent_mb']:.1f} MB sent"
        )
    return lines


def _predicted(found: Mapping[str, Any], done: Sequence[Case]) -> list[str]:
    """Equations 3.1 to 3.3: unit costs fitted to the joins of one plan on one node, tried on the others.

    Only joins: of single-stream operators that run as one, the last has the CPU of all.
    """
    seen: dict[int, dict[str, tuple[Work, float]]] = {}
    for case in done:
        if case.nodes == 1 and not case.copies:
            run = found["runs"][case.name][0]
            seen[case.number] = _observed(case, run["boxes"], len(run["steps"]))
    fit_on = 2 if 2 in seen else max(seen, default=0)
    lines = []
    for number, joins in seen.items():
        if number == fit_on or not joins or not seen[fit_on]:
            continue
        errors = relative_errors(joins, fitted(seen[fit_on].values()))
        lines.append(
            f"cost of plan {number}'s joins, predicted from plan {fit_on}: "
            f"median error {median(errors.values()):.0%}, largest {max(errors.values()):.0%}"
        )
    return lines


def _observed(case: Case, boxes: Mapping[str, Sequence[float]], steps: int) -> dict[str, tuple[Work, float]]:
    """What each join did and cost. It looks at its state in every batch."""
    expected = expected_work(case.network)
    return {
        name: (
            Work(
                rows_in=rows_in,
                rows_out=rows_out,
                evaluated=rows_out,
                state=expected[name].state * steps,
                batches=steps,
            ),
            cpu_s,
        )
        for name, (rows_in, rows_out, cpu_s) in boxes.items()
        if case.network.operators[name].is_join
    }
