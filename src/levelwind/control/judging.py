"""Accept or reject: every rule that a proposed move must keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from levelwind.balance.protocol import Proposal
from levelwind.control.roster import Roster
from levelwind.errors import input_error
from levelwind.loads.arrays import Floats, Ints

# A node that is full to the last digit is not overloaded, and equal loads are equal.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much may move. Loads are CPU seconds per second; None: as much as is proposed.

    ``moved_load`` is per report, ``moves`` at once, ``state_bytes`` per operator (or operators on one table).
    """

    moved_load: float | None = None
    moves: int | None = None
    state_bytes: float | None = None


class Verdict(NamedTuple):
    """What became of the proposed moves of one unit: ``against`` says why not, empty if accepted."""

    proposals: tuple[Proposal, ...]
    against: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Court:
    """What proposals are judged by: rules, limits, and how things stand now.

    ``going`` names the target of every operator that is under way; ``index`` is each operator's node by
    position, ``load`` each operator's mean load, ``cpu`` each node's capacity, ``unready`` the nodes that
    take nothing now.
    """

    roster: Roster
    limits: Limits
    going: Mapping[str, str]
    nodes: Sequence[str]
    index: Ints
    load: Floats
    cpu: Floats
    state_bytes: Floats
    unready: Set[int] = frozenset()

    def judge(self, proposed: Iterable[Proposal], levels: Floats) -> Iterator[Verdict]:
        """Judge exchange by exchange, in the order proposed. ``levels``: mean load of each node.

        An exchange of which every part keeps the rules and the limits is accepted whole. Otherwise its parts
        are judged one by one, and none may raise the larger load of its two nodes. O(proposals).
        """
        groups: dict[int, list[Proposal]] = {}
        for proposal in proposed:
            groups.setdefault(proposal.group, []).append(proposal)
        doubtful = self._doubtful(groups)
        # Lists: a report may bring thousands of proposals, and NumPy is slow one number at a time.
        level, load_of, index = levels.tolist(), self.load.tolist(), self.index.tolist()
        left = np.inf if self.limits.moved_load is None else self.limits.moved_load
        slots = np.inf if self.limits.moves is None else self.limits.moves - len(self.going)
        accepted: set[int] = set()
        for number, group in groups.items():
            parts = self._parts(group) if number in doubtful else [(proposal,) for proposal in group]
            rules = [self._forbidden(part, accepted) if number in doubtful else "" for part in parts]
            loads = [sum(load_of[p.operator] for p in part) for part in parts]
            whole = not any(rules) and sum(loads) <= left * (1 + ROUNDING) and len(group) <= slots
            for part, rule, load in zip(parts, rules, loads, strict=True):
                source, target = index[part[0].operator], part[0].to
                against = rule
                if not against and load > left * (1 + ROUNDING):
                    against = (
                        f"beyond the budget of moved load: {left:.3g} left of {self.limits.moved_load:.3g}"
                    )
                if not against and len(part) > slots:
                    against = "as many moves under way as are allowed at once"
                if not against and not whole and self._raises(level, source, target, load):
                    against = "alone, without the rest of the exchange, it would raise the larger load"
                if not against:
                    left -= load
                    slots -= len(part)
                    accepted.update(proposal.operator for proposal in part)
                    level[source] -= load
                    level[target] += load
                yield Verdict(part, against)

    def _doubtful(self, groups: Mapping[int, list[Proposal]]) -> set[int]:
        """Exchanges in which a rule may forbid something; in all others every operator is free and alone."""
        every = [proposal for group in groups.values() for proposal in group]
        operator = np.fromiter((p.operator for p in every), dtype=np.int64, count=len(every))
        to = np.fromiter((p.to for p in every), dtype=np.int64, count=len(every))
        known = (operator >= 0) & (operator < len(self.roster.names)) & (to >= 0) & (to < len(self.nodes))
        if not known.all():
            wrong = every[int(np.argmin(known))]
            rule = "a policy must propose operators and nodes by position"
            raise input_error(rule, key="proposal", value=f"{wrong.operator} to {wrong.to}")
        free = self.roster.movable & self.roster.alone
        free[[self.roster.position[name] for name in self.going]] = False
        if self.limits.state_bytes is not None:
            free &= self.state_bytes <= self.limits.state_bytes
        once = np.bincount(operator, minlength=len(free)) == 1
        clear = (free & once)[operator] & (self.index[operator] != to)
        if self.unready:
            clear &= ~np.isin(to, list(self.unready))
        return {every[k].group for k in np.flatnonzero(~clear).tolist()}

    def _parts(self, group: list[Proposal]) -> list[tuple[Proposal, ...]]:
        """The group's proposals, those of one unit together."""
        parts: dict[int, list[Proposal]] = {}
        for proposal in group:
            parts.setdefault(int(self.roster.unit[proposal.operator]), []).append(proposal)
        return [tuple(part) for part in parts.values()]

    def _forbidden(self, part: tuple[Proposal, ...], accepted: Set[int]) -> str:
        """The rule that forbids to move these operators of one unit; empty if none does."""
        operators = [proposal.operator for proposal in part]
        together = self.roster.together(operators[0])
        apart = len(together) > 1 and len({p.to for p in part}) > 1
        if apart or ((len(part), len(together)) != (1, 1) and sorted(operators) != sorted(together)):
            return "operators on one table move together or not at all"
        for j in operators:
            name = self.roster.names[j]
            if self.roster.pinned[j] is not None:
                return f"pinned to {self.roster.pinned[j]}"
            if name in self.going:
                return f"already on its way to {self.going[name]}"
            if j in accepted:
                return "moves in an exchange that was accepted before"
            if not self.roster.movable[j]:
                return "declared immovable, or on a table with an operator that is"
            if self.index[j] == part[0].to:
                return "it stands there already"
            if part[0].to in self.unready:
                return f"{self.nodes[part[0].to]} is not ready"
        most = self.limits.state_bytes
        if most is not None and float(self.state_bytes[operators].sum()) > most:
            state = float(self.state_bytes[operators].sum())
            return f"its state of {state:.0f} bytes is above the limit of {most:.0f}"
        return ""

    def _raises(self, level: list[float], source: int, target: int, load: float) -> bool:
        before = max(level[source] / self.cpu[source], level[target] / self.cpu[target])
        return bool((level[target] + load) / self.cpu[target] > before * (1 + ROUNDING))
