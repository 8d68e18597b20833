"""Room for everything: units placed in turn, and those that found no room first in another try."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from levelwind.placement.flows import Flows
from levelwind.placement.protocol import Decision, infeasible
from levelwind.placement.room import CPU, Room

# So many orders are tried, then so many steps of a search, before what found no room is given up.
ORDERS, STEPS = 20, 20_000
# The search goes as deep as there are units; with so many, it would hardly find what the orders missed.
MOST_UNITS = 300
Part = TypeVar("Part")


def begin(flows: Flows) -> tuple[Room, Decision | None]:
    """The room that fixed units leave, or why there is none."""
    room = Room(flows)
    problem = room.overfull()
    return room, None if problem is None else infeasible(problem)


def place_all(
    flows: Flows, parts: Sequence[Part], place: Callable[[Room, Part], int | None]
) -> tuple[Room, Decision | None]:
    """Place parts one after the other; one that finds no room comes first in another try.

    Small units that come first may leave no node with room for a large one, though there is a plan. Whoever
    found no room chooses before all others the next time. After ``ORDERS`` tries in vain any plan will do:
    it is searched for, the heaviest unit first, on the node that it fills most.

    Parameters
    ----------
    place
        Places a part in a room, and returns a unit of it that fits nowhere, or None if all are placed.

    Returns
    -------
    The room with everything in it, or why there is none. O(orders) times the cost of placing all, and
    O(steps × nodes) for the search: with few units and nodes, no plan is missed.
    """
    order = list(parts)
    room, why = Room(flows), ""
    for _ in range(ORDERS):
        room = Room(flows)
        stuck = _first_stuck(room, order, place)
        if stuck is None:
            return room, None
        at, unit = stuck
        why = room.shortage(unit)
        if at == 0 or not room.fits_in_all():
            return room, infeasible(why)
        order.insert(0, order.pop(at))
    search = _Search(flows)
    if len(search.units) <= MOST_UNITS and search.succeeds():
        return search.room, None
    whole = 0 < search.steps < STEPS
    return room, infeasible(why if whole else f"{why}; not all plans were looked at")


def _first_stuck(
    room: Room, order: Sequence[Part], place: Callable[[Room, Part], int | None]
) -> tuple[int, int] | None:
    """The first part, by position, of which a unit fits nowhere, and that unit."""
    for at, part in enumerate(order):
        if (unit := place(room, part)) is not None:
            return at, unit
    return None


class _Search:
    """Any plan that fits, by trying nodes for one unit after the other and going back where none is left."""

    def __init__(self, flows: Flows) -> None:
        self.room = Room(flows)
        self.steps = STEPS
        free = np.flatnonzero(flows.units.fixed < 0)
        load = np.nan_to_num(flows.units.mean_load[free])
        self.units: list[int] = free[np.argsort(-load, kind="stable")].tolist()

    def succeeds(self, first: int = 0) -> bool:
        """Whether the units from the first on have found room, given where those before it stand."""
        if first == len(self.units):
            return True
        unit = self.units[first]
        for node in np.argsort(self.room.left[CPU], kind="stable").tolist():
            self.steps -= 1
            if self.steps <= 0:
                return False
            if self.room.lacking(unit, node) is None:
                self.room.place(unit, node)
                if self.succeeds(first + 1):
                    return True
                self.room.remove(unit)
        return False
