"""Which way to spread a join, by what each would make the busiest host do.

What decides is x = σ · r · W, the partners of a row in a window. Aligned routing sends more copies, and every
copy looks once; coordinated routing sends partial groups to several hosts, and they all look. The longer the
time over which hosts' work is to be even, the longer segments may be, and the fewer copies aligned routing
sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log, sqrt

import numpy as np

from levelwind.diffusion import laws
from levelwind.diffusion.coordinated import slot_length_us
from levelwind.diffusion.join import MICROSECONDS, Floats, JoinShape, Measured
from levelwind.diffusion.reasons import reasons_of
from levelwind.diffusion.router import Method

# Segments that each host gets in the time over which work is to be even.
ROUNDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
# What is at most so many times the least counts as about the least.
ABOUT = 1.01
# So many times the work is borne with for a master that one more of the other streams is linked to.
LINK = 1.3
# Once windows are full, work swings less than while they fill: found on other joins than the tests have.
SWING_WHEN_FULL = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What to do and why.

    Parameters
    ----------
    aligned, coordinated
        CPU seconds per second that the busiest host of speed 1 would spend either way; None if not allowed.
    traffic
        What coordinated routing would send; None if it is not allowed.
    """

    method: Method
    master: int
    segment_s: float
    aligned: float | None
    coordinated: float | None
    traffic: laws.Traffic | None
    why: str


def advise(
    shape: JoinShape,
    measured: Measured,
    *,
    horizon_s: float,
    allowed: tuple[Method, ...] = ("atr", "ctr"),
    full: bool = True,
    segment_s: float | None = None,
    now: tuple[Method, int] | None = None,
    worth: float = 0.1,
    names: Sequence[str] | None = None,
) -> Advice:
    """The cheaper way for the busiest host.

    Parameters
    ----------
    horizon_s
        Over which time hosts' work is to be even.
    full
        Whether windows are full, or fill during that time.
    segment_s
        A segment length that is given; None: the best.
    now
        Method and master in use, which stay unless something is better by the part ``worth``.
    names
        Of the streams, to say why; None: their numbers.

    O(slots rehearsed × cost of a slot).
    """
    lengths = [segment_s] if segment_s else [horizon_s / (shape.instances * rounds) for rounds in ROUNDS]
    masters = [
        [aligned_busiest(shape, measured, master, each, horizon_s, full=full) for each in lengths]
        for master in range(shape.streams)
    ]
    master = _best_master(shape, masters, 0 if now is None else now[1], worth)
    works = masters[master]
    # The longest that is about as good as the best: the fewer segments there are, the less there is to lay.
    aligned, length = next(
        (work, each) for work, each in zip(works, lengths, strict=True) if work <= ABOUT * min(works)
    )
    coordinated, traffic = None, None
    if "ctr" in allowed:
        coordinated, traffic = coordinated_busiest(shape, measured, horizon_s)
    method: Method = "atr"
    if "atr" not in allowed:
        method = "ctr"
    elif coordinated is not None:
        method = "ctr" if coordinated < aligned else "atr"
        if (
            now is not None
            and method != now[0]
            and abs(coordinated - aligned) < worth * max(coordinated, aligned)
        ):
            method = now[0]
    advice = Advice(
        method=method,
        master=master,
        segment_s=length,
        aligned=float(aligned) if "atr" in allowed else None,
        coordinated=coordinated,
        traffic=traffic,
        why="",
    )
    named = names or [str(k) for k in range(shape.streams)]
    return replace(advice, why=reasons_of(advice, shape, measured, named)["reason"])


def _best_master(shape: JoinShape, works: Sequence[Sequence[float]], now: int, worth: float) -> int:
    """The stream with the least work as master, where a condition that links it to another weighs `LINK`.

    Mostly the one that sends the fewest copies, [1]'s equation 2; the present one if about as good. A row
    that is linked to the master looks there first, where each host has a part of the rows only. Others must
    look for partners in whole windows before, on every host that has a copy, which the work does not count.
    """
    weighed = [min(own) / LINK ** shape.links(stream) for stream, own in enumerate(works)]
    best = weighed.index(min(weighed))
    return best if weighed[best] < (1 - worth) * weighed[now] else now


def aligned_busiest(
    shape: JoinShape,
    measured: Measured,
    master: int,
    segment_s: float,
    horizon_s: float,
    *,
    full: bool = True,
) -> float:
    """CPU seconds per second of the busiest host under aligned routing."""
    partners = measured.partners(shape.windows_us)
    costs, n, m = shape.costs, shape.streams, shape.instances
    total = sent = 0.0
    every = laws.aligned_copies(shape, master, segment_s)
    for i, (rate, copies) in enumerate(zip(measured.rates, every, strict=True)):
        rest = sorted(partners[i, k] for k in range(n) if k not in (i, master))
        made = np.cumprod([1.0, *rest])
        looks, groups = float(made[:-1].sum()), float(made[-1])
        if i != master:
            met = partners[i, master]
            looks, groups = copies + met * looks, met * groups
        total += rate * (copies * costs.receive_s + looks * costs.probe_s + groups * costs.send_s)
        sent += rate * copies * (costs.receive_s + costs.probe_s)
    rounds = max(1.0, horizon_s / (segment_s * m))
    # The last round is not whole, unless the horizon happens to be a multiple.
    uneven = float(np.ceil(rounds - 1e-9) / rounds)
    grown = max(0.0, 1 - sent / total)
    # Copies come from all streams; what grows out of them goes with the rows of the master alone.
    by_chance = (1 - grown) * _chance(sum(measured.rates), horizon_s, m) + grown * _chance(
        measured.rates[master], horizon_s, m
    )
    swing = _swing(shape, measured, segment_s, rounds) * (SWING_WHEN_FULL if full else 1.0)
    return total / m * (uneven + grown * swing) * by_chance


def _swing(shape: JoinShape, measured: Measured, segment_s: float, rounds: float) -> float:
    """How much more than the mean the busiest host gets of work that grows with what is in the windows.

    That work is a product over the streams, and swings as the windows fill and empty by chance: by about
    √(n − 1)/√(r · W) of it, for about a window's time. A host sees as many such times as it has segments, or
    more if they are longer than windows; if all hosts have their turn within a window, they see the same.
    """
    m = shape.instances
    filled = [max(1.0, r * w / MICROSECONDS) for r, w in zip(measured.rates, shape.windows_us, strict=True)]
    deviation = sqrt((shape.streams - 1) * len(filled) / sum(filled))
    window_s = max(shape.longest_us, 1) / MICROSECONDS
    seen = rounds * max(1.0, segment_s / window_s)
    return deviation * _largest(m) / sqrt(seen) * min(1.0, m * segment_s / window_s)


def coordinated_busiest(shape: JoinShape, measured: Measured, horizon_s: float) -> tuple[float, laws.Traffic]:
    """CPU seconds per second of the busiest host under coordinated routing, and what is sent: a rehearsal."""
    slot_us = slot_length_us(shape, measured, horizon_s)
    slots = int(min(100, max(30, horizon_s * MICROSECONDS / slot_us)))
    paths, copies, hosts = laws.rehearse(shape, measured, slot_us, slots=slots)
    partners = measured.partners(shape.windows_us)
    traffic = laws.coordinated_extra(measured, measured.met(shape), paths, copies)
    costs = shape.costs
    rows = float(np.dot(measured.rates, copies))
    groups = _groups(measured, partners)
    total = (
        rows * costs.receive_s
        + float(traffic.entering.sum()) * costs.probe_s
        + traffic.partial * (costs.send_s + costs.receive_s)
        + groups * costs.send_s
    )
    uneven = float(hosts.planned_s.max() / hosts.planned_s.mean())
    chance = _chance(sum(measured.rates), horizon_s, shape.instances)
    return total / shape.instances * uneven * chance, traffic


def _groups(measured: Measured, partners: Floats) -> float:
    n = len(measured.rates)
    return sum(
        rate * float(np.prod([partners[i, k] for k in range(n) if k != i]))
        for i, rate in enumerate(measured.rates)
    )


def _chance(rate: float, horizon_s: float, m: int) -> float:
    """How much more than the mean the busiest of m hosts gets by chance alone, of so many rows a second."""
    rows = max(1.0, rate * horizon_s / m)
    return 1.0 + _largest(m) / sqrt(rows)


def _largest(m: int) -> float:
    """About the largest of m normal deviates, in standard deviations."""
    return max(0.0, sqrt(2 * log(m)) - 0.6)
