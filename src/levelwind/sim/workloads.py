"""How the rates of streams vary: the papers' two workloads, steady streams, and recorded ones.

A workload turns the mean rate of each stream into arrivals over the whole run. Rates are rows per second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from levelwind.model import Network
from levelwind.sim.arrivals import Arrivals, steps
from levelwind.sim.tables import Floats, Law

PHASES = ("even", "random")


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """High for half of each period, low for the other half; exponential gaps (seed 001, section 5.1.2).

    ``ratio`` is the high rate over the low one. Streams begin at different places of their periods: evenly
    spaced in the order of the streams, or at random.
    """

    ratio: float = 4.0
    period_s: float = 10.0
    phases: str = "even"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnOff:
    """Bursts of evenly spaced rows, and silence; both last exponential times (seed 001, section 5.1.2).

    The first ``independent`` share of the streams vary by themselves. Each is followed by an opposite (active
    when it is idle), then by the same, later by up to the mean of on and off together, until all streams
    are made. The paper says neither how many are independent, nor who follows whom, nor how much later. Were
    opposites dealt out by chance, the whole system would be overloaded for many seconds, which no placement
    can help.
    """

    on_s: float = 5.0
    off_s: float = 5.0
    independent: float = 1 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson:
    """Exponential gaps at the stated rate; a stated series gives a rate a second and begins again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Rates or arrival times that were recorded, the same again when they are over.

    ``columns`` holds samples of a rate, ``step_s`` apart (rows then come with exponential gaps), or, with
    ``times``, the seconds at which rows came. Streams take the columns in turn; those that share one begin
    at different places of it, evenly spaced or at random.
    """

    columns: tuple[tuple[float, ...], ...]
    times: bool = False
    step_s: float = 1.0
    phases: str = "even"


Workload = Periodic | OnOff | Poisson | Recorded


def make_arrivals(
    workload: Workload,
    network: Network,
    means: Mapping[str, float],
    *,
    horizon_s: float,
    rng: np.random.Generator,
) -> dict[str, Arrivals]:
    """Arrivals of every stream up to ``horizon_s``, each with its mean rate over a long time.

    O(streams × changes of the rate).
    """
    names = list(network.streams)
    mean = np.array([means[name] for name in names])
    if isinstance(workload, Periodic):
        made = _periodic(workload, mean, horizon_s, rng)
    elif isinstance(workload, OnOff):
        made = _on_off(workload, mean, horizon_s, rng)
    elif isinstance(workload, Recorded):
        made = _recorded(workload, mean, horizon_s, rng)
    else:
        made = [
            _series(network.streams[name].rate or (1.0,), 1.0, 0.0, means[name], horizon_s) for name in names
        ]
    return dict(zip(names, made, strict=True))


def _places(phases: str, count: int, rng: np.random.Generator) -> Floats:
    """Where in its cycle each of some streams begins, as a share of the cycle."""
    return np.arange(count) / max(count, 1) if phases == "even" else rng.random(count)


def _periodic(workload: Periodic, mean: Floats, horizon_s: float, rng: np.random.Generator) -> list[Arrivals]:
    half = workload.period_s / 2
    count = 2 * (int(horizon_s / workload.period_s) + 2)
    high = 2 * workload.ratio / (1 + workload.ratio)
    shape = np.where(np.arange(count) % 2 == 0, high, 2 - high)
    offsets = _places(workload.phases, len(mean), rng) * workload.period_s
    return [
        steps(half * np.arange(count) - offset, shape * rate, horizon_s)
        for offset, rate in zip(offsets.tolist(), mean.tolist(), strict=True)
    ]


def _on_off(workload: OnOff, mean: Floats, horizon_s: float, rng: np.random.Generator) -> list[Arrivals]:
    on_s, off_s = workload.on_s, workload.off_s
    cycle = on_s + off_s
    alone = min(len(mean), max(1, ceil(workload.independent * len(mean))))
    bases = [_alternation(workload, horizon_s, rng) for _ in range(alone)]
    made = []
    for i, rate in enumerate(mean.tolist()):
        follower = i - alone
        times, active = bases[i if follower < 0 else follower // 2 % alone]
        if follower >= 0 and follower % 2 == 0:
            made.append(steps(times, ~active * rate * cycle / off_s, horizon_s, law=Law.REGULAR))
            continue
        later = 0.0 if follower < 0 else float(rng.uniform(0.0, cycle))
        made.append(steps(times + later, active * rate * cycle / on_s, horizon_s, law=Law.REGULAR))
    return made


def _alternation(
    workload: OnOff, horizon_s: float, rng: np.random.Generator
) -> tuple[Floats, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """When a stream changes between on and off, from one mean cycle before time 0 on, and what it is then."""
    cycle = workload.on_s + workload.off_s
    starts_on = bool(rng.random() < workload.on_s / cycle)
    pieces, reached = [], -cycle
    block = 2 * (int(horizon_s / cycle) + 8)
    active = np.arange(block) % 2 == (0 if starts_on else 1)
    while reached < horizon_s:  # once, nearly always
        lengths = rng.exponential(np.where(active, workload.on_s, workload.off_s))
        pieces.append(lengths)
        reached += float(lengths.sum())
    lengths = np.concatenate(pieces)
    times = -cycle + np.concatenate([[0.0], np.cumsum(lengths[:-1])])
    return times, np.tile(active, len(pieces))


def _recorded(workload: Recorded, mean: Floats, horizon_s: float, rng: np.random.Generator) -> list[Arrivals]:
    columns = [np.asarray(column, dtype=float) for column in workload.columns]
    sharing = ceil(len(mean) / len(columns))
    places = _places(workload.phases, sharing, rng)
    made = []
    for i, rate in enumerate(mean.tolist()):
        column, place = columns[i % len(columns)], float(places[i // len(columns)])
        if workload.times:
            made.append(_times(column, place, rate))
        else:
            made.append(_series(column.tolist(), workload.step_s, place, rate, horizon_s))
    return made


def _times(recorded: Floats, place: float, rate: float) -> Arrivals:
    """Recorded times, moved on by a share of their cycle; played faster or slower to have the mean rate."""
    times = np.sort(recorded)
    times = times - times[0]
    # The row after the last is as far away as rows are on average.
    cycle = float(times[-1]) * len(times) / (len(times) - 1) if len(times) > 1 else 1.0
    turned = np.sort((times + place * cycle) % cycle)
    made = Arrivals(law=Law.GIVEN, times_s=turned, cycle_s=cycle)
    return made.scaled(rate * cycle / len(times))


def _series(samples: Sequence[float], step_s: float, place: float, mean: float, horizon_s: float) -> Arrivals:
    """Sampled rates, repeated, begun a share of their cycle later; scaled to the mean rate."""
    shape = np.asarray(samples, dtype=float)
    average = float(shape.mean())
    if average <= 0.0:
        return Arrivals()
    if len(shape) == 1:
        return steps(np.zeros(1), np.array([mean]), horizon_s)
    shift = place * len(shape) * step_s
    count = int((horizon_s + shift) / step_s) + 2
    times = step_s * np.arange(count, dtype=np.float64) - shift
    return steps(times, np.resize(shape, count) * mean / average, horizon_s)
