"""A spread join in the simulator does the work that the plan says, in proportion to its nodes' speeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sim_worlds import on

from levelwind.control.events import StatisticsReported
from levelwind.control.instructions import Move
from levelwind.frontend import parse_network
from levelwind.model import Cluster, Node
from levelwind.sim.arrivals import Arrivals
from levelwind.sim.driver import simulate
from levelwind.sim.scenario import Scenario
from levelwind.sim.simulator import Simulator
from levelwind.sim.spreading import SpreadJoins
from levelwind.sim.statistics import IdealLoads
from levelwind.sim.tables import Law

SECONDS = 400.0
RATE = 20.0
CPU = (1.0, 2.0, 3.0, 2.0)


def network(method, **more):
    return parse_network(
        {
            "streams": {name: {"rate": RATE} for name in "pqr"},
            "operators": [
                {
                    "name": "m",
                    "kind": "multijoin",
                    "inputs": {"a": "p", "b": "q", "c": "r"},
                    "windows": {"a": "2s", "b": "2s", "c": "2s"},
                    "cost": "20us",
                    "selectivity": 0.0004,
                    "diffuse": {"method": method, "instances": 4, "segment": "4s"},
                    **more,
                }
            ],
        }
    ).network


def world(method, **more):
    nodes = tuple(Node(name=f"n{i}", cpu=cpu) for i, cpu in enumerate(CPU))
    cluster = Cluster(nodes=(*nodes, Node(name="ends", cpu=10.0)))
    problem, _ = on(network(method, **more), cluster)
    placement = {}
    for operator in problem.physical.operators:
        spec = operator.logical.spec
        is_part = operator.logical.kind == "join_part"
        placement[operator.name] = f"n{spec.instance}" if is_part else "ends"
    return problem, placement


def busy(problem, placement):
    law = Arrivals(law=Law.POISSON, until_s=np.array([SECONDS]), rate=np.array([RATE]))
    simulator = Simulator(problem, dict.fromkeys("pqr", law), placement, horizon_s=SECONDS, seed=1)
    simulator.record(0.0)
    simulator.advance(SECONDS)
    # A node is busy for as long as its work takes at its speed.
    return simulator, np.array(simulator._tables.nodes["busy_s"]) / SECONDS * problem.cpu


@pytest.mark.parametrize("method", ["atr", "ctr", "auto"])
def test_work_is_that_of_the_plan_by_speed(method):
    problem, placement = world(method)
    _, load = busy(problem, placement)
    planned = problem.mean_load[[o.logical.kind == "join_part" for o in problem.physical.operators]].sum()
    print(f"\n{method}: {np.round(load, 3)} of {planned:.3f}")
    assert load[:4].sum() == pytest.approx(planned, rel=0.05)
    assert load[:4] / CPU == pytest.approx(np.full(4, planned / sum(CPU)), rel=0.1)


@pytest.mark.parametrize("method", ["atr", "ctr"])
def test_copies_cost_their_transfer(method):
    plain, placement = world(method)
    costly, _ = world(method, transfer_cost="2ms")
    _, before = busy(plain, placement)
    _, after = busy(costly, placement)
    # Of the nodes with parts: what they receive and what they send, for each row that comes in.
    carried = (after - before)[:4].sum() / 1e-3 / (3 * RATE)
    groups = (2 * RATE) ** 2 * 0.0004
    print(f"\n{method}: {carried:.2f} rows, partial groups and groups for each row")
    if method == "atr":  # the master's rows once, the others' once more for (2 + 2)/4
        assert carried == pytest.approx((1 + 2 + 2) / 3 + groups, rel=0.06)
    else:
        assert carried > 2 + groups


@pytest.mark.parametrize("method", ["atr", "ctr", "auto"])
def test_as_many_groups_come_out_as_the_plan_says(method):
    problem, placement = world(method)
    simulator, _ = busy(problem, placement)
    groups = 3 * RATE * (2 * RATE) ** 2 * 0.0004
    print(f"\n{method}: {simulator.latencies.results / SECONDS:.2f} groups a second of {groups:.2f}")
    assert simulator.latencies.results / SECONDS == pytest.approx(groups, rel=0.05)


def test_a_join_without_rates_is_laid_out_all_the_same():
    told = network("atr")
    silent = replace(told, streams={name: replace(each, rate=None) for name, each in told.streams.items()})
    for each in (told, silent):
        problem, _ = on(each, 4)
        found = SpreadJoins(problem).flows
        assert all(np.isfinite(ratio) for ratio in found.ratios.values())
        assert sum(found.costs.values()) > 0


def test_the_plan_has_the_same_work_whatever_the_method():
    planned = {}
    for method in ("atr", "ctr", "auto"):
        problem, _ = world(method)
        planned[method] = problem.mean_load[
            [operator.logical.kind == "join_part" for operator in problem.physical.operators]
        ].sum()
    # 3 streams of 20 rows a second, 40 of each in a window: 96,000 groups a second to look at.
    assert planned == pytest.approx(dict.fromkeys(planned, 96_000 * 20e-6))


class _MovesOnce:
    """A manager that moves an operator when it hears the first statistics, and keeps what it is told."""

    def __init__(self, move):
        self.move, self.series = move, []

    def handle(self, event):
        if not isinstance(event, StatisticsReported):
            return ()
        self.series.append(event.series[:, -1])
        return (self.move,) if len(self.series) == 1 else ()


def test_after_a_move_rows_and_loads_follow():
    problem, placement = world("atr")
    scenario = Scenario(
        network=network("atr"),
        cluster=problem.cluster,
        start=placement,
        migration_s=0.0,
        warmup_s=10.0,
        duration_s=90.0,
    )
    manager = _MovesOnce(Move(operator="m[0]", source="n0", target="ends", reason="a test"))
    outcome = simulate(scenario, manager=lambda *_: manager)
    # From the slowest of the nodes to one that is faster than all others together.
    speed = np.array([0.0, 2.0, 3.0, 2.0, 10.0])
    load = (outcome.timeline.busy * problem.cpu[:, None])[:, 10:].mean(axis=1)
    print(f"\nload of nodes after the move {np.round(load, 3)}")
    assert load / load.sum() == pytest.approx(speed / speed.sum(), rel=0.1, abs=1e-3)
    seen = np.mean(manager.series[10:], axis=0)[[problem.physical.names.index(f"m[{i}]") for i in range(4)]]
    assert seen / seen.sum() == pytest.approx(np.array([10.0, 2.0, 3.0, 2.0]) / 17)


@pytest.mark.parametrize("method", ["atr", "ctr"])
def test_shares_follow_parts_that_move(method):
    problem, placement = world(method)
    law = Arrivals(law=Law.POISSON, until_s=np.array([SECONDS]), rate=np.array([RATE]))
    simulator = Simulator(problem, dict.fromkeys("pqr", law), placement, horizon_s=SECONDS, seed=1)
    assert not simulator.follow_parts()
    # The instance on the slowest node goes to the fastest of all, where nothing else joins.
    for j, operator in enumerate(problem.physical.operators):
        if operator.logical.kind == "join_part" and operator.logical.spec.instance == 0:
            simulator.move(j, 4, takes_s=0.0)
    assert simulator.follow_parts()
    simulator.record(0.0)
    simulator.advance(SECONDS)
    load = simulator.busy_s / SECONDS * problem.cpu
    planned = problem.mean_load[[o.logical.kind == "join_part" for o in problem.physical.operators]].sum()
    speed = np.array([0.0, 2.0, 3.0, 2.0, 10.0])
    print(f"\n{method}: {np.round(load, 3)} of {planned:.3f}")
    assert load == pytest.approx(planned * speed / speed.sum(), rel=0.1, abs=1e-3)


def test_loads_that_policies_see_follow_them_too():
    problem, placement = world("atr")
    spread, ideal = SpreadJoins(problem), IdealLoads(problem)
    parts = [o.logical.kind == "join_part" for o in problem.physical.operators]
    rates = np.full(3, RATE)
    alike = ideal.of(rates)[parts]
    spread.follow(problem.assignment(placement), problem.cpu)
    ideal.follow_parts(spread)
    assert ideal.of(rates)[parts] == pytest.approx(alike.sum() * np.array(CPU) / sum(CPU))


def test_a_join_with_a_part_nowhere_stays_as_it_is():
    problem, placement = world("atr")
    spread = SpreadJoins(problem)
    assignment = problem.assignment(placement)
    assert spread.follow(assignment, problem.cpu)
    before = spread.flows
    assignment[problem.physical.names.index("m[0]")] = -1
    assert not spread.follow(assignment, problem.cpu)
    assert spread.flows is before
