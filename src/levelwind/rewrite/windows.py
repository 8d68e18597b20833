"""A network with other windows for one of its multijoins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from levelwind.errors import InputError, Problem, did_you_mean, input_error
from levelwind.model import Multijoin, Network
from levelwind.model.frozen import frozen_mapping


def with_windows(network: Network, name: str, windows_s: Mapping[str, float]) -> Network:
    """The network with new windows, in seconds, for some inputs of a multijoin; the others keep theirs.

    Raises
    ------
    InputError
        If there is no such multijoin, or it has no such input.
    """
    joins = [each for each, operator in network.operators.items() if isinstance(operator.spec, Multijoin)]
    if name not in joins:
        rule = "must be a multijoin of the run"
        raise input_error(rule, key="JOIN", value=name, hint=did_you_mean(name, joins))
    operator = network.operators[name]
    spec = operator.spec
    assert isinstance(spec, Multijoin)
    rule = "must be an input of the join"
    problems = [
        Problem(rule=rule, key="WINDOW", value=alias, hint=did_you_mean(alias, spec.aliases))
        for alias in windows_s
        if alias not in spec.aliases
    ]
    if problems:
        raise InputError(problems)
    changed = replace(spec, windows_s=frozen_mapping({**spec.windows_s, **windows_s}))
    return replace(network, operators={**network.operators, name: replace(operator, spec=changed)})
