"""What the nodes are told about the step they are to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from levelwind.runtime.messages import InFlight


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One step: everything a task must know besides the program and its rows.

    Parameters
    ----------
    directory
        The checkpoint.
    previous
        The step whose commit holds the state to go on from; None at the very start.
    tokens
        For each box, the attempt that wrote its state; empty: it has none.
    origins
        The boxes whose state that commit has under another's name, with that name.
    streams, behind
        Watermarks before the step: of the streams, and behind every box.
    rows
        How many rows each stream has brought before the step.
    closing
        No row will follow: everything that is open is put out.
    shares
        Boxes that are to take only a part of what reaches them, and which part.
    told
        For boxes that listen, by name, what was measured of the others; see `Hearing`.
    staging
        For each output, the folder for rows that are not yet committed.
    """

    step: int
    directory: str
    previous: int | None = None
    tokens: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    streams: Mapping[str, int] = field(default_factory=dict)
    behind: tuple[int, ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    closing: bool = False
    in_flight: tuple[InFlight, ...] = ()
    shares: Mapping[int, float] = field(default_factory=dict)
    staging: Mapping[str, str] = field(default_factory=dict)
    told: Mapping[str, Any] = field(default_factory=dict)
