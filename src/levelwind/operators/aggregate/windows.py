"""Time windows cut into panes: a row is counted once, in its pane, however many windows share it.

Windows are ``[k · slide, k · slide + size)``, aligned to the epoch. Panes are as long as the greatest
common divisor of size and slide, so that every window is a whole number of panes [1].

[1] J. Li et al., No pane, no gain: efficient evaluation of sliding-window aggregates over data streams,
    SIGMOD Record 34(1), 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from levelwind.model import TimeWindow

MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Windows:
    """Size and slide in microseconds of event time."""

    size: int
    slide: int

    @classmethod
    def of(cls, window: TimeWindow) -> Windows:
        """From the model's seconds."""
        return cls(round(window.size_s * MICROSECONDS), round(window.slide_s * MICROSECONDS))

    @property
    def pane(self) -> int:
        """The length of a pane. Windows that leave gaps between them have panes of their own size."""
        return gcd(self.size, self.slide)

    @property
    def tumbling(self) -> bool:
        """Whether every instant is in exactly one window."""
        return self.size == self.slide

    def first_open(self, closed: int) -> int:
        """The number of the first window that ends after an instant."""
        return (closed - self.size) // self.slide + 1

    def last_ended(self, watermark: int) -> int:
        """The number of the last window that ends at an instant or before."""
        return (watermark - self.size) // self.slide

    def first_with(self, instant: int) -> int:
        """The number of the first window that holds an instant (if any does)."""
        return (instant - self.size) // self.slide + 1

    def last_with(self, instant: int) -> int:
        """The number of the last window that holds an instant (if any does)."""
        return instant // self.slide

    def end_of(self, number: int) -> int:
        """Where a window ends."""
        return number * self.slide + self.size
