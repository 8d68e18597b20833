"""The manager of a simulation: the same that manages a run on Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from levelwind.model import Network
from levelwind.sim.scenario import Named, Scenario

if TYPE_CHECKING:
    from levelwind.sim.driver import Manages


def make_policy(named: Named) -> Any:
    """A policy by its name; bad names and options are input errors."""
    return import_module("levelwind.balance.registry").make_policy(named.name, dict(named.options))


def make_manager(
    network: Network, scenario: Scenario, placement: dict[str, str], rng: np.random.Generator
) -> Manages:
    """A manager that knows the placement and asks the scenario's policy, if it names one."""
    manager: Manages = import_module("levelwind.control.manager").Manager(
        network,
        scenario.cluster,
        placement,
        policy=None if scenario.policy is None else make_policy(scenario.policy),
        rng=rng,
        moved_load_budget=scenario.moved_load_budget,
    )
    return manager
