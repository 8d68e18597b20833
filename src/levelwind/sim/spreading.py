"""Spread joins in the simulator: which part of the rows goes to which instance, and what a row costs there.

The kernel knows no segments and paths. Like planners, it is told the means that follow from the laws of
routing at the stated rates: copies of each row, partial groups from hop to hop, and the join's work shared
out over the rows that its parts receive. So a burst makes a part's work grow with the rows that come, not
with their product. Instances share everything by the speed of the nodes on which they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from levelwind.loads.arrays import Floats, Ints
from levelwind.loads.problem import Problem
from levelwind.model import JoinPart
from levelwind.model.operator import Diffusion
from levelwind.rewrite.diffuse import spread_name
from levelwind.rewrite.spreading import Spreading


@dataclass(frozen=True, slots=True)
class SpreadFlows:
    """By number of the operator: rows on a route per row in, and CPU seconds per row in."""

    ratios: dict[tuple[int, str | None], float] = field(default_factory=dict)
    costs: dict[int, float] = field(default_factory=dict)


class SpreadJoin:
    """One spread join in figures, all per second."""

    def __init__(self, problem: Problem, number: int) -> None:
        self.number = number
        diffusion = problem.physical.operators[number].logical
        assert isinstance(diffusion.spec, Diffusion)
        self.diffusion = diffusion.spec
        self.name = spread_name(diffusion.name)
        self.spreading: Spreading = problem.linear.spread[self.name]
        self.parts = [
            (j, operator.logical.spec)
            for j, operator in enumerate(problem.physical.operators)
            if isinstance(operator.logical.spec, JoinPart) and operator.logical.spec.of == self.name
        ]
        cost = problem.physical.operators[self.parts[0][0]].logical.stated_cost_s
        planned = float(np.sum([problem.mean_load[j] for j, _ in self.parts]))
        self.work = planned if self.spreading.known else self.spreading.pairs * cost
        self.groups = self.spreading.pairs * self.diffusion.selectivity
        assert self.diffusion.join.diffuse is not None
        self.instances = self.diffusion.join.diffuse.instances

    def shares(self, assignment: Ints, cpu: Floats) -> Floats | None:
        """The part of everything that each instance gets: by the CPU of its node, shared with others there.

        None if one of them stands nowhere.
        """
        # An instance is where the first of its parts that are in use is.
        homes = np.full(self.instances, -1, dtype=np.int64)
        for j, part in reversed(self.parts):
            if self.spreading.uses(part):
                homes[part.instance] = assignment[j]
        if (homes < 0).any():
            return None
        speed = cpu[homes] / np.bincount(homes)[homes]
        share: Floats = speed / speed.sum()
        return share

    def add_to(self, found: SpreadFlows, share: Sequence[float]) -> None:
        """Add the figures with the work shared out so."""
        spreading, rows = self.spreading, sum(self.spreading.rates)
        for route, (k, copies) in spreading.sent(self.diffusion, share).items():
            found.ratios[self.number, route] = spreading.rates[k] * copies / rows
        for j, part in self.parts:
            found.costs[j] = 0.0
            found.ratios.update({(j, route): 0.0 for route in part.routes})
            if not spreading.uses(part):
                continue
            # A first hop is sent rows alone, a later one also the partial groups that look there.
            received = spreading.received(part.hop)
            found.costs[j] = self.work * spreading.work[part.hop or 0] / received
            if part.routes == (None,):
                found.ratios[j, None] = self.groups / received
            for route, partial in spreading.passed(part, share).items():
                found.ratios[j, route] = spreading.pairs * partial / (received * share[part.instance])


class SpreadJoins:
    """The spread joins of a network, and what each of their instances gets at present.

    At first all instances get the same; see `follow`.
    """

    def __init__(self, problem: Problem) -> None:
        self._count = len(problem.physical.operators)
        self._joins = [
            SpreadJoin(problem, number)
            for number, operator in enumerate(problem.physical.operators)
            if isinstance(operator.logical.spec, Diffusion)
        ]
        self._shares = [np.full(join.instances, 1 / join.instances) for join in self._joins]
        self._alike = self._now = self._flows()

    def __bool__(self) -> bool:
        return bool(self._joins)

    def follow(self, assignment: Ints, cpu: Floats) -> bool:
        """Share out by the nodes on which parts stand now; whether that changes anything.

        A join that has an instance nowhere stays as it is. O(parts × instances).
        """
        changed = False
        for number, join in enumerate(self._joins):
            share = join.shares(assignment, cpu)
            if share is not None and not np.array_equal(share, self._shares[number]):
                self._shares[number], changed = share, True
        if changed:
            self._now = self._flows()
        return changed

    @property
    def flows(self) -> SpreadFlows:
        """The figures of all of them."""
        return self._now

    def _flows(self) -> SpreadFlows:
        found = SpreadFlows()
        for join, share in zip(self._joins, self._shares, strict=True):
            join.add_to(found, share.tolist())
        return found

    def weight_of(self, operator: int, route: str | None) -> float:
        """Rows on a route of a spread join over what planning takes."""
        planned = self._alike.ratios.get((operator, route), 0.0)
        now = self._now.ratios.get((operator, route), 0.0)
        return float(self.weights[operator]) * (now / planned if planned else 1.0)

    @property
    def weights(self) -> Floats:
        """Of each operator: its load over what planning takes, which is that all instances get the same."""
        found = np.ones(self._count)
        for join, share in zip(self._joins, self._shares, strict=True):
            for j, part in join.parts:
                found[j] = share[part.instance] * join.instances
        return found
