"""Tiers and heartbeats in the simulator: the same managers, driven by virtual time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from levelwind.control import TopManager
from levelwind.control.events import StatisticsReported
from levelwind.errors import InputError
from levelwind.frontend import parse_network
from levelwind.model import Cluster, Model, Network, Node, Operator, Output, Port, Stream
from levelwind.sim.driver import Run, simulate
from levelwind.sim.managing import make_manager
from levelwind.sim.scenario import Chains, Change, Named, Scenario
from levelwind.sim.scenario_file import parse_scenario
from levelwind.sim.workloads import Poisson


def racks(count, size):
    nodes = [Node(name=f"r{g}n{k}", properties={"rack": f"r{g}"}) for g in range(count) for k in range(size)]
    return Cluster(nodes=tuple(nodes))


def queries(rates, length=3, cost=1e-3):
    """A chain on each stream; every row comes out again."""
    operators = {}
    for number in range(len(rates)):
        for place in range(length):
            reads = f"I{number}" if place == 0 else f"q{number}o{place - 1}"
            name = f"q{number}o{place}"
            operators[name] = Operator(
                name=name, spec=Model(), inputs=(Port(source=reads),), cost_s=cost, selectivity=1.0
            )
    streams = {f"I{k}": Stream(name=f"I{k}", rate=(float(rate),)) for k, rate in enumerate(rates)}
    return Network(streams=streams, operators=operators)


def scenario(network, cluster, **changes):
    given = {
        "workload": Poisson(),
        "groups": "rack",
        "window_s": 5.0,
        "samples": 5,
        "warmup_s": 5.0,
        "duration_s": 20.0,
    }
    return Scenario(network=network, cluster=cluster, **(given | changes))


def test_a_query_moves_between_groups_while_data_flows_and_nothing_is_lost():
    """All queries begin in the first of two groups, which is nearly full."""
    network, cluster = queries([100.0] * 8), racks(2, 2)
    start = {name: f"r0n{k % 2}" for k, name in enumerate(network.operators)}
    tops = []

    def make(*arguments):
        tops.append(make_manager(*arguments))
        return tops[0]

    run = Run(scenario(network, cluster, start=start), manager=make)
    outcome = run.outcome()
    assert isinstance(tops[0], TopManager)
    assert {move.target[:2] for move in outcome.moves} == {"r1"}
    moved = {move.operator[:2] for move in outcome.moves}
    assert len(moved) >= 3
    assert len(outcome.moves) == 3 * len(moved)
    for query in range(8):
        assert len({outcome.placement[f"q{query}o{k}"][:2] for k in range(3)}) == 1
    # Rows do not branch and are not dropped: what came is out, or still inside.
    simulator = run.simulator
    arrived, first, last = simulator.arrived.sum(), simulator.taken[::3].sum(), simulator.taken[2::3].sum()
    assert arrived >= first >= last
    assert arrived - last == simulator.in_system


def test_groups_begin_and_are_planned_apart():
    for planner in (None, Named(name="llf"), Named(name="round_robin")):
        made = scenario(queries([50.0] * 9), racks(3, 2), planner=planner, policy=Named(name="balance"))
        outcome = simulate(made, seed=1)
        for query in range(9):
            assert len({outcome.placement[f"q{query}o{k}"][:2] for k in range(3)}) == 1


def test_a_plan_for_groups_leaves_immovable_operators_where_they_are():
    """Everything begins in one rack; the plan that follows the warm-up spreads what it may."""
    network = queries([50.0] * 4)
    operators = {n: replace(o, movable=n not in ("q0o1", "q1o0")) for n, o in network.operators.items()}
    start = dict.fromkeys(operators, "r0n1")
    made = scenario(
        replace(network, operators=operators), racks(2, 2), start=start, planner=Named(name="llf")
    )
    outcome = simulate(made, seed=1)
    assert outcome.placement["q0o1"] == outcome.placement["q1o0"] == "r0n1"
    assert set(outcome.placement.values()) == {"r0n0", "r0n1", "r1n0", "r1n1"}


def test_a_thousand_nodes_in_twenty_groups():
    network, cluster = queries([20.0] * 400, length=5), racks(20, 50)
    made = scenario(network, cluster, duration_s=5.0, policy=Named(name="balance"))
    outcome = simulate(made, seed=0)
    for query in range(400):
        assert len({outcome.placement[f"q{query}o{k}"].partition("n")[0] for k in range(5)}) == 1
    assert outcome.tuples > 30_000


def test_a_node_that_falls_silent_is_found_out():
    """Nobody tells the manager that a node is gone; after three periods without a heartbeat it knows."""
    made = scenario(
        Chains(chains=6, length=3),
        Cluster.equal(3),
        groups=None,
        load=0.5,
        silent_after_s=3.0,
        changes=(Change(at_s=4.0, lost="n2"),),
    )
    outcome = simulate(made, seed=2)
    assert set(outcome.placement.values()) == {"n1", "n3"}
    placed = [move.at_s for move in outcome.moves]
    assert placed
    assert all(6.5 <= at_s <= 9.0 for at_s in placed)
    told = simulate(
        Scenario(**{**{f: getattr(made, f) for f in made.__slots__}, "silent_after_s": None}), seed=2
    )
    assert all(move.at_s == pytest.approx(4.0) for move in told.moves)


def test_groups_need_a_property_that_all_nodes_state(tmp_path):
    (tmp_path / "cluster.yaml").write_text("nodes: [{name: a, properties: {rack: x}}, {name: b}]")
    text = "{generate: {chains: 1, length: 1}, cluster: cluster.yaml, load: 0.5, groups: rack}"
    with pytest.raises(InputError, match="every node of the cluster states"):
        parse_scenario(text, base=tmp_path)


def test_a_node_joins_the_group_that_it_states(tmp_path):
    """Read from a file: operators move to it, and no query stands in two racks."""
    rack = "{name: r0n0, properties: {rack: r0}}, {name: r1n0, properties: {rack: r1}}"
    (tmp_path / "cluster.yaml").write_text(f"nodes: [{rack}]")
    text = """
generate: {chains: 6, length: 2}
cluster: cluster.yaml
load: 0.5
groups: rack
policy: balance
duration: 20s
events: [{at: 5s, joined: {name: r1n1, properties: {rack: r1}}}]
"""
    outcome = simulate(parse_scenario(text, base=tmp_path).scenario, seed=1)
    assert "r1n1" in outcome.placement.values()
    for chain in range(1, 7):
        assert len({outcome.placement[f"c{chain}o{k}"][:2] for k in (1, 2)}) == 1


def silent(network, cluster, lost, **changes):
    """Everything begins in the first rack; nodes are lost without a word."""
    start = {name: f"r0n{k % 2}" for k, name in enumerate(network.operators)}
    given = {"start": start, "silent_after_s": 3.0, "duration_s": 30.0}
    told = tuple(Change(at_s=at_s, lost=node) for node, at_s in lost.items())
    return scenario(network, cluster, changes=told, **(given | changes))


def test_a_rack_that_falls_silent_is_cleared():
    """Queries have moved to the second rack when it goes dark: they run in the first again."""
    network, cluster = queries([100.0] * 8), racks(2, 2)
    made = silent(network, cluster, {"r1n0": 12.0, "r1n1": 12.0})
    outcome = simulate(made, seed=3)
    assert any(move.target[:2] == "r1" and move.at_s < 12.0 for move in outcome.moves)
    assert {node[:2] for node in outcome.placement.values()} == {"r0"}
    assert set(outcome.placement) == set(network.operators)


@pytest.mark.parametrize("node", ["r0n0", "r0n1", "r1n0", "r1n1"])
@pytest.mark.parametrize("told", [True, False])
def test_a_node_lost_while_queries_are_on_their_way(node, told):
    """Moves between racks take two seconds; the node is lost in the middle of the first ones."""
    network, cluster = queries([100.0] * 8), racks(2, 2)
    first = min(move.at_s for move in simulate(silent(network, cluster, {}), seed=3).moves)
    silence = None if told else 3.0
    made = silent(network, cluster, {node: first + 0.5}, silent_after_s=silence, migration_s=2.0)
    outcome = simulate(made, seed=3)
    assert set(outcome.placement) == set(network.operators)
    assert node not in outcome.placement.values()
    for query in range(8):
        assert len({outcome.placement[f"q{query}o{k}"][:2] for k in range(3)}) == 1


class Listening:
    """Stands before a manager and keeps the reports."""

    def __init__(self, manager):
        self.manager, self.reports = manager, []
        self.statistics = manager.statistics

    def handle(self, event):
        if isinstance(event, StatisticsReported):
            self.reports.append(event)
        return self.manager.handle(event)


@pytest.mark.parametrize("policy", [None, "balance", "degradation"])
def test_queries_come_and_go_in_groups(policy):
    """One is not there at first, one goes and comes back, and a rack is lost in between."""
    network = queries([50.0] * 6)
    ends = {f"q{k}": Output(name=f"q{k}", input=Port(source=f"q{k}o2")) for k in range(6)}
    network = Network(streams=network.streams, operators=network.operators, outputs=ends)
    changes = (
        Change(at_s=4.0, added=("q5",)),
        Change(at_s=6.0, removed=("q0",)),
        Change(at_s=8.0, lost="r1n0"),
        Change(at_s=8.0, lost="r1n1"),
        Change(at_s=12.0, added=("q0",), removed=("q1",)),
    )
    options = {"cost": "output_rate"} if policy == "degradation" else {}
    made = scenario(
        network, racks(3, 2), changes=changes, policy=policy and Named(name=policy, options=options)
    )
    heard = []

    def make(*arguments):
        heard.append(Listening(make_manager(*arguments)))
        return heard[0]

    outcome = simulate(made, seed=4, manager=make)
    assert {name[:2] for name in outcome.placement} == {"q0", "q2", "q3", "q4", "q5"}
    for query in (0, 2, 3, 4, 5):
        assert len({outcome.placement[f"q{query}o{k}"][:2] for k in range(3)}) == 1
    assert "r1" not in {node[:2] for node in outcome.placement.values()}
    there = [{name[:2] for name in told.operators} for told in heard[0].reports]
    assert "q5" not in there[0]
    assert {"q0", "q1", "q5"} & there[-1] == {"q0", "q5"}


def test_reports_say_how_long_the_window_is():
    """Samples of 1 s, asked every 0.75 s: the window began 5 s before the end of the last sample."""
    made = scenario(queries([50.0] * 2), racks(1, 2), period_s=0.75, duration_s=6.0)
    heard = []

    def make(*arguments):
        heard.append(Listening(make_manager(*arguments)))
        return heard[0]

    simulate(made, manager=make)
    for told in heard[0].reports:
        since = (told.at_s - 5.0) % 1.0
        assert told.window_s == pytest.approx(told.series.shape[1] + since)


def test_a_spread_join_is_one_query_of_its_group():
    join = {
        "name": "m",
        "kind": "multijoin",
        "inputs": {"a": "p", "b": "q"},
        "windows": {"a": "2s", "b": "2s"},
        "cost": "50us",
        "selectivity": 0.001,
        "diffuse": {"instances": 3},
    }
    other = {"name": "v", "kind": "model", "input": "p", "cost": "10ms", "selectivity": 1}
    network = parse_network({"streams": {n: {"rate": 20} for n in "pq"}, "operators": [join, other]}).network
    run = Scenario(
        network=network,
        cluster=racks(2, 3),
        start="connected",
        groups="rack",
        policy=Named(name="llf_bal"),
        warmup_s=5.0,
        duration_s=10.0,
    )
    placement = simulate(run).placement
    assert len({node[:2] for name, node in placement.items() if name.startswith("m")}) == 1
