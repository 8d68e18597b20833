"""Work is even over hosts, in proportion to their speed; and `auto` chooses the cheaper way.

``pytest -s`` shows the figures.
"""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest

from levelwind.diffusion.arrivals import bursty_rows, poisson_rows
from levelwind.diffusion.auto import advise
from levelwind.diffusion.coordinated import slot_length_us
from levelwind.diffusion.hosts import Hosts
from levelwind.diffusion.join import MICROSECONDS, JoinShape, Measured
from levelwind.diffusion.router import KEEPS, LOOKS, new_router
from levelwind.diffusion.tuning import SegmentTuner
from levelwind.diffusion.work import work_of

S = MICROSECONDS
# Rows per second of each stream; more of them where chance must not decide.
RATE, MANY = 10, 40


def per_host(
    method,
    n,
    m,
    window_s,
    x,
    *,
    seconds,
    segment_s=5.0,
    speeds=None,
    burstiness=0.0,
    skip=0,
    seed=0,
    rate=RATE,
):
    shape = JoinShape(windows_us=(window_s * S,) * n, instances=m)
    measured = Measured.of([rate] * n, x / (rate * window_s))
    router = new_router(
        shape,
        measured=measured,
        method=method,
        segment_us=max(1, round(segment_s * S)),
        slot_us=window_s * S // 10,
        hosts=None if speeds is None else Hosts.of_speeds(np.array(speeds)),
    )
    rng = np.random.default_rng(seed)
    streams, times = bursty_rows(rng, [rate] * n, seconds, burstiness=burstiness)
    routed = router.route(streams, times)
    work = work_of(router, streams, times, routed, routed.paths, seconds)
    return work.cpu_s[skip:].sum(axis=0)


@pytest.mark.parametrize("burstiness", [0.0, 0.8])
@pytest.mark.parametrize("hosts", [6, 30])
@pytest.mark.parametrize("method", ["atr", "ctr"])
@pytest.mark.parametrize(("n", "window_s", "x"), [(2, 30, 0.3), (3, 10, 1.0), (4, 50, 0.3)])
def test_work_is_even(method, hosts, n, window_s, x, burstiness):
    work = per_host(method, n, hosts, window_s, x, seconds=1000, burstiness=burstiness, skip=100)
    variation = work.std() / work.mean()
    print(f"\n{method}, {hosts} hosts, {n} streams, {window_s} s, bursts {burstiness}: {variation:.3f}")
    assert variation <= 0.1


@pytest.mark.parametrize("hosts", [6, 30])
@pytest.mark.parametrize("method", ["atr", "ctr"])
def test_unequal_hosts_are_loaded_in_proportion(method, hosts):
    speeds = np.linspace(1000, 5000, hosts) / 3000
    # Segments so long that not every host has every row, and so short that there are many.
    length = {6: 6.0, 30: 2.0}[hosts]
    work = per_host(
        method, 3, hosts, 10, 0.3, seconds=1000, segment_s=length, speeds=speeds, skip=100, rate=MANY
    )
    load = work / speeds
    print(f"\n{method}, {hosts} hosts: load over its mean from {load.min() / load.mean():.3f}", end=" ")
    print(f"to {load.max() / load.mean():.3f}")
    assert np.abs(load / load.mean() - 1).max() <= 0.1


@pytest.mark.parametrize("hosts", [6, 30])
def test_coordinated_routing_shares_out_keeping_and_looking_each_for_itself(hosts):
    # So that work is in proportion to speed whatever keeping a row costs beside looking for partners.
    n, window_s = 3, 10
    speeds = np.linspace(1000, 5000, hosts) / 3000
    shape = JoinShape(windows_us=(window_s * S,) * n, instances=hosts)
    measured = Measured.of([MANY] * n, 0.3 / (MANY * window_s))
    router = new_router(shape, measured=measured, method="ctr", slot_us=S, hosts=Hosts.of_speeds(speeds))
    routed = router.route(*poisson_rows(np.random.default_rng(1), [MANY] * n, 600))
    for role in (KEEPS, LOOKS):
        load = np.bincount(routed.host[(routed.role & role) > 0], minlength=hosts) / speeds
        part = load / load.mean()
        print(f"\n{hosts} hosts: over its mean from {part.min():.3f} to {part.max():.3f}")
        assert np.abs(part - 1).max() <= 0.1


def test_slots_are_longer_where_few_rows_come():
    shape = JoinShape(windows_us=(S, 2 * S), instances=4)
    assert slot_length_us(shape, Measured.of([1000, 1000], 0.1), 4.0) == 200_000  # a tenth of a window
    assert slot_length_us(shape, Measured.of([25, 25], 0.1), 4.0) == S  # fifty rows
    assert slot_length_us(shape, Measured.of([1, 1], 0.1), 4.0) == 2 * S  # a window
    assert slot_length_us(shape, Measured.of([1, 1], 0.1), 40.0) == 10 * S  # one for each host


# Many rows in a window, and few: what is laid must not cost more than the rows that come.
@pytest.mark.parametrize(("n", "m", "window_s", "rate", "batch_s"), [(4, 30, 30, 50, 1), (2, 6, 0.2, 40, 4)])
@pytest.mark.parametrize("method", ["atr", "ctr"])
def test_routing_takes_microseconds(method, n, m, window_s, rate, batch_s):
    shape = JoinShape(windows_us=(round(window_s * S),) * n, instances=m)
    measured = Measured.of([rate] * n, 0.001)
    slot_us = slot_length_us(shape, measured, batch_s)
    router = new_router(shape, measured=measured, method=method, slot_us=slot_us)
    streams, times = poisson_rows(np.random.default_rng(0), [rate] * n, 130 * batch_s)
    cuts = np.searchsorted(times, np.arange(131) * batch_s * S)
    router.route(streams[: cuts[10]], times[: cuts[10]])
    started = time.process_time()
    for low, high in pairwise(cuts[10:]):
        router.route(streams[low:high], times[low:high])
        router.settle(int(times[high - 1]))
    each = (time.process_time() - started) / (len(times) - cuts[10]) * 1e6
    print(f"\n{method}: {each:.2f} µs per row")
    assert each <= 20


HORIZON_S = 200


def worst_over(cases, *, filled=False):
    """The work of the busiest host as advised over the least, at worst; ``filled``: once windows are full."""
    worst = 0.0
    for n, m, window_s, x in cases:
        shape = JoinShape(windows_us=(window_s * S,) * n, instances=m)
        measured = Measured.of([MANY] * n, x / (MANY * window_s))
        advice = advise(shape, measured, horizon_s=HORIZON_S, full=filled)

        def busiest(method, length, case=(n, m, window_s, x)):
            skip = case[2] if filled else 0
            return per_host(
                method,
                *case,
                seconds=skip + HORIZON_S,
                skip=skip,
                segment_s=length,
                seed=sum(case[:3]),
                rate=MANY,
            ).max()

        lengths = {1, 5, 20, *(HORIZON_S / (m * rounds) for rounds in (1, 2, 4, 8))}
        aligned = min(busiest("atr", length) for length in lengths)
        coordinated = busiest("ctr", 5.0)
        chosen = coordinated if advice.method == "ctr" else busiest("atr", advice.segment_s)
        ratio = chosen / min(aligned, coordinated)
        print(f"\n{n} streams, {m} hosts, {window_s} s, x {x}: {ratio:.3f}, {advice.why}", end="")
        worst = max(worst, ratio)
    return worst


GRID = [
    (n, m, window_s, x)
    for m in (6, 30)
    for n in (2, 3, 4, 5, 6)
    for window_s in (10, 30, 50)
    for x in (0.05, 0.3, 1, 3, 10, 30)
    if x ** (n - 1) <= 1e4
]


def test_auto_chooses_about_the_best():
    assert worst_over(GRID[7::31]) <= 1.1


@pytest.mark.slow
@pytest.mark.parametrize("filled", [False, True])
def test_auto_chooses_about_the_best_over_the_grid(filled):
    worst = worst_over(GRID, filled=filled)
    print(f"\nat worst {worst:.3f}")
    assert worst <= 1.1


def test_tuning_finds_the_peak():
    tuner = SegmentTuner(length_s=5.0)
    for _ in range(20):
        tuner.report(-abs(np.log(tuner.length_s / 23.0)))
    assert tuner.settled
    assert 23.0 / 1.5 < tuner.length_s < 23.0 * 1.5
