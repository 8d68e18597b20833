"""Arrivals for the work model: Poisson, and bursts of high and low rates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levelwind.diffusion.join import MICROSECONDS, Ints


def poisson_rows(rng: np.random.Generator, rates: Sequence[float], seconds: int) -> tuple[Ints, Ints]:
    """Streams and times of rows that arrive independently, in order."""
    return bursty_rows(rng, rates, seconds, burstiness=0.0)


def bursty_rows(
    rng: np.random.Generator,
    rates: Sequence[float],
    seconds: int,
    *,
    burstiness: float,
    period_s: float = 20.0,
) -> tuple[Ints, Ints]:
    """Streams whose rate alternates between (1 + θ) and (1 − θ) times the mean, half a period each.

    The paper's rates are half of that, so that its mean falls to r/2. Streams begin their period at random.
    """
    times, streams = [], []
    for k, rate in enumerate(rates):
        phase = rng.uniform(0, period_s)
        count = rng.poisson(rate * (1 + burstiness) * seconds)
        own = rng.uniform(0, seconds, count)
        low = ((own + phase) % period_s) >= period_s / 2
        keep = ~low | (rng.random(count) < (1 - burstiness) / (1 + burstiness))
        times.append(own[keep])
        streams.append(np.full(int(keep.sum()), k, dtype=np.int64))
    joined = (np.concatenate(times) * MICROSECONDS).astype(np.int64)
    order = np.argsort(joined, kind="stable")
    return np.concatenate(streams)[order], joined[order]
