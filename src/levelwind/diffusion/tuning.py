"""The segment length by trying: a little longer, a little shorter, and on in the direction that was better.

References
----------
[1] Gu, Yu, Wang, ICDE 2007, section 3, "Segment length adaptation".
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class SegmentTuner:
    """Proposes segment lengths; told how well each did, it settles where both neighbours do worse.

    Steps are factors, since what a length costs depends on its ratio to the windows. ``length_s`` is the
    length to use now. A length counts as better only by the part ``worth`` of the best. O(1) per report.
    """

    length_s: float
    factor: float = 1.5
    worth: float = 0.0
    best_s: float = 0.0
    best: float | None = None
    upward: bool = True
    turned: bool = False
    settled: bool = False

    def report(self, performance: float) -> None:
        """How well the present length did; more is better."""
        if self.settled:
            return
        if self.best is None:
            self.best, self.best_s = performance, self.length_s
        elif performance > self.best + self.worth * abs(self.best):
            self.best, self.best_s = performance, self.length_s
            self.turned = self.turned or not self.upward
        elif self.upward and not self.turned:
            self.upward, self.turned = False, True
        else:
            self.settled, self.length_s = True, self.best_s
            return
        self.length_s = self.best_s * (self.factor if self.upward else 1 / self.factor)
