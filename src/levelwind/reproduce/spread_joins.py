"""The worlds of seed 004, section 5: one join on a cluster of unequal hosts, and what is measured in them.

Hosts have speeds from 1000 to 5000 MIPS, 3000 counting as 1. Receiving or sending takes 1 ms, a look for
partners 10 ms. What a host cannot do within ten seconds is shed; the paper leaves that to its join algorithm.
"""

from __future__ import annotations

from itertools import pairwise
from time import process_time
from typing import Any

import numpy as np

from levelwind.diffusion.arrivals import bursty_rows
from levelwind.diffusion.coordinated import shortest_slot_us
from levelwind.diffusion.join import MICROSECONDS, Floats, JoinShape, Measured
from levelwind.diffusion.router import new_router
from levelwind.diffusion.throughput import run
from levelwind.reproduce.outcome import Item, Result
from levelwind.reproduce.worlds import cell_seed

SPREAD = ("atr", "ctr")
ALL = ("atr", "ctr", "atr_unoptimised", "ctr_unoptimised", "semantics_unaware", "centralised")
RUNS = {True: 1, False: 3}
SECONDS = {True: 200, False: 1200}
# Mean speed of a host, in MIPS.
MIPS = 3000.0
# The join of the paper's simulations: rates of streams, and the chance that two rows agree.
RATES = (5.0, 20.0)
SELECTIVITY = 0.1
# Partners of a row in a window with which partial groups are few; σ = 0.1 gives 37 at a window of 30 s.
FEW = 0.2
DIMENSIONS, TOPICS = 40, 60
# Points of a curve over time.
POINTS = 100


def cell(quick: bool, seed: int, run_number: int, algorithm: str, **changes: Any) -> Item:
    """One run of an algorithm; all of one run and setting see the same rows."""
    base: dict[str, Any] = {
        "streams": 3,
        "window_s": 30,
        "hosts": 30,
        "selectivity": SELECTIVITY,
        "partners": None,
        "rates": RATES,
        "burstiness": 0.0,
        "equal": False,
        "segment_s": None,
        "vectors": False,
        "duration_s": float(SECONDS[quick]),
    }
    return {
        **base,
        **{key: list(value) if isinstance(value, tuple) else value for key, value in changes.items()},
        "rates": list(changes.get("rates", RATES)),
        "algorithm": algorithm,
        "run": run_number,
        "seed": cell_seed(seed, 4004, run_number),
    }


def measure(item: Item) -> Result:
    """Groups per second, traffic, spread of work; and how long a row takes to route, in microseconds.

    Of near vectors also all groups so far, over time.
    """
    rng = np.random.default_rng(item["seed"])
    n, seconds = item["streams"], round(item["duration_s"])
    low, high = (float(rate) for rate in item["rates"])
    rates = rng.uniform(low, high, (n,))
    window_us = round(item["window_s"] * MICROSECONDS)
    selectivity = item["selectivity"]
    if item["vectors"]:
        selectivity = vector_selectivity(np.random.default_rng(item["seed"]))
    if item["partners"] is not None:
        selectivity = item["partners"] / (float(rates.mean()) * item["window_s"])
    shape = JoinShape(windows_us=(window_us,) * n, instances=item["hosts"])
    measured = Measured.of(rates.tolist(), selectivity)
    speed = np.ones(item["hosts"]) if item["equal"] else rng.uniform(1000, 5000, (item["hosts"],)) / MIPS
    streams, times = bursty_rows(rng, rates.tolist(), seconds, burstiness=item["burstiness"])
    found = run(
        item["algorithm"], shape, measured, speed, streams, times, seconds, segment_s=item["segment_s"]
    )
    warm = min(seconds // 4, 2 * round(item["window_s"]))
    return {
        **item,
        "groups_per_s": float(found.groups[warm:].mean()),
        "total": np.cumsum(found.groups)[:: max(1, seconds // POINTS)].tolist() if item["vectors"] else None,
        "received_per_s": found.received,
        "spread": found.spread,
        "segment": found.segment_s,
        "route_us": _route_us(item["algorithm"], shape, measured, streams, times),
    }


def vector_selectivity(rng: np.random.Generator, *, rows: int = 1500) -> float:
    """The chance that two synthetic concept vectors are near: shots of one of many topics, with noise.

    A row is a topic's centre plus noise in 40 dimensions; two are near if they are closer than any two
    centres are likely to be.
    """
    centres = rng.normal(size=(TOPICS, DIMENSIONS))
    vectors = centres[rng.integers(TOPICS, size=rows)] + 0.25 * rng.normal(size=(rows, DIMENSIONS))
    squares = (vectors**2).sum(axis=1)
    apart = squares[:, np.newaxis] + squares[np.newaxis, :] - 2 * vectors @ vectors.T
    near: Floats = apart < 0.3 * DIMENSIONS
    return float((near.sum() - rows) / (rows * (rows - 1)))


def _route_us(algorithm: str, shape: JoinShape, measured: Measured, streams: Any, times: Any) -> float:
    """CPU time of routing a row, in batches of a second."""
    if not algorithm.startswith(("atr", "ctr")):
        return 0.0
    router = new_router(
        shape,
        measured=measured,
        method="ctr" if algorithm.startswith("ctr") else "atr",
        slot_us=shortest_slot_us(shape),
    )
    last = min(int(times.max(initial=0)), 120 * MICROSECONDS)
    cuts = np.searchsorted(times, np.arange(0, last + 2 * MICROSECONDS, MICROSECONDS))
    router.route(streams[: cuts[1]], times[: cuts[1]])  # what is compiled is compiled
    started = process_time()
    for low, high in pairwise(cuts[1:]):
        if high > low:
            router.route(streams[low:high], times[low:high])
            router.settle(int(times[high - 1]))
    return (process_time() - started) / max(1, int(cuts[-1] - cuts[1])) * 1e6
