"""Transit-stub networks: backbones that carry everybody's traffic, and the sites behind them.

After GT-ITM (Zegura, Calvert, Bhattacharjee: How to Model an Internetwork, INFOCOM 1996).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from levelwind.loads.arrays import Floats
from levelwind.model import Link, Topology
from levelwind.space.routes import find_routes

# Policy weights as GT-ITM hands them out: a path within a domain stays there, and no path leads through a
# site that it neither begins nor ends in.
INSIDE, BETWEEN_BACKBONES, TO_SITE = 1.0, 3.0, 7.0
# How far nodes lie from the centre of their backbone, and of their site, in a plane of side 1, and sites from
# their transit node: GT-ITM's usual proportions, 283 : 142 : 72.
BACKBONE_RADIUS, SITE_RADIUS = 0.25, 0.125
# Latencies are multiples of this many ms, so that sums of them are exact whatever the order.
GRAIN_MS = 1.0 / 1024.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitStub:
    """The shape of a network; the defaults make the paper's 1,550 nodes (seed 002, section 4.1).

    Parameters
    ----------
    transit_domains, transit_nodes
        Backbones, and nodes in each.
    stub_domains, stub_nodes
        Sites in all, shared evenly by the transit nodes, and nodes in each.
    transit_links, stub_links
        Chance that two nodes of one backbone, or of one site, are linked beyond the tree that connects them.
    backbone_links
        Chance that two backbones are linked beyond the tree. GT-ITM's own graphs have them all linked.
    diameter_ms
        The longest route.
    """

    transit_domains: int = 10
    transit_nodes: int = 5
    stub_domains: int = 150
    stub_nodes: int = 10
    transit_links: float = 0.6
    stub_links: float = 0.42
    backbone_links: float = 1.0
    diameter_ms: float = 878.0


def transit_stub(rng: np.random.Generator, shape: TransitStub | None = None) -> Topology:
    """A random transit-stub network. Nodes are named t0_0 (backbone, node) and s0_0 (site, node).

    Link latencies follow distances in the plane: backbones lie across it, sites near their transit node.
    O(nodes × nodes per domain), and all routes once for the diameter.
    """
    given = shape or TransitStub()
    names: list[str] = []
    links: list[tuple[int, int, float]] = []
    spots: list[Floats] = []
    backbones = []
    for domain in range(given.transit_domains):
        centre = rng.uniform(0.0, 1.0, 2)
        members = _domain(
            rng,
            f"t{domain}",
            given.transit_nodes,
            centre,
            BACKBONE_RADIUS,
            given.transit_links,
            names,
            links,
            spots,
        )
        backbones.append(members)
    for a, b in _connected(rng, given.transit_domains, given.backbone_links):
        ends = int(rng.choice(backbones[a])), int(rng.choice(backbones[b]))
        links.append((*ends, BETWEEN_BACKBONES))
    gates = [node for members in backbones for node in members]
    for site in range(given.stub_domains):
        gate = gates[site % len(gates)]
        centre = spots[gate] + rng.uniform(-SITE_RADIUS, SITE_RADIUS, 2)
        members = _domain(
            rng, f"s{site}", given.stub_nodes, centre, SITE_RADIUS, given.stub_links, names, links, spots
        )
        links.append((gate, int(rng.choice(members)), TO_SITE))
    length = [float(np.hypot(*(spots[a] - spots[b]))) for a, b, _ in links]
    made = Topology(
        nodes=tuple(names),
        links=tuple(
            Link(source=names[a], target=names[b], latency_ms=long, weight=weight)
            for (a, b, weight), long in zip(links, length, strict=True)
        ),
    )
    scale = given.diameter_ms / float(find_routes(made).latency_ms.max())
    scaled = tuple(replace(link, latency_ms=_grained(link.latency_ms * scale)) for link in made.links)
    return replace(made, links=scaled)


def _domain(
    rng: np.random.Generator,
    name: str,
    count: int,
    centre: Floats,
    radius: float,
    share: float,
    names: list[str],
    links: list[tuple[int, int, float]],
    spots: list[Floats],
) -> list[int]:
    """Nodes around a centre, connected; returns their numbers."""
    first = len(names)
    names += [f"{name}_{k}" for k in range(count)]
    spots += list(centre + rng.uniform(-radius, radius, (count, 2)))
    links += [(first + a, first + b, INSIDE) for a, b in _connected(rng, count, share)]
    return list(range(first, first + count))


def _connected(rng: np.random.Generator, count: int, share: float) -> list[tuple[int, int]]:
    """Pairs of a connected random graph: a random tree, and any other pair with the chance ``share``."""
    order = rng.permutation(count).tolist()
    tree = {tuple(sorted((order[k], order[int(rng.integers(k))]))) for k in range(1, count)}
    others = [
        (a, b)
        for a in range(count)
        for b in range(a + 1, count)
        if (a, b) not in tree and rng.random() < share
    ]
    return [(int(a), int(b)) for a, b in sorted(tree)] + others


def _grained(latency_ms: float) -> float:
    return max(1, round(latency_ms / GRAIN_MS)) * GRAIN_MS
