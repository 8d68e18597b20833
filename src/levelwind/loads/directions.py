"""Directions spread evenly over the simplex: the rays along which volumes are integrated.

A Korobov lattice, shifted at random, folded (the baker's transform) and mapped to the simplex. Each shift
is an unbiased estimate by itself, so the spread between shifts is an honest error.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from levelwind.loads.arrays import Floats

# Multipliers found by search over 2,000 candidates: smallest worst-case error (P2, weights 1/(j+1)²).
MULTIPLIER = {256: 201, 1024: 469, 4096: 3883, 16384: 3523, 65536: 57305}


@lru_cache(maxsize=16)
def directions(dimension: int, points: int, shifts: int, seed: int) -> Floats:
    """Directions with Σu = 1, uniform on the simplex; shape (shifts, points, dimension).

    Parameters
    ----------
    points
        Size of the lattice, a key of `MULTIPLIER`.

    Notes
    -----
    Cost O(shifts × points × dimension); the answer is shared between callers and cannot be written to.
    """
    free = dimension - 1
    generator = np.empty(free, dtype=np.int64)
    power = 1
    for k in range(free):
        generator[k] = power
        power = power * MULTIPLIER[points] % points
    grid = (np.arange(points)[:, None] * generator % points) / points
    shift = np.random.default_rng(seed).random((shifts, 1, free))
    folded = 1.0 - np.abs(2.0 * ((grid + shift) % 1.0) - 1.0)
    # Break a stick: of what is left, the k-th of d pieces takes 1 − v^(1/(d−1−k)).
    kept = folded ** (1.0 / np.arange(free, 0, -1))
    left = np.cumprod(np.concatenate([np.ones((shifts, points, 1)), kept], axis=2), axis=2)
    pieces = np.concatenate([left[..., :-1] * (1.0 - kept), left[..., -1:]], axis=2)
    pieces.setflags(write=False)
    return pieces
