"""Segment lengths tried while a join runs: what the busiest host spends on a row decides.

What a length costs is reckoned beforehand, with costs of receiving and looking that are the same everywhere.
What they are here nobody knows. So lengths near the reckoned one are used for a while each, and the one stays
under which the host that all others wait for has least to do. Where windows are so long that every host gets
every row whatever the length, there is nothing to find, and the reckoned one stays.

References
----------
[1] Gu, Yu, Wang, ICDE 2007, section 3, "Segment length adaptation".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from levelwind.diffusion.join import MICROSECONDS
from levelwind.diffusion.tuning import SegmentTuner

# Rows count so much less with each step, as the work of the busiest host does that they are compared with.
FADE = 0.8
# Steps in which what went before fades away; a length is used for these, after a longest window.
STEPS, MOST_STEPS = 12, 200
# A length must do so much better than the best so far: measured work is never twice the same.
WORTH = 0.03
# A reckoned length that is so many times another one begins a new search.
FURTHER = 1.5


@dataclass(slots=True, kw_only=True)
class Profile:
    """The search of one join. ``around_us`` is the reckoned length, 0 before there is one."""

    around_us: int = 0
    tuner: SegmentTuner = field(default_factory=lambda: SegmentTuner(length_s=1.0, worth=WORTH))
    rows: float = 0.0
    steps: int = 0

    @property
    def segment_us(self) -> int:
        """The length to use now."""
        return max(1, round(self.tuner.length_s * MICROSECONDS))

    def around(self, reckoned_us: int) -> int:
        """The length to use, when another one was reckoned: the search goes on unless that is far away."""
        known = self.around_us
        if not known or not known / FURTHER < reckoned_us < known * FURTHER:
            self.around_us, self.steps = reckoned_us, 0
            self.tuner = SegmentTuner(length_s=reckoned_us / MICROSECONDS, worth=WORTH)
        return self.segment_us

    def step(self, rows: int, busiest_s: float, longest_us: int, batch_s: float) -> bool:
        """A batch of so many rows is to be routed; whether another length is to be used from now on.

        ``busiest_s`` is the work of the busiest host in the steps before, faded like rows are here.
        """
        self.steps += 1
        least = STEPS + longest_us / MICROSECONDS / max(batch_s, 1e-6)
        ended = self.steps >= min(least, MOST_STEPS) and busiest_s > 0 and self.rows > 0
        before = self.tuner.length_s
        if ended and not self.tuner.settled:
            self.tuner.report(self.rows / busiest_s)
            self.steps = 0
        self.rows = FADE * self.rows + rows
        return self.tuner.length_s != before
