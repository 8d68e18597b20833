"""How many rows a made-up stream has in each tenth of a second, and how that varies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from levelwind.runtime.randomness import Floats, key, normals, rounded, uniforms

SLOT_US = 100_000
SLOTS_PER_S = 10
# Shapes with chance are drawn in blocks of so many slots (about 109 minutes), whole blocks at a time.
BLOCK = 1 << 16
BLOCK_S = BLOCK / SLOTS_PER_S
# Keeps a whole number of rows whole when a product of floats falls just short of it.
SLACK = 1e-6
Counts = npt.NDArray[np.int64]


class Shape(Protocol):
    """Counts of rows by slot, the same for a slot whatever else is asked for. Slots count from 0.

    Two shapes that are equal have equal counts: what was worked out for one is kept for the other.
    """

    def __hash__(self) -> int: ...

    def counts(self, first: int, last: int) -> Counts:
        """Rows in each of the slots from ``first`` up to, not including, ``last``."""
        ...

    def rows_before(self, slot: int) -> int:
        """Rows in all slots before this one."""
        ...


class _Smooth:
    """A rate without chance, known by its integral."""

    def counts(self, first: int, last: int) -> Counts:
        """Differences of the whole rows due at the slots' edges: over many slots no row is lost."""
        return np.diff(self._whole(np.arange(first, last + 1)))

    def rows_before(self, slot: int) -> int:
        """Whole rows due at the slot's beginning."""
        return int(self._whole(np.asarray([slot]))[0])

    def _whole(self, slots: Counts) -> Counts:
        return np.floor(self._rows_by(slots / SLOTS_PER_S) + SLACK).astype(np.int64)

    def _rows_by(self, seconds: Floats) -> Floats:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady(_Smooth):
    """Always the same rate, rows per second."""

    rate: float

    def _rows_by(self, seconds: Floats) -> Floats:
        return self.rate * seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Series(_Smooth):
    """A rate for each second in turn, in rows per second; silence after the last."""

    rates: tuple[float, ...]

    def _rows_by(self, seconds: Floats) -> Floats:
        return np.interp(seconds, np.arange(len(self.rates) + 1), _rows_by_second(self.rates))


@lru_cache(maxsize=256)
def _rows_by_second(rates: tuple[float, ...]) -> Floats:
    """Rows by the beginning of each second, and by the end of the last."""
    return np.concatenate([[0.0], np.cumsum(rates)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic(_Smooth):
    """``high`` rows per second for half of each period, ``low`` for the other half.

    ``phase_s``: how far into its period the stream begins.
    """

    high: float
    low: float
    period_s: float
    phase_s: float = 0.0

    def _rows_by(self, seconds: Floats) -> Floats:
        return self._integral(seconds + self.phase_s) - self._integral(np.asarray(self.phase_s))

    def _integral(self, seconds: Floats) -> Floats:
        half = self.period_s / 2
        # Whole halves first: a remainder of floats can come out as nearly a period instead of nearly none.
        halves = np.floor(seconds / half + 1e-9)
        rest = np.maximum(seconds - halves * half, 0.0)
        highs = np.ceil(halves / 2)
        return (
            self.high * half * highs
            + self.low * half * (halves - highs)
            + np.where(halves % 2 == 0, self.high, self.low) * rest
        )


class _Blocks:
    """Counts with chance, drawn block by block; `_block_counts` keeps the last blocks of this process."""

    def counts(self, first: int, last: int) -> Counts:
        """The slots' part of the blocks they lie in."""
        if last <= first:
            return np.zeros(0, dtype=np.int64)
        blocks = range(first // BLOCK, (last - 1) // BLOCK + 1)
        joined = np.concatenate([_block_counts(self, block) for block in blocks])
        begin = blocks[0] * BLOCK
        return joined[first - begin : last - begin]

    def rows_before(self, slot: int) -> int:
        """The sums of all blocks before, and of the part of this one."""
        block, rest = divmod(slot, BLOCK)
        return _blocks_before(self, block) + (int(_block_counts(self, block)[:rest].sum()) if rest else 0)

    def draw(self, block: int) -> Counts:
        raise NotImplementedError


@lru_cache(maxsize=64)
def _block_counts(shape: _Blocks, block: int) -> Counts:
    counts = shape.draw(block)
    counts.flags.writeable = False
    return counts


_sums: dict[_Blocks, list[int]] = {}


def _blocks_before(shape: _Blocks, block: int) -> int:
    """Rows in all blocks before one; the sums are kept, since they are asked for in rising order."""
    sums = _sums.setdefault(shape, [0])
    while len(sums) <= block:
        sums.append(sums[-1] + int(_block_counts(shape, len(sums) - 1).sum()))
    return sums[block]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnOff(_Blocks):
    """Bursts of ``rate`` rows per second, and silence; both last exponential times of the given means.

    Such a process is a Markov chain of two states, and has an equal that can be entered anywhere: at the
    points of a Poisson process of rate 1/on + 1/off, forget the state and draw it anew, on with probability
    on/(on + off). From on it then leaves at rate 1/on, from off at rate 1/off, as it should, and the state at
    any time depends on the last such point alone.
    """

    rate: float
    on_s: float
    off_s: float
    seed: int

    def draw(self, block: int) -> Counts:
        """Seconds on in each slot, times the rate, rounded at random."""
        times, states = self._points(block)
        points = np.concatenate([[0.0], times, [BLOCK_S]])
        now_on = np.concatenate([[self._state_before(block)], states])
        on_by = np.concatenate([[0.0], np.cumsum(np.diff(points) * now_on)])
        edges = np.arange(BLOCK + 1) / SLOTS_PER_S
        rows = self.rate * np.diff(np.interp(edges, points, on_by))
        return rounded(rows, uniforms(key(self.seed, "rounding", block), np.arange(BLOCK, dtype=np.uint64)))

    def _points(self, block: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """When the state is drawn anew in a block, in seconds from its beginning, and what is drawn."""
        rate = 1 / self.on_s + 1 / self.off_s
        mean = rate * BLOCK_S
        # Ten standard deviations more than the mean: never too few.
        counters = np.arange(int(mean + 10 * mean**0.5) + 20, dtype=np.uint64)
        times = np.cumsum(-np.log1p(-uniforms(key(self.seed, "gaps", block), counters)) / rate)
        inside = int(np.searchsorted(times, BLOCK_S))
        states = uniforms(key(self.seed, "states", block), counters[:inside])
        return times[:inside], states < self.on_s / (self.on_s + self.off_s)

    def _state_before(self, block: int) -> bool:
        for earlier in range(block - 1, -1, -1):
            _, states = self._points(earlier)
            if len(states):
                return bool(states[-1])
        chance = uniforms(key(self.seed, "begin"), np.zeros(1, dtype=np.uint64))[0]
        return bool(chance < self.on_s / (self.on_s + self.off_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfSimilar(_Blocks):
    """A rate that bursts at all time scales: the exponential of fractional Gaussian noise.

    The exponential keeps the rate above zero at any burstiness, and keeps the long memory: the variance of
    means over m slots falls like m^(2·hurst − 2). The mean over each block is ``rate``; over shorter times it
    strays, which is what self-similar means. The noise is exact (Davies and Harte's circulant embedding);
    its memory ends with the block.

    Reference: Davies, Harte, "Tests for Hurst effect", Biometrika 74(1), 1987.
    """

    rate: float
    hurst: float
    cv: float
    seed: int

    def draw(self, block: int) -> Counts:
        """Noise, exponential, the block's mean put right, rounded at random."""
        counters = np.arange(2 * BLOCK, dtype=np.uint64)
        real = normals(key(self.seed, "real", block), counters)
        imaginary = normals(key(self.seed, "imaginary", block), counters)
        noise = np.fft.fft(_spectrum(self.hurst) * (real + 1j * imaginary)).real[:BLOCK]
        rows = np.exp(noise * np.sqrt(np.log1p(self.cv**2)))
        rows *= self.rate / SLOTS_PER_S / rows.mean()
        return rounded(rows, uniforms(key(self.seed, "rounding", block), counters[:BLOCK]))


@lru_cache(maxsize=8)
def _spectrum(hurst: float) -> Floats:
    """Square roots of the eigenvalues of the noise's circulant covariance, scaled for the transform."""
    lags = np.arange(BLOCK + 1, dtype=np.float64)
    power = 2 * hurst
    covariance = ((lags + 1) ** power - 2 * lags**power + np.abs(lags - 1) ** power) / 2
    eigenvalues = np.fft.fft(np.concatenate([covariance, covariance[-2:0:-1]])).real
    spectrum: Floats = np.sqrt(np.maximum(eigenvalues, 0.0) / (2 * BLOCK))
    spectrum.flags.writeable = False
    return spectrum
