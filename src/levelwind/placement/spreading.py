"""Units with load series, to be spread over nodes: what the planners by correlation and variance work on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from levelwind.loads.arrays import Floats, Ints, sum_by
from levelwind.loads.problem import Problem
from levelwind.placement.balance import heaviest_first
from levelwind.placement.evening import DESCENT, Sources, even_out, sources
from levelwind.placement.unit_series import UnitSeries, unit_series
from levelwind.placement.units import Units

# Random steps per unit when operators are dealt out to domains or joined to super-operators: a rough cut.
ROUGH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreading:
    """What is to be spread: series and sources of the units, where each must stand (−1: anywhere), CPUs."""

    series: UnitSeries
    unseen: Sources
    fixed: Ints
    cpu: Floats

    def part(self, units: Ints, nodes: Ints) -> Spreading:
        """The same for some units on some nodes, both renumbered by their place in the arguments."""
        place = np.full(len(self.cpu) + 1, -1, dtype=np.int64)  # the last entry stands for fixed = −1
        place[nodes] = np.arange(len(nodes))
        own = self.series
        return Spreading(
            series=UnitSeries(own.centred[units], own.length[units], own.mean[units], own.constant),
            unseen=_rows(self.unseen, units),
            fixed=place[self.fixed[units]],
            cpu=self.cpu[nodes],
        )

    def by_load(self) -> Ints:
        """Heaviest unit first, each to the node that it leaves least loaded. O(units × nodes)."""
        nodes, mean = self.fixed.copy(), self.series.mean
        standing = nodes >= 0
        level = sum_by(nodes[standing], mean[standing], len(self.cpu))
        for unit in heaviest_first(mean).tolist():
            if nodes[unit] < 0:
                chosen = int(np.argmin((level + mean[unit]) / self.cpu))
                nodes[unit] = chosen
                level[chosen] += mean[unit]
        return nodes

    def evened(
        self, nodes: Ints, *, band: float, tries_per_unit: int, seed: int, descent: int = DESCENT
    ) -> Ints:
        """The plan after `even_out`: mean loads in the band, then as little variation as it finds."""
        free = np.flatnonzero(self.fixed < 0)
        tries = tries_per_unit * len(free)
        return even_out(
            self.series,
            self.unseen,
            nodes,
            free,
            self.cpu,
            band=band,
            tries=tries,
            seed=seed,
            descent=descent,
        )


def make_spreading(units: Units, *, unseen: float = 0.0) -> Spreading:
    """A planning problem's units as series; constant rates make a single sample. O(operators × samples)."""
    problem = units.problem
    own = problem.load_series if problem.load_series is not None else problem.mean_load[:, None]
    series = unit_series(sum_by(units.of, own, units.count))
    return Spreading(
        series=series,
        unseen=sources(_source_load(problem, units), unseen=unseen, samples=own.shape[1]),
        fixed=units.fixed,
        cpu=problem.cpu,
    )


def _source_load(problem: Problem, units: Units) -> Floats:
    """Mean load that each unit owes to each variable of the load model (units × variables)."""
    load: Floats = sum_by(units.of, problem.operator_load, units.count) * problem.variable_rates.mean(axis=1)
    return load


def _rows(unseen: Sources, units: Ints) -> Sources:
    lengths = unseen.start[units + 1] - unseen.start[units]
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    entry = np.repeat(unseen.start[units] - start[:-1], lengths) + np.arange(start[-1])
    # Sources renumbered from 0, in the same order: the search keeps a table of nodes × sources.
    known, source = np.unique(unseen.source[entry], return_inverse=True)
    return Sources(
        start=start,
        source=source.astype(np.int64),
        amount=unseen.amount[entry],
        total=len(known),
    )


Solve = Callable[[Spreading, Ints], Ints]
"""From a spreading and a start (node of each unit, below 0: none yet) to the node of each unit."""


def by_domains(
    whole: Spreading, *, size: int, overlap: bool, band: float, seed: int, first: Solve, again: Solve
) -> Ints:
    """Solve in sub-domains of at most ``size`` nodes (seed 000, section 5.4.3).

    Units are dealt out to the domains as to nodes, evenly and with little variation. With ``overlap`` a
    second round takes half of each domain's nodes together with half of the next one's.

    Parameters
    ----------
    first
        Solves a domain from nothing, but for what is fixed.
    again
        Improves a domain's plan.

    Notes
    -----
    O(units × domains) plus the cost of the domains, which grows with units × size.
    """
    count = len(whole.cpu)
    if count <= size:
        return first(whole, whole.fixed)
    domains = _deal_nodes(whole.cpu, -(-count // size))
    home = np.empty(count, dtype=np.int64)
    for d, nodes in enumerate(domains):
        home[nodes] = d
    coarse = replace(
        whole,
        fixed=np.where(whole.fixed >= 0, home[whole.fixed], -1),
        cpu=np.array([whole.cpu[nodes].sum() for nodes in domains]),
    )
    dealt = coarse.evened(coarse.by_load(), band=band, tries_per_unit=ROUGH, seed=seed, descent=0)
    plan = whole.fixed.copy()
    for d, nodes in enumerate(domains):
        units = np.flatnonzero(dealt == d)
        part = whole.part(units, nodes)
        plan[units] = nodes[first(part, part.fixed)]
    if overlap:
        halves = [np.array_split(nodes, 2) for nodes in domains]
        for d in range(len(domains)):
            nodes = np.concatenate([halves[d][1], halves[(d + 1) % len(domains)][0]])
            place = np.full(count, -1, dtype=np.int64)
            place[nodes] = np.arange(len(nodes))
            units = np.flatnonzero(place[plan] >= 0)
            plan[units] = nodes[again(whole.part(units, nodes), place[plan[units]])]
    return plan


def _deal_nodes(cpu: Floats, domains: int) -> list[Ints]:
    """Nodes of each domain, large and small ones in every one of them."""
    order = np.argsort(-cpu, kind="stable")
    return [np.sort(order[d::domains]) for d in range(domains)]


def super_operators(whole: Spreading, least: float, *, band: float, seed: int) -> Ints:
    """Group of each unit: small free ones are joined until each group carries at least about ``least`` load.

    They are joined as if spread over nodes, as many as their load makes groups of ``least``, so that a group
    varies as little as its members allow. All other units stay alone (seed 000, section 5.4.3).
    """
    small = np.flatnonzero((whole.fixed < 0) & (whole.series.mean < least))
    count = int(whole.series.mean[small].sum() / least) if len(small) else 0
    group = np.arange(len(whole.fixed))
    if count >= 1:
        part = whole.part(small, np.zeros(0, dtype=np.int64))
        part = replace(part, cpu=np.ones(count), fixed=np.full(len(small), -1, dtype=np.int64))
        joined = part.evened(part.by_load(), band=band, tries_per_unit=ROUGH, seed=seed, descent=0)
        leader = np.full(count, -1, dtype=np.int64)
        for unit, together in zip(small.tolist(), joined.tolist(), strict=True):
            if leader[together] < 0:
                leader[together] = unit
            group[unit] = leader[together]
    return np.unique(group, return_inverse=True)[1].astype(np.int64)
