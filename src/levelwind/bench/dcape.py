"""The query plans of seed 003 on a real cluster: throughput by number of nodes, pattern and policy.

Up to five workers on this machine, each capped at a part of a core. The four plans of `query_plans` run as
fast as they can with ``hops: next``: a batch takes as long as its fullest node. Throughput is rows that the
outputs got per second of wall time, once warm. Contenders take turns, round after round, so that whatever
else the machine does falls on all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from levelwind.balance import make_policy
from levelwind.bench.query_plans import query_plan
from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.bench.runtime_worlds import answer, network_of, ours
from levelwind.model import Cluster, Network, Node
from levelwind.planning import measure, plan
from levelwind.runtime.coordinator import Step
from levelwind.runtime.rundir import Command
from levelwind.spark.api import ScriptedMove, prepare
from levelwind.spark.session import start_session
from levelwind.testing.loopback import LoopbackCluster

NAME = "dcape"
MODULE = "levelwind.bench.dcape"
WORKERS, CAP = 5, 0.35
# Rows per second of each stream: such that one node has some seconds of work with a batch.
RATES = {0: 40_000.0, 1: 4_000.0, 2: 600.0, 3: 300.0, 4: 150.0}
PATTERNS = ("round_robin", "grouping")
# A policy is asked after every batch, once it has seen ten; what it does shows in the batches after that.
PERIOD_S, SETTLE = 0.05, 14
COUNTED, FULL_COUNTED = 6, 30
NOTHING_LOST, REGAINED, MOVE_COST = 0.10, 0.5, 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run: a plan, how many nodes, who places, who moves, and every how many batches a join is moved."""

    number: int
    nodes: int
    planner: str
    policy: str | None = None
    move_every: int | None = None

    @property
    def name(self) -> str:
        """As it stands in the table."""
        moved = "" if self.move_every is None else f", a join moved every {self.move_every} batches"
        policy = "" if self.policy is None else f" + {self.policy}"
        return f"plan {self.number} on {self.nodes}: {self.planner}{policy}{moved}"


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


def engine_side(
    folder: str, wanted: Sequence[Mapping[str, Any]], rounds: int, counted: int, cap: float | None = CAP
) -> dict[str, Any]:
    """All cases on one cluster, in turns."""
    every = [Case(**each) for each in wanted]
    found: dict[str, list[dict[str, Any]]] = {case.name: [] for case in every}
    capped = True
    with LoopbackCluster(workers=max(case.nodes for case in every)) as cluster:
        session = start_session(cluster.master, cluster.configuration, log=Path(folder, "spark.log"))
        for number in range(rounds):
            for place, case in enumerate(every if number % 2 == 0 else every[::-1]):
                nodes = Cluster(
                    nodes=tuple(
                        Node(name=f"n{k + 1}", cpu=cap or 1.0, host=host)
                        for k, host in enumerate(cluster.hosts[: case.nodes])
                    )
                )
                cluster.cap(cap)
                at = Path(folder, f"{number}-{place}")
                found[case.name].append(run_case(case, nodes, session, at, counted))
                capped = capped and cluster.capped
                cluster.cap(None)
    return {"runs": found, "capped": capped}


def run_case(case: Case, nodes: Cluster, session: Any, folder: Path, counted: int) -> dict[str, Any]:
    """Run a case until enough batches were counted: wall seconds and output rows of each of them."""
    network = network_of(query_plan(case.number, rate=RATES[case.number]))
    placement = plan(network, nodes, case.planner).placement
    roots = {output.input.source for output in network.outputs.values()}
    steps: list[dict[str, Any]] = []
    moves = 0

    def note(step: Step) -> None:
        nonlocal moves
        if step.commit.closed:
            return
        boxes = step.program.layout.boxes
        rows = sum(box.rows_out for _, box in step.boxes if boxes[box.box].name in roots)
        moves += len(step.commit.moves)
        steps.append(
            {
                "wall_s": step.wall_s,
                "rows": rows,
                "memory": sum(report.memory_bytes for report in step.reports),
                "sent": sum(report.sent_bytes for report in step.reports),
                "fullest_s": max(_spent(step)),
            }
        )
        if len(steps) == SETTLE + counted:
            begun.directory.ask(Command("stop"))  # read before the next batch begins

    policy = None if case.policy is None else make_policy(case.policy, {"cost": "output_rate"})
    begun = prepare(
        network,
        nodes,
        placement=placement,
        spark=session,
        run_dir=folder,
        on_step=note,
        policy=policy,
        period_s=PERIOD_S,
        moves=_script(case, network, nodes, placement, SETTLE + counted),
    )
    try:
        begun.start().wait()
        last = begun.placement
        footprint = begun.status.get("manager", {})
    finally:
        begun.close()
    kept = steps[SETTLE:]
    return {
        "throughput": sum(step["rows"] for step in kept) / sum(step["wall_s"] for step in kept),
        "steps": kept,
        "moves": moves,
        "connections": int(measure(network, nodes, placement).cut_streams),
        "connections_at_the_end": int(measure(network, nodes, last).cut_streams),
        "footprint": footprint,
    }


def _spent(step: Step) -> list[float]:
    """CPU seconds of each node in a step."""
    spent: dict[int, float] = {}
    for report in step.reports:
        spent[report.node] = spent.get(report.node, 0.0) + report.cpu_s
    return list(spent.values())


def _script(
    case: Case, network: Network, nodes: Cluster, placement: Mapping[str, str], steps: int
) -> list[ScriptedMove]:
    """The last join to another node and back, every so many batches."""
    if case.move_every is None:
        return []
    join = next(name for name in reversed(network.order) if network.operators[name].kind == "join")
    home = placement[join]
    away = next(name for name in nodes.names if name != home)
    return [
        ScriptedMove(step=step, operators=(join,), target=away if k % 2 == 0 else home)
        for k, step in enumerate(range(SETTLE, steps, case.move_every))
    ]


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
            wanted=[_as_dict(case) for case in wanted],
            rounds=rounds,
            counted=counted,
        )
    return summary(found, wanted, rounds)


def _as_dict(case: Case) -> dict[str, Any]:
    return {
        "number": case.number,
        "nodes": case.nodes,
        "planner": case.planner,
        "policy": case.policy,
        "move_every": case.move_every,
    }


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
        notes=_notes(found, wanted, rounds),
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


if __name__ == "__main__":
    answer({"engine": engine_side})
