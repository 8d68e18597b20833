"""Random node weight matrices, their feasible sets and the two heuristics' values: figures 4.5 and 4.7."""

from __future__ import annotations

from collections.abc import Sequence
from math import gamma, pi

import numpy as np

from levelwind.loads import feasible_volume, plane_distance
from levelwind.loads.arrays import Floats
from levelwind.reproduce.outcome import Item, Result
from levelwind.reproduce.worlds import cell_seed

NODES = 10
INPUTS = 3
MATRICES = 10_000
CHUNK = 250
# From one node bearing most of a stream's load to loads equal within some percent: the paper does not say
# how its matrices were drawn, and a single concentration fills only a corner of its figures.
CONCENTRATION = (0.3, 300.0)
TOLERANCE = 1e-9


def cells(quick: bool, seed: int) -> list[Item]:
    """Chunks of matrices; all 10,000 also when quick, since exact volumes of three variables are cheap."""
    return [
        {"chunk": i, "matrices": CHUNK, "seed": cell_seed(seed, 405, i)} for i in range(MATRICES // CHUNK)
    ]


def measure(item: Item) -> Result:
    """Exact feasible ratio, product of least axis distances (g) and r/r* of each matrix of a chunk."""
    rng = np.random.default_rng(item["seed"])
    ratio, axis, plane = [], [], []
    for _ in range(item["matrices"]):
        weights = random_weights(rng)
        ratio.append(feasible_volume(weights, np.zeros(INPUTS)).ratio)
        axis.append(float((1.0 / weights.max(axis=0)).prod()))
        # The ideal plane Σx = 1 is 1/√d away.
        plane.append(float(plane_distance(weights, np.zeros(INPUTS)).min()) * INPUTS**0.5)
    return {**item, "ratio": ratio, "g": axis, "r": plane}


def random_weights(rng: np.random.Generator) -> Floats:
    """Each stream's load dealt to equal nodes by chance: columns are Dirichlet, and sum to the node count."""
    low, high = np.log(CONCENTRATION)
    concentration = np.exp(rng.uniform(low, high))
    return NODES * rng.dirichlet(np.full(NODES, concentration), size=INPUTS).T


def ball_bound(r: Floats) -> Floats:
    """Share of the ideal set that the ball of relative radius r/r* takes up: a lower bound of the ratio.

    The part of a d-ball with no negative coordinate has volume π^(d/2) / Γ(d/2 + 1) · r^d / 2^d; the ideal
    set has 1/d!, and r* = 1/√d.
    """
    d = INPUTS
    whole = pi ** (d / 2) / gamma(d / 2 + 1) / 2**d * gamma(d + 1)
    return whole * (np.asarray(r) / d**0.5) ** d


def columns(results: Sequence[Result], name: str) -> tuple[Floats, Floats]:
    """A heuristic's values and the feasible ratios of all matrices."""
    return (
        np.concatenate([np.asarray(r[name], dtype=float) for r in results]),
        np.concatenate([np.asarray(r["ratio"], dtype=float) for r in results]),
    )


def envelopes(x: Floats, y: Floats, bins: int = 10) -> tuple[Floats, Floats, Floats]:
    """Median x and the 2% and 98% quantiles of y in bins of equally many points."""
    order = np.argsort(x, kind="stable")
    parts = np.array_split(order, bins)
    return (
        np.array([np.median(x[part]) for part in parts]),
        np.array([np.quantile(y[part], 0.02) for part in parts]),
        np.array([np.quantile(y[part], 0.98) for part in parts]),
    )
