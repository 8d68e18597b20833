"""The manager: told what happened, it answers with what is to be done, and writes down why.

It does no I/O and has no clock, so the simulator and the Spark runtime drive the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from levelwind.balance.costs.protocol import LOAD
from levelwind.balance.protocol import CostPolicy, Policy, Proposal, Situation
from levelwind.control.distances import Distances
from levelwind.control.events import (
    Event,
    Heartbeat,
    LatencyMeasured,
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
from levelwind.control.instructions import Alarm, AskAgain, Drop, Instruction, Move, Place
from levelwind.control.journal import REJECTED, Journal, Record
from levelwind.control.judging import ROUNDING, Court, Limits
from levelwind.control.liveness import Pulse
from levelwind.control.plans import ATTEMPTS, plan_problems
from levelwind.control.references import References
from levelwind.control.reports import Reports
from levelwind.control.roster import make_roster
from levelwind.errors import InputError, did_you_mean, input_error
from levelwind.loads.arrays import Floats
from levelwind.model import Cluster, Network, Node

JOURNAL = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """A move that was asked for and not reported yet. ``tries`` counts it and those before it that failed."""

    source: str
    target: str
    tries: int = 1


class Manager:
    """Keeps every operator on exactly one live node, and moves operators as its policy proposes.

    Policies propose; the manager accepts or rejects. It rejects a move of an operator that is immovable,
    pinned, already under way or too large in state; one that would part operators of one table; one beyond
    the budget of moved load or the number of moves at once; and, if part of an exchange was rejected, any
    other part that would raise the larger load of its two nodes. Every decision is in the `journal`, with
    its reason.

    Parameters
    ----------
    network, cluster, placement
        What runs, on what, and where each physical operator stands now. Pins and tables must be kept.
    policy
        Asked at each report of statistics; None: nothing moves but what must.
    rng
        Chance for the policy.
    moved_load_budget
        Most mean load (CPU seconds per second) that may be moved per report; None: any.
    most_moves
        Most moves under way at once; None: any number.
    most_state_bytes
        Operators with more state than this do not move for balance; None: any size.
    silent_after_s
        A node of which no `Heartbeat` came for longer is dropped as if it were lost; None: never. Seen when
        the next event comes, whatever it is.
    journal_size
        Number of records kept.

    Notes
    -----
    A report costs O(operators × samples) in compiled or NumPy code, plus the policy, plus O(proposals).
    """

    def __init__(
        self,
        network: Network,
        cluster: Cluster,
        placement: Mapping[str, str],
        *,
        policy: Policy | None,
        rng: np.random.Generator,
        moved_load_budget: float | None = None,
        most_moves: int | None = None,
        most_state_bytes: float | None = None,
        silent_after_s: float | None = None,
        journal_size: int = JOURNAL,
    ) -> None:
        self._policy, self._rng = policy, rng
        self._limits = Limits(moved_load=moved_load_budget, moves=most_moves, state_bytes=most_state_bytes)
        self._nodes: dict[str, Node] = {node.name: node for node in cluster.nodes}  # lost ones included
        self._cluster = cluster
        self._distances = Distances(cluster)
        self._live: list[str] = list(cluster.names)
        self._roster = make_roster(network, cluster)
        self._node: list[str | None] = self._checked(placement)
        self._load = np.full(len(self._roster.names), np.nan)
        self._under_way: dict[str, UnderWay] = {}
        self._reports = Reports(self._roster.names)
        self._overloaded = False
        self._pulse, self._references = Pulse(silent_after_s), References()
        self.journal = Journal(journal_size)
        self._arrange()

    @property
    def network(self) -> Network:
        """What runs, or will when what was asked for is done."""
        return self._roster.network

    @property
    def placement(self) -> dict[str, str]:
        """Node of each operator: where it stands, or will when its move is done; not of homeless ones."""
        placed = zip(self._roster.names, self._node, strict=True)
        return {name: node for name, node in placed if node is not None}

    @property
    def nodes(self) -> tuple[str, ...]:
        """Live nodes, in the order in which they came."""
        return tuple(self._live)

    @property
    def under_way(self) -> dict[str, UnderWay]:
        """Moves asked for and not reported yet, by operator."""
        return dict(self._under_way)

    @property
    def loads(self) -> dict[str, float]:
        """Relative mean load of each live node by the last report, moves under way counted as done."""
        return dict(zip(self._live, (self._level() / self._cpu).tolist(), strict=True))

    @property
    def statistics(self) -> frozenset[str]:
        """Names of the statistics that reports must bring in ``seen``; the load is in every report."""
        return self._policy.statistics - {LOAD} if isinstance(self._policy, CostPolicy) else frozenset()

    def handle(self, event: Event) -> tuple[Instruction, ...]:
        """Take an event in, and say what is to be done about it.

        Wrong names and malformed statistics are input errors and change nothing. What comes too late (a move
        of an operator that is gone) is written down and ignored. Before all else, nodes that have been silent
        for too long are dropped.
        """
        if isinstance(event, Heartbeat):
            self._demand_node(event.node)
            self._pulse.beat(event.node, event.at_s, ready=event.ready)
        return (*self._drop_silent(event.at_s), *self._heed(event))

    def _heed(self, event: Event) -> tuple[Instruction, ...]:
        if isinstance(event, StatisticsReported):
            return self._statistics(event)
        if isinstance(event, Heartbeat):
            back = event.node not in self._live
            return self._joined(NodeJoined(at_s=event.at_s, node=self._nodes[event.node])) if back else ()
        if isinstance(event, PlanProposed):
            return self._planned(event)
        if isinstance(event, MoveDone):
            return self._done(event)
        if isinstance(event, MoveFailed):
            return self._failed(event)
        if isinstance(event, OperatorMoved):
            return self._moved(event)
        if isinstance(event, NodeLost):
            return self._lost(event)
        if isinstance(event, NodeJoined):
            return self._joined(event)
        if isinstance(event, QueryAdded | QueryRemoved):
            return self._changed(event)
        if isinstance(event, LatencyMeasured):
            self._distances.measured(event)
            return ()
        rule = "must be an event of levelwind.control.events"
        raise input_error(rule, key="event", value=type(event).__name__)

    # Statistics and proposals

    def _statistics(self, event: StatisticsReported) -> tuple[Instruction, ...]:
        series = self._reports.series(event)
        self._load = series.mean(axis=1)
        alarms = self._overload(event.at_s)
        if self._policy is None or not self._live or not len(self._roster.names) or (self._index < 0).any():
            return alarms
        state_bytes = self._reports.state_bytes(event)
        movable = self._roster.movable.copy()
        if self._under_way:
            position = self._roster.position
            for operator in self._under_way:
                movable[list(self._roster.together(position[operator]))] = False
        situation = Situation(
            series=series,
            node=self._index.copy(),
            cpu=self._cpu,
            movable=movable,
            unit=self._roster.unit,
            state_bytes=state_bytes,
            around=self._distances.around(self._roster.network, [self._nodes[name] for name in self._live]),
            nodes=tuple(self._nodes[name] for name in self._live),
            facts=self._roster.facts if isinstance(self._policy, CostPolicy) else None,
            seen=self._reports.seen(event),
        )
        if isinstance(self._policy, CostPolicy):
            cost = self._policy.costs(situation)
            reference = self._references.seen(self._roster.names, self._index, self._live, cost)
            situation = replace(situation, reference=reference)
        proposed = self._policy.propose(situation, rng=self._rng)
        return alarms + (self._judge(event.at_s, proposed, state_bytes) if proposed else ())

    def _overload(self, at_s: float) -> tuple[Instruction, ...]:
        """An alarm when all nodes together cannot bear the load, once until it has passed."""
        total, capacity = float(self._load.sum()), float(self._cpu.sum())
        over = total > capacity * (1 + ROUNDING)
        new, self._overloaded = over and not self._overloaded, over
        if not new:
            return ()
        text = f"no plan keeps the nodes below overload: load {total:.3g} on CPUs of {capacity:.3g}"
        return (self._alarm(at_s, text),)

    def _judge(
        self, at_s: float, proposed: Iterable[Proposal], state_bytes: Floats
    ) -> tuple[Instruction, ...]:
        """Let the proposals be judged, carry out what is accepted, write down what is not."""
        court = Court(
            roster=self._roster,
            limits=self._limits,
            going={name: move.target for name, move in self._under_way.items()},
            nodes=tuple(self._live),
            index=self._index.copy(),
            load=self._load,
            cpu=self._cpu,
            state_bytes=state_bytes,
            unready={self._place[name] for name in self._pulse.unready if name in self._place},
        )
        accepted: list[Instruction] = []
        for verdict in court.judge(proposed, self._level()):
            for proposal in verdict.proposals:
                operator, target = proposal.operator, self._live[proposal.to]
                if verdict.against:
                    self._note(at_s, REJECTED, operator, self._node[operator], target, verdict.against)
                else:
                    accepted.append(self._move(at_s, operator, target, proposal.reason))
        return tuple(accepted)

    def _planned(self, event: PlanProposed) -> tuple[Instruction, ...]:
        """Check a plan for all operators; ask for another if it is not valid, else send what differs."""
        ready = [name for name in self._live if name not in self._pulse.unready]
        problems = plan_problems(
            self._roster, event.placement, known=self._nodes, live=self._live, ready=ready
        )
        if problems:
            texts = tuple(str(problem) for problem in problems)
            text = f"{event.reason} is not valid: {texts[0]}" + (
                f", and {len(texts) - 1} more" if texts[1:] else ""
            )
            self.journal.add(Record(at_s=event.at_s, what="rejected", reason=text))
            if event.attempt >= ATTEMPTS:
                return (self._alarm(event.at_s, f"{text}; asked {event.attempt} times"),)
            return (AskAgain(attempt=event.attempt + 1, nodes=tuple(ready), problems=texts),)
        differences: list[Instruction] = []
        for j, name in enumerate(self._roster.names):
            target = event.placement[name]
            if self._node[j] == target:
                continue
            if name in self._under_way:
                self._ignore(event.at_s, name, f"already on its way to {self._under_way[name].target}")
            elif self._node[j] is None:
                self._stand(j, target)
                self._note(event.at_s, "placed", j, None, target, event.reason)
                differences.append(Place(operator=name, node=target, reason=event.reason))
            else:
                differences.append(self._move(event.at_s, j, target, event.reason))
        return tuple(differences)

    # Moves

    def _move(self, at_s: float, operator: int, target: str, reason: str, tries: int = 1) -> Move:
        name, source = self._roster.names[operator], self._node[operator]
        assert source is not None
        self._under_way[name] = UnderWay(source=source, target=target, tries=tries)
        self._note(at_s, "accepted", operator, source, target, reason)
        self._stand(operator, target)
        return Move(operator=name, source=source, target=target, reason=reason)

    def _done(self, event: MoveDone) -> tuple[Instruction, ...]:
        move = self._under_way.pop(event.operator, None)
        if move is None:
            self._ignore(event.at_s, event.operator, "no move of it is under way")
        else:
            self._note(
                event.at_s, "done", self._roster.position[event.operator], move.source, move.target, "moved"
            )
        return ()

    def _failed(self, event: MoveFailed) -> tuple[Instruction, ...]:
        move = self._under_way.pop(event.operator, None)
        if move is None:
            self._ignore(event.at_s, event.operator, "no move of it is under way")
            return ()
        operator = self._roster.position[event.operator]
        self._note(event.at_s, "failed", operator, move.source, move.target, event.reason)
        self._stand(operator, move.source)
        others = [j for j in self._roster.together(operator) if self._node[j] != move.source]
        if not others:
            return ()
        # The rest of its table stands, or will stand, on the new node: it must follow, once more.
        if move.tries > 1:
            text = f"{event.operator} stands apart from its table: it could not be moved to {move.target}"
            return (self._alarm(event.at_s, text),)
        reason = "follows the other operators of its table, after a move that failed"
        return (self._move(event.at_s, operator, move.target, reason, tries=2),)

    def _moved(self, event: OperatorMoved) -> tuple[Instruction, ...]:
        self._demand_node(event.node)
        operator = self._roster.position.get(event.operator)
        if operator is None:
            self._ignore(event.at_s, event.operator, "there is no such operator")
            return ()
        self._under_way.pop(event.operator, None)
        self._note(event.at_s, "done", operator, self._node[operator], event.node, "moved by somebody else")
        if event.node in self._live:
            self._stand(operator, event.node)
            return ()
        self._node[operator] = None
        self._arrange()
        return self._house(event.at_s, [operator], f"{event.node} was lost")

    # Nodes

    def _drop_silent(self, at_s: float) -> tuple[Instruction, ...]:
        dropped: list[Instruction] = []
        for node in self._pulse.silent(self._live, at_s):
            self.journal.add(Record(at_s=at_s, what="alarm", reason=f"{node} does not answer"))
            dropped += self._lost(NodeLost(at_s=at_s, node=node))
        return tuple(dropped)

    def _lost(self, event: NodeLost) -> tuple[Instruction, ...]:
        self._demand_node(event.node)
        if event.node not in self._live:
            self._ignore(event.at_s, None, f"{event.node} was lost before")
            return ()
        self._live.remove(event.node)
        self._pulse.forget(event.node)
        homeless = []
        for j, name in enumerate(self._roster.names):
            move = self._under_way.get(name)
            if move is not None and event.node in (move.source, move.target):
                # What was on its way from or to the node stands nowhere either.
                del self._under_way[name]
                self._node[j] = move.target if move.target in self._live else None
                if self._node[j] is not None:
                    homeless.append(j)
            elif self._node[j] == event.node:
                self._node[j] = None
            if self._node[j] is None:
                homeless.append(j)
        self._arrange()
        return self._house(event.at_s, homeless, f"{event.node} was lost")

    def _joined(self, event: NodeJoined) -> tuple[Instruction, ...]:
        node = event.node
        if not node.cpu > 0:
            rule = "cpu is a positive number"
            raise input_error(rule, key=node.name, value=node.cpu)
        if node.name in self._live:
            self._ignore(event.at_s, None, f"{node.name} is there already; its CPU is {node.cpu:g} now")
        else:
            self._live.append(node.name)
        self._nodes[node.name] = node
        self._arrange()
        homeless = [j for j, home in enumerate(self._node) if home is None]
        placed = self._house(event.at_s, homeless, f"{node.name} joined") if homeless else ()
        back = [
            self._move(event.at_s, j, node.name, f"pinned to {node.name}, which is back")
            for j, pin in enumerate(self._roster.pinned)
            if pin == node.name
            and self._node[j] != node.name
            and self._roster.names[j] not in self._under_way
            for j in self._roster.together(j)
            if self._node[j] != node.name and self._roster.names[j] not in self._under_way
        ]
        return (*placed, *back)

    def _demand_node(self, name: str) -> None:
        if name not in self._nodes:
            hint = did_you_mean(name, self._nodes)
            rule = "must name a node of the cluster"
            raise input_error(rule, key="node", value=name, hint=hint)

    # Queries

    def _changed(self, event: QueryAdded | QueryRemoved) -> tuple[Instruction, ...]:
        """Drop what the network no longer has, place what is new, leave the rest alone."""
        nodes = tuple(self._nodes.values())
        roster = make_roster(event.network, replace(self._cluster, nodes=nodes, latency_ms=None))
        old, known = self._roster, self._roster.position
        kept = set(roster.names)
        dropped: list[Instruction] = []
        for j, name in enumerate(old.names):
            if name not in kept:
                home = self._node[j]
                move = self._under_way.pop(name, None)
                self._note(event.at_s, "dropped", j, home, None, "no query uses it any more")
                for place in {home, None if move is None else move.source} - {None}:
                    assert place is not None
                    dropped.append(Drop(operator=name, node=place, reason="no query uses it any more"))
        came_from = [known.get(name, -1) for name in roster.names]
        self._node = [None if j < 0 else self._node[j] for j in came_from]
        told = event.loads if isinstance(event, QueryAdded) else {}
        measured = np.array(
            [
                told.get(name, np.nan) if j < 0 else self._load[j]
                for name, j in zip(roster.names, came_from, strict=True)
            ]
        )
        self._roster = roster
        self._load = self._expected(measured)
        self._reports = Reports(roster.names)
        self._arrange()
        new = [j for j, before in enumerate(came_from) if before < 0]
        return (*dropped, *self._house(event.at_s, new, "its query was added"))

    def _expected(self, measured: Floats) -> Floats:
        """Measured loads, stated ones where nothing was measured, their mean where nothing is stated."""
        unknown = np.isnan(measured)
        if not unknown.any():
            return measured
        nodes = replace(self._cluster, nodes=tuple(self._nodes.values()), latency_ms=None)
        load = np.where(unknown, self._roster.stated_load(nodes), measured)
        seen = load[~np.isnan(load)]
        return np.where(np.isnan(load), float(seen.mean()) if len(seen) else 0.0, load)

    def _house(self, at_s: float, operators: list[int], cause: str) -> tuple[Instruction, ...]:
        """Place operators that stand nowhere, each unit on the node that it leaves least loaded.

        Those of the highest priority go first, then the heaviest. An operator that already has its node (it
        was on its way there) is only started there. O(operators × nodes).
        """
        if not operators:
            return ()
        if not self._live:
            text = f"no node is left: {len(operators)} operators stand nowhere"
            return (self._alarm(at_s, text),)
        instructions: list[Instruction] = []
        expected = self._expected(self._load)
        units: dict[int, list[int]] = {}
        for j in operators:
            units.setdefault(int(self._roster.unit[j]), []).append(j)
        level = self._level(expected)
        priority = self._roster.priority

        def turn(unit: list[int]) -> tuple[float, float]:
            return -max(float(priority[j]) for j in unit), -float(expected[unit].sum())

        for unit in sorted(units.values(), key=turn):
            waiting = [j for j in unit if self._node[j] is None]
            node, reason, alarm = self._home(unit, waiting, level, expected, cause)
            if alarm:
                instructions.append(self._alarm(at_s, alarm))
            level[self._place[node]] += float(expected[waiting].sum())
            for j in unit:
                self._node[j] = node
                self._note(at_s, "placed", j, None, node, reason)
                instructions.append(Place(operator=self._roster.names[j], node=node, reason=reason))
        self._arrange()
        return tuple(instructions)

    def _home(
        self, unit: list[int], waiting: list[int], level: Floats, expected: Floats, cause: str
    ) -> tuple[str, str, str]:
        """Node of a unit that stands nowhere, why, and what rule cannot be kept (empty: none)."""
        together = self._roster.together(unit[0])
        pins = [self._roster.pinned[j] for j in together if self._roster.pinned[j] is not None]
        pin = pins[0] if pins else None
        standing = [self._node[j] for j in together if j not in waiting]
        name = self._roster.names[unit[0]]
        if standing and standing[0] is not None:
            node = standing[0]
            alarm = (
                f"{name} is pinned to {pin}, but its table stands on {node}"
                if pin not in (None, node)
                else ""
            )
            return node, f"{cause}; it stays with its table, or goes on where it was going", alarm
        if pin in self._live:
            assert pin is not None
            return pin, f"{cause}; pinned", ""
        after = (level + float(expected[waiting].sum())) / self._cpu
        unready = [self._place[node] for node in self._pulse.unready if node in self._place]
        if len(unready) < len(self._live):
            after[unready] = np.inf
        node = self._live[int(np.argmin(after))]
        alarm = "" if pin is None else f"{name} is pinned to {pin}, which is not there: it runs on {node}"
        return node, f"{cause}; least loaded node", alarm

    # Bookkeeping

    def _checked(self, placement: Mapping[str, str]) -> list[str | None]:
        """The placement as a list, after checking that it names every operator once and keeps the rules."""
        problems = plan_problems(self._roster, placement, known=self._nodes)
        if problems:
            raise InputError(problems)
        return [placement[name] for name in self._roster.names]

    def _arrange(self) -> None:
        """Work the arrays out anew after nodes or operators came or went. O(operators + nodes)."""
        self._place = place = {name: i for i, name in enumerate(self._live)}
        self._cpu = np.array([self._nodes[name].cpu for name in self._live], dtype=np.float64)
        self._index = np.array([-1 if n is None else place[n] for n in self._node], dtype=np.int64)

    def _stand(self, operator: int, node: str) -> None:
        self._node[operator] = node
        self._index[operator] = self._place[node]

    def _level(self, load: Floats | None = None) -> Floats:
        """Mean load of each live node; operators that nothing is known of count nothing."""
        own = np.nan_to_num(self._load if load is None else load)
        placed = self._index >= 0
        level = np.bincount(self._index[placed], weights=own[placed], minlength=len(self._live))
        return level.astype(np.float64)

    def _note(
        self, at_s: float, what: str, operator: int, source: str | None, target: str | None, reason: str
    ) -> None:
        load = float(self._load[operator])
        self.journal.add(
            Record(
                at_s=at_s,
                what=what,
                reason=reason,
                operator=self._roster.names[operator],
                source=source,
                target=target,
                load=None if np.isnan(load) else load,
            )
        )

    def _ignore(self, at_s: float, operator: str | None, reason: str) -> None:
        self.journal.add(Record(at_s=at_s, what="ignored", reason=reason, operator=operator))

    def _alarm(self, at_s: float, text: str) -> Alarm:
        self.journal.add(Record(at_s=at_s, what="alarm", reason=text))
        return Alarm(text=text)
