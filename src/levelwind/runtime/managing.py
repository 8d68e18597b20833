"""The manager of a run: what steps report goes in, what it asks for comes out as moves for the next step.

Pure but for the log: no clock, no files, no Spark. Time is that of the steps.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from time import thread_time
from typing import Any

import numpy as np

from levelwind.balance.costs.protocol import (
    LOAD,
    RECEIVING,
    ROWS_IN,
    ROWS_OUT,
    SENDING,
    SENT,
    STATE_BYTES,
    STATISTICS,
)
from levelwind.balance.facts import make_facts
from levelwind.balance.protocol import CostPolicy, Policy, Situation
from levelwind.control import Manager, TopManager
from levelwind.control.advice import blamed
from levelwind.control.events import (
    Event,
    Heartbeat,
    MoveDone,
    MoveFailed,
    NodeJoined,
    NodeLost,
    OperatorMoved,
    PlanProposed,
    QueryAdded,
    QueryRemoved,
    StatisticsReported,
)
from levelwind.control.footprint import Meter
from levelwind.control.gathering import gathered
from levelwind.control.instructions import Alarm, AskAgain, Drop, Instruction, Place, Shed
from levelwind.control.instructions import Move as Asked
from levelwind.control.journal import REJECTED
from levelwind.control.plans import ATTEMPTS
from levelwind.model import Cluster, Model, Network, Operator, Port, Stream
from levelwind.rewrite import split
from levelwind.runtime.coordinator import Move, Step
from levelwind.runtime.window import LoadWindow

logger = logging.getLogger(__name__)
# Alarms that the status shows.
KEPT_ALARMS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Balancing:
    """How a run is kept in balance.

    Parameters
    ----------
    policy
        Who proposes moves; None: nothing moves but what must.
    period_s, samples
        Length of a sample, after each of which the policy is asked; samples that it looks back on. It is
        not asked before there are as many: on a few of them it would move for noise.
    moved_load_budget
        Most mean load (CPU seconds per second) moved per period; None: any.
    groups
        Property of nodes: those with the same value form a group with a manager of its own, and a top manager
        allots queries to groups; None: one manager for all.
    """

    policy: Policy | None = None
    period_s: float = 1.0
    samples: int = 10
    moved_load_budget: float | None = None
    groups: str | None = None


def warm_up(policy: Policy, network: Network, cluster: Cluster) -> None:
    """Have a policy decide on next to nothing, so that it is compiled before a batch waits for it.

    Two operators, one after the other, on the first of two nodes, with the properties of the first of the
    run's own: a cost model of somebody else's may read them, and finds here what it finds in the run.
    """
    nodes = (cluster.nodes * 2)[:2]
    stated = ([each.properties for each in network.operators.values()] * 2)[:2] or [{}, {}]
    chain = {
        name: Operator(name=name, spec=Model(), inputs=(Port(source=reads),), properties=own)
        for name, reads, own in zip(("o1", "o2"), ("I", "o1"), stated, strict=True)
    }
    situation = Situation(
        series=nodes[0].cpu * np.array([[1.0, 1.0], [0.0, 1.0]]),
        node=np.array([0, 0]),
        cpu=np.array([node.cpu for node in nodes], dtype=np.float64),
        movable=np.ones(2, dtype=bool),
        unit=np.arange(2),
        state_bytes=np.zeros(2),
        nodes=nodes,
        facts=make_facts(Network(streams={"I": Stream(name="I")}, operators=chain)),
        seen={name: np.zeros(2) for name in STATISTICS if name not in (LOAD, STATE_BYTES)},
    )
    with blamed(policy):
        if isinstance(policy, CostPolicy):
            policy.costs(situation)
        policy.propose(situation, rng=np.random.default_rng(0))


class Steward:
    """Tells a manager what happens in a run, and keeps what it asks for until the next step.

    Before a step: `watch` the nodes, `change` the network, then `moves`; ``shares`` are the operators that
    are to take only a part of their rows. After it: `saw`.
    """

    def __init__(
        self,
        network: Network,
        cluster: Cluster,
        placement: Mapping[str, str],
        balancing: Balancing,
        *,
        seed: int = 0,
        cpu_clock: Callable[[], float] = thread_time,
    ) -> None:
        options: dict[str, Any] = {
            "policy": balancing.policy,
            "rng": np.random.default_rng(seed),
            "moved_load_budget": balancing.moved_load_budget,
        }
        self.manager: Manager | TopManager
        asked: tuple[Instruction, ...] = ()
        if balancing.groups is None:
            self.manager = Manager(network, cluster, placement, **options)
        else:
            # After a restart a query may stand in several groups: it is brought together by moves.
            whole = gathered(network, cluster, balancing.groups, placement)
            self.manager = TopManager(network, cluster, whole, groups=balancing.groups, **options)
            asked = self.manager.gather(placement)
        self._meter = Meter(self.manager, cpu_clock=cpu_clock)
        self.alarms: deque[str] = deque(maxlen=KEPT_ALARMS)
        self._nodes = {node.name: node for node in cluster.nodes}
        self._window = LoadWindow(period_s=balancing.period_s, samples=balancing.samples)
        self._missing: frozenset[str] = frozenset()
        self._lost: set[str] = set()
        self.shares: dict[str, float] = {}
        self._due: dict[str, Move] = {}
        self._given: set[str] = set()
        self._began: float | None = None
        self._now = 0.0
        for instruction in asked:
            self._heed(instruction)

    @property
    def footprint(self) -> dict[str, float | None]:
        """What the manager spends per node and second: CPU, bytes in and out; and its memory per node.

        CPU is that of making reports, too, but not of adding up what each step measured.
        """
        return self._meter.footprint(len(self._nodes)).as_dict()

    def plan(
        self,
        ask: Callable[[tuple[str, ...], int], Mapping[str, str]],
        reason: str,
        *,
        lock: AbstractContextManager[Any] | None = None,
    ) -> dict[str, str]:
        """Have a plan made and put into force; asked again for one that is not valid. Who moves where to.

        ``ask`` is given the nodes that can be used and the number of the attempt. It may take its time:
        ``lock``, if the steward is shared, is held only before and after, so steps go on meanwhile. A plan
        for a network or nodes that have changed since is made again; of the last attempt the manager says
        what is wrong with it.
        """
        lock = lock or nullcontext()
        usable: tuple[str, ...] | None = None
        attempt = 1
        while True:
            with lock:
                network, nodes = self.manager.network, self.manager.nodes
            placement = ask(nodes if usable is None else usable, attempt)
            with lock:
                stale = self.manager.network is not network or self.manager.nodes != nodes
                if stale and attempt < ATTEMPTS:
                    logger.info("%s: network or nodes have changed since; planned again", reason)
                    usable, attempt = None, attempt + 1
                    continue
                found = self._propose(placement, reason, attempt)
            if not isinstance(found, AskAgain):
                return found
            usable, attempt = found.nodes, found.attempt

    def _propose(self, placement: Mapping[str, str], reason: str, attempt: int) -> dict[str, str] | AskAgain:
        before = dict(self._due)
        proposed = PlanProposed(at_s=self._now, placement=placement, reason=reason, attempt=attempt)
        for instruction in self._meter.handle(proposed):
            if isinstance(instruction, AskAgain):
                return instruction
            self._heed(instruction)
        return {name: move.target for name, move in self._due.items() if before.get(name) is not move}

    def moves(self) -> list[Move]:
        """What is to move before the next step; asked for once."""
        due, self._due = list(self._due.values()), {}
        self._given = {move.operator for move in due}
        return due

    def decisions(self) -> list[dict[str, Any]]:
        """What the manager has decided since this was last asked for, and why.

        Proposals that it rejects are told once per reason, with their number and the first of them: a policy
        in need proposes the same again every period.
        """
        found: list[dict[str, Any]] = []
        rejected: dict[str, dict[str, Any]] = {}
        for record in self.manager.journal.take():
            if record.what != REJECTED:
                found.append(asdict(record))
            elif record.reason in rejected:
                rejected[record.reason]["proposals"] += 1
            else:
                rejected[record.reason] = {**asdict(record), "proposals": 1}
        return [*found, *rejected.values()]

    def saw(self, step: Step) -> None:
        """A step is done: report the moves it made, and at the end of a period the loads."""
        if self._began is None:
            self._began = step.started
        self._now = step.started + step.wall_s - self._began
        self._report_moves(step.program.placement)
        if self._window.add(step) and self._window.is_full:
            self._tell(self._meter.making(lambda: self._statistics(step)))

    def _statistics(self, step: Step) -> StatisticsReported:
        """The loads, and of everything else only what the manager asks for."""
        layout, wanted = step.program.layout, self.manager.statistics
        reports = step.boxes if STATE_BYTES in wanted else ()
        seen = self._window.rows(layout) if wanted & {ROWS_IN, ROWS_OUT} else {}
        if wanted & {SENT, SENDING, RECEIVING}:
            seen |= self._window.sending(layout)
        return StatisticsReported(
            at_s=self._now,
            operators=tuple(box.name for box in layout.boxes),
            series=self._window.loads(layout),
            state_bytes={layout.boxes[report.box].name: report.state_bytes for _, report in reports},
            seen=seen,
            window_s=self._window.seconds,
        )

    def watch(self, missing: Collection[str]) -> None:
        """Say which nodes have no host now: lost if it is for the second time, else back if they were lost.

        A host that was away for a moment takes its node's work up again; moving all of it would cost more.
        Until it is back, or lost, the node counts as not ready and takes nothing.
        """
        for node in self._nodes:
            if node in missing and node in self._missing and node not in self._lost:
                self._lost.add(node)
                self._tell(NodeLost(at_s=self._now, node=node))
            elif node not in missing and node in self._lost:
                self._lost.remove(node)
                self._tell(NodeJoined(at_s=self._now, node=self._nodes[node]))
            elif (node in missing) != (node in self._missing) and node not in self._lost:
                self._tell(Heartbeat(at_s=self._now, node=node, ready=node not in missing))
        self._missing = frozenset(missing)

    def check(self, network: Network) -> None:
        """Find fault with a network before it is changed to: what is wrong with it is an input error."""
        self.manager.check(network)

    def change(self, network: Network, placement: Mapping[str, str]) -> dict[str, str]:
        """Another network runs from the next step on: where each of its operators stands then.

        What stays is left where ``placement`` has it, what is new goes where the manager says. If the manager
        refuses the network, nothing has changed.
        """
        known = {operator.name for operator in split(self.manager.network).operators}
        added = any(name not in self.manager.network.operators for name in network.operators)
        told = QueryAdded if added else QueryRemoved
        self._tell(told(at_s=self._now, network=network))
        standing, anywhere = self.manager.placement, next(iter(self._nodes))
        names = [operator.name for operator in split(network).operators]
        for name in names:
            if name not in known:
                # It begins where it is placed, or goes on from another's place: nothing to move.
                self._due.pop(name, None)
        return {name: placement.get(name, standing.get(name, anywhere)) for name in names}

    def _report_moves(self, placement: Mapping[str, str]) -> None:
        for operator, move in self.manager.under_way.items():
            if operator not in self._given:
                continue
            if placement[operator] == move.target:
                self._tell(MoveDone(at_s=self._now, operator=operator))
            else:
                reason = f"it was moved to {placement[operator]} instead"
                self._tell(MoveFailed(at_s=self._now, operator=operator, reason=reason))
        self._given = set()
        for operator, node in self.manager.placement.items():
            if placement[operator] != node and operator not in self._due:
                self._tell(OperatorMoved(at_s=self._now, operator=operator, node=placement[operator]))

    def _tell(self, event: Event) -> None:
        for instruction in self._meter.handle(event):
            self._heed(instruction)

    def _heed(self, instruction: Instruction) -> None:
        if isinstance(instruction, Alarm):
            logger.warning("%s", instruction.text)
            self.alarms.append(instruction.text)
        elif isinstance(instruction, Shed):
            self.shares.pop(instruction.operator, None)
            if instruction.share < 1.0:
                self.shares[instruction.operator] = instruction.share
        elif isinstance(instruction, Drop):
            self._due.pop(instruction.operator, None)
        elif isinstance(instruction, Place | Asked):
            target = instruction.node if isinstance(instruction, Place) else instruction.target
            self._due[instruction.operator] = Move(
                operator=instruction.operator, target=target, cause=instruction.reason
            )
