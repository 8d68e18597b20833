"""Who loses rows when all nodes together cannot bear the load: the least important first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from levelwind.control.judging import ROUNDING
from levelwind.control.standing import Standing
from levelwind.loads.arrays import Floats

# Loads are estimates, so the aim is a little below what the nodes can bear; everybody keeps a sample.
AIM, LEAST = 0.95, 0.05
# A share above this counts as all rows, and a change in proportion of less is none.
NEARLY_ALL, SLIGHT = 0.98, 0.02


def kept_shares(load: Floats, may_shed: NDArray[np.bool_], priority: Floats, room: float) -> Floats:
    """Share of its rows that each operator is to take, so that no more than ``room`` of the load is left.

    ``load`` is each operator's with all its rows, taken as proportional to them. Operators that may not shed
    keep everything. The others give in order of their priority: one keeps less than all only if those of
    lower priority are down to `LEAST`, and operators of one priority keep equal shares. If even that does
    not suffice, all are at `LEAST`. O(operators log operators).

    Examples
    --------
    Room for 0.75 of a load of 1.1: the second, the least important, gives.

    >>> kept_shares(np.array([0.5, 0.5, 0.1]), np.array([True, True, False]), np.array([2.0, 1, 0]), 0.75)
    array([1. , 0.3, 1. ])
    """
    kept = np.ones(len(load))
    left = room - float(load[~may_shed].sum())
    below = float(load[may_shed].sum())
    for rank in np.unique(priority[may_shed])[::-1]:
        equal = may_shed & (priority == rank)
        own = float(load[equal].sum())
        if own <= 0.0:
            continue
        below -= own
        share = float(np.clip((left - LEAST * below) / own, LEAST, 1.0))
        kept[equal] = share
        left -= share * own
    return kept


class Shedding:
    """Keeps the shares that are in force, and revises them as loads are reported.

    A join's work falls faster than its rows, by how much nobody knows. So a share goes half of the way, in
    proportion, to where a proportional load would put it: where the work goes with the square of the rows
    that is right at once, where it is proportional the error halves each time. The next revision waits until
    the window of statistics has nothing in it from before the last.
    """

    def __init__(self) -> None:
        self._shares: dict[str, float] = {}
        self._wait = 0

    @property
    def shares(self) -> dict[str, float]:
        """Operators that do not take all their rows, and the share that they take."""
        return dict(self._shares)

    def forget(self, operator: str) -> bool:
        """An operator is gone; whether it was to leave rows out."""
        return self._shares.pop(operator, None) is not None

    def revise(self, standing: Standing, samples: int) -> dict[str, float]:
        """Take the loads of a report in, of so many samples; the shares that change. O(operators)."""
        roster, capacity = standing.roster, float(standing.cpu.sum())
        over = float(standing.load.sum()) > capacity * (1 + ROUNDING)
        if not (over or self._shares) or not roster.may_shed.any():
            return {}
        if self._wait > 0:
            self._wait -= 1
            return {}
        now = np.ones(len(roster.names))
        for name, share in self._shares.items():
            now[roster.position[name]] = share
        # What an operator lets through is the load of those that it feeds, too.
        load = np.bincount(roster.fed_by, weights=standing.load, minlength=len(now))
        wanted = kept_shares(load / now, roster.may_shed, roster.priority, AIM * capacity)
        new = np.sqrt(now * wanted)
        new[new > NEARLY_ALL] = 1.0
        changed = {
            roster.names[j]: float(new[j]) for j in np.flatnonzero(np.abs(new / now - 1.0) > SLIGHT).tolist()
        }
        if changed:
            self._wait = samples
        everything = self._shares | changed
        self._shares = {name: share for name, share in everything.items() if share < 1.0}
        return changed
