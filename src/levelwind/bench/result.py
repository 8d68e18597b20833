"""What a benchmark is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

Step = Callable[[str], None]


def _silent(_: str) -> None:
    """Progress nobody asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the caller may choose for every benchmark.

    ``repeat`` is the number of rounds, None for each benchmark's own; ``full`` asks for the long version
    where there is one; ``step`` is told what is measured next. In ``directory``, if given, a long one may
    keep what it has measured, and go on from there when it is asked again.
    """

    repeat: int | None = None
    full: bool = False
    seed: int = 0
    step: Step = _silent
    directory: Path | None = None

    def rounds(self, usual: int, *, most: int | None = None) -> int:
        """Rounds to measure: the caller's number, else the usual one, but never above ``most``."""
        wanted = self.repeat if self.repeat is not None else usual
        return wanted if most is None else min(wanted, most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number in its unit, and the limit that it must not exceed, if there is one."""

    label: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def ok(self) -> bool | None:
        """Whether the limit is kept; None without one."""
        return None if self.limit is None else self.value <= self.limit

    def as_dict(self) -> dict[str, Any]:
        """The figure as JSON."""
        return {
            "label": self.label,
            "value": self.value,
            "unit": self.unit,
            "limit": self.limit,
            "ok": self.ok,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came out: one headline that is compared with the baseline, and further figures.

    ``ratio`` is how many times better we are than the baseline, whatever the unit: above 1 we win.
    ``spread`` is the range of the single rounds' ratios over their median: 0.1 means that they all lie in a
    band as wide as a tenth of the ratio. ``details`` holds the numbers behind, for whoever looks closer.
    """

    name: str
    ours: Figure
    baseline: Figure
    ratio: float
    spread: float
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The contract's object (its six keys first), limits missed among its notes."""
        every = (self.ours, *self.figures)
        missed = [
            f"limit missed: {figure.label} is {figure.value:.3g} {figure.unit}, not below {figure.limit:g}"
            for figure in every
            if figure.ok is False
        ]
        return {
            "name": self.name,
            "ratio": self.ratio,
            "ours": self.ours.value,
            "baseline": self.baseline.value,
            "spread": self.spread,
            "notes": [f"{self.ours.label} against {self.baseline.label}", *missed, *self.notes],
            "unit": self.ours.unit,
            "limit": self.ours.limit,
            "ok": all(figure.ok is not False for figure in every),
            "figures": [figure.as_dict() for figure in every],
            "details": dict(self.details),
        }


def spread_of(values: Sequence[float]) -> float:
    """Range of the values over their median.

    Examples
    --------
    >>> spread_of([1.9, 2.0, 2.2])
    0.15
    """
    return round((max(values) - min(values)) / median(values), 4)


def compared(
    name: str,
    ours: Sequence[float],
    baseline: Sequence[float],
    *,
    labels: tuple[str, str],
    unit: str = "s",
    limit: float | None = None,
    **more: Any,
) -> Result:
    """The result of two measurements of which the smaller is the better, taken in the same rounds."""
    middle, base = median(ours), median(baseline)
    rounds = [b / a for a, b in zip(ours, baseline, strict=True)]
    return Result(
        name=name,
        ours=Figure(label=labels[0], value=middle, unit=unit, limit=limit),
        baseline=Figure(label=labels[1], value=base, unit=unit),
        ratio=base / middle,
        spread=spread_of(rounds),
        **more,
    )
