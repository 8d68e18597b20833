"""The few statistics that the experiments share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, floor, log10
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from levelwind.loads.arrays import Floats

# Two-sided 95% quantile of the normal distribution: the samples here are tens to hundreds of graphs.
Z95 = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean and its interval: of 95%, or of all values where there are only a few."""

    mean: float
    low: float
    high: float


def estimate(values: ArrayLike) -> Estimate:
    """Mean of independent values. A single value has no interval: it is taken as it is."""
    array = np.asarray(values, dtype=float)
    half = Z95 * float(array.std(ddof=1)) / len(array) ** 0.5 if len(array) > 1 else 0.0
    mean = float(array.mean())
    return Estimate(mean=mean, low=mean - half, high=mean + half)


def extent(values: ArrayLike) -> Estimate:
    """Mean, least and largest of a few runs whose distribution nobody knows."""
    array = np.asarray(values, dtype=float)
    mean = float(array.mean())
    # The mean of equal values may be off by a rounding error, and then lie outside of them.
    return Estimate(mean=mean, low=min(mean, float(array.min())), high=max(mean, float(array.max())))


def geometric(ratios: ArrayLike) -> Estimate:
    """Geometric mean of positive ratios: one that is a thousandfold does not drown all others."""
    logs = estimate(np.log(np.asarray(ratios, dtype=float)))
    return Estimate(mean=exp(logs.mean), low=exp(logs.low), high=exp(logs.high))


def ratio_of_totals(parts: ArrayLike, wholes: ArrayLike) -> Estimate:
    """Σ parts / Σ wholes, with the interval of the linearised (delta method) error.

    Defined as long as a single whole is positive, where the mean of ratios asks that all are.
    """
    part, whole = np.asarray(parts, dtype=float), np.asarray(wholes, dtype=float)
    total = float(whole.sum())
    if total <= 0:
        return Estimate(mean=float("nan"), low=float("nan"), high=float("nan"))
    ratio = float(part.sum()) / total
    count = len(part)
    residual = part - ratio * whole
    half = Z95 * (count / max(1, count - 1) * float(residual @ residual)) ** 0.5 / total
    return Estimate(mean=ratio, low=ratio - half, high=ratio + half)


def spearman(one: ArrayLike, other: ArrayLike) -> float:
    """Rank correlation, equal values sharing their mean rank. O(n log n)."""
    return float(np.corrcoef(_ranks(np.asarray(one)), _ranks(np.asarray(other)))[0, 1])


def rising(values: Iterable[float], tolerance: float = 0.0) -> bool:
    """Whether no value falls below the one before it by more than the tolerance."""
    return all(b >= a - tolerance for a, b in pairwise(values))


def rounded(value: Any, digits: int = 4) -> Any:
    """Numbers of a summary to a few significant digits, at any depth; None where there is no number."""
    if isinstance(value, dict):
        return {str(key): rounded(inner, digits) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner, digits) for inner in value]
    if isinstance(value, bool | str | int) or value is None:
        return value
    number = float(value)
    if not np.isfinite(number):
        return None
    return 0.0 if number == 0 else round(number, digits - 1 - floor(log10(abs(number))))


def by(results: Sequence[dict[str, Any]], *keys: str) -> dict[Any, list[dict[str, Any]]]:
    """Results in groups by one or several of their keys, groups in rising order."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for result in results:
        key = tuple(result[name] for name in keys)
        groups.setdefault(key[0] if len(keys) == 1 else key, []).append(result)
    return dict(sorted(groups.items()))


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2)[inverse]
    return ranks
