"""The manager of a simulation: the same that manages a run on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from levelwind.model import Network, Node
from levelwind.sim.scenario import Named, Scenario

if TYPE_CHECKING:
    from levelwind.sim.driver import Manages


def make_policy(named: Named) -> Any:
    """A policy by its name; bad names and options are input errors."""
    return import_module("levelwind.balance.registry").make_policy(named.name, dict(named.options))


def policy_remarks(named: Named, network: Network, nodes: Sequence[Node]) -> tuple[str, ...]:
    """What the author of a scenario should know of its policy before it is at work."""
    found: tuple[str, ...] = import_module("levelwind.balance.redistribution").remarks_of(
        make_policy(named), network, nodes
    )
    return found


def make_manager(
    network: Network, scenario: Scenario, placement: dict[str, str], rng: np.random.Generator
) -> Manages:
    """A manager that knows the placement and asks the scenario's policy, if it names one; tiers by groups."""
    control = import_module("levelwind.control")
    options: dict[str, Any] = {
        "policy": None if scenario.policy is None else make_policy(scenario.policy),
        "rng": rng,
        "moved_load_budget": scenario.moved_load_budget,
        "silent_after_s": scenario.silent_after_s,
    }
    manager: Manages
    if scenario.groups is None:
        manager = control.Manager(network, scenario.cluster, placement, **options)
    else:
        manager = control.TopManager(network, scenario.cluster, placement, groups=scenario.groups, **options)
    return manager
