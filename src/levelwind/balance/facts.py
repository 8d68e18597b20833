"""What is known of operators and nodes beside their load: wiring, priorities, properties, capacities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from levelwind.balance.importance import importance
from levelwind.loads.arrays import Floats, Ints, shared
from levelwind.model import Network, Node, Operator
from levelwind.rewrite import split
from levelwind.rewrite.split import PhysicalNetwork, PhysicalStream

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """Who feeds whom, operators as positions. Lists of lists are laid flat: see `around`.

    Parameters
    ----------
    producer, consumer, stream
        One entry per arc between operators, and the stream whose rows travel there: an operator has one for
        each route, and for each instance of a split reader.
    part
        The share of its producer's rows that each stream carries, as stated.
    reader_start, readers, reader_arc
        Operators that read each operator, those of one stream side by side, and by which arc.
    source_start, sources, source_arc
        Operators that each one reads, and by which arc.
    near_start, near
        Operators that each one exchanges rows with, both ways, once per arc.
    outside
        Streams that each operator reads from outside, and outputs that read it.
    clear
        Whether all rows that come to an operator come over its arcs, each row once.
    """

    producer: Ints
    consumer: Ints
    stream: Ints
    part: Floats
    reader_start: Ints
    readers: Ints
    reader_arc: Ints
    source_start: Ints
    sources: Ints
    source_arc: Ints
    near_start: Ints
    near: Ints
    outside: Ints
    clear: Flags


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
    inner = [stream for stream in physical.streams if stream.producer is not None]
    arcs = [(stream.producer, consumer) for stream in inner for consumer in stream.consumers]
    outside = np.zeros(count, dtype=np.int64)
    clear = np.array([len(set(o.logical.inputs)) == len(o.logical.inputs) for o in operators], dtype=bool)
    for stream in physical.streams:
        if stream.producer is None:
            outside[list(stream.consumers)] += 1
            clear[list(stream.consumers)] = False
        else:
            outside[stream.producer] += len(stream.outputs)
    return Facts(
        operators=tuple(operator.name for operator in operators),
        properties=tuple(operator.logical.properties for operator in operators),
        priority=importance(physical),
        bytes=shared(
            np.array([np.nan if o.logical.bytes is None else o.logical.bytes for o in operators], dtype=float)
        ),
        wiring=make_wiring(
            arcs,
            outside,
            stream=np.repeat(np.arange(len(inner)), [len(stream.consumers) for stream in inner]),
            part=np.array(list(stated_parts(physical, inner))),
            clear=clear,
        ),
        all_bytes=all(o.logical.bytes is not None for o in operators),
    )


def stated_parts(physical: PhysicalNetwork, streams: Iterable[PhysicalStream]) -> Iterator[float]:
    """The share of its producer's rows that each stream carries: the route's, and the reader's of that.

    Streams come from operators. O(streams + routes).
    """
    by_route: dict[str, Mapping[str | None, float]] = {}
    for stream in streams:
        assert stream.producer is not None
        origin = physical.operators[stream.producer]
        if origin.logical.name not in by_route:
            by_route[origin.logical.name] = route_shares(origin.logical)
        yield by_route[origin.logical.name][stream.route] * stream.share / origin.share


def route_shares(operator: Operator) -> Mapping[str | None, float]:
    """The share of an operator's rows that each of its routes carries, as stated."""
    routes, stated = operator.routes, operator.route_selectivity
    if stated is None or not sum(stated.values()):
        return dict.fromkeys(routes, 1.0 / len(routes))
    return {route: stated.get(route or "", 0.0) / sum(stated.values()) for route in routes}


def make_wiring(
    arcs: Iterable[tuple[int | None, int]],
    outside: Ints,
    *,
    stream: Ints | None = None,
    part: Floats | None = None,
    clear: Flags | None = None,
) -> Wiring:
    """Wiring from arcs between operators. O(operators + arcs × log arcs).

    Without ``stream`` and ``part``, every operator has one stream that carries all its rows; without
    ``clear``, of no operator it is known that all its rows come over arcs.
    """
    ends, count = np.array(list(arcs), dtype=np.int64).reshape(-1, 2), len(outside)
    producer, consumer = ends[:, 0], ends[:, 1]
    if stream is None or part is None:
        stream, part = producer, np.ones(count)
    reader_start, reader_arc = _flat(np.lexsort((stream, producer)), producer, count)
    source_start, source_arc = _flat(np.argsort(consumer, kind="stable"), consumer, count)
    one, other = np.concatenate([producer, consumer]), np.concatenate([consumer, producer])
    near_start, near = _flat(np.argsort(one, kind="stable"), one, count)
    return Wiring(
        producer=shared(producer),
        consumer=shared(consumer),
        stream=shared(np.asarray(stream, dtype=np.int64)),
        part=shared(np.asarray(part, dtype=np.float64)),
        reader_start=shared(reader_start),
        readers=shared(consumer[reader_arc]),
        reader_arc=shared(reader_arc),
        source_start=shared(source_start),
        sources=shared(producer[source_arc]),
        source_arc=shared(source_arc),
        near_start=shared(near_start),
        near=shared(other[near]),
        outside=shared(np.asarray(outside, dtype=np.int64)),
        clear=shared(np.zeros(count, dtype=bool) if clear is None else clear),
    )


def _flat(order: Ints, owner: Ints, count: int) -> tuple[Ints, Ints]:
    """Where the items of each owner begin in ``order``, which sorts them by owner, and the order."""
    start = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=count), out=start[1:])
    return start, order.astype(np.int64)


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
