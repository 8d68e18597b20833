"""A join that is to be spread becomes several operators: one that sends, parts that join, one that fuses.

Of a join ``trio``, ``trio[in]`` sends rows to the parts ``trio[0]``, ``trio[1]``, …, and ``trio`` itself puts
together what they find, so that whoever reads the join need not know. Where rows visit several hosts in turn,
each hop is a part of its own, ``trio[0>1]`` for the second hop of the first instance: what hops may only go
forward in a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from levelwind.model import Multijoin, Network, Operator, Port
from levelwind.model.frozen import frozen_mapping
from levelwind.model.operator import (
    PATHS,
    Diffusion,
    Fusion,
    JoinPart,
    aligned_route,
    coordinated_route,
)


def diffusion_name(name: str) -> str:
    """The operator that sends the rows of a spread join."""
    return f"{name}[in]"


def spread_name(diffusion: str) -> str:
    """The join whose rows an operator sends."""
    return diffusion.removesuffix("[in]")


def written_name(operator: Operator) -> str:
    """The name of the operator as written that one of a network with spread joins belongs to."""
    if isinstance(operator.spec, Diffusion):
        return spread_name(operator.name)
    return operator.spec.of if isinstance(operator.spec, JoinPart) else operator.name


def diffused(network: Network) -> Network:
    """The network with every join to be spread replaced by its operators; the same if there is none.

    O(operators + instances × streams of the joins).
    """
    if not any(_is_spread(operator) for operator in network.operators.values()):
        return network
    operators: dict[str, Operator] = {}
    for operator in network.operators.values():
        for each in _parts(network, operator) if _is_spread(operator) else (operator,):
            operators[each.name] = each
    return replace(network, operators=operators)


def _is_spread(operator: Operator) -> bool:
    spec = operator.spec
    return isinstance(spec, Multijoin) and spec.diffuse is not None


def _parts(network: Network, operator: Operator) -> Iterator[Operator]:
    spec, name = operator.spec, operator.name
    assert isinstance(spec, Multijoin)
    assert spec.diffuse is not None
    method, instances = spec.diffuse.method, spec.diffuse.instances
    hops = len(spec.aliases) - 1
    # Rows are left out before they are sent: a part knows copies, and some of the rows only.
    whole = replace(spec, shed_rows=None)
    # What may go either way has parts for both.
    aligned, coordinated = method in ("atr", "auto"), method in ("ctr", "auto")
    source = diffusion_name(name)
    yield _sender(
        network,
        operator,
        Diffusion(
            join=spec, aligned=aligned, coordinated=coordinated, selectivity=operator.selectivity_of(None)
        ),
    )
    fused: list[Port] = []
    if aligned:
        for i in range(instances):
            part = JoinPart(join=whole, of=name, instance=i)
            ports = tuple(Port(source=source, route=aligned_route(i, alias)) for alias in spec.aliases)
            yield _part(operator, f"{name}[{i}]", part, ports)
            fused.append(Port(source=f"{name}[{i}]"))
    if coordinated:
        for hop in range(hops):
            for i in range(instances):
                part = JoinPart(join=whole, of=name, instance=i, hop=hop)
                ports = tuple(
                    Port(source=source, route=coordinated_route(i, alias)) for alias in spec.aliases
                )
                ports += (Port(source=source, route=PATHS),)
                if hop:
                    before = (_hop(operator, j, hop - 1, aligned) for j in range(instances))
                    ports += tuple(Port(source=each, route=str(i)) for each in before)
                yield _part(operator, _hop(operator, i, hop, aligned), part, ports)
        fused += [Port(source=_hop(operator, i, hops - 1, aligned)) for i in range(instances)]
    yield _fuser(operator, spec, fused)


def _fuser(operator: Operator, join: Multijoin, fused: list[Port]) -> Operator:
    return Operator(
        name=operator.name,
        spec=Fusion(
            join=replace(join, diffuse=None),
            ports=operator.inputs,
            selectivity=operator.selectivity_of(None),
        ),
        inputs=tuple(fused),
        movable=operator.movable,
        pinned=operator.pinned,
        bytes=operator.bytes,
        transfer_cost_s=operator.transfer_cost_s,
        schema=operator.schema,
        priority=operator.priority,
        properties=operator.properties,
        reusable=operator.reusable,
    )


def _sender(network: Network, operator: Operator, spec: Diffusion) -> Operator:
    """The operator that sends the rows. They are as long, and as costly to send, as those of their inputs.

    Where an input states no cost of sending, as streams cannot, the join's own counts.
    """
    sizes: dict[str, float | None] = {}
    costs: dict[str, float] = {}
    for alias, port in zip(spec.join.aliases, operator.inputs, strict=True):
        origin = network.operators.get(port.source)
        cost = 0.0 if origin is None else origin.transfer_cost_of(port.route)
        sizes[alias] = network.streams[port.source].bytes if origin is None else origin.bytes_of(port.route)
        costs[alias] = cost or operator.transfer_cost_s
    stated = [size for size in sizes.values() if size is not None]
    inputs = {route: alias for route, alias in spec.inputs.items() if alias is not None}
    return Operator(
        name=diffusion_name(operator.name),
        spec=spec,
        inputs=operator.inputs,
        movable=operator.movable,
        pinned=operator.pinned,
        bytes=sum(stated) / len(stated) if len(stated) == len(sizes) else None,
        transfer_cost_s=sum(costs.values()) / len(costs),
        priority=operator.priority,
        properties=operator.properties,
        route_bytes=frozen_mapping({route: sizes[alias] for route, alias in inputs.items()}),
        route_transfer_cost_s=frozen_mapping({route: costs[alias] for route, alias in inputs.items()}),
    )


def _hop(operator: Operator, instance: int, hop: int, aligned: bool) -> str:
    """The name of a hop; the first one bears the instance's own name unless there is an aligned part."""
    return (
        f"{operator.name}[{instance}]" if hop == 0 and not aligned else f"{operator.name}[{instance}>{hop}]"
    )


def _part(operator: Operator, name: str, spec: JoinPart, ports: tuple[Port, ...]) -> Operator:
    # What a hop puts out has a row of each input that was met so far.
    members = len(spec.join.aliases) if spec.hop is None else spec.hop + 2
    whole = operator.bytes
    return Operator(
        name=name,
        spec=spec,
        inputs=ports,
        cost_s=operator.cost_s,
        selectivity=operator.selectivity,
        varying=operator.varying,
        movable=operator.movable,
        priority=operator.priority,
        properties=operator.properties,
        bytes=None if whole is None else whole * members / len(spec.join.aliases),
        transfer_cost_s=operator.transfer_cost_s,
        schema=operator.schema,
    )
