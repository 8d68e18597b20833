"""How fast relaxation places queries across a wide area, against print taken literally.

1,000 queries of four producers, an aggregator and a consumer on a transit-stub network of 1,550 nodes. Ours
finds the coordinates, lets the springs come to rest, and maps each operator by a kd-tree, all checks of
capacity included. The baseline is given the coordinates, follows figure 7 operator by operator in plain
NumPy (with the sign and the step that make it converge), and looks at all nodes for the nearest.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter

import numpy as np

from levelwind.bench.result import Figure, Result, Settings, compared
from levelwind.bench.timing import interleaved
from levelwind.loads.arrays import Floats, Ints
from levelwind.loads.problem import Problem, make_problem
from levelwind.placement import make_planner
from levelwind.placement.flows import Flow, make_flows
from levelwind.placement.units import make_units
from levelwind.reproduce.wide_area import aggregations, cluster_of
from levelwind.space import Coordinates, CostSpace, VivaldiConfig, embed, find_routes, transit_stub

NAME = "relaxation"
QUERIES, LIMIT_S, ROUNDS = 1000, 2.0, 5
DAMPING, REST_MS = 0.1, 0.1
# A kd-tree's lookups may take this many times as long on 64 times as many nodes: the logarithm doubles.
SMALL, LARGE, SLOWER, LOOKUPS = 1_000, 64_000, 4.0, 2_000


def run(settings: Settings, *, queries: int = QUERIES) -> Result:
    """Both in turn, then lookups in small and large spaces."""
    rng = np.random.default_rng(settings.seed)
    topology = transit_stub(rng)
    latency = find_routes(topology).latency_ms
    cluster = cluster_of(latency, topology)
    problem = make_problem(aggregations(rng, cluster.names, queries), cluster)
    coordinates = embed(latency, config=VivaldiConfig(height=False))

    def ours() -> float:
        settings.step("relaxation")
        begin = perf_counter()
        make_planner("relaxation").plan(problem, rng=np.random.default_rng(settings.seed))
        return perf_counter() - begin

    def literal() -> float:
        settings.step("figure 7 taken literally")
        begin = perf_counter()
        literal_relaxation(problem, coordinates)
        return perf_counter() - begin

    taken = interleaved({"ours": ours, "literal": literal}, settings.rounds(ROUNDS))
    lookups = {count: _lookup_us(count, settings.seed) for count in (SMALL, LARGE)}
    slower = lookups[LARGE] / lookups[SMALL]
    return compared(
        NAME,
        taken["ours"],
        taken["literal"],
        labels=(f"{queries:,} queries on {len(latency):,} nodes", "figure 7 and a search of all nodes"),
        limit=LIMIT_S,
        figures=(
            Figure(label=f"lookup of the 10 nearest of {SMALL:,}", value=lookups[SMALL], unit="µs"),
            Figure(label=f"lookup of the 10 nearest of {LARGE:,}", value=lookups[LARGE], unit="µs"),
            Figure(label="large over small", value=slower, unit="times", limit=SLOWER),
        ),
        notes=("ours includes finding the coordinates, the baseline does not",),
        details={"rounds_s": taken, "median_s": median(taken["ours"])},
    )


def literal_relaxation(problem: Problem, coordinates: Coordinates) -> Ints:
    """Figure 7 for each operator of queries with a single one, then the nearest node by brute force."""
    units = make_units(problem)
    flows, position = make_flows(units), coordinates.position
    nodes = np.empty(units.count, dtype=np.int64)
    for unit in range(units.count):
        ends, rates = _ends(flows.flows, flows.of[unit], unit, position)
        point = np.zeros(position.shape[1])
        while True:
            force = np.zeros(position.shape[1])
            for end, rate in zip(ends, rates, strict=True):
                force += (point - end) * rate
            force /= rates.sum()
            point = point - DAMPING * force
            if np.sqrt((force * force).sum()) < REST_MS:
                break
        nodes[unit] = int(np.argmin(((position - point) ** 2).sum(axis=1)))
    return nodes


def _ends(flows: tuple[Flow, ...], own: list[int], unit: int, position: Floats) -> tuple[Floats, Floats]:
    ends, rates = [], []
    for f in own:
        flow = flows[f]
        ends.append(position[flow.exits[0] if flow.home == unit else flow.entry])
        rates.append(flow.rate)
    return np.array(ends), np.array(rates)


def _lookup_us(count: int, seed: int) -> float:
    """Microseconds to look one target up among so many nodes."""
    rng = np.random.default_rng(seed)
    spots = Coordinates(
        position=rng.uniform(0, 100, (count, 3)), height=rng.exponential(1.0, count), error=np.zeros(count)
    )
    space = CostSpace(coordinates=spots, load=np.zeros(count))
    target = rng.uniform(0, 100, (LOOKUPS, 3))
    space.nearest(target[:10], 10)
    seen = []
    for _ in range(5):
        begin = perf_counter()
        space.nearest(target, 10)
        seen.append((perf_counter() - begin) * 1e6 / LOOKUPS)
    return median(seen)
