"""The network: all streams and operators of all queries together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from levelwind.errors import InputError, Problem
from levelwind.model.frozen import frozen_mapping
from levelwind.model.operator import Operator
from levelwind.model.stream import ErrorPolicy, Output, Port, Query, Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The directed acyclic graph of streams and operators, as written.

    The mappings keep the written order. A network made by `levelwind.load` has been checked whole;
    one made in Python is checked for what planning needs: names that exist, and no cycle.
    """

    name: str = "network"
    streams: Mapping[str, Stream] = field(default_factory=frozen_mapping)
    operators: Mapping[str, Operator] = field(default_factory=frozen_mapping)
    outputs: Mapping[str, Output] = field(default_factory=frozen_mapping)
    queries: Mapping[str, Query] = field(default_factory=frozen_mapping)
    errors: ErrorPolicy = field(default_factory=ErrorPolicy)
    hops: str = "within"
    trigger_s: float | None = None
    order: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("streams", "operators", "outputs", "queries"):
            object.__setattr__(self, name, frozen_mapping(getattr(self, name)))
        problems = [
            Problem(rule="must read a stream, an operator or a route that exists", key=name, value=str(port))
            for name, operator in self.operators.items()
            for port in operator.inputs
            if not self._has(port)
        ]
        if problems:
            raise InputError(problems)
        order, cycle = topological_order({o.name: o for o in self.operators.values()})
        if cycle:
            raise InputError([Problem(rule="operators feed each other in a circle", value=" → ".join(cycle))])
        object.__setattr__(self, "order", order)

    def _has(self, port: Port) -> bool:
        operator = self.operators.get(port.source)
        if operator is not None:
            return port.route in operator.routes
        return port.source in self.streams and port.route is None


def topological_order(operators: Mapping[str, Operator]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Operators with every reader after what it reads, and, if there is one, a cycle.

    Ties keep the written order. O(operators + arcs).
    """
    readers: dict[str, list[str]] = {name: [] for name in operators}
    waiting: dict[str, int] = {}
    for name, operator in operators.items():
        feeding = [port.source for port in operator.inputs if port.source in operators]
        waiting[name] = len(feeding)
        for source in feeding:
            readers[source].append(name)
    order = [name for name, count in waiting.items() if count == 0]
    for name in order:  # grows while it is read
        for reader in readers[name]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                order.append(reader)
    if len(order) == len(operators):
        return tuple(order), ()
    return tuple(order), _find_cycle(operators, set(operators) - set(order))


def _find_cycle(operators: Mapping[str, Operator], stuck: set[str]) -> tuple[str, ...]:
    """One cycle among operators that a topological sort could not place, first name repeated at the end."""
    # Every stuck operator reads a stuck one, so walking upstream must come back to a name already seen.
    name = min(stuck, key=list(operators).index)
    path: list[str] = []
    while name not in path:
        path.append(name)
        name = next(p.source for p in operators[name].inputs if p.source in stuck)
    cycle = path[path.index(name) :]
    return (cycle[0], *reversed(cycle))
