"""The query plans of seed 003 on a real cluster: throughput of `grouping` against `round_robin`.

By number of nodes, and with policies beside. Up to five workers on this machine, each capped at a part of a
core. The four plans of `query_plans` run as fast as they can with ``hops: next``: a batch takes as long as
its fullest node. Throughput is rows that the outputs got per second of wall time, once warm. Contenders take
turns, round after round, so that whatever else the machine does falls on all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from levelwind.balance.costs.prediction import Work, expected_work, fitted, relative_errors
from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.reproduce.dcape_runs import CAP, Case, run_cases
from levelwind.testing.sides import answer, ours

NAME = "dcape"
MODULE = "levelwind.bench.dcape"
PATTERNS = ("round_robin", "grouping")
COUNTED, FULL_COUNTED = 6, 30
NOTHING_LOST, REGAINED, MOVE_COST = 0.10, 0.5, 0.03


def cases(full: bool) -> list[Case]:
    """What is run, in the order of a round."""
    if not full:
        return [
            Case(number=1, nodes=1, planner="round_robin"),
            Case(number=1, nodes=3, planner="round_robin"),
            Case(number=2, nodes=1, planner="round_robin"),
            *(Case(number=2, nodes=3, planner=planner) for planner in (*PATTERNS, "resilient")),
            Case(number=2, nodes=3, planner="round_robin", policy="degradation"),
        ]
    found = [Case(number=n, nodes=1, planner="round_robin") for n in (0, 1, 2, 3, 4)]
    found += [Case(number=0, nodes=nodes, planner="round_robin") for nodes in (2, 3, 4, 5)]
    for number in (1, 2, 3, 4):
        for nodes in (2, 3, 4, 5):
            found += [Case(number=number, nodes=nodes, planner=planner) for planner in PATTERNS]
    for number in (2, 3, 4):
        for planner in PATTERNS:
            found.append(Case(number=number, nodes=3, planner=planner, policy="degradation"))
        found += [Case(number=number, nodes=3, planner=planner) for planner in ("resilient", "llf")]
    found.append(Case(number=2, nodes=3, planner="grouping", move_every=20))
    return found


def run(settings: Settings) -> Result:
    """Everything, and a line for each case in the notes."""
    rounds = settings.rounds(5 if settings.full else 1)
    wanted = cases(settings.full)
    settings.step(f"{len(wanted)} cases, {rounds} rounds")
    counted = FULL_COUNTED if settings.full else COUNTED
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        found = ours(
            MODULE,
            "engine",
            patience_s=6 * 3600.0,
            folder=folder,
            wanted=[asdict(case) for case in wanted],
            rounds=rounds,
            counted=counted,
        )
    return summary(found, wanted, rounds)


def summary(found: Mapping[str, Any], wanted: Sequence[Case], rounds: int) -> Result:
    """The issue's promises as figures with limits, medians of pairs of the same round."""
    runs: Mapping[str, Sequence[Mapping[str, Any]]] = found["runs"]

    def rates(case: Case) -> list[float]:
        return [each["throughput"] for each in runs[case.name]]

    def ratio(one: Case, other: Case) -> float:
        return median(a / b for a, b in zip(rates(one), rates(other), strict=True))

    have = set(wanted)
    figures = []
    for case in wanted:
        alone = Case(number=case.number, nodes=1, planner="round_robin")
        if case.number < 2 and case.nodes > 1 and alone in have and case.planner == "round_robin":
            figures.append(_lost(f"plan {case.number}: one node over {case.nodes}", ratio(alone, case)))
        rival = Case(number=case.number, nodes=case.nodes, planner="grouping")
        if case.planner == "round_robin" and case.policy is None and case.number > 1 and rival in have:
            label = f"plan {case.number} on {case.nodes}: round_robin over grouping"
            figures.append(Figure(label=label, value=ratio(case, rival), unit="share", limit=1.0))
        if case.planner == "round_robin" and case.policy is not None:
            figures += _regained(case, wanted, rates)
        if case.move_every is not None and rival in have:
            label = "throughput without moves over that with a join moved"
            figures.append(Figure(label=label, value=ratio(rival, case), unit="share", limit=1 + MOVE_COST))
    pair = next(
        (Case(number=n, nodes=k, planner="grouping"), Case(number=n, nodes=k, planner="round_robin"))
        for n, k in ((2, 3), (2, 2))
        if Case(number=n, nodes=k, planner="grouping") in have
    )
    mine, base = (rates(case) for case in pair)
    return Result(
        name=NAME,
        ours=Figure(label=f"throughput of {pair[0].name}", value=median(mine), unit="rows/s"),
        baseline=Figure(label=f"of {pair[1].name}", value=median(base), unit="rows/s"),
        ratio=median(mine) / median(base),
        spread=spread_of([a / b for a, b in zip(mine, base, strict=True)]),
        figures=figures,
        notes=[*_notes(found, wanted, rounds), *_predicted(found, wanted)],
        details={"runs": runs},
    )


def _lost(label: str, value: float) -> Figure:
    return Figure(label=label, value=value, unit="share", limit=1.0 + NOTHING_LOST)


def _regained(case: Case, wanted: Sequence[Case], rates: Any) -> list[Figure]:
    """How much of what separates round robin from the best is still missing with the policy."""
    plain = Case(number=case.number, nodes=case.nodes, planner="round_robin")
    peers = [c for c in wanted if (c.number, c.nodes, c.move_every) == (case.number, case.nodes, None)]
    if plain not in peers:
        return []
    missing = []
    for index, start in enumerate(rates(plain)):
        best = max(rates(peer)[index] for peer in peers)
        missing.append((best - rates(case)[index]) / (best - start) if best > start else 0.0)
    label = f"plan {case.number} on {case.nodes}: share not regained by {case.policy}"
    return [Figure(label=label, value=median(missing), unit="share", limit=REGAINED)]


def _notes(found: Mapping[str, Any], wanted: Sequence[Case], rounds: int) -> list[str]:
    caps = f"capped at {CAP} core each" if found["capped"] else "NOT capped: this machine does not allow it"
    lines = [f"workers {caps}; medians of {rounds}"]
    for case in wanted:
        own = found["runs"][case.name]
        lines.append(
            f"{case.name}: {median(each['throughput'] for each in own):.0f} rows/s, "
            f"{own[0]['connections']} connections at first, {own[-1]['connections_at_the_end']} at the end, "
            f"{median(each['moves'] for each in own):.0f} moves, fullest node "
            f"{median(step['fullest_s'] for each in own for step in each['steps']):.2f} CPU s a batch"
        )
    return lines


def _predicted(found: Mapping[str, Any], wanted: Sequence[Case]) -> list[str]:
    """Equations 3.1 to 3.3: unit costs fitted to one plan on one node, tried on the others."""
    seen: dict[int, dict[str, dict[str, tuple[Work, float]]]] = {}
    for case in wanted:
        if case.nodes == 1 and not case.copies:
            run = found["runs"][case.name][0]
            seen[case.number] = _observed(case, run["boxes"], len(run["steps"]))
    fit_on = 2 if 2 in seen else max(seen, default=0)
    lines = []
    for number, kinds in seen.items():
        for kind, own in kinds.items():
            if number == fit_on or kind not in seen[fit_on]:
                continue
            errors = relative_errors(own, fitted(seen[fit_on][kind].values()))
            lines.append(
                f"cost of plan {number}'s {kind} operators, predicted from plan {fit_on}: "
                f"median error {median(errors.values()):.0%}, largest {max(errors.values()):.0%}"
            )
    return lines


def _observed(
    case: Case, boxes: Mapping[str, Sequence[float]], steps: int
) -> dict[str, dict[str, tuple[Work, float]]]:
    """What each operator did and cost, by kind. A join looks at its state in every batch."""
    expected, found = expected_work(case.network), dict[str, dict[str, tuple[Work, float]]]()
    for name, (rows_in, rows_out, cpu_s) in boxes.items():
        join = case.network.operators[name].is_join
        work = Work(
            rows_in=rows_in,
            rows_out=rows_out,
            evaluated=rows_out if join else rows_in,
            state=expected[name].state * steps,
        )
        found.setdefault("join" if join else "stateless", {})[name] = (work, cpu_s)
    return found


if __name__ == "__main__":
    answer({"engine": run_cases})
