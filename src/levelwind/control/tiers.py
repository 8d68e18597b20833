"""Managers of managers: the top one allots queries to groups of nodes, each group's own places within it.

A lower manager is a `Manager` that knows the nodes of its group and the operators of its queries, and no
others. The top one knows groups by their load and queries by theirs; it never says on which node of a group
an operator is to stand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from levelwind.balance.protocol import Policy
from levelwind.control.crossings import Crossings
from levelwind.control.distances import checked_latencies
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
from levelwind.control.instructions import Alarm, Drop, Instruction, Move, Place
from levelwind.control.journal import REJECTED, Journal, Record
from levelwind.control.levelling import DIFFERENCE, levelling
from levelwind.control.manager import JOURNAL, Manager
from levelwind.control.membership import Membership
from levelwind.control.plans import by_group, refused
from levelwind.control.queries import groups_of, part_of_cluster, queries_of, standing_groups
from levelwind.control.reports import checked_series
from levelwind.control.standing import UnderWay
from levelwind.errors import did_you_mean, input_error
from levelwind.model import Cluster, Network, Node
from levelwind.rewrite import split


class TopManager:
    """Keeps every query in exactly one group and groups about equally loaded. Handles what a `Manager` does.

    After every report the fullest group by load over CPU gives one query to the emptiest, if they differ by
    more than ``difference`` and the larger of the two falls enough: by a quarter of what the fullest is rid
    of. Queries of the lowest priority go first, then the one that leaves them most even. A query moves as
    operators do, each with its state while data flows: what the target's manager places and the source's
    drops goes out as moves. An operator whose move failed is asked for again with every report, until it is
    where its query is. A query that had to leave the group of a pin, as nobody was left there, goes back when
    the node that it is pinned to is there again.

    Parameters
    ----------
    network, cluster, placement
        As for a `Manager`; no query may stand in two groups (`gathered` and `gather` bring it together).
    groups
        Property of nodes: those with the same value form a group.
    policy
        Asked by each group's manager for itself.
    difference
        Least difference of relative loads for which a query moves.
    options
        Further options of the lower managers.

    Notes
    -----
    A report costs O(operators × samples) to cut into groups, and what the lower managers spend.
    """

    def __init__(
        self,
        network: Network,
        cluster: Cluster,
        placement: Mapping[str, str],
        *,
        groups: str,
        policy: Policy | None,
        rng: np.random.Generator,
        difference: float = DIFFERENCE,
        journal_size: int = JOURNAL,
        **options: Any,
    ) -> None:
        self._cluster, self._key = cluster, groups
        self._policy, self._difference = policy, difference
        self._rng, self._options = rng, options
        self.journal = Journal(journal_size)
        found = groups_of(cluster, groups)
        self._group_of_node = {node.name: group for group, nodes in found.items() for node in nodes}
        self._nodes = {node.name: node for node in cluster.nodes}
        standing = standing_groups(network, queries_of(network), placement, self._group_of_node)
        self._books = Membership(network, standing)
        self._crossings = Crossings()
        self.lower: dict[str, Manager] = {}
        # Nodes that were there when it was last looked, and those that have been found missing since.
        self._alive = {group: {node.name for node in nodes} for group, nodes in found.items()}
        self._gone: set[str] = set()
        for group, nodes in found.items():
            part = self._part(group)
            own = {name: placement[name] for name in split(part).names}
            self.lower[group] = Manager(
                part,
                part_of_cluster(cluster, nodes),
                own,
                policy=policy,
                rng=np.random.default_rng(rng.integers(2**63)),
                journal_size=journal_size,
                **options,
            )

    # What can be seen

    @property
    def network(self) -> Network:
        """All queries of all groups."""
        return self._books.network

    @property
    def placement(self) -> dict[str, str]:
        """Node of each operator, in all groups."""
        return {name: node for lower in self.lower.values() for name, node in lower.placement.items()}

    @property
    def nodes(self) -> tuple[str, ...]:
        """Live nodes of all groups."""
        return tuple(node for lower in self.lower.values() for node in lower.nodes)

    @property
    def under_way(self) -> dict[str, UnderWay]:
        """Moves asked for and not reported yet, within groups and between them."""
        within = {name: move for lower in self.lower.values() for name, move in lower.under_way.items()}
        return within | self._crossings.under_way

    @property
    def loads(self) -> dict[str, float]:
        """Relative mean load of each live node."""
        return {node: load for lower in self.lower.values() for node, load in lower.loads.items()}

    @property
    def group_loads(self) -> dict[str, float]:
        """Load over CPU of each group that has a node."""
        found = {}
        for group, lower in self.lower.items():
            cpu = sum(self._nodes[node].cpu for node in lower.nodes)
            if cpu:
                found[group] = sum(load * self._nodes[n].cpu for n, load in lower.loads.items()) / cpu
        return found

    @property
    def statistics(self) -> frozenset[str]:
        """Names of the statistics that reports must bring."""
        return next(iter(self.lower.values())).statistics

    @property
    def homes(self) -> dict[str, str]:
        """The group that each operator's query stands in."""
        return dict(self._books.group_by_name)

    def group_of(self, operator: str) -> str | None:
        """The group that an operator's query stands in."""
        return self._books.group_by_name.get(operator)

    # Events

    def handle(self, event: Event) -> tuple[Instruction, ...]:
        """Take an event in; it goes to the managers that it concerns, and to no other."""
        found = self._heed(event)
        return (*found, *self._see_to_losses(event.at_s, found)) if self._gone else found

    def _heed(self, event: Event) -> tuple[Instruction, ...]:
        if isinstance(event, StatisticsReported):
            return self._statistics(event)
        if isinstance(event, MoveDone | MoveFailed | OperatorMoved):
            return self._reported(event)
        if isinstance(event, NodeJoined):
            return self._joined(event)
        if isinstance(event, NodeLost | Heartbeat):
            return self._about_node(event)
        if isinstance(event, QueryAdded | QueryRemoved):
            return self._changed(event)
        if isinstance(event, PlanProposed):
            return self._planned(event)
        if isinstance(event, LatencyMeasured):
            return self._measured(event)
        rule = "must be an event of levelwind.control.events"
        raise input_error(rule, key="event", value=type(event).__name__)

    def _tell(self, group: str, event: Event) -> list[Instruction]:
        """Tell a group's manager; moves of operators that are still between groups fail at once.

        Any event may find nodes silent for too long: what else is to be done about it waits until the event
        has been told to all that it concerns.
        """
        found: list[Instruction] = []
        for instruction in self.lower[group].handle(event):
            if isinstance(instruction, Move) and instruction.operator in self._crossings.under_way:
                reason = "it is still on its way from another group"
                failed = MoveFailed(at_s=event.at_s, operator=instruction.operator, reason=reason)
                found += self._tell(group, failed)
            else:
                found.append(instruction)
        if found or self._crossings.under_way:
            lost = self._alive[group].difference(self.lower[group].nodes)
            if lost:
                self._alive[group] -= lost
                self._gone |= lost
        return found

    def _statistics(self, event: StatisticsReported) -> tuple[Instruction, ...]:
        series = checked_series(event)
        found: list[Instruction] = []
        for group, (names, rows) in self._books.rows(event.operators, tuple(self.lower)).items():
            told = StatisticsReported(
                at_s=event.at_s,
                operators=names,
                series=series[rows],
                state_bytes={n: event.state_bytes[n] for n in names if n in event.state_bytes}
                if event.state_bytes
                else {},
                seen={key: np.asarray(figures)[rows] for key, figures in event.seen.items()},
                window_s=event.window_s,
            )
            found += self._tell(group, told)
        load = dict(zip(event.operators, series.mean(axis=1).tolist(), strict=True))
        found += self._crossings.fetch(self._home)
        return (*found, *self._bring_back(event.at_s), *self._level_out(event.at_s, load))

    # Queries between groups

    def _level_out(self, at_s: float, load: Mapping[str, float]) -> list[Instruction]:
        """Move one query from the fullest group to the emptiest, if that lowers the larger load enough."""
        cpu = {g: sum(self._nodes[n].cpu for n in lower.nodes) for g, lower in self.lower.items()}
        going, levels = self.under_way.keys(), self.group_loads
        found = levelling(self._books, levels, cpu, load, going=going, difference=self._difference)
        return [] if found is None else self._cross(at_s, found.query, found.target, load, found.reason)

    def gather(self, stood: Mapping[str, str], at_s: float = 0.0) -> tuple[Instruction, ...]:
        """Operators stand in other groups than their queries, as in ``stood``: moves, which begin."""
        found = []
        reason = "its query stood in several groups"
        for operator, home in self.placement.items():
            if stood[operator] != home:
                move = Move(operator=operator, source=stood[operator], target=home, reason=reason)
                self._crossings.begin(operator, move.source, home)
                self._note_crossed(at_s, "accepted", operator, self._crossings.under_way[operator], reason)
                found.append(move)
        return tuple(found)

    def _home(self, operator: str) -> str | None:
        """Node that the manager of an operator's group has it on; None if on none."""
        return self.lower[self._books.group_by_name[operator]].placement.get(operator)

    def _cross(
        self, at_s: float, number: int, target: str, load: Mapping[str, float], why: str
    ) -> list[Instruction]:
        """A query goes to another group: one manager drops it, the other places it, operators move."""
        source = self._books.group[number]
        stood = {name: node for name, node in self.lower[source].placement.items()}
        self._books.put(number, target)
        self.journal.add(
            Record(
                at_s=at_s,
                what="accepted",
                reason=why,
                operator=", ".join(self._books.queries[number]),
                source=source,
                target=target,
                load=sum(load.get(name, 0.0) for name in self._books.physical[number]),
            )
        )
        dropped = self._tell(source, QueryRemoved(at_s=at_s, network=self._part(source)))
        known = {name: load[name] for name in self._books.physical[number] if name in load}
        placed = self._tell(target, QueryAdded(at_s=at_s, network=self._part(target), loads=known))
        return [*self._unkept(at_s, number), *self._crossings.joined_up(dropped, placed, stood, why)]

    def _unkept(self, at_s: float, number: int) -> list[Instruction]:
        """An alarm for each pin of a query that its group cannot keep."""
        away, group = self._books.away(number, self._group_of_node), self._books.group[number]
        return [
            self._alarm(at_s, f"{name} is pinned to {pin}, which is not there: it runs in group {group}")
            for name, pin in away.items()
        ]

    def _bring_back(self, at_s: float) -> list[Instruction]:
        """Queries go back to the group of a node that they are pinned to and that is there again.

        One with operators that are immovable, and not pinned, stays. O(queries with pins).
        """
        found: list[Instruction] = []
        for number in self._books.pins:
            away = self._books.away(number, self._group_of_node)
            there = [pin for pin in away.values() if pin in self.lower[self._group_of_node[pin]].nodes]
            operators = [self.network.operators[name] for name in self._books.queries[number]]
            if not there or any(o.pinned is None and not o.movable for o in operators):
                continue
            if self.under_way.keys().isdisjoint(self._books.physical[number]):
                known = self.lower[self._books.group[number]].operator_loads
                why = f"{there[0]} is back, which it is pinned to"
                found += self._cross(at_s, number, self._group_of_node[there[0]], known, why)
        return found

    # Moves

    def _reported(self, event: MoveDone | MoveFailed | OperatorMoved) -> tuple[Instruction, ...]:
        crossings, operator = self._crossings, event.operator
        group = self.group_of(operator)
        if group is None:
            return self._ignored(event.at_s, operator, "there is no such operator")
        if isinstance(event, OperatorMoved):
            crossings.forget(operator)
            return self._moved(event, group)
        move = crossings.under_way.get(operator)
        if move is None:
            return tuple(self._tell(group, event))
        if isinstance(event, MoveFailed):
            self._note_crossed(event.at_s, "failed", operator, move, event.reason)
            text = f"{operator} stands apart from its query: it could not be moved to {move.target}"
            return (self._alarm(event.at_s, text),) if crossings.failed(operator) else ()
        if crossings.is_behind(operator):
            # That of its query failed, so this was an earlier one: it has yet to follow.
            return self._ignored(event.at_s, operator, "the move that is done is not the one between groups")
        crossings.forget(operator)
        self._note_crossed(event.at_s, "done", operator, move, "moved between groups")
        return ()

    def _moved(self, event: OperatorMoved, group: str) -> tuple[Instruction, ...]:
        if self._group_of_node.get(event.node, group) == group:
            return tuple(self._tell(group, event))
        home = self._home(event.operator)
        if home is None:
            return self._ignored(event.at_s, event.operator, "its group has no node for it")
        text = (
            f"{event.operator} was moved to {event.node}, outside its query's group: it goes back to {home}"
        )
        self._crossings.begin(event.operator, event.node, home)
        back = Move(operator=event.operator, source=event.node, target=home, reason="back to its group")
        return (self._alarm(event.at_s, text), back)

    # Nodes

    def _about_node(self, event: NodeLost | Heartbeat) -> tuple[Instruction, ...]:
        group = self._group_of_node.get(event.node)
        if group is None:
            rule, hint = "must name a node of the cluster", did_you_mean(event.node, self._group_of_node)
            raise input_error(rule, key="node", value=event.node, hint=hint)
        found = self._tell(group, event)
        if isinstance(event, Heartbeat) and event.node not in self._alive[group]:
            self._alive[group].add(event.node)
            found += [*self._evacuate(event.at_s), *self._bring_back(event.at_s)]
        return tuple(found)

    def _see_to_losses(self, at_s: float, found: Collection[Instruction]) -> list[Instruction]:
        """Place what was between groups, from or to a lost node; clear groups without nodes."""
        lost, self._gone = self._gone, set()
        placed = {each.operator for each in found if isinstance(each, Place)}
        more = [
            Place(operator=operator, node=home, reason=f"{node} was lost")
            for operator, node in self._crossings.cut_off(lost).items()
            if operator not in placed and (home := self._home(operator)) is not None
        ]
        return [*more, *self._evacuate(at_s)]

    def _evacuate(self, at_s: float) -> list[Instruction]:
        """Queries of groups without nodes go to the others, as long as there are any."""
        found: list[Instruction] = []
        for group in [name for name, lower in self.lower.items() if not lower.nodes]:
            known = self.lower[group].operator_loads
            for number in [n for n, own in enumerate(self._books.group) if own == group]:
                levels = self.group_loads
                if levels:
                    target = min(levels, key=lambda name: levels[name])
                    found += self._cross(at_s, number, target, known, f"group {group} has no node left")
        return found

    def _joined(self, event: NodeJoined) -> tuple[Instruction, ...]:
        node: Node = event.node
        group = self._group_of_node.get(node.name) or str(node.properties.get(self._key, ""))
        if group not in self.lower:
            rule = f"a node that joins must state {self._key!r}, one of the groups there are"
            hint = ", ".join(self.lower)
            raise input_error(rule, key=f"{node.name}.properties", value=group or None, hint=hint)
        found = self._tell(group, event)
        self._group_of_node[node.name], self._nodes[node.name] = group, node
        self._alive[group].add(node.name)
        return (*found, *self._evacuate(event.at_s), *self._bring_back(event.at_s))

    def _measured(self, event: LatencyMeasured) -> tuple[Instruction, ...]:
        """Every group hears of the latencies between its own nodes."""
        latency, found = checked_latencies(event), list[Instruction]()
        for group in self.lower:
            at = [k for k, name in enumerate(event.nodes) if self._group_of_node.get(name) == group]
            names, own = tuple(event.nodes[k] for k in at), latency[np.ix_(at, at)]
            found += self._tell(group, LatencyMeasured(at_s=event.at_s, nodes=names, latency_ms=own))
        return tuple(found)

    # Networks and plans

    def check(self, network: Network) -> None:
        """Find fault with a network before it is added: what is wrong with it is an input error."""
        self._books_of(network, self._known_loads())

    def _known_loads(self) -> dict[str, float]:
        return {n: load for lower in self.lower.values() for n, load in lower.operator_loads.items()}

    def _books_of(
        self, network: Network, loads: Mapping[str, float]
    ) -> tuple[Membership, dict[str, Network]]:
        """The books of another network, and every group's part of it, looked at; nothing is changed."""
        cluster = replace(self._cluster, nodes=tuple(self._nodes.values()), latency_ms=None)
        live = {group: lower.nodes for group, lower in self.lower.items()}
        books = self._books.with_network(network, cluster, self._group_of_node, live, loads)
        parts = {group: books.part(group, self._group_of_node) for group in self.lower}
        for group, part in parts.items():
            self.lower[group].check(part)
        return books, parts

    def _changed(self, event: QueryAdded | QueryRemoved) -> tuple[Instruction, ...]:
        """Known queries stay in their group; new ones go to the group that they leave least loaded.

        Every group's part is looked at before any manager is told: an input error changes nothing.
        """
        before, stood = self._books, self.placement
        known = self._known_loads()
        known |= event.loads if isinstance(event, QueryAdded) else {}
        books, parts = self._books_of(event.network, known)
        self._books = books
        dropped: list[Instruction] = []
        placed: list[Instruction] = []
        for group, lower in self.lower.items():
            part = parts[group]
            if part.operators == lower.network.operators:
                continue
            told: QueryAdded | QueryRemoved = QueryRemoved(at_s=event.at_s, network=part)
            if not set(part.operators) <= set(lower.network.operators):
                came = {n: known[n] for n, own in books.group_by_name.items() if own == group and n in known}
                told = QueryAdded(at_s=event.at_s, network=part, loads=came)
            for each in self._tell(group, told):
                (dropped if isinstance(each, Drop) else placed).append(each)
        for number in books.pins:
            if before.network.operators.keys().isdisjoint(books.queries[number]):
                placed += self._unkept(event.at_s, number)
        for operator in [name for name in self._crossings.under_way if name not in self._books.group_by_name]:
            self._crossings.forget(operator)
        return tuple(self._crossings.joined_up(dropped, placed, stood, "its query was joined to another"))

    def _planned(self, event: PlanProposed) -> tuple[Instruction, ...]:
        """A plan that tears a query apart, or that a group's manager finds fault with, is asked for again.

        Nothing of it is put into force then, in no group. A query that is between groups is left alone.
        """
        parts, problems = by_group(event.placement, self._books.group_by_name, self._group_of_node)
        parts = {group: parts.get(group, {}) for group in self.lower}
        for names in self._books.physical:
            going = next((name for name in names if name in self._crossings.under_way), None)
            for name in names if going is not None and not problems else ():
                group, home = self._books.group_by_name[name], self._home(name)
                if home is not None and parts[group].get(name, home) != home:
                    parts[group][name] = home
                    self._ignored(event.at_s, name, f"with {going}, on its way from another group")
        if not problems:
            problems = [text for group, part in parts.items() for text in self.lower[group].problems_of(part)]
        if problems:
            ready = tuple(node for lower in self.lower.values() for node in lower.ready)
            text, answer = refused(event, problems, ready)
            self.journal.add(Record(at_s=event.at_s, what=REJECTED, reason=text))
            return (self._alarm(event.at_s, answer.text) if isinstance(answer, Alarm) else answer,)
        found: list[Instruction] = []
        for group, part in parts.items():
            told = PlanProposed(at_s=event.at_s, placement=part, reason=event.reason, attempt=event.attempt)
            found += self._tell(group, told)
        return tuple(found)

    # Bookkeeping

    def _part(self, group: str) -> Network:
        return self._books.part(group, self._group_of_node)

    def _note_crossed(self, at_s: float, what: str, operator: str, move: UnderWay, reason: str) -> None:
        record = Record(
            at_s=at_s, what=what, reason=reason, operator=operator, source=move.source, target=move.target
        )
        self.journal.add(record)

    def _ignored(self, at_s: float, operator: str, reason: str) -> tuple[Instruction, ...]:
        self.journal.add(Record(at_s=at_s, what="ignored", reason=reason, operator=operator))
        return ()

    def _alarm(self, at_s: float, text: str) -> Alarm:
        self.journal.add(Record(at_s=at_s, what="alarm", reason=text))
        return Alarm(text=text)
