"""Named worlds: small planning problems whose answers are known in closed form, or bounded by measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import factorial

import numpy as np

from levelwind.errors import did_you_mean, input_error
from levelwind.frontend.generate import random_trees
from levelwind.model import Cluster, Model, Network, Operator, Port, Stream
from levelwind.model.frozen import frozen_mapping

Placement = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A network on a cluster, and what is known of it.

    Parameters
    ----------
    placements
        Placements with known worth, by name.
    ratios
        Feasible ratio of each of these placements, exactly.
    best
        The largest feasible ratio that any placement has; None if it is not known.
    ideal_volume
        Volume of the ideal set in rows per second, to the power of the number of streams.
    limits
        Least feasible ratio a planner of that name must reach: measured once, and not to be lost again.
    """

    name: str
    network: Network
    cluster: Cluster
    placements: Mapping[str, Placement] = field(default_factory=frozen_mapping)
    ratios: Mapping[str, float] = field(default_factory=frozen_mapping)
    best: float | None = None
    ideal_volume: float | None = None
    limits: Mapping[str, float] = field(default_factory=frozen_mapping)


def worked_example() -> World:
    """Two chains of two operators on two nodes: every plan's area is known (seed 000, example 2).

    Loads are o1 14·r1, o2 6·r1, o3 9·r2, o4 7·r2; the ideal set has area 1/160.
    """
    boxes = {
        "o1": _box("o1", "I1", 14.0, 1.0),
        "o2": _box("o2", "o1", 6.0, 1.0),
        "o3": _box("o3", "I2", 9.0, 0.5),
        "o4": _box("o4", "o3", 14.0, 1.0),
    }
    network = Network(name="worked", streams=_streams(2), operators=boxes)
    return World(
        name="worked_example",
        network=network,
        cluster=Cluster.equal(2),
        placements={
            "a": {"o1": "n1", "o2": "n1", "o3": "n2", "o4": "n2"},
            "b": {"o1": "n1", "o3": "n1", "o2": "n2", "o4": "n2"},
            "c": {"o1": "n1", "o4": "n1", "o2": "n2", "o3": "n2"},
        },
        ratios={"a": 160 / 320, "b": 160 / 252, "c": 160 * 25 / 5292},
        best=160 * 25 / 5292,
        ideal_volume=1 / 160,
        limits={"rod": 160 * 25 / 5292 - 1e-12},
    )


def equal_chains(nodes: int = 3, *, per_node: int = 2) -> World:
    """A chain of equal operators per node, each from a stream of its own.

    Every chain spread over all nodes is ideal: ratio 1. A chain to a node bears only r_k ≤ 1/n of its
    stream: with n streams n!/n^n of the ideal set.
    """
    streams, length = nodes, nodes * per_node
    boxes: dict[str, Operator] = {}
    apart, spread = {}, {}
    for k in range(streams):
        source = f"I{k + 1}"
        for step in range(length):
            name = f"c{k + 1}_{step + 1}"
            boxes[name] = _box(name, source, 0.001, 1.0)
            apart[name] = f"n{k + 1}"
            spread[name] = f"n{step % nodes + 1}"
            source = name
    return World(
        name="equal_chains",
        network=Network(name="equal-chains", streams=_streams(streams), operators=boxes),
        cluster=Cluster.equal(nodes),
        placements={"apart": apart, "spread": spread},
        ratios={"apart": factorial(nodes) / nodes**nodes, "spread": 1.0},
        best=1.0,
        ideal_volume=(nodes / (0.001 * length)) ** streams / factorial(streams),
        limits={"rod": 1.0 - 1e-9},
    )


def one_heavy_operator() -> World:
    """One operator with half of all load, five with a tenth each, on four nodes: no plan beats 1/2."""
    boxes = {"heavy": _box("heavy", "I1", 0.5, 1.0)}
    boxes |= {f"light{i}": _box(f"light{i}", "I1", 0.1, 1.0) for i in range(1, 6)}
    alone = {"heavy": "n1"} | {f"light{i}": f"n{i % 3 + 2}" for i in range(1, 6)}
    return World(
        name="one_heavy_operator",
        network=Network(name="one-heavy", streams=_streams(1), operators=boxes),
        cluster=Cluster.equal(4),
        placements={"alone": alone, "together": dict.fromkeys(boxes, "n1")},
        ratios={"alone": 0.5, "together": 0.25},
        best=0.5,
        ideal_volume=4.0,
        limits={"rod": 0.5 - 1e-12, "llf": 0.5 - 1e-12},
    )


def figure_trees(operators: int = 100, *, seed: int = 7) -> World:
    """The random trees that section 6.1 of seed 000 measures: five streams, ten equal nodes.

    The limits hold for the default arguments, a little below what was measured (rod .741).
    """
    rng = np.random.default_rng(seed)
    network = random_trees(rng, operators=operators)
    default = operators == 100 and seed == 7
    return World(
        name="figure_trees",
        network=network,
        cluster=Cluster.equal(10),
        limits={"rod": FIGURE_TREES_ROD} if default else {},
    )


FIGURE_TREES_ROD = 0.72
WORLDS: Mapping[str, Callable[[], World]] = frozen_mapping(
    {
        "worked_example": worked_example,
        "equal_chains": equal_chains,
        "one_heavy_operator": one_heavy_operator,
        "figure_trees": figure_trees,
    }
)


def world(name: str) -> World:
    """The world of that name; an unknown name is an input error that names the nearest."""
    if name not in WORLDS:
        rule = "names a world"
        raise input_error(rule, key="world", value=name, hint=did_you_mean(name, WORLDS))
    return WORLDS[name]()


def _box(name: str, source: str, cost_s: float, selectivity: float) -> Operator:
    return Operator(
        name=name, spec=Model(), inputs=(Port(source=source),), cost_s=cost_s, selectivity=selectivity
    )


def _streams(count: int) -> dict[str, Stream]:
    return {f"I{k + 1}": Stream(name=f"I{k + 1}") for k in range(count)}
