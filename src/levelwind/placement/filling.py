"""Room for everything: units placed in turn, and those that found no room first in another try."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from levelwind.placement.flows import Flows
from levelwind.placement.protocol import Decision, infeasible
from levelwind.placement.room import Room

# So many orders are tried before what found no room in any of them is given up.
ORDERS = 40
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
    found no room chooses before all others the next time, until everything has a place or ``ORDERS`` were
    tried in vain.

    Parameters
    ----------
    place
        Places a part in a room, and returns a unit of it that fits nowhere, or None if all are placed.

    Returns
    -------
    The room with everything in it, or why there is none. O(orders) times the cost of placing all.
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
    return room, infeasible(f"{why}; {ORDERS} orders of placing were tried")


def _first_stuck(
    room: Room, order: Sequence[Part], place: Callable[[Room, Part], int | None]
) -> tuple[int, int] | None:
    """The first part, by position, of which a unit fits nowhere, and that unit."""
    for at, part in enumerate(order):
        if (unit := place(room, part)) is not None:
            return at, unit
    return None
