"""What a manager is told. Times are seconds on the clock of whoever drives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from levelwind.loads.arrays import Floats
from levelwind.model import Network, Node
from levelwind.model.frozen import frozen_mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsReported:
    """A period is over. ``series`` has a row of load samples per operator, in the order of ``operators``.

    Loads are CPU seconds per second as the offered rates ask for them, oldest first. ``seen`` holds further
    statistics by name, a figure per operator in the same order: those that the manager asks for (see
    `Manager.statistics`), and no others. ``window_s`` is how long all samples together took, up to ``at_s``;
    None: a report comes after every sample.
    """

    at_s: float
    operators: tuple[str, ...]
    series: Floats
    state_bytes: Mapping[str, int] = field(default_factory=frozen_mapping)
    seen: Mapping[str, Floats] = field(default_factory=frozen_mapping)
    window_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyMeasured:
    """Latencies between nodes, one-way in ms: a row and a column for each of ``nodes``."""

    at_s: float
    nodes: tuple[str, ...]
    latency_ms: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJoined:
    """A node can be used from now on."""

    at_s: float
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLost:
    """A node does not answer; what stood on it stands nowhere."""

    at_s: float
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A node says that it lives, and whether it is ready to work. A node that was lost joins again by it."""

    at_s: float
    node: str
    ready: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProposed:
    """Somebody made a plan for all operators: a planner, or a person. ``attempt`` counts from 1."""

    at_s: float
    placement: Mapping[str, str]
    reason: str = "a new plan"
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAdded:
    """Operators came: ``network`` is the whole of what is to run from now on.

    ``loads`` holds the mean load of operators that ran elsewhere before, as far as it is known.
    """

    at_s: float
    network: Network
    loads: Mapping[str, float] = field(default_factory=frozen_mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRemoved:
    """Operators went: ``network`` is what is left."""

    at_s: float
    network: Network


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveDone:
    """An operator runs on its new node."""

    at_s: float
    operator: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveFailed:
    """An operator stayed where it was."""

    at_s: float
    operator: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorMoved:
    """Somebody else moved an operator: it stands on ``node`` now."""

    at_s: float
    operator: str
    node: str


Event = (
    StatisticsReported
    | LatencyMeasured
    | NodeJoined
    | NodeLost
    | Heartbeat
    | PlanProposed
    | QueryAdded
    | QueryRemoved
    | MoveDone
    | MoveFailed
    | OperatorMoved
)
