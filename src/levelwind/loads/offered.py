"""What the offered rates ask of every operator, worked out from what was counted: the ideal loads of a run.

A load counts what would arrive if no node were ever behind, not what got through (seed 001, section 2.2): the
rows that entered, followed through measured selectivities, times measured costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from levelwind.loads.arrays import Floats
from levelwind.loads.rates import pairs_per_s
from levelwind.model import Fusion, JoinPart, Network, Operator, Port
from levelwind.model.frozen import frozen_mapping
from levelwind.rewrite import diffusion_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What an operator did in some time, its instances taken together."""

    rows_in: int = 0
    rows_out: int = 0
    cpu_s: float = 0.0

    def __add__(self, other: Counted) -> Counted:
        return Counted(
            rows_in=self.rows_in + other.rows_in,
            rows_out=self.rows_out + other.rows_out,
            cpu_s=self.cpu_s + other.cpu_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedWork:
    """How much work an operator as written was given in all, and is offered a second in every sample.

    Work is counted in rows in, for joins in pairs that the rates of the inputs let expect. ``rate`` is in
    rows in per second. Cost and selectivities are per unit of work; None if there was none.
    """

    work: float
    work_per_s: Floats
    rate: Floats
    cost_s: float | None = None
    selectivity: float | None = None
    route_selectivity: Mapping[str, float] | None = None


def offered_work(
    network: Network,
    rates: Mapping[str, Floats],
    seconds: Mapping[str, Floats],
    counted: Mapping[str, Counted],
) -> dict[str, OfferedWork]:
    """Follow the rates of the streams through the network.

    Parameters
    ----------
    rates, seconds
        Of each stream: rows per second that it offered in every sample, and how long the sample lasted.
    counted
        What each operator as written did in all samples together.

    O((operators + arcs) × samples). In topological order, since what an operator is offered depends on what
    those before it let through.
    """
    flowing = {Port(source=name): rate for name, rate in rates.items()}
    lasting = dict(seconds)
    still = np.zeros(len(next(iter(rates.values()), ())))
    found = {}
    for name in network.order:
        operator = network.operators[name]
        spread = operator.spec if isinstance(operator.spec, Fusion) else None
        ports = operator.inputs if spread is None else spread.ports
        offered = [flowing[port] for port in ports]
        rate: Floats = sum(offered, still)
        own = counted.get(name, Counted())
        if spread is not None:
            # A spread join's name stands for all of it, its parts and what sends to them included.
            parts = [counted[part].cpu_s for part in _parts(network, name) if part in counted]
            own = replace(own, cpu_s=own.cpu_s + sum(parts))
        # A join has pairs only while all its inputs flow.
        lasts = [lasting[port.source] for port in ports]
        lasting[name] = np.min(lasts, axis=0) if lasts else still
        work, work_per_s = float(own.rows_in), rate
        if operator.is_join or spread is not None:
            work_per_s = pairs_per_s(operator, offered)
            work = float(work_per_s @ lasting[name])
        if not work:
            found[name] = OfferedWork(work=0.0, work_per_s=work_per_s, rate=rate)
            flowing |= {Port(source=name, route=route): still for route in operator.routes}
            continue
        through = {
            route: rows / work for route, rows in _by_route(network, operator, own.rows_out, counted).items()
        }
        for route, selectivity in through.items():
            flowing[Port(source=name, route=route)] = work_per_s * selectivity
        named = {route: selectivity for route, selectivity in through.items() if route is not None}
        found[name] = OfferedWork(
            work=work,
            work_per_s=work_per_s,
            rate=rate,
            cost_s=own.cpu_s / work,
            selectivity=own.rows_out / work,
            route_selectivity=frozen_mapping(named) if named else None,
        )
    return found


def _parts(network: Network, name: str) -> list[str]:
    """The operators that a spread join is made of, the one that bears its name left out."""
    found = [
        other.name
        for other in network.operators.values()
        if isinstance(other.spec, JoinPart) and other.spec.of == name
    ]
    return [*found, diffusion_name(name)]


def _by_route(
    network: Network, operator: Operator, rows_out: int, counted: Mapping[str, Counted]
) -> dict[str | None, float]:
    """Rows out on each route: as counted by a reader that reads nothing else, else an equal part."""
    if operator.routes == (None,):
        return {None: rows_out}
    known: dict[str | None, float] = {}
    for other in network.operators.values():
        if len(other.inputs) == 1 and other.inputs[0].source == operator.name:
            known[other.inputs[0].route] = counted.get(other.name, Counted()).rows_in
    rest = [route for route in operator.routes if route not in known]
    left = max(0.0, rows_out - sum(known.values()))
    return {route: known[route] if route in known else left / len(rest) for route in operator.routes}
