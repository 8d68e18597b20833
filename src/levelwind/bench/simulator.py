"""Events per second of the simulator, against the same semantics in plain Python with a heap.

Both run table 2 of the load distribution paper (20 chains of 10 operators on 20 nodes, rates that jump by a
factor of 4, load 0.8, operators placed largest load first): the kernel for the full two minutes, the plain
simulator for the first seconds, since its speed does not change. A tuple event is an arrival or the end of a
tuple's service; nothing travels in this setting, so there are no others. Compilation is not counted.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np

from levelwind.bench.plain_simulator import PlainSimulator
from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.bench.timing import interleaved
from levelwind.loads.problem import make_problem
from levelwind.model import Cluster
from levelwind.placement import make_planner
from levelwind.sim.levels import at_level, base_rates
from levelwind.sim.scenario import Chains
from levelwind.sim.simulator import Simulator
from levelwind.sim.tables import TraceKind
from levelwind.sim.workloads import Periodic, make_arrivals

NAME = "simulator"
LEAST_EVENTS_PER_S = 3e6
ROUNDS = 5
SECONDS, PLAIN_SECONDS, LARGE_SECONDS = 120.0, 2.0, 2.0


def run(settings: Settings, *, seconds: float = SECONDS, plain_seconds: float = PLAIN_SECONDS) -> Result:
    """Measure both in turn, and the kernel on a thousand nodes."""
    world = _world(settings.seed, nodes=20, chains=20, length=10, seconds=seconds)
    large = _world(settings.seed, nodes=1000, chains=1000, length=10, seconds=LARGE_SECONDS)
    problem, _, placement = world
    rows, credits = _rows(world, plain_seconds)

    def kernel(world: Any, until_s: float) -> float:
        simulator = Simulator(world[0], world[1], world[2], horizon_s=until_s, seed=settings.seed)
        simulator.advance(0.0)
        began = process_time()
        simulator.advance(until_s)
        return simulator.events / (process_time() - began)

    def plain() -> float:
        simulator = PlainSimulator(problem, rows, placement, credits)
        began = process_time()
        simulator.advance(plain_seconds)
        return simulator.events / (process_time() - began)

    settings.step(f"{seconds:g} s of table 2 in the kernel, {plain_seconds:g} s in plain Python")
    taken = interleaved(
        {
            "kernel": lambda: kernel(world, seconds),
            "plain": plain,
            "large": lambda: kernel(large, LARGE_SECONDS),
        },
        settings.rounds(ROUNDS),
    )
    ours, base, wide = (float(np.median(taken[name])) for name in ("kernel", "plain", "large"))
    memory = _memory(world, settings.seed, seconds)
    return Result(
        name=NAME,
        ours=Figure(
            label="time per event, table 2", value=1e9 / ours, unit="ns", limit=1e9 / LEAST_EVENTS_PER_S
        ),
        baseline=Figure(label="plain Python with heapq", value=1e9 / base, unit="ns"),
        ratio=ours / base,
        spread=spread_of([a / b for a, b in zip(taken["kernel"], taken["plain"], strict=True)]),
        figures=(
            Figure(label="time per event, 10,000 operators on 1,000 nodes", value=1e9 / wide, unit="ns"),
            Figure(
                label="memory at the end over a quarter of the way", value=memory, unit="times", limit=2.0
            ),
        ),
        notes=(
            f"{ours / 1e6:.2f} million events per second of CPU time on one core, at least "
            f"{LEAST_EVENTS_PER_S / 1e6:g} wanted; plain Python {base / 1e6:.3f} million",
            "both make the same trace from the same rows: the tests compare them event by event",
        ),
        details={"events_per_s": {name: list(values) for name, values in taken.items()}},
    )


def _world(seed: int, *, nodes: int, chains: int, length: int, seconds: float) -> Any:
    """A problem, its arrivals, and the plan of largest load first."""
    rng = np.random.default_rng(seed)
    network = Chains(chains=chains, length=length).network(rng)
    problem = make_problem(network, Cluster.equal(nodes))
    means = base_rates(network, rng)
    made = make_arrivals(Periodic(), network, means, horizon_s=seconds, rng=rng)
    arrivals = at_level(problem, made, 0.8, from_s=0.0, until_s=seconds)
    rates = {name: float(one.rows(np.array([0.0, seconds]))[0]) / seconds for name, one in arrivals.items()}
    rated = make_problem(network, Cluster.equal(nodes), rates=rates)
    assignment = make_planner("llf").plan(rated, rng=rng).assignment
    assert assignment is not None  # nothing is pinned, so everything is placed
    return problem, arrivals, problem.placement(assignment)


def _rows(world: Any, until_s: float) -> tuple[dict[str, list[float]], list[float]]:
    """The rows that the kernel draws up to a time, for the plain simulator, and the flows' credits."""
    pieces: list[Any] = []
    simulator = Simulator(world[0], world[1], world[2], horizon_s=until_s, seed=0, trace=pieces.append)
    credits = simulator.plumbing.tables.flows["credit"].tolist()
    simulator.advance(until_s)
    simulator.flush_trace()
    rows = np.concatenate(pieces)
    arrived = rows[rows["kind"] == TraceKind.ARRIVED]
    found = {
        name: arrived["at_s"][arrived["what"] == k].tolist()
        for k, name in enumerate(simulator.plumbing.sources)
    }
    return found, credits


def _memory(world: Any, seed: int, seconds: float) -> float:
    simulator = Simulator(world[0], world[1], world[2], horizon_s=seconds, seed=seed)
    simulator.advance(seconds / 4)
    early = simulator.memory_bytes
    simulator.advance(seconds)
    return simulator.memory_bytes / early
