"""Equal operators over equal inputs, computed once for all who read them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from levelwind.errors import InputError, Problem, did_you_mean
from levelwind.model import Join, Model, Multijoin, Network, Operator, Port, SqlRead, SqlWrite, Union
from levelwind.model.frozen import frozen_mapping
from levelwind.rewrite.canonical import canonical, qualifiers

# Keys of a specification whose texts are expressions.
_EXPRESSIONS = ("where", "select", "routes", "compute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A network in which equal operators are one, and who is computed by whom in it.

    ``served_by`` has an entry for each operator of the network as ``written`` that is not computed itself:
    the one whose rows its readers get. Streams and outputs keep their names.
    """

    network: Network
    written: Network
    served_by: Mapping[str, str] = field(default_factory=frozen_mapping)

    @classmethod
    def alone(cls, network: Network) -> Shared:
        """Every operator computes for itself."""
        return cls(network=network, written=network)

    def serving(self, name: str) -> str:
        """The operator, or instance of a split one, that computes what this one would put out."""
        base, bracket, rest = name.partition("[")
        return self.served_by.get(base, base) + bracket + rest


def share(
    network: Network,
    *,
    prefer: Collection[str] = (),
    models: bool = False,
    apart: Collection[str] = (),
    standing: Mapping[str, object] | None = None,
) -> Shared:
    """Compute what is equal once.

    Operators are equal if they do the same (by their canonical form, not by name) to the same inputs, and
    stand under the same rules: pin, table, movable, split. One that says ``reusable: false`` is left alone,
    and so is what has effects of its own: writing to and reading from databases.

    Parameters
    ----------
    prefer
        Operators that run already and have state: they go on computing, and serve others before any. Else
        the first in the file does.
    models
        Whether equal ``model`` operators are equal too. They stand for work that is not written down, so in
        a run they are not.
    apart
        Operators that are not to be served by others, though they might be.
    standing
        Where each operator was told to stand: those on different nodes are different.

    Notes
    -----
    O(operators + arcs), and each expression is parsed once.
    """
    leader: dict[object, str] = {}
    keys: dict[str, object] = {}
    classes: dict[object, list[str]] = {}
    for name in network.order:
        key = name if name in apart else _key(network.operators[name], keys, models=models)
        if standing is not None:
            key = key, standing[name]
        keys[name] = key
        classes.setdefault(key, []).append(name)
    place = {name: i for i, name in enumerate(network.operators)}
    wanted = set(prefer)
    for key, names in classes.items():
        leader[key] = min(names, key=lambda name: (name not in wanted, place[name]))
    served = {name: leader[key] for name, key in keys.items() if leader[key] != name and name not in wanted}
    _keep_named(network, served)
    if not served:
        return Shared.alone(network)
    return Shared(network=_rewired(network, served), written=network, served_by=frozen_mapping(served))


def with_multicast(network: Network, name: str) -> Network:
    """The network with an operator that passes on what another puts out to the outputs that read it.

    So the rows travel once to where the outputs are near, and from there to each of them.
    """
    origin = network.operators[name]
    relay = f"{name}~multicast"
    passing = replace(
        origin,
        name=relay,
        spec=Union(),
        inputs=(Port(source=name),),
        cost_s=0.0,
        selectivity=1.0,
        pinned=None,
        table=None,
        split=None,
        movable=True,
    )
    outputs = {
        key: replace(output, input=Port(source=relay)) if output.input == Port(source=name) else output
        for key, output in network.outputs.items()
    }
    return replace(network, operators={**network.operators, relay: passing}, outputs=outputs)


def as_planned(network: Network, served_by: Mapping[str, str], multicast: Collection[str]) -> Network:
    """The network that a plan with reuse is for, from what the plan says of it.

    Raises
    ------
    InputError
        If it names operators that the network does not have.
    """
    known = network.operators
    problems = [
        Problem(
            rule="must be an operator of the network", key=key, value=name, hint=did_you_mean(name, known)
        )
        for key, names in (("shared", (*served_by, *served_by.values())), ("multicast", multicast))
        for name in names
        if name not in known
    ]
    if problems:
        raise InputError(problems)
    shared = _rewired(network, served_by)
    for name in multicast:
        shared = with_multicast(shared, name)
    return shared


def shared_anew(network: Network, running: Shared) -> Shared:
    """Share a network that was changed while it ran: what computes rows already goes on doing so."""
    return share(network, prefer=running.network.operators)


def inherited(before: Shared, after: Shared) -> dict[str, str]:
    """Operators that begin to compute what another computed for them, with that other.

    They go on from its state and its rows. So removing a query takes nothing from those that it was shared
    with; and one that can no longer be served, since a query that came calls it by name, misses nothing.
    """
    return {name: by for name, by in before.served_by.items() if name in after.network.operators}


def _keep_named(network: Network, served: dict[str, str]) -> None:
    """Leave alone what a reader calls by name in an expression: it would not find the name any more."""
    for operator in network.operators.values():
        if isinstance(operator.spec, Join | Multijoin):
            continue  # joins have names of their own for their inputs
        named = {name for text in _texts(operator.spec) for name in qualifiers(text)}
        for port in operator.inputs:
            if port.source.lower() in named:
                served.pop(port.source, None)


def _rewired(network: Network, served: Mapping[str, str]) -> Network:
    def at(port: Port) -> Port:
        return replace(port, source=served.get(port.source, port.source))

    priority = {name: operator.priority for name, operator in network.operators.items()}
    for name, by in served.items():
        # Whoever computes for others is as important as the most important of them.
        priority[by] = max(priority[by], network.operators[name].priority)
    kept = {
        name: replace(operator, inputs=tuple(at(port) for port in operator.inputs), priority=priority[name])
        for name, operator in network.operators.items()
        if name not in served
    }
    outputs = {name: replace(output, input=at(output.input)) for name, output in network.outputs.items()}
    return replace(network, operators=kept, outputs=outputs)


def _key(operator: Operator, keys: Mapping[str, object], *, models: bool) -> object:
    """What makes operators equal; one that is not to be shared is equal to itself alone."""
    alone = SqlRead | SqlWrite if models else SqlRead | SqlWrite | Model
    if not operator.reusable or isinstance(operator.spec, alone):
        return operator.name
    inputs = tuple((keys.get(port.source, port.source), port.route) for port in operator.inputs)
    rules = (operator.pinned, operator.table, operator.movable, operator.varying, operator.split)
    # What a model puts out is what it states, the size of its rows included.
    stated = (
        (operator.cost_s, operator.selectivity, operator.bytes) if isinstance(operator.spec, Model) else ()
    )
    return operator.kind, _plain(operator.spec), inputs, rules, stated


def _plain(spec: Any) -> object:
    """A specification as nested tuples, its expressions in canonical form."""
    return tuple((each.name, _value(each.name, getattr(spec, each.name))) for each in fields(spec))


def _value(name: str, value: Any) -> object:
    if isinstance(value, Mapping):
        # The order of columns and of routes is part of what an operator does.
        return tuple((key, _value(name, item)) for key, item in value.items())
    if isinstance(value, tuple | list):
        return tuple(_value(name, item) for item in value)
    if is_dataclass(value):
        return _plain(value)
    return canonical(value) if name in _EXPRESSIONS and isinstance(value, str) else value


def _texts(spec: Any) -> list[str]:
    """All expressions of a specification."""
    found: list[str] = []
    for name in _EXPRESSIONS:
        value = getattr(spec, name, None)
        found += [value] if isinstance(value, str) else list(value.values()) if value else []
    return found
