"""Random numbers by counter: the n-th number of a key is the same whoever asks for it, and in what order."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import numpy.typing as npt

Counters = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = (np.uint64(shift) for shift in (30, 27, 31, 11))


def key(seed: int, *purpose: object) -> int:
    """A key for one purpose of a seed; other purposes get numbers that have nothing to do with its."""
    return int.from_bytes(blake2b(repr((seed, *purpose)).encode(), digest_size=8).digest())


def bits(of: int, counters: Counters) -> Counters:
    """Random 64-bit words: SplitMix64, which is a counter-based generator when it is asked by position.

    Reference: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    words = (counters + np.uint64(1)) * _STEP
    words += np.uint64(of)
    words ^= words >> _S30
    words *= _FIRST
    words ^= words >> _S27
    words *= _SECOND
    words ^= words >> _S31
    return words


def uniforms(of: int, counters: Counters) -> Floats:
    """Numbers from 0 up to, not including, 1."""
    return (bits(of, counters) >> _S11).astype(np.float64) * 2.0**-53


def normals(of: int, counters: Counters) -> Floats:
    """Numbers from the standard normal distribution (Box and Muller's transform)."""
    radius = np.sqrt(-2.0 * np.log1p(-uniforms(key(of, "radius"), counters)))
    return radius * np.cos(2.0 * np.pi * uniforms(key(of, "angle"), counters))


def rounded(values: Floats, chances: Floats) -> npt.NDArray[np.int64]:
    """Values rounded up or down at random, so that the mean is kept; whole ones stay as they are."""
    values = np.round(values, 6)
    whole = np.floor(values)
    return whole.astype(np.int64) + (chances < values - whole)
