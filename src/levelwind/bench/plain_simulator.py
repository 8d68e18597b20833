"""The simulator's semantics in plain Python: a heap of events, lists as queues, an object per tuple.

Written from the description of the model, not from the kernel, to be compared with it: the tests ask for the
same trace, `bench simulator` for the time it takes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from levelwind.loads.problem import Problem
from levelwind.model import Join, Multijoin

TraceRow = tuple[float, str, str, str, float]


@dataclass(slots=True)
class _Tuple:
    born: float
    work: float
    operator: int
    cost: float
    side: int | None
    flow: _Flow


@dataclass(slots=True)
class _Flow:
    name: str
    ratio: float
    credit: float
    bytes: float
    transfer: float
    readers: list[tuple[int, float, int | None]] = field(default_factory=list)
    exits: list[str | None] = field(default_factory=list)


@dataclass(slots=True)
class _Node:
    cpu: float
    bandwidth: float
    queue: deque[_Tuple] = field(default_factory=deque)
    serving: tuple[_Tuple, float, float] | None = None
    link_free: float = 0.0
    debt: float = 0.0
    era: int = 0


class PlainSimulator:
    """Rows at listed times through a network without stated loads; every row costs what is stated.

    ``credits`` are what flows have at the start, in the order of the network's physical streams by producer
    (streams first), then the ends where nobody reads on.
    """

    def __init__(
        self,
        problem: Problem,
        arrivals: Mapping[str, Sequence[float]],
        placement: Mapping[str, str],
        credits: Sequence[float],
    ) -> None:
        self.problem = problem
        self.names = problem.physical.names
        self.nodes = {
            node.name: _Node(node.cpu, node.bandwidth_bytes_per_s or float("inf"))
            for node in problem.cluster.nodes
        }
        self.latency = problem.cluster.latency_ms
        self.shared, self.shared_free = problem.network_bandwidth, 0.0
        self.place: list[str | None] = [placement[name] for name in self.names]
        self.parked: dict[int, list[_Tuple]] = {}
        self.move_era = [0] * len(self.names)
        self.flows = self._flows(iter(credits))
        self.windows = [self._windows(j) for j in range(len(self.names))]
        self.heap: list[Any] = []
        self.sequence = 0
        self.now = 0.0
        self.events = 0
        self.trace: list[TraceRow] = []
        self.rows = {name: deque(times) for name, times in arrivals.items()}
        for name in problem.network.streams:
            self._next_row(name)

    # ---- the network

    def _flows(self, credits: Any) -> dict[str | int, list[_Flow]]:
        network, operators = self.problem.network, self.problem.physical.operators
        flows: dict[str | int, list[_Flow]] = {name: [] for name in network.streams}
        flows |= {j: [] for j in range(len(operators))}
        for stream in self.problem.physical.streams:
            if stream.producer is None:
                size, transfer = network.streams[stream.source].bytes, 0.0
                name, ratio = stream.source, stream.share
            else:
                logical = operators[stream.producer].logical
                size, transfer = logical.bytes, logical.transfer_cost_s
                name = operators[stream.producer].name + ("" if stream.route is None else f".{stream.route}")
                ratio = logical.selectivity_of(stream.route) * stream.share / operators[stream.producer].share
            flow = _Flow(name, ratio, 0.0, size or 0.0, transfer)
            for reader in stream.consumers:
                logical = operators[reader].logical
                for side, port in enumerate(logical.inputs):
                    if (port.source, port.route) == (stream.source, stream.route):
                        flow.readers.append(
                            (reader, logical.stated_cost_s, side if logical.is_join else None)
                        )
            flow.exits = [network.outputs[output].node for output in stream.outputs]
            flows[stream.source if stream.producer is None else stream.producer].append(flow)
        if not network.outputs:
            fed = {(s.producer, s.route) for s in self.problem.physical.streams}
            for j, operator in enumerate(operators):
                for route in operator.logical.routes:
                    if (j, route) not in fed and operator.logical.selectivity_of(route) > 0:
                        name = operator.name + ("" if route is None else f".{route}")
                        ratio = operator.logical.selectivity_of(route)
                        flows[j].append(_Flow(name, ratio, 0.0, 0.0, 0.0, exits=[None]))
        for group in flows.values():
            for flow in group:
                flow.credit = next(credits)
        return flows

    def _windows(self, j: int) -> list[tuple[float, deque[float]]]:
        spec = self.problem.physical.operators[j].logical.spec
        if isinstance(spec, Join):
            return [(spec.within_s, deque()) for _ in self.problem.physical.operators[j].logical.inputs]
        if isinstance(spec, Multijoin):
            return [(spec.windows_s[alias], deque()) for alias in spec.aliases]
        return []

    # ---- time

    def advance(self, until: float) -> None:
        """Take all events before a time."""
        while self.heap and self.heap[0][0] < until:
            self.now, _, act, argument = heappop(self.heap)
            self.events += act(argument)
        self.now = until

    def _at(self, time: float, act: Any, argument: Any) -> None:
        heappush(self.heap, (time, self.sequence, act, argument))
        self.sequence += 1

    def _next_row(self, stream: str) -> None:
        if self.rows.get(stream):
            self._at(self.rows[stream].popleft(), self._arrive, stream)

    def _note(self, time: float, event: str, name: str, node: str | None, latency: float = 0.0) -> None:
        self.trace.append((time, event, name, node or "", latency))

    # ---- what happens

    def _arrive(self, stream: str) -> int:
        entry = self.problem.network.streams[stream].node
        self._note(self.now, "arrived", stream, entry)
        for flow in self.flows[stream]:
            self._put_out(flow, 1.0, self.now, 0.0, entry)
        self._next_row(stream)
        return 1

    def _finish(self, where: tuple[str, int]) -> int:
        name, era = where
        node = self.nodes[name]
        if node.era != era or node.serving is None:
            return 0
        done, cost, pairs = node.serving
        self._note(self.now, "finished", self.names[done.operator], name)
        for flow in self.flows[done.operator]:
            self._put_out(flow, pairs, done.born, done.work + cost, name)
        node.serving = None
        if node.queue:
            self._serve(name)
        return 1

    def _land(self, copy: tuple[str, list[_Tuple]]) -> int:
        target, tuples = copy
        flow, node = tuples[0].flow, self.nodes[target]
        node.debt += flow.transfer / 2
        through = self._through(node, flow.bytes, self.now)
        if through > self.now:
            self._at(through, self._deliver, tuples)
        else:
            self._deliver(tuples)
        return 1

    def _deliver(self, tuples: list[_Tuple]) -> int:
        for one in tuples:
            self._note(self.now, "delivered", self.names[one.operator], self.place[one.operator])
            self._enqueue(one)
        return 1

    def _resume(self, which: tuple[int, int]) -> int:
        operator, era = which
        if self.move_era[operator] != era:
            return 0
        self._note(self.now, "resumed", self.names[operator], self.place[operator])
        for one in self.parked.pop(operator):
            self._enqueue(one)
        return 1

    # ---- rows and nodes

    def _put_out(self, flow: _Flow, pairs: float, born: float, work: float, sender: str | None) -> None:
        flow.credit += flow.ratio * pairs
        rows = int(flow.credit)
        flow.credit -= rows
        for _ in range(rows):
            copies: dict[str, list[_Tuple]] = {}
            for operator, cost, side in flow.readers:
                one = _Tuple(born, work, operator, cost, side, flow)
                target = self.place[operator]
                if sender is None or target is None or target == sender:
                    self._enqueue(one)
                else:
                    copies.setdefault(target, []).append(one)
            for target, tuples in copies.items():
                at = self._over(flow, str(sender), target)
                if at > self.now:
                    self._at(at, self._land, (target, tuples))
                else:
                    self._land((target, tuples))
            for place in flow.exits:
                at = self.now
                if place is not None and sender is not None and place != sender:
                    at = self._over(flow, sender, place)
                self._note(at, "result", flow.name, sender, at - born)

    def _over(self, flow: _Flow, sender: str, target: str) -> float:
        node = self.nodes[sender]
        node.debt += flow.transfer / 2
        at = self._through(node, flow.bytes, self.now)
        if flow.bytes and self.shared < float("inf"):
            at = self.shared_free = max(at, self.shared_free) + flow.bytes / self.shared
        if self.latency is not None:
            names = self.problem.cluster.names
            at += self.latency[names.index(sender)][names.index(target)] / 1000.0
        return at

    @staticmethod
    def _through(node: _Node, size: float, now: float) -> float:
        if not size or node.bandwidth == float("inf"):
            return now
        node.link_free = max(now, node.link_free) + size / node.bandwidth
        return node.link_free

    def _enqueue(self, one: _Tuple) -> None:
        if one.operator in self.parked:
            self.parked[one.operator].append(one)
            return
        name = self.place[one.operator]
        assert name is not None
        self.nodes[name].queue.append(one)
        if self.nodes[name].serving is None:
            self._serve(name)

    def _serve(self, name: str) -> None:
        node = self.nodes[name]
        one = node.queue.popleft()
        pairs = 1.0 if one.side is None else self._pairs(one)
        cost = one.cost * pairs
        time = (cost + node.debt) / node.cpu
        node.debt = 0.0
        node.serving = (one, cost, pairs)
        self._at(self.now + time, self._finish, (name, node.era))

    def _pairs(self, one: _Tuple) -> float:
        pairs = 1.0 / self.problem.physical.operators[one.operator].share
        for side, (window, times) in enumerate(self.windows[one.operator]):
            if side != one.side:
                while times and times[0] < one.born - window:
                    times.popleft()
                pairs *= len(times)
        assert one.side is not None
        self.windows[one.operator][one.side][1].append(one.born)
        return pairs

    # ---- what is done to it

    def move(self, operator: int, node: str, takes: float) -> None:
        """Suspend an operator; its tuples wait until it is on the other node."""
        self._note(self.now, "suspended", self.names[operator], self.place[operator])
        self._park(operator)
        self.place[operator] = node
        self.move_era[operator] += 1
        self._at(self.now + takes, self._resume, (operator, self.move_era[operator]))

    def lose(self, name: str) -> None:
        """A node is gone; what it was doing is done again where its operators come to stand."""
        self._note(self.now, "lost", name, name)
        node = self.nodes[name]
        node.era += 1
        if node.serving is not None:
            node.queue.appendleft(node.serving[0])
            node.serving = None
        for operator, place in enumerate(self.place):
            if place == name:
                self._park(operator)
                self.place[operator] = None
                self.move_era[operator] += 1
        left = list(node.queue)
        node.queue.clear()
        for one in left:
            self._enqueue(one)

    def _park(self, operator: int) -> None:
        if operator in self.parked:
            return
        node = self.nodes[str(self.place[operator])]
        self.parked[operator] = [one for one in node.queue if one.operator == operator]
        node.queue = deque(one for one in node.queue if one.operator != operator)
