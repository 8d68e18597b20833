"""A network without some of its queries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from levelwind.errors import InputError, Problem, did_you_mean
from levelwind.model import Network


def without(network: Network, names: Iterable[str]) -> Network:
    """The network without some outputs or SQL queries, and without operators that nobody uses any more.

    An operator goes if all that read it go, and it fed one of the outputs or was made for one of the queries.
    With a query go the outputs that read it. Streams stay. O(operators + arcs).

    Raises
    ------
    InputError
        If a name is neither an output's nor a query's, something that stays reads a query, or no output
        would be left.
    """
    asked = tuple(dict.fromkeys(names))
    known = dict.fromkeys((*network.outputs, *network.queries))
    rule = "must be an output or a query of the run"
    problems = [
        Problem(rule=rule, key="QUERY", value=name, hint=did_you_mean(name, known))
        for name in asked
        if name not in known
    ]
    queries = {name for name in asked if name in network.queries}
    outputs = {
        name: output
        for name, output in network.outputs.items()
        if name not in asked and output.input.source not in queries
    }
    if not problems and not outputs:
        rule, hint = "a run must keep an output", "levelwind stop ends the run"
        problems.append(Problem(rule=rule, key="QUERY", value=", ".join(asked), hint=hint))
    gone = _unused(network, queries, outputs)
    problems += [
        Problem(rule="a query that others read must stay", key="QUERY", value=name, hint=f"{reader} reads it")
        for name in sorted(queries - gone)
        for reader in _readers(network, name, gone)[:1]
    ]
    if problems:
        raise InputError(problems)
    return replace(
        network,
        operators={name: operator for name, operator in network.operators.items() if name not in gone},
        queries={name: query for name, query in network.queries.items() if name not in gone},
        outputs=outputs,
    )


def _unused(network: Network, queries: set[str], outputs: Iterable[str]) -> set[str]:
    """Operators that only fed what is dropped: looked at from the end, so that readers come first."""
    kept = set(outputs)
    read = {network.outputs[name].input.source for name in kept}
    idle = queries | {output.input.source for name, output in network.outputs.items() if name not in kept}
    gone: set[str] = set()
    for name in reversed(network.order):
        sources = {port.source for port in network.operators[name].inputs}
        if name in idle and name not in read:
            gone.add(name)
            idle |= sources
        else:
            read |= sources
    return gone


def _readers(network: Network, name: str, gone: set[str]) -> list[str]:
    return [
        operator.name
        for operator in network.operators.values()
        if operator.name not in gone and any(port.source == name for port in operator.inputs)
    ]
