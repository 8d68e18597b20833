"""What is to happen: a binary heap of events by time; of equal times, the one scheduled first comes first."""

from __future__ import annotations

from typing import Any

from levelwind.sim.compiling import inlined
from levelwind.sim.tables import Tables

# An event is one number: what it is about times `KINDS`, plus its kind.
ARRIVE, FINISH, LAND, DELIVER, RESUME = 0, 1, 2, 3, 4
KINDS = 8


@inlined
def _write(event: Any, at_s: float, number: int, what: int, extra: int) -> None:
    event.at_s, event.number, event.what, event.extra = at_s, number, what, extra


@inlined
def copy_event(source: Any, target: Any) -> None:
    """Write an event into another's place."""
    _write(target, source.at_s, source.number, source.what, source.extra)


@inlined
def push(t: Tables, at_s: float, what: int, extra: int) -> None:
    """Schedule an event. O(log events)."""
    total = t.totals[0]
    number = total.sequence
    total.sequence = number + 1
    place = total.heap
    total.heap = place + 1
    # The new event has the largest number so far: at equal times it stays behind.
    while place > 0:
        above = (place - 1) >> 1
        if t.events[above].at_s <= at_s:
            break
        copy_event(t.events[above], t.events[place])
        place = above
    _write(t.events[place], at_s, number, what, extra)


@inlined
def sift_down(t: Tables, place: int) -> None:
    """Let an event sink to where it belongs. O(log events)."""
    total = t.totals[0]
    size = total.heap
    moved = t.events[place]
    at_s, number, what, extra = moved.at_s, moved.number, moved.what, moved.extra
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        one = t.events[below]
        if below + 1 < size:
            other = t.events[below + 1]
            if other.at_s < one.at_s or (other.at_s == one.at_s and other.number < one.number):
                below += 1
                one = other
        if one.at_s > at_s or (one.at_s == at_s and one.number > number):
            break
        copy_event(one, t.events[place])
        place = below
    _write(t.events[place], at_s, number, what, extra)


@inlined
def pop(t: Tables) -> None:
    """Take the next event away. O(log events)."""
    total = t.totals[0]
    last = total.heap - 1
    total.heap = last
    if last > 0:
        copy_event(t.events[last], t.events[0])
        sift_down(t, 0)
