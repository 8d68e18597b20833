"""What a manager asks for. Carrying it out may fail: then an event tells so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Start an operator that runs nowhere yet, or whose node was lost."""

    operator: str
    node: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Carry an operator to another node while data flows."""

    operator: str
    source: str
    target: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Stop an operator that no query uses any more."""

    operator: str
    node: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shed:
    """Have an operator that may leave rows out take only this share of them from now on; 1: all."""

    operator: str
    share: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Somebody should look: no plan keeps the nodes below overload, or a rule cannot be kept."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskAgain:
    """A plan was not valid: make another, on ``nodes``, and propose it as this ``attempt``."""

    attempt: int
    nodes: tuple[str, ...]
    problems: tuple[str, ...]


Instruction = Place | Move | Drop | Shed | Alarm | AskAgain
