"""From the network as written to the network as it runs: split operators become instances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from levelwind.model import Network, Operator
from levelwind.rewrite.diffuse import diffused


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalOperator:
    """An operator as it is placed: a whole one, or one instance that carries ``share`` of its rows."""

    name: str
    logical: Operator
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalStream:
    """Rows that travel together: from one place to every operator that reads all of them.

    Parameters
    ----------
    producer
        Index of the operator that puts the rows out; None if they enter from outside.
    source, route
        The stream or operator, and its route, in the network as written.
    share
        The part of the logical stream's rows that travels here.
    consumers
        Indices of the operators that read it.
    outputs
        Names of the outputs that read it.
    """

    producer: int | None
    source: str
    route: str | None
    share: float
    consumers: tuple[int, ...]
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalNetwork:
    """What planners place: operators (instances among them) and the streams between them."""

    network: Network
    operators: tuple[PhysicalOperator, ...]
    streams: tuple[PhysicalStream, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the operators, in the order of the file."""
        return tuple(operator.name for operator in self.operators)


def split(network: Network) -> PhysicalNetwork:
    """Replace every operator with ``split: {into: k}`` by its instances ``name[0]`` … ``name[k-1]``.

    Readers of a split operator read all its instances. An instance reads its part of the rows, so a
    stream from an operator to a split one becomes a stream per instance. Joins that are to be spread are;
    see `diffused`. O(operators + physical arcs).
    """
    network = diffused(network)
    operators: list[PhysicalOperator] = []
    instances: dict[str, list[int]] = {}
    for operator in network.operators.values():
        first = len(operators)
        if operator.split is None:
            operators.append(PhysicalOperator(name=operator.name, logical=operator, share=1.0))
        else:
            into = operator.split.into
            operators += [
                PhysicalOperator(name=f"{operator.name}[{i}]", logical=operator, share=1.0 / into)
                for i in range(into)
            ]
        instances[operator.name] = list(range(first, len(operators)))
    streams = tuple(_streams(network, operators, instances))
    return PhysicalNetwork(network=network, operators=tuple(operators), streams=streams)


def _streams(
    network: Network, operators: list[PhysicalOperator], instances: dict[str, list[int]]
) -> Iterator[PhysicalStream]:
    whole: dict[tuple[str, str | None], list[int]] = {}
    parted: dict[tuple[str, str | None], list[int]] = {}
    sinks: dict[tuple[str, str | None], list[str]] = {}
    for operator in network.operators.values():
        for port in dict.fromkeys(operator.inputs):
            kind = whole if operator.split is None else parted
            kind.setdefault((port.source, port.route), []).extend(instances[operator.name])
    for output in network.outputs.values():
        sinks.setdefault((output.input.source, output.input.route), []).append(output.name)
    origins: list[tuple[str, str | None, list[int | None]]] = [
        (name, None, [None]) for name in network.streams
    ]
    for operator in network.operators.values():
        origins += [(operator.name, route, list(instances[operator.name])) for route in operator.routes]
    for source, route, producers in origins:
        readers = whole.get((source, route), [])
        outputs = tuple(sinks.get((source, route), ()))
        for producer in producers:
            share = 1.0 / len(producers)
            if readers or outputs:
                yield PhysicalStream(
                    producer=producer,
                    source=source,
                    route=route,
                    share=share,
                    consumers=tuple(readers),
                    outputs=outputs,
                )
            for reader in parted.get((source, route), ()):
                yield PhysicalStream(
                    producer=producer,
                    source=source,
                    route=route,
                    share=share * operators[reader].share,
                    consumers=(reader,),
                )
