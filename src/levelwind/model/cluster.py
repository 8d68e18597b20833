"""The cluster: nodes and what lies between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from levelwind.errors import InputError, Problem
from levelwind.model.frozen import frozen_mapping
from levelwind.model.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A worker: CPU seconds it can spend per second, memory in bytes, bandwidth in bytes per second."""

    name: str
    cpu: float = 1.0
    memory_bytes: float | None = None
    bandwidth_bytes_per_s: float | None = None
    host: str | None = None
    properties: Mapping[str, Any] = field(default_factory=frozen_mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """All nodes, in the order of the file, and the network between them.

    ``latency_ms[i][j]`` is the one-way latency from node i to node j. ``topology`` gives the routes.
    """

    nodes: tuple[Node, ...]
    latency_ms: tuple[tuple[float, ...], ...] | None = None
    topology: Topology | None = None
    network_bandwidth_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        problems = []
        if not self.nodes:
            problems.append(Problem(rule="a cluster has at least one node", key="nodes"))
        names = [node.name for node in self.nodes]
        problems += [
            Problem(rule="node names are unique", key="nodes", value=name)
            for name in sorted(
                {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else ()
            )
        ]
        problems += [
            Problem(rule="cpu is a positive number", key=node.name, value=str(node.cpu))
            for node in self.nodes
            if not node.cpu > 0
        ]
        if problems:
            raise InputError(problems)

    @property
    def names(self) -> tuple[str, ...]:
        """Node names in order."""
        return tuple(node.name for node in self.nodes)

    @classmethod
    def equal(cls, count: int, *, cpu: float = 1.0) -> Cluster:
        """``count`` equal nodes named n1, n2, …"""
        return cls(nodes=tuple(Node(name=f"n{i + 1}", cpu=cpu) for i in range(count)))
