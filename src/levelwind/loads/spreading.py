"""What the laws of routing let expect of spread joins at the stated rates: the one place that asks them.

Copies of each row, partial groups from hop to hop, and which method `auto` would choose. Planners see the
outcome as coefficients of the load model, the simulator as ratios of its flows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from levelwind.loads.arrays import Floats
from levelwind.loads.rates import Rates, pairs_per_s, stated_rates
from levelwind.model import Network
from levelwind.model.operator import Diffusion
from levelwind.rewrite.diffuse import spread_name
from levelwind.rewrite.linearise import Linearised, linearise
from levelwind.rewrite.spreading import Spreading

if TYPE_CHECKING:
    from levelwind.diffusion.laws import Traffic

# Over so many longest windows hosts' work is to be even, where that decides.
HORIZON_WINDOWS = 10


def linear_model(network: Network, rates: Mapping[str, float] | None = None) -> tuple[Linearised, Rates]:
    """The load model of a network whose joins are spread already, and its rates.

    ``rates`` replace the stated rates of streams. What comes to a spread join does not depend on how it is
    spread, so that its rates can be asked for first. O(arcs × variables per stream), and a rehearsal of
    coordinated routing for each spread join that may use it.
    """
    linear = linearise(network)
    found = stated_rates(network, linear, rates)
    spread = _spreadings(network, linear, found)
    if spread:
        linear = linearise(network, spread)
        found = stated_rates(network, linear, rates)
    return linear, found


def _spreadings(network: Network, linear: Linearised, rates: Rates) -> dict[str, Spreading]:
    """By name of the join. Where rates are not stated, every input is taken as one row a second."""
    found = {}
    for operator in network.operators.values():
        if not isinstance(operator.spec, Diffusion):
            continue
        name, join = spread_name(operator.name), operator.spec.join
        assert join.diffuse is not None
        stated = [float(rates.of(linear.rates[port.source, port.route]).mean()) for port in operator.inputs]
        known = all(np.isfinite(rate) and rate > 0 for rate in stated)
        rows = tuple(stated) if known else (1.0,) * len(stated)
        pairs = pairs_per_s(network.operators[name], [np.array([rate]) for rate in rows])
        found[name] = _expected(
            join.aliases,
            tuple(join.windows_s[alias] for alias in join.aliases),
            join.diffuse.method,
            join.diffuse.instances,
            join.diffuse.segment_s,
            operator.spec.selectivity,
            rows,
            float(pairs[0]),
            known,
        )
    return found


@lru_cache(maxsize=256)
def _expected(
    aliases: tuple[str, ...],
    windows_s: tuple[float, ...],
    method: str,
    instances: int,
    segment_s: float | None,
    selectivity: float,
    rates: tuple[float, ...],
    pairs: float,
    known: bool,
) -> Spreading:
    # Only who spreads a join pays for loading what is compiled.
    from levelwind.diffusion import laws
    from levelwind.diffusion.auto import advise
    from levelwind.diffusion.coordinated import slot_length_us
    from levelwind.diffusion.join import MICROSECONDS, JoinShape, Measured

    windows_us = tuple(round(window * MICROSECONDS) for window in windows_s)
    shape = JoinShape(windows_us=windows_us, instances=instances)
    measured = Measured.of(rates, min(1.0, selectivity) ** (1 / max(1, len(aliases) - 1)))
    horizon_s = HORIZON_WINDOWS * max(shape.longest_us, 1) / MICROSECONDS
    advice = advise(
        shape,
        measured,
        horizon_s=horizon_s,
        allowed=("atr", "ctr") if method == "auto" else ("ctr",) if method == "ctr" else ("atr",),
        segment_s=segment_s,
        names=aliases,
    )
    aligned = Spreading(
        aligned=True,
        rates=rates,
        pairs=pairs,
        known=known,
        copies=laws.aligned_copies(shape, advice.master, advice.segment_s),
        work=(1.0,),
        partial=(0.0,),
        why=advice.why if method == "auto" else "",
    )
    if advice.method == "atr":
        return aligned
    paths, stored, _ = laws.rehearse(shape, measured, slot_length_us(shape, measured, horizon_s))
    traffic = laws.coordinated_extra(measured, measured.partners(windows_us), paths, stored)
    return _coordinated(aligned, traffic, stored, instances)


def _coordinated(aligned: Spreading, traffic: Traffic, stored: Floats, instances: int) -> Spreading:
    """The same join by coordinated routing, by what it sends."""
    entering, pairs = traffic.entering.sum(axis=0), aligned.pairs
    later = float(entering[1:].sum())
    # What stays by the law, beyond the part that comes back where all instances are sent alike.
    alike = 1 / instances
    stay = 0.0 if later <= 0 or instances == 1 else (1 - traffic.partial / later - alike) / (1 - alike)
    return replace(
        aligned,
        aligned=False,
        copies=tuple(stored.tolist()),
        work=tuple((entering / entering.sum()).tolist()),
        partial=(0.0, *(float(each) / pairs if pairs else 0.0 for each in entering[1:])),
        stay=min(1.0, max(0.0, stay)),
    )
