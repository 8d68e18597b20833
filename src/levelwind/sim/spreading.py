"""Spread joins in the simulator: which part of the rows goes to which instance, and what a row costs there.

The kernel knows no segments and paths. It is told the means that follow from the laws of routing at the
stated rates: copies of each row, partial groups from hop to hop, and the join's work shared out over the rows
that its parts receive. So a burst makes a part's work grow with the rows that come, not with their product.

Sending and receiving costs the join's ``transfer_cost``, half at each end, for rows and partial groups alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from levelwind.diffusion import laws
from levelwind.diffusion.auto import advise
from levelwind.diffusion.coordinated import slot_length_us
from levelwind.diffusion.join import MICROSECONDS, Floats, JoinShape, Measured
from levelwind.loads.problem import Problem
from levelwind.loads.rates import pairs_per_s
from levelwind.model import Fusion, JoinPart
from levelwind.model.operator import Diffusion, aligned_route, coordinated_route
from levelwind.rewrite.diffuse import spread_name

# Over so many longest windows hosts' work is to be even, where that decides.
HORIZON_WINDOWS = 10


@dataclass(frozen=True, slots=True)
class SpreadFlows:
    """By number of the operator: rows on a route per row in, CPU seconds per row in, and per row sent."""

    ratios: dict[tuple[int, str | None], float] = field(default_factory=dict)
    costs: dict[int, float] = field(default_factory=dict)
    transfers: dict[int, float] = field(default_factory=dict)


def spread_flows(problem: Problem, placement: Mapping[str, str] | None = None) -> SpreadFlows:
    """For all spread joins of a network. Instances on faster nodes get more; without a placement, alike.

    A join whose rates are not stated is taken as if all its streams brought a row a second.
    """
    found = SpreadFlows()
    for number, operator in enumerate(problem.physical.operators):
        if isinstance(operator.logical.spec, Diffusion):
            _Join(problem, number, placement).add_to(found)
    return found


class _Join:
    """One spread join in figures, all per second."""

    def __init__(self, problem: Problem, number: int, placement: Mapping[str, str] | None) -> None:
        self.number = number
        diffusion = problem.physical.operators[number].logical
        assert isinstance(diffusion.spec, Diffusion)
        self.join = diffusion.spec.join
        assert self.join.diffuse is not None
        self.diffuse = self.join.diffuse
        name = spread_name(diffusion.name)
        operators = list(enumerate(problem.physical.operators))
        self.fusion = next(o.logical for _, o in operators if o.logical.name == name)
        assert isinstance(self.fusion.spec, Fusion)
        self.parts = [
            (j, operator.name, operator.logical.spec)
            for j, operator in operators
            if isinstance(operator.logical.spec, JoinPart) and operator.logical.spec.of == name
        ]
        ports = [problem.linear.rates[port.source, port.route] for port in diffusion.inputs]
        rates = [float(problem.rates.of(port).mean()) for port in ports]
        known = all(np.isfinite(rate) and rate > 0 for rate in rates)
        self.rates = rates if known else [1.0] * len(rates)
        load = [problem.mean_load[j] for j, _, _ in self.parts]
        self.pairs = float(pairs_per_s(self.fusion, [np.array([rate]) for rate in self.rates])[0])
        cost = problem.physical.operators[self.parts[0][0]].logical.stated_cost_s
        self.work = float(np.sum(load)) if known else self.pairs * cost
        self.groups = self.pairs * self.fusion.spec.selectivity
        self.share = self._shares(problem, placement)

    def _shares(self, problem: Problem, placement: Mapping[str, str] | None) -> Floats:
        """The part of the work that each instance gets: by the CPU of its node, shared with others there."""
        m = self.diffuse.instances
        if placement is None:
            return np.full(m, 1 / m)
        cpu = dict(zip(problem.cluster.names, problem.cpu.tolist(), strict=True))
        homes = [""] * m
        for _, name, spec in reversed(self.parts):
            homes[spec.instance] = placement[name]
        speed = np.array([cpu[home] / homes.count(home) for home in homes])
        return speed / speed.sum()

    def add_to(self, found: SpreadFlows) -> None:
        """The figures of the method that is asked for, or that `auto` would choose."""
        n, m = len(self.join.aliases), self.diffuse.instances
        windows = tuple(round(self.join.windows_s[alias] * MICROSECONDS) for alias in self.join.aliases)
        shape = JoinShape(windows_us=windows, instances=m)
        assert isinstance(self.fusion.spec, Fusion)
        chance = min(1.0, self.fusion.spec.selectivity) ** (1 / max(1, n - 1))
        measured = Measured.of(self.rates, chance)
        horizon = HORIZON_WINDOWS * max(shape.longest_us, 1) / MICROSECONDS
        asked = self.diffuse.method
        advice = advise(
            shape,
            measured,
            horizon_s=horizon,
            allowed=("atr", "ctr") if asked == "auto" else ("ctr",) if asked == "ctr" else ("atr",),
            segment_s=self.diffuse.segment_s,
        )
        for j, _, spec in self.parts:
            found.costs[j] = 0.0
            found.transfers[j] = self.fusion.transfer_cost_s
            found.ratios.update({(j, route): 0.0 for route in spec.routes})
        found.transfers[self.number] = self.fusion.transfer_cost_s
        if advice.method == "atr":
            self._aligned(found, shape, advice.master, advice.segment_s)
        else:
            self._coordinated(found, shape, measured, slot_length_us(shape, measured, horizon))

    def _send(self, found: SpreadFlows, copies: Sequence[float], *, aligned: bool) -> None:
        """The rows of each input to each instance."""
        total = sum(self.rates)
        way = aligned_route if aligned else coordinated_route
        for alias, rate, each in zip(self.join.aliases, self.rates, copies, strict=True):
            for instance, share in enumerate(self.share.tolist()):
                found.ratios[self.number, way(instance, alias)] = rate * each * share / total

    def _aligned(self, found: SpreadFlows, shape: JoinShape, master: int, segment_s: float) -> None:
        windows = [window / MICROSECONDS for window in shape.windows_us]
        copies = [
            1.0 if k == master else 1.0 + min((own + windows[master]) / segment_s, shape.instances - 1)
            for k, own in enumerate(windows)
        ]
        self._send(found, copies, aligned=True)
        received = float(np.dot(self.rates, copies))
        for j, _, spec in self.parts:
            if spec.hop is None:
                found.costs[j] = self.work / received
                found.ratios[j, None] = self.groups / received

    def _coordinated(self, found: SpreadFlows, shape: JoinShape, measured: Measured, slot_us: int) -> None:
        paths, copies, _ = laws.rehearse(shape, measured, slot_us)
        partners = measured.partners(shape.windows_us)
        traffic = laws.coordinated_extra(measured, partners, paths, copies)
        self._send(found, copies.tolist(), aligned=False)
        entering = traffic.entering.sum(axis=0)
        kept = float(np.dot(self.rates, copies))
        hops = shape.streams - 1
        # A first hop is sent rows alone, a later one also the partial groups that look there.
        received = [kept + (float(entering[hop]) if hop else 0.0) for hop in range(hops)]
        for j, _, spec in self.parts:
            if spec.hop is None:
                continue
            found.costs[j] = self.work * float(entering[spec.hop] / entering.sum()) / received[spec.hop]
            if spec.hop == hops - 1:
                found.ratios[j, None] = self.groups / received[spec.hop]
                continue
            for instance, share in enumerate(self.share.tolist()):
                sent = float(entering[spec.hop + 1]) * share / received[spec.hop]
                found.ratios[j, str(instance)] = sent
