"""The physical network between nodes: links, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass

from levelwind.errors import InputError, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link that goes both ways. Routes take the least sum of weights, or of latencies without weights."""

    source: str
    target: str
    latency_ms: float
    weight: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Routers and hosts by name, and the links between them. Nodes of a cluster stand at those of their name.

    ``path`` is the file that it was read from.
    """

    nodes: tuple[str, ...]
    links: tuple[Link, ...]
    path: str | None = None

    def __post_init__(self) -> None:
        known = set(self.nodes)
        problems = [
            Problem(rule="a link must join nodes of the topology", key="topology", value=end)
            for link in self.links
            for end in (link.source, link.target)
            if end not in known
        ]
        problems += [
            Problem(
                rule="a link's latency and weight must be at least 0",
                key="topology",
                value=f"{link.source} to {link.target}",
            )
            for link in self.links
            if not (link.latency_ms >= 0 and (link.weight is None or link.weight >= 0))
        ]
        if problems:
            raise InputError(problems)
