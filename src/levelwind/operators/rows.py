"""Rows as operators see them: Polars frames whose event time is in microseconds since the epoch, UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from levelwind.model import Network, Port, Schema
from levelwind.model.operator import (
    Aggregate,
    Diffusion,
    Filter,
    Fusion,
    Join,
    JoinPart,
    Model,
    Multijoin,
    Union,
)

TIME = pl.Datetime("us", "UTC")
# Watermarks before the first row and after the last.
BEGINNING = -(2**63)
END = 2**63 - 1
# A hidden column that ranks rows of equal event time by source and offset; only on streams where some
# operator downstream depends on the order of rows.
ORDER = "__order"


@dataclass(frozen=True, slots=True)
class RowType:
    """The columns of the rows on one port, and which of them is the event time."""

    schema: Schema | None
    time: str | None

    @property
    def types(self) -> dict[str, str]:
        """Spark type by column name, in order."""
        return {column.name: column.type for column in self.schema or ()}


def row_types(network: Network) -> dict[Port, RowType]:
    """The type of the rows on every port of a network: its streams, and each route of its operators."""
    found = {
        Port(source=name): RowType(stream.schema, stream.time) for name, stream in network.streams.items()
    }
    for name in network.order:
        operator = network.operators[name]
        if isinstance(operator.spec, Diffusion):
            # What each input brings, on the routes that end with its name; paths are no rows.
            aliases = operator.spec.join.aliases
            of_alias = {alias: found[port] for alias, port in zip(aliases, operator.inputs, strict=True)}
            for way in operator.spec.routes:
                alias = way.partition(":")[2] or way.partition(">")[2]
                found[Port(source=name, route=way)] = of_alias.get(alias, RowType(None, None))
            continue
        if isinstance(operator.spec, Aggregate):
            time: str | None = "window_time"
        elif isinstance(operator.spec, Join | Multijoin | JoinPart | Fusion):
            time = "join_time"
        else:
            time = found[operator.inputs[0]].time if operator.inputs else None
        schema = operator.schema
        if schema is None and isinstance(operator.spec, Filter | Model | Union) and operator.inputs:
            # A network file leaves open what stands behind a model operator; when it runs, rows go through.
            schema = found[operator.inputs[0]].schema
        for route in operator.routes:
            found[Port(source=name, route=route)] = RowType(schema, time)
    return found


@dataclass(frozen=True, slots=True)
class Arrived:
    """What has reached one input in this batch: rows in order of arrival, and the watermark after them.

    Once an input's watermark is ``w``, no row with an event time below ``w`` comes through it any more.
    """

    rows: pl.DataFrame
    watermark: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rows that could not be processed, and why: ``reasons`` is a string column of the same height."""

    rows: pl.DataFrame
    reasons: pl.Series


def split_rejected(rows: pl.DataFrame, reasons: pl.Series | None) -> tuple[pl.DataFrame, Rejected | None]:
    """Part sound rows from bad ones; ``reasons`` is null where a row is sound, or None if all are."""
    if reasons is None or reasons.null_count() == len(reasons):
        return rows, None
    bad = reasons.is_not_null()
    return rows.filter(~bad), Rejected(rows.filter(bad), reasons.filter(bad))


Outputs = Mapping[str | None, pl.DataFrame]
