"""Rates and loads as linear functions, with as few variables as the network allows.

A rate is linear in the streams' rates until an operator breaks it: one whose selectivity is not to be
relied on, or a join, whose output grows with the product of its inputs. There the output's rate becomes
a variable of its own (seed 000, section 4.4.2). A join's load is (cost / selectivity) × its output rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from levelwind.model import JoinPart, Model, Multijoin, Network, Operator
from levelwind.model.operator import Diffusion
from levelwind.rewrite.diffuse import diffused, spread_name
from levelwind.rewrite.spreading import Spreading

Linear = Mapping[str, float]
"""A linear function: variable → coefficient. Absent variables have coefficient 0."""
OutputKey = tuple[str, str | None]
"""A stream or operator, and the route of the operator that is meant."""
PAIRS = "pairs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Linearised:
    """Loads and rates of a network as linear functions.

    Parameters
    ----------
    variables
        The streams that cause load, then the introduced variables.
    introduced
        What each introduced variable stands for: a weighted sum of candidates.
    loads
        Load of each operator in ``variables``, CPU seconds per second.
    carried_rates
        Rate in ``variables`` of every stream that is costly to send (it states bytes or a transfer cost).
        What it owes to variables without load is left out: those are not part of the space.
    candidates
        Every nonlinear quantity, in topological order, by the output it is the rate of.
    rates
        Rate of every output in streams and candidates, before any were dropped or merged.
    spread
        How each spread join is shared out over its parts, by its name.
    """

    variables: tuple[str, ...]
    introduced: Mapping[str, Mapping[str, float]]
    loads: Mapping[str, Linear]
    carried_rates: Mapping[OutputKey, Linear]
    candidates: Mapping[str, OutputKey]
    rates: Mapping[OutputKey, Linear]
    spread: Mapping[str, Spreading] = field(default_factory=dict)


def linearise(network: Network, spread: Mapping[str, Spreading] | None = None) -> Linearised:
    """Express every operator's load and every stream's rate in the fewest variables.

    A new variable is dropped if no load depends on it, and variables that act on all loads and rates in
    the same proportion become one (two unreliable filters into one union need only the union's rate).
    Parts of a spread join share its load and its output as ``spread`` says, instances alike; its default is
    that rows are sent once. As to loads and the cost of sending, all of it acts on one variable, that of the
    join; right at the rates that ``spread`` is for, an estimate elsewhere. (Were copies functions of the
    streams, which cost next to nothing to take in and much to send, the whole join would be kept on one node
    for their sake.) O(arcs × variables per stream).
    """
    network = diffused(network)
    spread = {**_unasked(network), **(spread or {})}
    wholes = _wholes(network)
    loads: dict[str, dict[str, float]] = {}
    rates: dict[OutputKey, dict[str, float]] = {(name, None): {name: 1.0} for name in network.streams}
    copied: dict[OutputKey, dict[str, float]] = {}
    candidates: dict[str, OutputKey] = {}
    for name in network.order:
        operator = network.operators[name]
        inputs = [rates[port.source, port.route] for port in operator.inputs]
        if operator.is_join:
            loads[name], rates[name, None] = _join(operator, candidates)
        elif isinstance(operator.spec, JoinPart):
            whole, spreading = wholes[operator.spec.of], spread[operator.spec.of]
            loads[name], found = _part(operator.spec, whole, spreading, candidates)
            rates.update({(name, route): rate for route, rate in found.items()})
        elif isinstance(operator.spec, Diffusion):
            whole, spreading = wholes[spread_name(name)], spread[spread_name(name)]
            pairs, _ = _join(replace(whole, cost_s=1.0), candidates)
            loads[name] = _scale(pairs, operator.stated_cost_s * spreading.taken)
            rates.update({(name, route): {} for route in operator.routes})
            for route, (k, copies) in spreading.sent(operator.spec, _alike(operator.spec.join)).items():
                rates[name, route] = _scale(inputs[k], copies)
                copied[name, route] = _scale(pairs, copies * spreading.taken_of(k))
        else:
            loads[name] = _plain_load(operator, inputs)
            _rows_out(operator, inputs, rates, candidates)
    return replace(_reduce(network, loads, rates, copied, candidates), spread=spread)


def _plain_load(operator: Operator, inputs: list[dict[str, float]]) -> dict[str, float]:
    stated = _stated_load(operator)
    return _scale(_add(inputs), operator.stated_cost_s) if stated is None else stated


def _rows_out(
    operator: Operator,
    inputs: list[dict[str, float]],
    rates: dict[OutputKey, dict[str, float]],
    candidates: dict[str, OutputKey],
) -> None:
    """Rows out by route: linear in the rows in, unless the selectivity is not to be relied on."""
    name, rows_in = operator.name, _add(inputs)
    for route in operator.routes:
        if operator.varying:
            variable = name if route is None else f"{name}.{route}"
            candidates[variable] = (name, route)
            rates[name, route] = {variable: 1.0}
        else:
            rates[name, route] = _scale(rows_in, operator.selectivity_of(route))


def _stated_load(operator: Operator) -> dict[str, float] | None:
    if not isinstance(operator.spec, Model) or (operator.spec.load is None and operator.spec.series is None):
        return None
    # A series alone states the load outright too: nothing is left for the linear part.
    return dict(operator.spec.load or {})


def _join(operator: Operator, candidates: dict[str, OutputKey]) -> tuple[dict[str, float], dict[str, float]]:
    """Load and rows out of a join."""
    name, selectivity = operator.name, operator.selectivity_of(None)
    if selectivity > 0 and not operator.varying:
        candidates[name] = (name, None)
        return {name: operator.stated_cost_s / selectivity}, {name: 1.0}
    # Pairs cannot be told from rows out: the pairs are a variable, the rows out another.
    pairs = f"{name}.{PAIRS}"
    candidates[pairs] = (name, PAIRS)
    load = {pairs: operator.stated_cost_s}
    if not operator.varying:
        return load, {}
    candidates[name] = (name, None)
    return load, {name: 1.0}


def _unasked(network: Network) -> dict[str, Spreading]:
    specs = {name: operator.spec for name, operator in network.operators.items()}
    return {
        spread_name(name): Spreading.unasked(spec.join)
        for name, spec in specs.items()
        if isinstance(spec, Diffusion)
    }


def _wholes(network: Network) -> dict[str, Operator]:
    """Spread joins as if they were whole: a hop's routes to each host must not part its selectivity."""
    parts = [(operator, operator.spec) for operator in network.operators.values()]
    return {
        spec.of: replace(operator, name=spec.of, spec=spec.join)
        for operator, spec in parts
        if isinstance(spec, JoinPart)
    }


def _part(
    spec: JoinPart, whole: Operator, spreading: Spreading, candidates: dict[str, OutputKey]
) -> tuple[dict[str, float], dict[str | None, dict[str, float]]]:
    """Load of a part of a spread join, and rows by route: partial groups, after the last hop groups."""
    load, groups = _join(whole, candidates)
    pairs, _ = _join(replace(whole, cost_s=1.0), candidates)
    share = _alike(spec.join)
    found: dict[str | None, dict[str, float]] = {route: {} for route in spec.routes}
    if spreading.uses(spec) and None in found:
        found[None] = _scale(groups, spreading.found(spec, share))
    for route, partial in spreading.passed(spec, share).items():
        found[route] = _scale(pairs, partial)
    return _scale(load, spreading.work_of(spec, share)), found


def _alike(join: Multijoin) -> list[float]:
    """Where instances will stand is not known to the load model: all get the same."""
    assert join.diffuse is not None
    return [1 / join.diffuse.instances] * join.diffuse.instances


def _reduce(
    network: Network,
    loads: dict[str, dict[str, float]],
    rates: dict[OutputKey, dict[str, float]],
    copied: dict[OutputKey, dict[str, float]],
    candidates: dict[str, OutputKey],
) -> Linearised:
    """Drop candidates without load; merge those that act in the same proportion everywhere.

    ``copied`` are the rates of copies of rows in terms of the join that they are for.
    """
    carried = {key: copied.get(key, rates[key]) for key in rates if _is_carried(network, key)}
    loaded: set[str] = {v for load in loads.values() for v, coefficient in load.items() if coefficient > 0}
    effects: dict[str, list[tuple[object, float]]] = {v: [] for v in candidates if v in loaded}
    if effects:
        for where, function in [*loads.items(), *carried.items()]:
            for variable, coefficient in function.items():
                if variable in effects and coefficient:
                    effects[variable].append((where, coefficient))
    merged: dict[str, list[tuple[str, float]]] = {}
    leaders: dict[tuple[tuple[object, float], ...], str] = {}
    for variable, effect in effects.items():
        first = effect[0][1]
        shape = tuple((where, float(f"{coefficient / first:.12g}")) for where, coefficient in effect)
        leader = leaders.setdefault(shape, variable)
        merged.setdefault(leader, []).append((variable, first / effects[leader][0][1]))
    names = {leader: "+".join(member for member, _ in members) for leader, members in merged.items()}
    rename = {member: (names[leader], weight) for leader, ms in merged.items() for member, weight in ms}
    streams = [name for name in network.streams if name in loaded]
    keep = set(streams)

    def reduced(function: Mapping[str, float]) -> dict[str, float]:
        result: dict[str, float] = {}
        for variable, coefficient in function.items():
            if variable in keep:
                result[variable] = result.get(variable, 0.0) + coefficient
            elif variable in rename and rename[variable][0] not in result:
                # Members of a merged variable come together or not at all; the first one counts for all.
                name, weight = rename[variable]
                result[name] = coefficient / weight
        return result

    return Linearised(
        variables=(*streams, *names.values()),
        introduced={names[leader]: dict(members) for leader, members in merged.items()},
        loads={name: reduced(load) for name, load in loads.items()},
        carried_rates={key: reduced(function) for key, function in carried.items()},
        candidates=candidates,
        rates=rates,
    )


def _is_carried(network: Network, key: OutputKey) -> bool:
    operator = network.operators.get(key[0])
    if operator is None:
        return network.streams[key[0]].bytes is not None
    return operator.transfer_cost_of(key[1]) > 0 or operator.bytes_of(key[1]) is not None


def _add(functions: list[dict[str, float]]) -> dict[str, float]:
    if len(functions) == 1:
        return functions[0]
    total: dict[str, float] = {}
    for function in functions:
        for variable, coefficient in function.items():
            total[variable] = total.get(variable, 0.0) + coefficient
    return total


def _scale(function: Mapping[str, float], factor: float) -> dict[str, float]:
    return {variable: coefficient * factor for variable, coefficient in function.items()}
