"""The manager: told what happened, it answers with what is to be done, and writes down why.

It does no I/O and has no clock, so the simulator and the Spark runtime drive the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from levelwind.balance.costs.protocol import STATE_BYTES
from levelwind.balance.protocol import Policy, Proposal
from levelwind.control.advice import Adviser
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
from levelwind.control.housing import homes
from levelwind.control.instructions import Alarm, Drop, Instruction, Move, Place, Shed
from levelwind.control.journal import REJECTED, Journal, Record
from levelwind.control.judging import ROUNDING, Court, Limits
from levelwind.control.liveness import Pulse
from levelwind.control.plans import plan_problems, refused
from levelwind.control.reports import Reports
from levelwind.control.shedding import Shedding
from levelwind.control.standing import Standing, UnderWay
from levelwind.errors import input_error
from levelwind.loads.arrays import Floats
from levelwind.model import Cluster, Network

JOURNAL = 10_000


class Manager:
    """Keeps every operator on exactly one live node, and moves operators as its policy proposes.

    Policies propose; the manager accepts or rejects. It rejects a move of an operator that is immovable,
    pinned, already under way or too large in state; one that would part operators of one table; one beyond
    the budget of moved load or the number of moves at once; and, if part of an exchange was rejected, any
    other part that would raise the larger load of its two nodes. While all nodes together cannot bear the
    load, operators that may shed do so, the least important first. Every decision is in the `journal`, with
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
        self._standing = Standing(network, cluster, placement)
        self._reports = Reports(self._standing.roster.names)
        self._adviser = Adviser(policy, cluster, rng=rng)
        self._limits = Limits(moved_load=moved_load_budget, moves=most_moves, state_bytes=most_state_bytes)
        self._pulse, self._shedding = Pulse(silent_after_s), Shedding()
        self._overloaded = False
        self.journal = Journal(journal_size)
        self._read_network()

    @property
    def network(self) -> Network:
        """What runs, or will when what was asked for is done."""
        return self._standing.roster.network

    @property
    def placement(self) -> dict[str, str]:
        """Node of each operator: where it stands, or will when its move is done; not of homeless ones."""
        return self._standing.placement

    @property
    def nodes(self) -> tuple[str, ...]:
        """Live nodes, in the order in which they came."""
        return tuple(self._standing.live)

    @property
    def ready(self) -> tuple[str, ...]:
        """Live nodes that can take operators."""
        return tuple(name for name in self._standing.live if name not in self._pulse.unready)

    @property
    def under_way(self) -> dict[str, UnderWay]:
        """Moves asked for and not reported yet, by operator."""
        return dict(self._standing.under_way)

    @property
    def loads(self) -> dict[str, float]:
        """Relative mean load of each live node by the last report, moves under way counted as done."""
        standing = self._standing
        return dict(zip(standing.live, (standing.level() / standing.cpu).tolist(), strict=True))

    @property
    def operator_loads(self) -> dict[str, float]:
        """Mean load of each operator by the last report, as far as it is known."""
        known = zip(self._standing.roster.names, self._standing.load.tolist(), strict=True)
        return {name: load for name, load in known if not np.isnan(load)}

    @property
    def statistics(self) -> frozenset[str]:
        """Names of the statistics that reports must bring beside the load, which is in every report.

        What the policy reads, and the size of state if a limit goes by it.
        """
        limited = frozenset() if self._limits.state_bytes is None else frozenset({STATE_BYTES})
        return self._adviser.statistics | limited

    def problems_of(self, placement: Mapping[str, str]) -> tuple[str, ...]:
        """What is wrong with a plan for all operators; empty if it is valid. O(operators)."""
        standing = self._standing
        found = plan_problems(
            standing.roster,
            placement,
            known=standing.nodes,
            live=standing.live,
            ready=self.ready,
            stands=standing.placement,
        )
        return tuple(map(str, found))

    def check(self, network: Network) -> None:
        """Find fault with a network before it is added: what is wrong with it is an input error."""
        self._standing.roster_of(network)

    def handle(self, event: Event) -> tuple[Instruction, ...]:
        """Take an event in, and say what is to be done about it.

        Wrong names and malformed statistics are input errors and change nothing. What comes too late (a move
        of an operator that is gone) is written down and ignored. Before all else, nodes that have been silent
        for too long are dropped.
        """
        if isinstance(event, Heartbeat):
            self._standing.demand_node(event.node)
            self._pulse.beat(event.node, event.at_s, ready=event.ready)
        return (*self._drop_silent(event.at_s), *self._heed(event))

    def _heed(self, event: Event) -> tuple[Instruction, ...]:
        if isinstance(event, StatisticsReported):
            return self._statistics(event)
        if isinstance(event, Heartbeat):
            if event.node in self._standing.place:
                return ()
            return self._joined(NodeJoined(at_s=event.at_s, node=self._standing.nodes[event.node]))
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
            self._adviser.measured(event)
            return ()
        rule = "must be an event of levelwind.control.events"
        raise input_error(rule, key="event", value=type(event).__name__)

    # Statistics and proposals

    def _statistics(self, event: StatisticsReported) -> tuple[Instruction, ...]:
        standing = self._standing
        series = self._reports.series(event)
        seen, state_bytes = self._reports.seen(event), self._reports.state_bytes(event)
        standing.load = series.mean(axis=1)
        must = (*self._overload(event.at_s), *self._shed(event.at_s, series.shape[1]))
        must += self._back_to_pins(event.at_s)
        if not (self._adviser.asked and standing.live and len(series)) or (standing.index < 0).any():
            return must
        unready = self._pulse.unready
        proposed = self._adviser.proposals(event, standing, series, state_bytes, seen, unready)
        return must + (self._judge(event.at_s, proposed, state_bytes) if proposed else ())

    def _overload(self, at_s: float) -> tuple[Instruction, ...]:
        """An alarm when all nodes together cannot bear the load, once until it has passed."""
        total, capacity = float(self._standing.load.sum()), float(self._standing.cpu.sum())
        over = total > capacity * (1 + ROUNDING)
        new, self._overloaded = over and not self._overloaded, over
        if not new:
            return ()
        text = f"no plan keeps the nodes below overload: load {total:.3g} on CPUs of {capacity:.3g}"
        return (self._alarm(at_s, text),)

    def _shed(self, at_s: float, samples: int) -> tuple[Instruction, ...]:
        """Have operators that may leave rows out do so while there is overload, the least important first."""
        found: list[Instruction] = []
        for name, share in self._shedding.revise(self._standing, samples).items():
            total, capacity = float(self._standing.load.sum()), float(self._standing.cpu.sum())
            reason = f"takes {share:.0%} of its rows: load {total:.3g} on CPUs of {capacity:.3g}"
            operator = self._standing.roster.position[name]
            self._note(at_s, "shed", operator, self._standing.home[operator], None, reason)
            found.append(Shed(operator=name, share=share, reason=reason))
        return tuple(found)

    def _judge(
        self, at_s: float, proposed: Iterable[Proposal], state_bytes: Floats
    ) -> tuple[Instruction, ...]:
        """Let the proposals be judged, carry out what is accepted, write down what is not."""
        standing = self._standing
        court = Court(
            roster=standing.roster,
            limits=self._limits,
            going={name: move.target for name, move in standing.under_way.items()},
            nodes=tuple(standing.live),
            index=standing.index.copy(),
            load=standing.load,
            cpu=standing.cpu,
            state_bytes=state_bytes,
            unready={standing.place[name] for name in self._pulse.unready if name in standing.place},
        )
        accepted: list[Instruction] = []
        for verdict in court.judge(proposed, standing.level()):
            for proposal in verdict.proposals:
                operator, target = proposal.operator, standing.live[proposal.to]
                if verdict.against:
                    self._note(at_s, REJECTED, operator, standing.home[operator], target, verdict.against)
                else:
                    accepted.append(self._move(at_s, operator, target, proposal.reason))
        return tuple(accepted)

    def _planned(self, event: PlanProposed) -> tuple[Instruction, ...]:
        """Check a plan for all operators; ask for another if it is not valid, else send what differs."""
        standing = self._standing
        problems = self.problems_of(event.placement)
        if problems:
            text, answer = refused(event, problems, self.ready)
            self.journal.add(Record(at_s=event.at_s, what=REJECTED, reason=text))
            return (self._alarm(event.at_s, answer.text) if isinstance(answer, Alarm) else answer,)
        differences: list[Instruction] = []
        for j, name in enumerate(standing.roster.names):
            target = event.placement[name]
            if standing.home[j] == target:
                continue
            if going := self._going_elsewhere(j, target):
                self._ignore(event.at_s, name, going)
            elif standing.home[j] is None:
                differences.append(self._place(event.at_s, j, target, event.reason))
            else:
                differences.append(self._move(event.at_s, j, target, event.reason))
        return tuple(differences)

    def _going_elsewhere(self, operator: int, target: str) -> str:
        """Who of an operator's table, itself among them, is on the way to another node; empty if nobody is.

        Such a table is left alone, all of it: to move the others would part it.
        """
        standing = self._standing
        for j in standing.roster.together(operator):
            move = standing.under_way.get(standing.roster.names[j])
            if move is not None and move.target != target:
                who = "" if j == operator else f"with {standing.roster.names[j]}, "
                return f"{who}already on its way to {move.target}"
        return ""

    # Moves

    def _move(self, at_s: float, operator: int, target: str, reason: str, tries: int = 1) -> Move:
        name, source = self._standing.roster.names[operator], self._standing.home[operator]
        assert source is not None
        self._standing.under_way[name] = UnderWay(source=source, target=target, tries=tries)
        self._note(at_s, "accepted", operator, source, target, reason)
        self._standing.stand(operator, target)
        return Move(operator=name, source=source, target=target, reason=reason)

    def _done(self, event: MoveDone) -> tuple[Instruction, ...]:
        move = self._standing.under_way.pop(event.operator, None)
        if move is None:
            self._ignore(event.at_s, event.operator, "no move of it is under way")
        else:
            operator = self._standing.roster.position[event.operator]
            self._note(event.at_s, "done", operator, move.source, move.target, "moved")
        return ()

    def _failed(self, event: MoveFailed) -> tuple[Instruction, ...]:
        standing = self._standing
        move = standing.under_way.pop(event.operator, None)
        if move is None:
            self._ignore(event.at_s, event.operator, "no move of it is under way")
            return ()
        operator = standing.roster.position[event.operator]
        self._note(event.at_s, "failed", operator, move.source, move.target, event.reason)
        standing.stand(operator, move.source)
        if all(standing.home[j] == move.source for j in standing.roster.together(operator)):
            return ()
        # The rest of its table stands, or will stand, on the new node: it must follow, once more.
        if move.tries > 1:
            text = f"{event.operator} stands apart from its table: it could not be moved to {move.target}"
            return (self._alarm(event.at_s, text),)
        reason = "follows the other operators of its table, after a move that failed"
        return (self._move(event.at_s, operator, move.target, reason, tries=2),)

    def _moved(self, event: OperatorMoved) -> tuple[Instruction, ...]:
        standing = self._standing
        standing.demand_node(event.node)
        operator = standing.roster.position.get(event.operator)
        if operator is None:
            self._ignore(event.at_s, event.operator, "there is no such operator")
            return ()
        standing.under_way.pop(event.operator, None)
        home = standing.home[operator]
        self._note(event.at_s, "done", operator, home, event.node, "moved by somebody else")
        if event.node in standing.place:
            standing.stand(operator, event.node)
            return ()
        standing.stand(operator, None)
        return self._house(event.at_s, [operator], f"{event.node} was lost")

    # Nodes

    def _drop_silent(self, at_s: float) -> tuple[Instruction, ...]:
        dropped: list[Instruction] = []
        for node in self._pulse.silent(self._standing.live, at_s):
            self.journal.add(Record(at_s=at_s, what="alarm", reason=f"{node} does not answer"))
            dropped += self._lost(NodeLost(at_s=at_s, node=node))
        return tuple(dropped)

    def _lost(self, event: NodeLost) -> tuple[Instruction, ...]:
        self._standing.demand_node(event.node)
        if event.node not in self._standing.place:
            self._ignore(event.at_s, None, f"{event.node} was lost before")
            return ()
        self._pulse.forget(event.node)
        return self._house(event.at_s, self._standing.lose(event.node), f"{event.node} was lost")

    def _joined(self, event: NodeJoined) -> tuple[Instruction, ...]:
        node, standing = event.node, self._standing
        if not node.cpu > 0:
            rule = "cpu is a positive number"
            raise input_error(rule, key=node.name, value=node.cpu)
        if node.name in standing.place:
            self._ignore(event.at_s, None, f"{node.name} is there already; its CPU is {node.cpu:g} now")
        standing.join(node)
        placed = self._house(event.at_s, standing.homeless, f"{node.name} joined")
        return (*placed, *self._back_to_pins(event.at_s))

    def _back_to_pins(self, at_s: float) -> tuple[Instruction, ...]:
        """Move operators to the nodes that they are pinned to, as far as these are there.

        Asked for when a node joins and, as such a move may fail, with every report. O(pinned operators).
        """
        standing, back = self._standing, list[Instruction]()
        for pinned in standing.roster.bound:
            pin = standing.roster.pinned[pinned]
            if pin is None or pin not in standing.place or standing.home[pinned] == pin:
                continue
            together = standing.roster.together(pinned)
            if not any(standing.roster.names[j] in standing.under_way for j in together):
                away = [j for j in together if standing.home[j] not in (None, pin)]
                back += [self._move(at_s, j, pin, f"pinned to {pin}, which is back") for j in away]
        return tuple(back)

    # Queries

    def _read_network(self) -> None:
        """Work out what the policy will want to know, while no report waits. O(operators + arcs)."""
        if self._adviser.asked:
            _ = self._standing.roster.facts

    def _changed(self, event: QueryAdded | QueryRemoved) -> tuple[Instruction, ...]:
        """Drop what the network no longer has, place what is new, leave the rest alone."""
        standing = self._standing
        roster = standing.roster_of(event.network)
        dropped: list[Instruction] = []
        why = "no query uses it any more"
        for j, name in enumerate(standing.roster.names):
            if name not in roster.position:
                move = standing.under_way.pop(name, None)
                self._note(event.at_s, "dropped", j, standing.home[j], None, why)
                for node in {standing.home[j], None if move is None else move.source} - {None}:
                    assert node is not None
                    dropped.append(Drop(operator=name, node=node, reason=why))
                if self._shedding.forget(name):
                    dropped.append(Shed(operator=name, share=1.0, reason=why))
        told = event.loads if isinstance(event, QueryAdded) else {}
        new = standing.take_over(roster, told)
        self._reports = Reports(roster.names)
        self._read_network()
        return (*dropped, *self._house(event.at_s, new, "its query was added"))

    def _house(self, at_s: float, operators: list[int], cause: str) -> tuple[Instruction, ...]:
        """Place operators that stand nowhere; those that were on their way are only started there."""
        if not operators:
            return ()
        if not self._standing.live:
            text = f"no node is left: {len(operators)} operators stand nowhere"
            return (self._alarm(at_s, text),)
        instructions: list[Instruction] = []
        for home in homes(self._standing, operators, cause, self._pulse.unready):
            if home.alarm:
                instructions.append(self._alarm(at_s, home.alarm))
            instructions += [self._place(at_s, j, home.node, home.reason) for j in home.operators]
        return tuple(instructions)

    def _place(self, at_s: float, operator: int, node: str, reason: str) -> Place:
        self._standing.stand(operator, node)
        self._note(at_s, "placed", operator, None, node, reason)
        return Place(operator=self._standing.roster.names[operator], node=node, reason=reason)

    # The journal

    def _note(
        self, at_s: float, what: str, operator: int, source: str | None, target: str | None, reason: str
    ) -> None:
        load = float(self._standing.load[operator])
        self.journal.add(
            Record(
                at_s=at_s,
                what=what,
                reason=reason,
                operator=self._standing.roster.names[operator],
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
