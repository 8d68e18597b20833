"""Figure 5 of seed 002: how fast coordinates move, from the moment that all nodes join."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from levelwind.reproduce import style
from levelwind.reproduce.outcome import Check, Item, Outcome, Result, judge
from levelwind.reproduce.statistics import rounded
from levelwind.reproduce.worlds import cell_seed
from levelwind.space import TransitStub, Vivaldi, VivaldiConfig, find_routes, median_error, transit_stub

TITLE = "Movement of coordinates after all nodes have joined"
PAPER = "116 nodes that join together are stable after about 30 minutes; median relative error 9%"
CLAIM = (
    "With noisy measurements, movement settles below a tenth of its first level, and the percentile filter "
    "makes both movement and error less than half of what they are without"
)
# About 116 nodes; queues make measurements a tenth too large on average, one in twenty ten times too large.
SMALL = TransitStub(transit_domains=2, transit_nodes=4, stub_domains=18, stub_nodes=6)
JITTER, SPIKES = 0.1, 0.05
ROUNDS, STEP = 1000, 20
FILTERS = {"filter": 10, "raw": 1}
TICKS_MS = (3, 5, 10, 20, 50, 100)


def cells(quick: bool, seed: int) -> list[Item]:
    """One network per cell."""
    return [{"network": n, "seed": cell_seed(seed, 2005, n)} for n in range(3 if quick else 10)]


def measure(item: Item) -> Result:
    """Mean movement per measurement over time, and the error at the end."""
    rng = np.random.default_rng(item["seed"])
    latency = find_routes(transit_stub(rng, SMALL)).latency_ms
    found: Result = dict(item)
    for name, history in FILTERS.items():
        config = VivaldiConfig(height=True, history=history)
        nodes = Vivaldi(len(latency), config, np.random.default_rng(item["seed"]))
        moved = nodes.measure(latency, rounds=ROUNDS, jitter=JITTER, spikes=SPIKES)
        found[name] = {
            "movement_ms": moved.reshape(-1, STEP).mean(axis=1).tolist(),
            "error": median_error(nodes.coordinates, latency),
        }
    return found


def summarise(results: Sequence[Result]) -> Outcome:
    """Movement at the end over movement at the start; errors."""
    curve = {name: np.mean([r[name]["movement_ms"] for r in results], axis=0) for name in FILTERS}
    error = {name: float(np.mean([r[name]["error"] for r in results])) for name in FILTERS}
    last = {name: float(values[-5:].mean()) for name, values in curve.items()}
    settled = last["filter"] / float(curve["filter"][0])
    checks = [
        Check(passed=settled < 0.1, reason=f"movement ends at {settled:.0%} of its first level"),
        Check(passed=last["filter"] < last["raw"] / 2, reason=f"movement {rounded(last)} ms"),
        Check(passed=error["filter"] < error["raw"] / 2, reason=f"errors {rounded(error)}"),
    ]
    half = np.flatnonzero(curve["filter"] < 0.1 * curve["filter"][0])
    ours = {
        "median_error": error,
        "movement_ms_at_the_end": last,
        "measurements_until_settled": int(half[0]) * STEP if len(half) else None,
    }
    return judge(PAPER, CLAIM, rounded(ours), checks)


def draw(results: Sequence[Result], path: Path) -> None:
    """Movement over measurements per node."""
    with style.figure(path) as axes:
        at = np.arange(ROUNDS // STEP) * STEP
        for name, colour, label in (
            ("filter", style.BLUE, "percentile filter"),
            ("raw", style.VERMILION, "raw measurements"),
        ):
            value = np.mean([r[name]["movement_ms"] for r in results], axis=0)
            axes.plot(at, value, color=colour, label=label)
        axes.set_yscale("log")
        axes.set_yticks(TICKS_MS, [f"{ms:g}" for ms in TICKS_MS])
        axes.set_yticks([], minor=True)
        axes.set_xlabel("measurements by each node")
        axes.set_ylabel("movement per measurement (ms)")
        axes.legend()
