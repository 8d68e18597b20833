"""Streams and what is known of their rows and rates before they flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from levelwind.model.frozen import frozen_mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: its name and its Spark SQL type in lower case (``bigint``, ``decimal(10,2)``).

    A type of ``unknown`` fits any other: it is given to results whose type cannot be told from the text.
    """

    name: str
    type: str


Schema = tuple[Column, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An append-only sequence of rows that enters the network.

    Durations are in seconds, ``rate`` and ``min_rate`` in rows per second. A rate with several
    samples is a series, one sample a second.
    """

    name: str
    schema: Schema | None = None
    time: str | None = None
    lateness_s: float = 0.0
    idle_after_s: float | None = None
    source: Mapping[str, Any] | None = None
    rate: tuple[float, ...] | None = None
    min_rate: float = 0.0
    bytes: float | None = None
    node: str | None = None

    @property
    def mean_rate(self) -> float | None:
        """Rows per second, the mean of the series if the rate is one."""
        return None if self.rate is None else sum(self.rate) / len(self.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where the rows of one operator (or stream) leave the network."""

    name: str
    input: Port
    sink: Mapping[str, Any] | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """What an operator reads: a stream, an operator's output, or one route of an operator."""

    source: str
    route: str | None = None

    def __str__(self) -> str:
        return self.source if self.route is None else f"{self.source}.{self.route}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A continuous query written in SQL."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPolicy:
    """What becomes of a row that cannot be processed: ``dead_letter``, ``drop`` or ``fail``."""

    on_error: str = "dead_letter"
    sink: Mapping[str, Any] = field(default_factory=frozen_mapping)
