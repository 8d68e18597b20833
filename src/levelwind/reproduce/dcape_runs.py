"""Runs of the query plans on a loopback cluster: what benchmark and figures of seed 003 share.

Up to five workers on this machine, each capped at a part of a core. Plans run as fast as they can with
``hops: next``: a batch takes as long as its fullest node. Throughput is rows that the outputs got per second
of wall time, once warm; caps come into force shortly before, so that nobody waits for starting and compiling
at a third of a core. Cases take turns, round after round, so that whatever else the machine does falls on all
of them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Any

import numpy as np

from levelwind.balance import Proposal, Situation, make_policy
from levelwind.frontend import parse_network
from levelwind.loads.arrays import Floats
from levelwind.model import Cluster, Network
from levelwind.planning import measure, plan
from levelwind.reproduce.query_plans import query_plan, side_by_side
from levelwind.runtime.coordinator import Step
from levelwind.runtime.measured import WARM_UP_STEPS
from levelwind.runtime.messages import NodeReport
from levelwind.runtime.rundir import Command

CAP = 0.35
# Seconds of stream in a batch, and rows per second of each stream: such that a batch takes one capped node
# five to eight seconds. A batch costs every node 0.1 to 0.16 CPU seconds whatever is in it, a third to half a
# second under the cap: work must be the larger part of it on five nodes, too.
BATCH_S = 4.0
RATES = {0: 450_000.0, 1: 45_000.0, 2: 12_000.0, 3: 9_000.0, 4: 4_500.0}
# A policy is asked after every batch, and goes by the last ten. It is heeded once rows had come through to
# the last operators in all of these, or it would go by loads that nobody has for long. A few more are for
# its moves.
PERIOD_S, SAMPLES, MOVING = 0.05, 10, 6
# Batches in which code is compiled and caches fill, whatever the plan; the last of those that are left out
# runs under the cap. With these, a first batch that counts takes at most some 15% more than the others, of
# a dozen. The first run of a cluster finds nothing warm.
SETTLE, CAPPED_SETTLE, COLD = 2, 1, 10
# Batches that no run reaches, and those after a move that are slower for it.
LONGEST, DISTURBED = 1000, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run: a plan, how many nodes, who places, who moves, and every how many batches a join is moved.

    ``window_s`` is that of the joins, ``copies`` (in the place of a plan) a number of one-operator plans side
    by side, ``requests`` the messages that the run is sent per second and need not heed. ``counted`` is a
    number of batches of its own, ``rows`` the share of the usual rows per second that streams have.
    ``apart`` gives the last join a node for itself, and leaves one like it empty: wherever of the two it
    stands, the plan is as good, so that what moves cost is not mixed with what places are worth.
    """

    number: int
    nodes: int
    planner: str
    policy: str | None = None
    move_every: int | None = None
    window_s: float = 10.0
    copies: int = 0
    requests: float = 0.0
    counted: int | None = None
    rows: float = 1.0
    apart: bool = False

    @property
    def name(self) -> str:
        """As it stands in the table."""
        moved = "" if self.move_every is None else f", a join moved every {self.move_every} batches"
        policy = "" if self.policy is None else f" + {self.policy}"
        what = f"plan {self.number}" if not self.copies else f"{self.copies} plans of one operator"
        window = "" if self.window_s == 10.0 else f", windows of {self.window_s:g} s"
        asked = f", {self.requests:g} requests a second" if self.requests else ""
        fewer = "" if self.rows == 1.0 else f", {self.rows:.3g} of the rows"
        apart = ", the last join apart" if self.apart else ""
        return f"{what} on {self.nodes}: {self.planner}{policy}{apart}{moved}{window}{asked}{fewer}"

    @property
    def network(self) -> Network:
        """What runs."""
        rate = RATES[self.number] * self.rows
        if self.copies:
            return parse_network(side_by_side(self.copies, rate / self.copies, batch_s=BATCH_S)).network
        return parse_network(
            query_plan(self.number, rate=rate, window_s=self.window_s, batch_s=BATCH_S)
        ).network

    def placement(self, nodes: Cluster) -> Mapping[str, str]:
        """Where operators stand at first. Planners that go by series see ten equal samples of every rate."""
        network = self.network
        streams = {
            name: replace(stream, rate=(stream.rate or ()) * 10) for name, stream in network.streams.items()
        }
        steady = replace(network, streams=streams)
        if not self.apart:
            return plan(steady, nodes, self.planner).placement
        _, home, *others = nodes.nodes
        rest = plan(steady, replace(nodes, nodes=tuple(others)), self.planner).placement
        return {**rest, **dict.fromkeys(last_join(network), home.name)}

    def settle(self, placement: Mapping[str, str]) -> int:
        """Batches that are left out: what comes after them is the same whatever the plan. O(operators).

        A join's output is steady a window after its inputs are, and with ``hops: next`` a row takes a batch
        for every hop.
        """
        network, steady = self.network, dict.fromkeys(self.network.streams, 0.0)
        for name in network.order:
            operator = network.operators[name]
            steady[name] = max(
                steady[port.source] + (placement.get(port.source, placement[name]) != placement[name])
                for port in operator.inputs
            ) + (self.window_s / BATCH_S if operator.is_join else 0.0)
        return SETTLE + ceil(max(steady.values())) + (SAMPLES + MOVING if self.policy else 0)


def run_due(
    folder: str,
    due: Sequence[tuple[int, Case]],
    keep: Callable[[int, Case, dict[str, Any]], None],
    counted: int,
    least_s: float,
    *,
    cap: float | None = CAP,
    most_s: float | None = None,
) -> None:
    """Run cases one after the other on one cluster; ``keep`` gets the round, the case and what came out."""
    # Only here: to list figures nobody waits for Spark.
    from levelwind.spark.session import start_session
    from levelwind.testing.loopback import LoopbackCluster

    began = time.perf_counter()
    with LoopbackCluster(workers=max(case.nodes for _, case in due)) as cluster:
        session = start_session(cluster.master, cluster.configuration, log=Path(folder, "spark.log"))
        for place, (number, case) in enumerate(due):
            if most_s is not None and time.perf_counter() - began > most_s:
                break
            nodes = cluster.nodes(cap or 1.0, count=case.nodes)
            at, started = Path(folder, str(place)), time.perf_counter()
            cold = COLD if place == 0 else 0
            run = run_case(case, nodes, session, at, counted, least_s, lambda: cluster.cap(cap), cold)
            run |= {"capped": cluster.capped, "seconds": time.perf_counter() - started}
            cluster.cap(None)
            keep(number, case, run)
            # Checkpoints of a hundred runs would fill a disk.
            shutil.rmtree(at, ignore_errors=True)


def run_case(
    case: Case,
    nodes: Cluster,
    session: Any,
    folder: Path,
    counted: int,
    least_s: float,
    put_caps_on: Callable[[], object],
    cold: int = 0,
) -> dict[str, Any]:
    """Run a case for so many batches and seconds once warm: wall seconds and output rows of each batch.

    ``cold`` batches more than the case needs are left out.
    """
    from levelwind.spark.api import prepare

    counted = counted if case.counted is None else case.counted
    network = case.network
    placement = case.placement(nodes)
    settle = case.settle(placement) + cold
    roots = {output.input.source for output in network.outputs.values()}
    steps: list[dict[str, Any]] = []
    boxes_seen: dict[str, list[float]] = {}
    moves = 0
    asking = Event()

    def note(step: Step) -> None:
        nonlocal moves
        if step.commit.closed:
            return
        boxes = step.program.layout.boxes
        rows = sum(box.rows_out for _, box in step.boxes if boxes[box.box].name in roots)
        moves += len(step.commit.moves)
        spent = _per_node(step, lambda report: report.cpu_s)
        held = _per_node(step, lambda report: sum(box.state_bytes for box in report.boxes))
        steps.append(
            {
                "wall_s": step.wall_s,
                "rows": rows,
                "moves": len(step.commit.moves),
                "fullest_state": max(held),
                "sent": sum(report.sent_bytes for report in step.reports),
                "fullest_s": max(spent),
                "working_s": sum(box.cpu_s for _, box in step.boxes),
                "cpu_s": sum(spent),
                "manager": begun.status.get("manager", {}),
            }
        )
        if len(steps) == settle - CAPPED_SETTLE:
            put_caps_on()
        for _, box in step.boxes if len(steps) > settle else ():
            own = boxes_seen.setdefault(boxes[box.box].name, [0.0, 0.0, 0.0])
            for place, figure in enumerate((box.rows_in, box.rows_out, box.cpu_s)):
                own[place] += figure
        lasted = sum(one["wall_s"] for one in steps[settle:])
        if len(steps) >= settle + counted and lasted >= least_s:
            asking.set()
            begun.directory.ask(Command("stop"))  # read before the next batch begins

    policy: Any = None if case.policy is None else _Later(case.policy, settle - MOVING)
    begun = prepare(
        network,
        nodes,
        placement=placement,
        spark=session,
        run_dir=folder,
        reuse=False,  # as many operators run as the case says
        on_step=note,
        policy=policy,
        period_s=PERIOD_S,
        moves=_script(case, network, nodes, placement, settle),
    )
    pestering = Thread(target=_pester, args=(begun, network, case.requests, asking), daemon=True)
    try:
        begun.start()
        pestering.start()
        begun.wait()
        last = begun.placement
    finally:
        asking.set()
        begun.close()
    kept = steps[settle:]
    return {
        "throughput": sum(step["rows"] for step in kept) / sum(step["wall_s"] for step in kept),
        "steps": kept,
        "moves": moves,
        "connections": measure(network, nodes, placement).cut_streams,
        "connections_at_the_end": measure(network, nodes, last).cut_streams,
        "boxes": boxes_seen,
    }


class _Later:
    """A policy that is heeded only after so many batches of a run; until then it proposes nothing."""

    def __init__(self, name: str, batches: int) -> None:
        self._policy: Any = make_policy(name, {"cost": "output_rate"} if name == "degradation" else {})
        self._left = batches - SAMPLES - WARM_UP_STEPS

    @property
    def name(self) -> str:
        """The policy's."""
        return self._policy.name

    @property
    def statistics(self) -> frozenset[str]:
        """What the policy reads."""
        return self._policy.statistics

    def costs(self, situation: Situation) -> Floats:
        """As the policy has them."""
        return self._policy.costs(situation)

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """What the policy proposes, once it is time."""
        self._left -= 1
        return () if self._left >= 0 else self._policy.propose(situation, rng=rng)


def _pester(begun: Any, network: Network, per_s: float, enough: Event) -> None:
    """Ask for moves to where an operator stands already, so many a second, until it is enough."""
    name = next(iter(network.operators))
    while per_s and not enough.wait(1.0 / per_s):
        begun.directory.ask(Command("move", operators=(name,), target=begun.placement[name], cause="asked"))


def _per_node(step: Step, what: Callable[[NodeReport], float]) -> list[float]:
    """A figure of each node's reports in a step, added up: CPU seconds, bytes of state."""
    found: dict[int, float] = {}
    for report in step.reports:
        found[report.node] = found.get(report.node, 0.0) + what(report)
    return list(found.values())


def last_join(network: Network) -> tuple[str, ...]:
    """The last join, and whatever reads what it puts out. O(operators)."""
    place = max(k for k, name in enumerate(network.order) if network.operators[name].is_join)
    found = [network.order[place]]
    for name in network.order[place + 1 :]:
        if any(port.source in found for port in network.operators[name].inputs):
            found.append(name)
    return tuple(found)


def _script(
    case: Case, network: Network, nodes: Cluster, placement: Mapping[str, str], begin: int
) -> list[Any]:
    """The last join with its readers to another node and back, for longer than any run lasts."""
    from levelwind.spark.live import ScriptedMove

    if case.move_every is None:
        return []
    moved = last_join(network)
    home = placement[moved[0]]
    away = next(name for name in nodes.names if name != home)
    return [
        ScriptedMove(step=step, operators=moved, target=away if k % 2 == 0 else home)
        for k, step in enumerate(range(begin, begin + LONGEST, case.move_every))
    ]


def has_moved(runs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether something was moved in every run, and batches came after."""
    return all(any(step["moves"] for step in run["steps"][:-DISTURBED]) for run in runs)


def added_s(runs: Sequence[Mapping[str, Any]]) -> float:
    """Seconds that a move adds, in the mean: the batches at a move, over those later under the same plan.

    Examples
    --------
    >>> steps = [{"wall_s": s, "moves": m} for s, m in ((2.5, 1), (2.1, 0), (2.0, 0), (2.0, 0))]
    >>> round(added_s([{"steps": steps}]), 3)
    0.6
    """
    added = []
    for run in runs:
        steps = run["steps"]
        starts = [place for place, step in enumerate(steps) if step["moves"]]
        for start, end in pairwise([*starts, len(steps)]):
            walls = [step["wall_s"] for step in steps[start:end]]
            if len(walls) > DISTURBED:
                usual = median(walls[DISTURBED:])
                added.append(sum(walls[:DISTURBED]) - DISTURBED * usual)
    return sum(added) / len(added) if added else 0.0
