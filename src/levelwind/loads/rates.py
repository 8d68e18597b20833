"""What the stated rates of the streams mean for every output further down: nothing linear assumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from levelwind.model import Fusion, Join, Multijoin, Network, Operator
from levelwind.rewrite.linearise import PAIRS, Linear, Linearised, OutputKey

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates of streams and candidates over time, one sample a second (a single one if all are constant).

    ``missing`` names the streams that cause load and state no rate; their samples are NaN.
    """

    values: Mapping[str, Array]
    samples: int
    missing: tuple[str, ...]

    def of(self, function: Linear) -> Array:
        """The samples of a linear function of streams and candidates."""
        total = np.zeros(self.samples)
        for variable, coefficient in function.items():
            if coefficient:
                total = total + coefficient * self.values[variable]
        return total


def stated_rates(network: Network, linear: Linearised, override: Mapping[str, float] | None = None) -> Rates:
    """Follow the stated rates through the network. ``override`` replaces stream rates by constants.

    O(samples × (streams + candidates)).
    """
    stated = {
        name: (override[name],) if override and name in override else stream.rate
        for name, stream in network.streams.items()
    }
    samples = max((len(rate) for rate in stated.values() if rate is not None), default=1)
    values: dict[str, Array] = {}
    for name, rate in stated.items():
        values[name] = np.broadcast_to(np.array(np.nan if rate is None else rate, dtype=float), (samples,))
    rates = Rates(values=values, samples=samples, missing=())
    for candidate, key in linear.candidates.items():
        operator = network.operators[key[0]]
        spread = operator.spec if isinstance(operator.spec, Fusion) else None
        ports = operator.inputs if spread is None else spread.ports
        rows_in = [rates.of(linear.rates[port.source, port.route]) for port in ports]
        if operator.is_join or spread is not None:
            pairs = pairs_per_s(operator, rows_in)
            selectivity = operator.selectivity_of(None) if spread is None else spread.selectivity
            values[candidate] = pairs if key[1] == PAIRS else pairs * selectivity
        else:
            values[candidate] = np.sum(rows_in, axis=0) * operator.selectivity_of(key[1])
    needed = {member for members in linear.introduced.values() for member in members} | set(linear.variables)
    unknown = any(np.isnan(values[name]).any() for name in needed if name in values)
    read = {port.source for operator in network.operators.values() for port in operator.inputs}
    missing = tuple(name for name, rate in stated.items() if rate is None and unknown and name in read)
    return Rates(values=values, samples=samples, missing=missing)


def pairs_per_s(operator: Operator, rates: list[Array]) -> Array:
    """Groups of rows that come near enough in time to be compared, per second.

    Two streams within w of each other make 2·w·r_a·r_b pairs. In general each row is the latest of
    r·Π(r_j·W_j) groups, j over the other streams with their windows W_j.
    """
    if isinstance(operator.spec, Join):
        windows = [operator.spec.within_s] * len(rates)
    elif isinstance(operator.spec, Multijoin | Fusion):
        join = operator.spec.join if isinstance(operator.spec, Fusion) else operator.spec
        windows = [join.windows_s[alias] for alias in join.aliases]
    else:
        message = f"{operator.name} is no join"
        raise TypeError(message)
    spans = sum(prod(windows[:i] + windows[i + 1 :]) for i in range(len(windows)))
    product: Array = np.prod(np.stack(rates), axis=0) * spans
    return product


def value_of(rates: Rates, linear: Linearised, variable: str) -> Array:
    """Samples of a variable of the load model."""
    return rates.of(linear.introduced.get(variable, {variable: 1.0}))


__all__ = ["OutputKey", "Rates", "pairs_per_s", "stated_rates", "value_of"]
