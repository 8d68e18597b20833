"""Plans: where every physical operator runs, and what the plan is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from levelwind.model.frozen import frozen_mapping


class PlanStatus(Enum):
    """How planning ended."""

    PLACED = "placed"
    INFEASIBLE = "infeasible"
    NOT_CONVERGED = "not_converged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What a placement is worth; None where the input does not allow the measure, with a note on why.

    Loads are shares of a node's CPU, ``network_usage`` is bytes (or rows) in flight, ``delay`` milliseconds.
    """

    feasible_ratio: float | None = None
    feasible_error: float | None = None
    min_plane_distance: float | None = None
    min_axis_distance: float | None = None
    max_load: float | None = None
    load_spread: float | None = None
    load_std: float | None = None
    load_std_bound: float | None = None
    load_correlation: float | None = None
    network_usage: float | None = None
    delay: float | None = None
    cut_streams: int | None = None
    moved_load: float | None = None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, float | int | None]:
        """The measures by their names in the contract, without the notes."""
        return {name: getattr(self, name) for name in MEASURE_NAMES}


MEASURE_NAMES = tuple(name for name in Measures.__dataclass_fields__ if name != "notes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A planner's answer: the placement (operator → node), its status, and reasons a person can read.

    ``reasons`` says for each operator which rule put it where it is.
    """

    planner: str
    status: PlanStatus
    placement: Mapping[str, str] = field(default_factory=frozen_mapping)
    measures: Measures | None = None
    notes: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=frozen_mapping)

    def as_dict(self) -> dict[str, Any]:
        """The plan as the JSON object of the contract."""
        return {
            "planner": self.planner,
            "status": self.status.value,
            "placement": dict(self.placement),
            "measures": self.measures.as_dict() if self.measures else {},
            "notes": list(self.notes) + list(self.measures.notes if self.measures else ()),
            "reasons": dict(self.reasons),
        }
