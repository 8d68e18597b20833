"""How many groups a spread join finds per second on hosts that may be too slow for it.

A host works off what it is sent, and holds a bounded number of seconds of work; what is beyond that is shed,
and the groups it would have found with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from levelwind.diffusion.auto import advise
from levelwind.diffusion.coordinated import shortest_slot_us
from levelwind.diffusion.hosts import Hosts
from levelwind.diffusion.join import MICROSECONDS, Floats, Ints, JoinShape, Measured
from levelwind.diffusion.router import Method, new_router
from levelwind.diffusion.tuning import SegmentTuner
from levelwind.diffusion.work import Work, partners_at, work_of

Algorithm = Literal[
    "atr", "ctr", "auto", "atr_unoptimised", "ctr_unoptimised", "semantics_unaware", "centralised"
]
# What the two methods are compared with, and what each does. The unoptimised forms are those of the paper's
# section 5, by our rules: none loses a group. As the paper prints them, marks at a switch of the master lose
# 17% of the groups of three streams, and coordinated routing loses 11% and finds 14% twice.
BASELINES: Mapping[Algorithm, str] = {
    "centralised": "all rows to one host",
    "semantics_unaware": "each row to one host, in turn by speed: groups whose rows do not meet are lost",
    "atr_unoptimised": "aligned routing with a fixed master and fixed segments",
    "ctr_unoptimised": "coordinated routing with covers chosen by chance",
}
# A host holds so many seconds of its own work.
HELD_S = 10.0
# Segments of the unoptimised form, whose master is the first stream.
PLAIN_SEGMENT_S = 5.0
# The segment length is tried out on so many seconds of arrivals.
TRIAL_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a run found.

    ``groups`` per second, ``received`` rows and partial groups per second over the network, ``spread``
    the coefficient of variation of work over speed of the hosts, ``segment_s`` that of aligned routing.
    """

    groups: Floats
    received: float
    spread: float
    busiest: float
    segment_s: float | None


def processed(work: Work, speed: Floats, held_s: float = HELD_S) -> Floats:
    """Groups found in each second. O(seconds × hosts)."""
    waiting = np.zeros(len(speed))
    found = np.zeros(len(work.cpu_s))
    for second, asked in enumerate(work.cpu_s):
        taken = np.minimum(asked, np.maximum(speed * (1 + held_s) - waiting, 0.0))
        part = np.divide(taken, asked, out=np.ones_like(asked), where=asked > 0)
        found[second] = float((work.groups[second] * part).sum())
        waiting = np.maximum(waiting + taken - speed, 0.0)
    return found


def run(
    algorithm: Algorithm,
    shape: JoinShape,
    measured: Measured,
    speed: Floats,
    streams: Ints,
    times: Ints,
    seconds: int,
    *,
    segment_s: float | None = None,
    seed: int = 0,
) -> Found:
    """One algorithm on given arrivals."""
    length: float | None = None
    if algorithm in ("centralised", "semantics_unaware"):
        work = _simple(algorithm == "centralised", shape, measured, speed, streams, times, seconds)
    else:
        method: Method = "ctr" if algorithm.startswith("ctr") else "atr"
        master = 0
        if algorithm == "auto":
            advice = advise(shape, measured, horizon_s=float(seconds), full=False)
            method, master, segment_s = advice.method, advice.master, advice.segment_s
        elif algorithm == "atr":
            advice = advise(shape, measured, horizon_s=float(seconds), full=False, allowed=("atr",))
            master = advice.master
        if method == "atr":
            length = segment_s or PLAIN_SEGMENT_S
            if algorithm == "atr" and segment_s is None:
                length = _tuned(shape, measured, speed, streams, times, seconds, master)
        work = _routed(
            method,
            shape,
            measured,
            speed,
            streams,
            times,
            seconds,
            master=master,
            segment_s=length or PLAIN_SEGMENT_S,
            seed=seed if algorithm == "ctr_unoptimised" else None,
        )
    per_host = work.per_host() / speed
    return Found(
        groups=processed(work, speed),
        received=float(work.received.sum()) / seconds,
        spread=float(per_host.std() / per_host.mean()) if per_host.mean() else 0.0,
        busiest=float(per_host.max()) / seconds,
        segment_s=length,
    )


def _tuned(
    shape: JoinShape,
    measured: Measured,
    speed: Floats,
    streams: Ints,
    times: Ints,
    seconds: int,
    master: int,
) -> float:
    """The segment length found by trying lengths on the beginning of the run."""
    trial = min(seconds, max(TRIAL_S, 4 * shape.longest_us // MICROSECONDS))
    own = times < trial * MICROSECONDS
    tuner = SegmentTuner(length_s=PLAIN_SEGMENT_S)
    for _ in range(16):
        work = _routed(
            "atr",
            shape,
            measured,
            speed,
            streams[own],
            times[own],
            trial,
            master=master,
            segment_s=tuner.length_s,
        )
        tuner.report(float(processed(work, speed).sum()))
        if tuner.settled:
            break
    return tuner.best_s


def _routed(
    method: Method,
    shape: JoinShape,
    measured: Measured,
    speed: Floats,
    streams: Ints,
    times: Ints,
    seconds: int,
    *,
    master: int,
    segment_s: float,
    seed: int | None = None,
) -> Work:
    router = new_router(
        shape,
        measured=measured,
        method=method,
        master=master,
        segment_us=max(1, round(segment_s * MICROSECONDS)),
        slot_us=shortest_slot_us(shape),
        hosts=Hosts.of_speeds(speed),
    )
    if seed is not None:
        router.rng = np.random.default_rng(seed)
    routed = router.route(streams, times)
    return work_of(router, streams, times, routed, routed.paths, seconds)


def _simple(
    one_host: bool,
    shape: JoinShape,
    measured: Measured,
    speed: Floats,
    streams: Ints,
    times: Ints,
    seconds: int,
) -> Work:
    """All rows to one host, or each to the one whose turn it is: groups that do not meet are lost."""
    m = shape.instances
    partners = partners_at(shape, measured, streams, times) / (1 if one_host else m)
    bins = np.minimum(times // MICROSECONDS, seconds - 1)
    turns = np.repeat(np.arange(m), np.maximum(1, np.round(speed / speed.min() * 4)).astype(np.int64))
    # In the order of their share of the turn, so that no host gets its rows in a row.
    place = np.concatenate([(np.arange(c) + 0.5) / c for c in np.bincount(turns, minlength=m)])
    turns = turns[np.argsort(place, kind="stable")]
    host = np.zeros(len(times), dtype=np.int64) if one_host else turns[np.arange(len(times)) % len(turns)]
    own = streams[:, np.newaxis] == np.arange(shape.streams)
    ordered = np.sort(np.where(own, -1.0, partners), axis=1)[:, 1:]
    made = np.cumprod(np.concatenate([np.ones((len(times), 1)), ordered], axis=1), axis=1)
    costs = shape.costs
    work = Work(cpu_s=np.zeros((seconds, m)), groups=np.zeros((seconds, m)), received=np.zeros((seconds, m)))
    looks, groups = made[:, :-1].sum(axis=1), made[:, -1]
    np.add.at(work.cpu_s, (bins, host), costs.receive_s + looks * costs.probe_s + groups * costs.send_s)
    np.add.at(work.groups, (bins, host), groups)
    np.add.at(work.received, (bins, host), 1.0)
    return work
