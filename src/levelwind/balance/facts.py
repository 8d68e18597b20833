"""What is known of operators and nodes beside their load: wiring, priorities, properties, capacities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from levelwind.balance.importance import importance
from levelwind.loads.arrays import Floats, Ints, shared
from levelwind.model import Network, Node
from levelwind.rewrite import split


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """Who feeds whom, operators as positions. Lists of lists are laid flat: see `around`.

    Parameters
    ----------
    producer, consumer
        One entry per arc between operators.
    reader_start, readers
        Operators that read each operator.
    source_start, sources
        Operators that each one reads.
    near_start, near
        Operators that each one exchanges rows with, both ways, once per arc.
    outside
        Streams that each operator reads from outside, and outputs that read it.
    """

    producer: Ints
    consumer: Ints
    reader_start: Ints
    readers: Ints
    source_start: Ints
    sources: Ints
    near_start: Ints
    near: Ints
    outside: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What does not change from report to report.

    ``properties`` are the open pairs that operators state; those of nodes stand on the nodes. ``priority``
    is that of `importance`: what an operator feeds raises it. ``bytes`` is the size of a row that an operator
    puts out, NaN where nobody states it; ``all_bytes``: all of them do.
    """

    operators: tuple[str, ...]
    properties: tuple[Mapping[str, Any], ...]
    priority: Floats
    bytes: Floats
    wiring: Wiring
    all_bytes: bool = False


def make_facts(network: Network) -> Facts:
    """Take the facts out of a network. O(operators + arcs)."""
    physical = split(network)
    operators = physical.operators
    count = len(operators)
    arcs = [
        (stream.producer, consumer)
        for stream in physical.streams
        if stream.producer is not None
        for consumer in stream.consumers
    ]
    outside = np.zeros(count, dtype=np.int64)
    for stream in physical.streams:
        if stream.producer is None:
            outside[list(stream.consumers)] += 1
        else:
            outside[stream.producer] += len(stream.outputs)
    return Facts(
        operators=tuple(operator.name for operator in operators),
        properties=tuple(operator.logical.properties for operator in operators),
        priority=importance(physical),
        bytes=shared(
            np.array([np.nan if o.logical.bytes is None else o.logical.bytes for o in operators], dtype=float)
        ),
        wiring=make_wiring(arcs, outside),
        all_bytes=all(o.logical.bytes is not None for o in operators),
    )


def make_wiring(arcs: Iterable[tuple[int, int]], outside: Ints) -> Wiring:
    """Wiring from arcs between operators. O(operators + arcs × log arcs)."""
    ends = np.array(list(arcs), dtype=np.int64).reshape(-1, 2)
    producer, consumer = ends[:, 0], ends[:, 1]
    reader_start, readers = _flat(producer, consumer, len(outside))
    source_start, sources = _flat(consumer, producer, len(outside))
    near_start, near = _flat(
        np.concatenate([producer, consumer]), np.concatenate([consumer, producer]), len(outside)
    )
    return Wiring(
        producer=shared(producer),
        consumer=shared(consumer),
        reader_start=shared(reader_start),
        readers=shared(readers),
        source_start=shared(source_start),
        sources=shared(sources),
        near_start=shared(near_start),
        near=shared(near),
        outside=shared(np.asarray(outside, dtype=np.int64)),
    )


def _flat(owner: Ints, item: Ints, count: int) -> tuple[Ints, Ints]:
    order = np.argsort(owner, kind="stable")
    start = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=count), out=start[1:])
    return start, item[order]


def around(start: Ints, items: Ints, which: Ints) -> tuple[Ints, Ints]:
    """Items of the lists in ``which``: (position in ``which``, item), one pair each. O(pairs)."""
    lengths = start[which + 1] - start[which]
    owner = np.repeat(np.arange(len(which)), lengths)
    first = np.cumsum(lengths) - lengths
    return owner, items[np.arange(len(owner)) - first[owner] + start[which][owner]]


def capacities(nodes: Iterable[Node], fact: str) -> Floats | None:
    """What every node states of ``fact`` (a field of `Node`); None unless all of them state it."""
    stated = [getattr(node, fact) for node in nodes]
    if not stated or any(value is None for value in stated):
        return None
    return np.array(stated, dtype=np.float64)
