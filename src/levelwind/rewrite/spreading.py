"""How the rows and the work of a spread join are shared out over its parts, in the mean: plain figures.

The laws of routing that they follow from are asked in `levelwind.loads.spreading`. Planning and simulation
both go by what stands here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from levelwind.model import JoinPart, Multijoin
from levelwind.model.operator import Diffusion, aligned_route, coordinated_route

# In plans, parts of the method that is not in use bear so much of the join's load together: next to nothing,
# but planners spread them over nodes too, in case the join goes the other way one day.
IDLE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreading:
    """What becomes of the rows of one spread join.

    A pair is a group of rows near enough in time to be compared, as in the join's cost. ``share`` in the
    methods is the part of everything that each instance gets; they add up to 1.

    Parameters
    ----------
    aligned
        The method whose parts are in use: aligned or coordinated. The other's get no rows.
    rates
        Rows per second of each input that the figures are for.
    pairs
        Pairs per second at these rates.
    known
        Whether the rates are stated. If they are not, every input is taken as one row a second.
    copies
        Of each row of each input, over all instances.
    work
        The part of the join's work that is done at each hop. Aligned routing has one.
    partial
        Partial groups that come to each hop from the one before, for each pair; none to the first.
    stay
        The part of them that stays with its instance, beyond what would come back to it by its share.
    why
        What made `auto` choose; empty if the file says how to route.
    """

    aligned: bool
    rates: tuple[float, ...]
    pairs: float
    known: bool
    copies: tuple[float, ...]
    work: tuple[float, ...]
    partial: tuple[float, ...]
    stay: float = 0.0
    why: str = ""

    @classmethod
    def unasked(cls, join: Multijoin) -> Spreading:
        """Before the laws are asked: one copy of each row, equal work at each hop, no partial groups."""
        assert join.diffuse is not None
        aligned = join.diffuse.method != "ctr"
        hops = 1 if aligned else len(join.aliases) - 1
        return cls(
            aligned=aligned,
            rates=(1.0,) * len(join.aliases),
            pairs=1.0,
            known=False,
            copies=(1.0,) * len(join.aliases),
            work=(1 / hops,) * hops,
            partial=(0.0,) * hops,
        )

    def uses(self, part: JoinPart) -> bool:
        """Whether a part belongs to the method in use."""
        return (part.hop is None) == self.aligned

    def work_of(self, part: JoinPart, share: Sequence[float]) -> float:
        """The part of the join's work that one of its parts is planned to do."""
        assert part.join.diffuse is not None
        own = share[part.instance]
        if not self.uses(part):
            return IDLE * own / (1 if part.hop is None else len(part.join.aliases) - 1)
        return (1 - IDLE if part.join.diffuse.method == "auto" else 1.0) * self.work[part.hop or 0] * own

    @property
    def taken(self) -> float:
        """Rows of all inputs for each pair."""
        return sum(self.taken_of(k) for k in range(len(self.rates)))

    def taken_of(self, k: int) -> float:
        """Rows of an input for each pair."""
        return self.rates[k] / self.pairs if self.pairs else 0.0

    def received(self, hop: int | None) -> float:
        """Rows and partial groups per second that all parts of a hop get together."""
        rows = sum(rate * copies for rate, copies in zip(self.rates, self.copies, strict=True))
        return rows + self.pairs * self.partial[hop or 0]

    def sent(self, spec: Diffusion, share: Sequence[float]) -> dict[str, tuple[int, float]]:
        """For each route of a diffusion in use: the input, and rows on the route for each row of it."""
        way = aligned_route if self.aligned else coordinated_route
        return {
            way(instance, alias): (k, copies * own)
            for k, (alias, copies) in enumerate(zip(spec.join.aliases, self.copies, strict=True))
            for instance, own in enumerate(share)
        }

    def found(self, part: JoinPart, share: Sequence[float]) -> float:
        """The part of all groups that a part puts out."""
        return share[part.instance] if self.uses(part) and part.routes == (None,) else 0.0

    def passed(self, part: JoinPart, share: Sequence[float]) -> dict[str, float]:
        """For each route of a hop: partial groups that it sends there, for each pair of the join."""
        if part.hop is None or part.routes == (None,) or not self.uses(part):
            return {}
        all_of_hop = self.partial[part.hop + 1] * share[part.instance]
        return {
            str(to): all_of_hop * ((1 - self.stay) * own + self.stay * (to == part.instance))
            for to, own in enumerate(share)
        }
