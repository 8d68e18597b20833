"""A scenario: what is simulated, on what, under which load, decided by whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from levelwind.frontend.generate import random_chains
from levelwind.model import Cluster, Network, Node
from levelwind.model.frozen import frozen_mapping
from levelwind.sim.layout import Choices
from levelwind.sim.workloads import Poisson, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Chains:
    """Chains to be made by chance. Costs in CPU seconds per row; both bounds equal: no chance."""

    chains: int
    length: int
    cost_s: tuple[float, float] = (1e-3, 1e-3)
    selectivity: tuple[float, float] = (0.8, 1.2)

    def network(self, rng: np.random.Generator) -> Network:
        """One such network."""
        return random_chains(
            rng, chains=self.chains, length=self.length, cost_s=self.cost_s, selectivity=self.selectivity
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A planner or a policy: its name and its options."""

    name: str
    options: Mapping[str, Any] = field(default_factory=frozen_mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What happens ``at_s`` seconds after recording began: a node is lost or joins, queries come or go.

    ``added`` and ``removed`` name outputs or SQL queries of the network. One that is added first is not there
    until then.
    """

    at_s: float
    lost: str | None = None
    joined: Node | None = None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything that a simulation needs, the seed aside. Times are in seconds.

    Parameters
    ----------
    network
        A network, or chains to be made.
    load
        The system load level; None leaves the rates as they are stated.
    start
        ``random``, ``connected``, or a placement.
    planner
        Applied once, after the warm-up; None keeps the start.
    policy
        Asked every ``period_s`` from the end of the warm-up on.
    window_s, samples
        The statistics window and the number of samples in it.
    migration_s
        How long an operator is suspended when it moves.
    clean
        Whether the plan is in place on empty queues when recording starts.
    moved_load_budget
        Most load that the manager may move per period; None for no limit.
    scheduling
        Which of its waiting rows a node takes up next; None: first come, first served.
    silent_after_s
        Nodes send a heartbeat every period, and the manager drops one that has been silent for longer; None:
        it is told of nodes that are lost.
    groups
        Property of nodes by which they form groups, each with a manager of its own; None: one manager.
    changes
        Nodes lost and joined, queries added and removed while it runs.
    reuse
        Whether equal operators over equal inputs are computed once.
    """

    network: Network | Chains
    cluster: Cluster
    workload: Workload = field(default_factory=Poisson)
    load: float | None = None
    start: str | Mapping[str, str] = "random"
    planner: Named | None = None
    policy: Named | None = None
    window_s: float = 10.0
    samples: int = 10
    period_s: float = 1.0
    migration_s: float = 0.2
    warmup_s: float = 20.0
    duration_s: float = 120.0
    clean: bool = False
    moved_load_budget: float | None = None
    scheduling: Named | None = None
    silent_after_s: float | None = None
    groups: str | None = None
    changes: tuple[Change, ...] = ()
    reuse: bool = False
    choices: Choices = field(default_factory=Choices)

    @property
    def sample_s(self) -> float:
        """Length of one sample of the statistics."""
        return self.window_s / self.samples

    @property
    def horizon_s(self) -> float:
        """When it ends."""
        return self.warmup_s + self.duration_s
