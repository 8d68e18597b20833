"""What managing costs: CPU seconds, bytes in and out, and memory, per node and second.

The manager itself has no clock: whoever drives it hands one in.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from levelwind.control.events import Event, QueryAdded, QueryRemoved, StatisticsReported
from levelwind.control.instructions import Instruction

NUMBER_BYTES = 8


_Made = TypeVar("_Made", bound=Event)


class Managing(Protocol):
    """A manager, or a manager of managers."""

    def handle(self, event: Event) -> tuple[Instruction, ...]:
        """Take an event in."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What was spent so far. ``seconds`` is the time covered, on the clock of the events."""

    events: int
    cpu_s: float
    longest_s: float
    bytes_in: int
    bytes_out: int
    memory_bytes: int
    nodes: int
    seconds: float

    def as_dict(self) -> dict[str, float | None]:
        """Rates per node and second, memory per node; and the longest time spent on one event.

        Rates are None until events have come at two different times: before, there is no time they are of.
        """
        share = max(self.nodes, 1) * self.seconds
        return {
            "cpu_s": self.cpu_s / share if share else None,
            "bytes_in": self.bytes_in / share if share else None,
            "bytes_out": self.bytes_out / share if share else None,
            "memory_bytes": self.memory_bytes / max(self.nodes, 1),
            "longest_ms": 1000.0 * self.longest_s,
        }


class Meter:
    """Stands before a manager and measures what passes.

    Bytes are those of a plain encoding: 8 for a number, text as UTF-8. Names of operators in a report count
    once, as both ends keep their order; a changed network counts with the names of its operators.
    """

    def __init__(self, manager: Managing, *, cpu_clock: Callable[[], float]) -> None:
        self.manager, self._clock = manager, cpu_clock
        self._events, self._cpu_s, self._longest_s, self._in, self._out = 0, 0.0, 0.0, 0, 0
        self._names: tuple[str, ...] = ()
        self._began: float | None = None
        self._now = 0.0
        self._memory, self._weighed_at = 0, 0

    def making(self, make: Callable[[], _Made]) -> _Made:
        """What is to be handed on, made now: its CPU counts with the manager's, in ``cpu_s`` alone."""
        began = self._clock()
        made = make()
        self._cpu_s += self._clock() - began
        return made

    def handle(self, event: Event) -> tuple[Instruction, ...]:
        """Hand an event on."""
        began = self._clock()
        answer = self.manager.handle(event)
        spent = self._clock() - began
        self._cpu_s += spent
        self._longest_s = max(self._longest_s, spent)
        self._events += 1
        self._in += self._size(event)
        self._out += sum(_bytes_of(each) for each in answer)
        self._began = event.at_s if self._began is None else self._began
        self._now = event.at_s
        return answer

    def footprint(self, nodes: int) -> Footprint:
        """What was spent so far, by a cluster of so many nodes.

        To weigh the manager costs O(all that it keeps): it is done when twice as many events have come.
        """
        if self._events >= 2 * self._weighed_at:
            self._memory, self._weighed_at = _held(self.manager), max(1, self._events)
        return Footprint(
            events=self._events,
            cpu_s=self._cpu_s,
            longest_s=self._longest_s,
            bytes_in=self._in,
            bytes_out=self._out,
            memory_bytes=self._memory,
            nodes=nodes,
            seconds=0.0 if self._began is None else self._now - self._began,
        )

    def _size(self, event: Event) -> int:
        if isinstance(event, StatisticsReported):
            size = NUMBER_BYTES + np.asarray(event.series).nbytes
            size += sum(np.asarray(figures).nbytes for figures in event.seen.values())
            size += NUMBER_BYTES * len(event.state_bytes)
            if self._names is not event.operators and self._names != event.operators:
                self._names = event.operators
                size += sum(len(name.encode()) for name in event.operators)
            return size
        if isinstance(event, QueryAdded | QueryRemoved):
            return NUMBER_BYTES + sum(len(name.encode()) for name in event.network.operators)
        return _bytes_of(event)


def _bytes_of(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if is_dataclass(value):
        return sum(_bytes_of(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, Mapping):
        return sum(_bytes_of(key) + _bytes_of(own) for key, own in value.items())
    if isinstance(value, tuple | list):
        return sum(map(_bytes_of, value))
    return NUMBER_BYTES


def _held(root: Any) -> int:
    """Bytes that an object and all that it alone leads to take up; classes and modules are not counted."""
    seen: set[int] = set()
    stack, total = [root], 0
    while stack:
        one = stack.pop()
        if id(one) in seen or isinstance(one, type) or callable(one):
            continue
        seen.add(id(one))
        total += one.nbytes if isinstance(one, np.ndarray) else sys.getsizeof(one)
        if isinstance(one, Mapping):
            stack += [*one.keys(), *one.values()]
        elif isinstance(one, tuple | list | set | frozenset | deque):
            stack += list(one)
        elif hasattr(one, "__dict__"):
            stack += list(vars(one).values())
        if is_dataclass(one):
            stack += [getattr(one, field.name, None) for field in fields(one)]
    return total
