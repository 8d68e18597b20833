"""What a simulation found: the contract's figures, and the series behind the plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from levelwind.model.frozen import frozen_mapping
from levelwind.sim.tables import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One move: when it began, who went from where to where, its mean load, and why."""

    at_s: float
    operator: str
    source: str
    target: str
    load: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The recorded time, sample by sample: ends of the samples in seconds since recording began.

    ``load`` is what the offered rates ask of each node relative to its CPU (nodes × samples; NaN while a node
    is not there), ``busy`` the share of time that it worked, ``latency_s`` the mean of the results in the
    sample (NaN without any), ``queued`` all tuples in the system at its end.
    """

    at_s: Floats
    load: Floats
    busy: Floats
    latency_s: Floats
    queued: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came out.

    The load measures (``load_std`` … ``load_spread``) are those of the last placement on the statistics
    window that it was decided on: at the end of the warm-up, or, with a policy, at the end of the run. The
    ``held_out`` ones are of the load as it then came: every sample under the placement that was in force
    when the sample began, decided on earlier samples only. Both leave out nodes that are gone at the end, the
    held-out ones also those that joined on the way. ``tuples`` counts results.
    """

    latency_ratio: float | None
    latency_mean_s: float | None
    latency_p50_s: float | None
    latency_p99_s: float | None
    load_std: float
    load_std_bound: float
    load_correlation: float | None
    load_spread: float
    held_out_load_std: float
    held_out_load_correlation: float | None
    moves: tuple[Moved, ...]
    tuples: int
    events: int
    kernel_seconds: float
    trace_hash: str
    placement: Mapping[str, str] = field(default_factory=frozen_mapping)
    alarms: tuple[str, ...] = ()
    timeline: Timeline

    @property
    def moved_load(self) -> float:
        """Sum of the mean loads of all operators that moved, each time they did."""
        return sum((move.load for move in self.moves), 0.0)

    @property
    def rows_held_mean(self) -> float:
        """Rows in the system, in the mean over the ends of the samples."""
        return float(self.timeline.queued.mean()) if len(self.timeline.queued) else 0.0

    @property
    def rows_held_peak(self) -> float:
        """Most rows in the system at the end of a sample."""
        return float(self.timeline.queued.max()) if len(self.timeline.queued) else 0.0

    @property
    def output_rate(self) -> float:
        """Results per second of recorded time."""
        return self.tuples / float(self.timeline.at_s[-1]) if len(self.timeline.at_s) else 0.0

    @property
    def events_per_second(self) -> float:
        """Events over the time that the kernel ran."""
        return self.events / self.kernel_seconds if self.kernel_seconds > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """The JSON object of the contract."""
        return {
            "latency_ratio": self.latency_ratio,
            "latency_ms": {
                "mean": _ms(self.latency_mean_s),
                "p50": _ms(self.latency_p50_s),
                "p99": _ms(self.latency_p99_s),
            },
            "load_std": self.load_std,
            "load_std_bound": self.load_std_bound,
            "load_correlation": self.load_correlation,
            "load_spread": self.load_spread,
            "held_out": {
                "load_std": self.held_out_load_std,
                "load_correlation": self.held_out_load_correlation,
            },
            "moves": len(self.moves),
            "moved_load": self.moved_load,
            "tuples": self.tuples,
            "rows_held": {"mean": self.rows_held_mean, "peak": self.rows_held_peak},
            "output_rate": self.output_rate,
            "events_per_second": round(self.events_per_second),
        }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000.0 * seconds
