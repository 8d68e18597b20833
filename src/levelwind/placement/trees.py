"""The least network usage of a group of units, exactly where they hang together like a tree.

Units and the flows between them make a graph of two kinds of points. If it has no circle, tables of least
cost are passed along it from the leaves: for a unit one figure per node, the least that everything behind it
can cost. A flow is sent once to each node, so its readers may gain by standing together: all ways to group
them are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from levelwind.loads.arrays import Floats, Ints
from levelwind.placement.flows import Flow, Flows

# So many readers of one flow are grouped in all ways; the work doubles with each.
MOST_READERS = 8


@dataclass(slots=True)
class Bond:
    """A flow that ties units which are not placed yet.

    ``price`` has a row per candidate of the home (one row if the home is placed), a column per candidate of
    a reader; ``home`` is −1 if it is placed.
    """

    home: int
    readers: tuple[int, ...]
    price: Floats

    @property
    def ends(self) -> tuple[int, ...]:
        """The units that it ties."""
        return self.readers if self.home < 0 else (self.home, *self.readers)


@dataclass(slots=True)
class Group:
    """Units that flows tie together, with the nodes they may stand on (the same for all of them).

    ``alone`` is per unit and candidate what flows from and to placed units cost; infinite where it may not
    stand.
    """

    members: tuple[int, ...]
    candidates: Ints
    alone: dict[int, Floats]
    bonds: list[Bond] = field(default_factory=list)

    @property
    def is_tree(self) -> bool:
        """Whether no circle of units and flows exists, and no flow has too many readers to group."""
        arcs = sum(len(bond.ends) for bond in self.bonds)
        few = all(len(bond.readers) <= MOST_READERS for bond in self.bonds)
        return few and arcs == len(self.members) + len(self.bonds) - 1


def groups_of(flows: Flows, free: Sequence[int], *, entries: bool) -> list[tuple[int, ...]]:
    """Free units, grouped by the flows that tie them; each group in rising order. O(arcs).

    ``entries`` says whether readers of one entering or placed flow are tied too: they share its copies.
    """
    leader = list(range(flows.units.count))

    def find(unit: int) -> int:
        while leader[unit] != unit:
            leader[unit] = leader[leader[unit]]
            unit = leader[unit]
        return unit

    inside = set(free)
    for flow in flows.flows:
        ends = [unit for unit in flow.readers if unit in inside]
        if flow.home in inside:
            ends.append(flow.home)
        elif not entries:
            continue
        for a, b in pairwise(ends):
            leader[find(a)] = find(b)
    found: dict[int, list[int]] = {}
    for unit in sorted(inside):
        found.setdefault(find(unit), []).append(unit)
    return [tuple(units) for units in found.values()]


def make_group(
    flows: Flows, members: tuple[int, ...], candidates: Ints, nodes: Ints, latency_s: Floats
) -> Group:
    """What placing these units costs, given where others stand. O(arcs × candidates²) for arcs inside."""
    inside = set(members)
    group = Group(
        members=members, candidates=candidates, alone={u: np.zeros(len(candidates)) for u in members}
    )
    between: Floats | None = None
    for f in dict.fromkeys(f for unit in members for f in flows.of[unit]):
        flow = flows.flows[f]
        open_readers = tuple(unit for unit in flow.readers if unit in inside)
        known = flows.receivers(flow, nodes)
        if flow.home in inside:
            for target in known:
                group.alone[flow.home] += flow.rate * latency_s[candidates, target]
            if open_readers:
                if between is None:
                    between = latency_s[np.ix_(candidates, candidates)]
                price = _priced(flow, between, candidates, known)
                group.bonds.append(Bond(home=flow.home, readers=open_readers, price=price))
            continue
        home = flows.home(flow, nodes)
        if home < 0 or not open_readers:
            continue
        row = _priced(flow, latency_s[home, candidates][None, :], candidates, known | {home})
        if len(open_readers) == 1:
            group.alone[open_readers[0]] += row[0]
        else:
            group.bonds.append(Bond(home=-1, readers=open_readers, price=row))
    return group


def _priced(flow: Flow, latency_s: Floats, candidates: Ints, paid: set[int]) -> Floats:
    """What a copy costs by home and receiver; nodes that get one anyway cost nothing more."""
    price = flow.rate * latency_s
    if paid:
        price[:, np.isin(candidates, np.fromiter(paid, dtype=np.int64))] = 0.0
    return price


def tree_optimum(group: Group) -> tuple[dict[int, int], float]:
    """The candidate (by position) of each unit that together cost least, and that cost.

    Exact for a tree. O(bonds × 2^readers × candidates²). The cost is infinite if nothing is allowed.
    """
    return _Passing(group).solve()


class _Passing:
    def __init__(self, group: Group) -> None:
        self.group = group
        self.table = {unit: cost.copy() for unit, cost in group.alone.items()}
        self.bonds_at: dict[int, list[int]] = {unit: [] for unit in group.members}
        for b, bond in enumerate(group.bonds):
            for unit in bond.ends:
                self.bonds_at[unit].append(b)
        self.chosen: dict[int, int] = {}

    def solve(self) -> tuple[dict[int, int], float]:
        root = self.group.members[0]
        # Bonds in the order in which they are reached from the root, each with the unit it is reached from.
        reached: list[tuple[int, int]] = []
        waiting, seen = [root], {root}
        used: set[int] = set()
        while waiting:
            unit = waiting.pop()
            for b in self.bonds_at[unit]:
                if b in used:
                    continue
                used.add(b)
                reached.append((b, unit))
                fresh = [other for other in self.group.bonds[b].ends if other not in seen]
                seen.update(fresh)
                waiting += fresh
        for b, parent in reversed(reached):
            self.table[parent] += self._message(self.group.bonds[b], parent)
        best = int(np.argmin(self.table[root]))
        cost = float(self.table[root][best])
        self.chosen[root] = best
        if np.isfinite(cost):
            for b, parent in reached:
                self._settle(self.group.bonds[b], parent)
        return self.chosen, cost

    def _message(self, bond: Bond, parent: int) -> Floats:
        """The least cost of everything behind the bond, by candidate of the parent."""
        if parent == bond.home:
            _, least = self._together(bond, bond.readers, bond.price)
            return least[-1]
        others = tuple(unit for unit in bond.readers if unit != parent)
        return np.asarray(np.min(self._with_parent(bond, others), axis=0))

    def _with_parent(self, bond: Bond, others: tuple[int, ...]) -> Floats:
        """By which of the other readers stand with the parent, and the parent's candidate: the least cost."""
        _, least = self._together(bond, others, bond.price)
        rows = []
        everyone = (1 << len(others)) - 1
        for mask in range(everyone + 1):
            beside = self._sum(others, mask)
            home = least[everyone ^ mask] + (0.0 if bond.home < 0 else self.table[bond.home])
            rows.append(beside + np.min(bond.price + home[:, None], axis=0))
        return np.array(rows)

    def _together(self, bond: Bond, readers: tuple[int, ...], price: Floats) -> tuple[Floats, Floats]:
        """For each set of readers, by home: the least cost if they stand together, and if grouped at best."""
        count = 1 << len(readers)
        block = np.zeros((count, len(price)))
        least = np.zeros((count, len(price)))
        for mask in range(1, count):
            block[mask] = np.min(price + self._sum(readers, mask)[None, :], axis=1)
            least[mask] = np.min([block[part] + least[mask ^ part] for part in _parts(mask)], axis=0)
        return block, least

    def _sum(self, readers: tuple[int, ...], mask: int) -> Floats:
        total = np.zeros(len(self.group.candidates))
        for k, unit in enumerate(readers):
            if mask >> k & 1:
                total = total + self.table[unit]
        return total

    def _settle(self, bond: Bond, parent: int) -> None:
        """Choose for all units behind the bond, the parent being placed."""
        readers = bond.readers
        if parent == bond.home:
            home = self.chosen[bond.home]
        else:
            at = self.chosen[parent]
            readers = tuple(unit for unit in bond.readers if unit != parent)
            mask = int(np.argmin(self._with_parent(bond, readers)[:, at]))
            _, least = self._together(bond, readers, bond.price)
            everyone = (1 << len(readers)) - 1
            above = least[everyone ^ mask] + (0.0 if bond.home < 0 else self.table[bond.home])
            home = int(np.argmin(bond.price[:, at] + above))
            if bond.home >= 0:
                self.chosen[bond.home] = home
            for k, unit in enumerate(readers):
                if mask >> k & 1:
                    self.chosen[unit] = at
            readers = tuple(unit for k, unit in enumerate(readers) if not mask >> k & 1)
        row = bond.price[home][None, :]
        block, least = self._together(bond, readers, row)
        mask = (1 << len(readers)) - 1
        while mask:
            parts = _parts(mask)
            part = parts[int(np.argmin([block[p, 0] + least[mask ^ p, 0] for p in parts]))]
            at = int(np.argmin(row[0] + self._sum(readers, part)))
            for k, unit in enumerate(readers):
                if part >> k & 1:
                    self.chosen[unit] = at
            mask ^= part


def _parts(mask: int) -> list[int]:
    """The parts of a set that hold its lowest member: one of them is a group, the rest is grouped alike."""
    lowest = mask & -mask
    rest, part, found = mask ^ lowest, mask ^ lowest, []
    while True:
        found.append(part | lowest)
        if part == 0:
            return found
        part = (part - 1) & rest
