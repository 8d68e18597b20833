"""Replan: the whole placement anew, wherever that lowers the cost of the costliest node clearly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from levelwind.balance.costs.protocol import RECEIVING, SENDING, SENT, cost_table
from levelwind.balance.costs.work import WorkCost
from levelwind.balance.facts import make_wiring
from levelwind.balance.protocol import Proposal, Situation
from levelwind.balance.standing import Standing, standing
from levelwind.balance.whole_plan import CHANCES, Found, Work, costs, search
from levelwind.loads.arrays import Floats, Ints
from levelwind.plugins import option

# Looks elsewhere of a search that has steps left.
LOOKS = 400
# Most searches in a period, each with operators of higher priority than the one before.
SEARCHES = 4
# Of placements this near to the best one, that is taken which moves least.
AS_GOOD = 0.01
# A window that began so little before the last move, as a share of its length, began with it.
SAME = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplanPolicy:
    """Searches for the placement whose costliest node costs least, and moves there if that is worth it.

    Cost is that of the cost model ``work``: CPU, with what sending and receiving would take under the new
    placement. The search goes by single moves and swaps from where operators stand, and from placements of
    whole bunches along dear arcs; then it looks around the best by chance. A placement is proposed as one
    exchange, if the largest cost falls by ``gain`` percent; of two that are as good, the one that moves less.
    Operators of low priority are tried alone first: the others take part only where those gain nothing, in
    `SEARCHES` searches at most. After a move it waits until the window holds nothing from before: what
    operators cost while their state was fetched says little.

    Notes
    -----
    Ours: where a move costs no more than a batch a tenth of a second, a whole new plan is no risk, and steps
    that one pair of nodes does not see are worth taking. O(``steps`` × arcs of an operator), and nothing
    where no node costs much more than the mean.
    """

    name: ClassVar[str] = "replan"
    summary: ClassVar[str] = "a whole new placement where that lowers the largest cost, sending counted"
    origin: ClassVar[str] = "ours; seed 003's redistribution as one global search by measured work"

    gain: float = option(10.0, "percent that the cost of the costliest node must fall by", least=0.0)
    steps: int = option(12_000, "steps that the search may try in a period", least=1)

    @property
    def statistics(self) -> frozenset[str]:
        """What the cost model reads."""
        return WorkCost.statistics

    def costs(self, situation: Situation) -> Floats:
        """Cost of each node, as the cost model has it."""
        if _is_wired(situation):
            return cost_table(WorkCost(), situation).node
        return standing(situation).relative

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """Search, rank by rank of priority, until something is worth moving."""
        if situation.still is not None and situation.still < 1.0 - SAME:
            return ()
        before = standing(situation)
        # A node that can take nothing now keeps what it has, too: it may be back in a moment.
        before = replace(before, free=before.free & before.ready[before.node])
        if not before.free.any() or before.ready.sum() < 2:
            return ()
        work, chance = _work(situation, before), rng.random(LOOKS * CHANCES)
        cost = costs(work, before.node)
        goal = float(cost.max()) * (1.0 - self.gain / 100.0)
        if goal < _least_possible(work):
            return ()
        cuts = _cuts(before.rank[before.free])
        for rank in cuts:
            free = before.free & (before.rank <= rank)
            stepped, best = search(work, before.node, free, chance, max(1, self.steps // len(cuts)))
            if best[1].max() > goal:
                continue  # the other costs no less, and names of nodes change nothing
            found = _chosen(replace(before, free=free), Found(*stepped), Found(*best))
            if found.cost.max() <= goal and found.cost.max() < cost.max():
                return _proposals(before, found, cost)
        return ()


def _cuts(rank: Floats) -> list[float]:
    """Priorities up to which operators take part, search by search; the last has all of them.

    Each search has its share of the steps: where there are many priorities, some take part together.
    """
    ranks = np.unique(rank)
    count = min(SEARCHES, len(ranks))
    last = np.ceil(np.arange(1, count + 1) * len(ranks) / count).astype(np.int64) - 1
    found: list[float] = ranks[last].tolist()
    return found


def _is_wired(situation: Situation) -> bool:
    return situation.facts is not None and WorkCost.statistics - {"load"} <= set(situation.seen)


def _work(situation: Situation, before: Standing) -> Work:
    """The situation as the search sees it. Where nobody knows who sends what, all is the operators' own."""
    count = len(situation.node)
    if _is_wired(situation):
        assert situation.facts is not None
        wiring, seen, part = situation.facts.wiring, situation.seen, situation.part
        sending, receiving = seen[SENDING], seen[RECEIVING]
        working = np.maximum(situation.mean_load - seen[SENT], 0.0)
    else:
        wiring, working = make_wiring([], np.zeros(count, dtype=np.int64)), situation.mean_load
        part = wiring.part
        sending = receiving = np.zeros(count)
    by_reader, by_source = part[wiring.stream[wiring.reader_arc]], part[wiring.stream[wiring.source_arc]]
    producer = wiring.producer[wiring.reader_arc]
    # Copies: an array that may not be written to is another type, for which all would be compiled again.
    return Work(
        working=np.array(working),
        reader_start=np.array(wiring.reader_start),
        readers=np.array(wiring.readers),
        reader_stream=wiring.stream[wiring.reader_arc],
        sending=sending[producer] * by_reader,
        dear=(sending + receiving)[producer] * by_reader,
        source_start=np.array(wiring.source_start),
        sources=np.array(wiring.sources),
        receiving=receiving[wiring.sources] * by_source,
        unit=before.of,
        member_start=np.concatenate(
            [[0], np.cumsum(np.bincount(before.of, minlength=len(before.node)), dtype=np.int64)]
        ),
        members=np.argsort(before.of, kind="stable"),
        cpu=before.cpu,
        ready=before.ready,
    )


def _least_possible(work: Work) -> float:
    """No placement has a lower largest cost: all work spread evenly, or the largest operator by itself."""
    return max(work.working.sum() / work.cpu.sum(), float(work.working.max()) / float(work.cpu.max()))


def _chosen(before: Standing, stepped: Found, best: Found) -> Found:
    """The best placement, its nodes named so that most load stays; or one as good that moves less."""
    best = _renamed(before, best)
    moved = [float(before.series.mean[each.node != before.node].sum()) for each in (stepped, best)]
    as_good = stepped.cost.max() <= best.cost.max() * (1.0 + AS_GOOD)
    return stepped if as_good and moved[0] <= moved[1] else best


def _renamed(before: Standing, found: Found) -> Found:
    """The same placement with equal nodes in another order, so that little moves. O(units log units).

    Nodes may change names that have the same CPU, are ready and hold nothing that may not move. The old and
    the new node that share most load go together, then the next.
    """
    held = (np.bincount(before.node[~before.free], minlength=len(before.cpu)) > 0) | ~before.ready
    name, taken = np.full(len(before.cpu), -1), held.copy()
    name[held] = np.flatnonzero(held)
    pairs, where = np.unique(np.stack([found.node, before.node]), axis=1, return_inverse=True)
    load = np.bincount(where.ravel(), weights=before.series.mean)
    for new, old in pairs.T[np.argsort(-load, kind="stable")].tolist():
        if name[new] < 0 and not taken[old] and before.cpu[new] == before.cpu[old]:
            name[new], taken[old] = old, True
    for new in np.flatnonzero(name < 0).tolist():
        same = np.flatnonzero(~taken & (before.cpu == before.cpu[new]))
        name[new], taken[same[0]] = same[0], True
    cost = np.empty_like(found.cost)
    cost[name] = found.cost
    return Found(name[found.node], cost)


def _proposals(before: Standing, found: Found, cost: Floats) -> tuple[Proposal, ...]:
    """All moves as one exchange, the least important first."""
    moved: Ints = np.flatnonzero((found.node != before.node)[before.of])
    moved = moved[np.lexsort((moved, before.rank[before.of[moved]]))]
    reason = f"part of a new plan: the largest cost falls from {cost.max():.2f} to {found.cost.max():.2f}"
    return tuple(
        Proposal(operator=operator, to=int(found.node[before.of[operator]]), reason=reason)
        for operator in moved.tolist()
    )
