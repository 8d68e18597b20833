"""Scenarios from warm-up to outcome, with managers that follow a script."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sim_worlds import model, network

from levelwind.control.events import MoveDone, MoveFailed, NodeJoined, NodeLost, StatisticsReported
from levelwind.control.instructions import Alarm, Drop, Move, Place
from levelwind.errors import RunError
from levelwind.model import Cluster, Filter, Model, Node, Operator, Output, Port, Split, Stream
from levelwind.sim.driver import Run, simulate
from levelwind.sim.scenario import Chains, Change, Named, Scenario
from levelwind.sim.workloads import OnOff, Periodic

SMALL = Scenario(
    network=Chains(chains=6, length=5),
    cluster=Cluster.equal(3),
    workload=Periodic(),
    load=0.6,
    warmup_s=10.0,
    duration_s=20.0,
)


def changed(**keys):
    return replace(SMALL, **keys)


class Script:
    """A manager that keeps what it is told and answers by a function of event and number of its kind."""

    def __init__(self, answers=lambda event, count: ()):
        self.events, self.answers = [], answers

    def handle(self, event):
        self.events.append(event)
        return self.answers(event, sum(type(e) is type(event) for e in self.events))

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def run_with(scenario, answers=lambda event, count: (), seed=0):
    script = Script(answers)
    outcome = simulate(scenario, seed=seed, manager=lambda *_: script)
    return script, outcome


def test_statistics_come_every_period_as_the_rows_offered_ask():
    script, _ = run_with(changed(window_s=4.0, samples=8, period_s=2.0, load=1.5))
    reports = script.of(StatisticsReported)
    assert [report.at_s for report in reports] == pytest.approx(np.arange(10.0, 30.0, 2.0))
    for report in reports:
        assert report.operators[0] == "c1o1"
        assert report.series.shape == (30, 8)
    # At a load of 1.5 only two thirds get through; the ideal load is 1.5 all the same.
    total = np.mean([report.series.sum(axis=0).mean() for report in reports[2:]])
    assert total / 3 == pytest.approx(1.5, rel=0.1)


def test_moves_are_carried_out_and_told_when_they_are_done():
    def answers(event, count):
        if isinstance(event, StatisticsReported) and count == 3:
            here = run_placement["c1o1"]
            to = "n2" if here != "n2" else "n3"
            return (Move(operator="c1o1", source=here, target=to, reason="a test"),)
        return ()

    run = Run(changed(migration_s=0.25))
    run_placement = run.problem.placement(run.simulator.assignment)
    script, outcome = run_with(changed(migration_s=0.25), answers)
    (done,) = script.of(MoveDone)
    assert (done.operator, done.at_s) == ("c1o1", pytest.approx(12.25))
    (move,) = outcome.moves
    assert move.at_s == pytest.approx(2.0)
    assert (move.operator, move.source, move.reason) == ("c1o1", run_placement["c1o1"], "a test")
    assert outcome.placement["c1o1"] == move.target
    assert outcome.moved_load == move.load > 0


def test_what_cannot_be_done_is_told_at_once():
    def answers(event, count):
        if isinstance(event, StatisticsReported) and count == 1:
            moves = [("c1o1", "n9"), ("nobody", "n1"), ("c1o2", "n1"), ("c1o2", "n2"), ("c1o2", "n3")]
            wanted = [Move(operator=o, source="", target=t, reason="") for o, t in moves]
            return (*wanted, Alarm(text="look"), Drop(operator="c1o3", node="n1", reason=""))
        return ()

    script, outcome = run_with(SMALL, answers)
    reasons = [event.reason for event in script.of(MoveFailed)]
    assert reasons[:2] == ["n9 is not there", "there is no such operator"]
    assert len(outcome.moves) == 1
    assert {"it stands there already", "it is on its way already"} >= set(reasons[2:])
    assert len(reasons) == 4
    assert outcome.alarms == ("look",)


def test_a_lost_node_is_replaced_by_one_that_joins():
    homeless = []

    def answers(event, count):
        if isinstance(event, StatisticsReported) and count == 1:
            homeless.extend(event.operators)
        if isinstance(event, NodeJoined):
            return tuple(Place(operator=o, node="n4", reason="its node is gone") for o in homeless)
        return ()

    changes = (
        Change(at_s=5.0, lost="n2"),
        Change(at_s=6.5, joined=Node(name="n4", cpu=3.0)),
    )
    script, outcome = run_with(changed(changes=changes, duration_s=30.0), answers)
    assert [(e.at_s, e.node) for e in script.of(NodeLost)] == [(15.0, "n2")]
    assert [e.at_s for e in script.of(NodeJoined)] == [16.5]
    assert set(outcome.placement.values()) == {"n4"}
    lost = outcome.timeline.load[1]
    assert lost[:5].min() > 0.2
    assert np.isnan(lost[5:]).all()
    assert np.isnan(outcome.timeline.load[3, :6]).all()
    assert outcome.timeline.load[3, 8:].min() > 0.2
    assert outcome.timeline.queued[-1] < 50
    assert np.isfinite([outcome.load_std, outcome.load_spread, outcome.held_out_load_std]).all()


@pytest.mark.parametrize("silent_after_s", [None, 2.0])
def test_a_node_that_comes_back_is_used_again(silent_after_s):
    """When the other nodes are lost, all that there is stands on it."""
    changes = (
        Change(at_s=3.0, lost="n1"),
        Change(at_s=7.0, joined=Node(name="n1")),
        Change(at_s=11.0, lost="n2"),
    )
    scenario = changed(cluster=Cluster.equal(3), load=0.2, changes=changes, silent_after_s=silent_after_s)
    outcome = simulate(scenario, seed=1)
    assert set(outcome.placement.values()) == {"n1", "n3"}
    assert len(outcome.placement) == 30


def test_a_clean_start_has_the_plan_in_place_and_nothing_waiting():
    # The start is overloaded by far: without clearing, its backlog would rule the latencies.
    everything = {f"c{c}o{k}": "n1" for c in range(1, 7) for k in range(1, 6)}
    found = {}
    for clean in (True, False):
        found[clean] = simulate(changed(start=everything, planner=Named(name="llf"), clean=clean))
    assert found[True].latency_mean_s < 0.1 < found[False].latency_mean_s
    assert found[True].moves == ()
    assert 15 <= len(found[False].moves) < 30
    assert found[True].placement == found[False].placement
    assert len(set(found[True].placement.values())) == 3


def test_without_planner_and_policy_the_start_stays():
    start = {f"c{c}o{k}": f"n{(c + k) % 3 + 1}" for c in range(1, 7) for k in range(1, 6)}
    outcome = simulate(changed(start=start))
    assert outcome.placement == start
    assert outcome.moves == ()
    assert outcome.moved_load == 0.0


def test_connected_start_puts_every_chain_on_one_node():
    outcome = simulate(changed(start="connected"))
    for c in range(1, 7):
        assert len({outcome.placement[f"c{c}o{k}"] for k in range(1, 6)}) == 1
    assert sorted(np.unique(list(outcome.placement.values()), return_counts=True)[1]) == [10, 10, 10]


def test_random_start_deals_operators_out_evenly_and_by_the_seed():
    placements = [simulate(SMALL, seed=seed).placement for seed in (1, 1, 2)]
    assert placements[0] == placements[1] != placements[2]
    assert sorted(np.unique(list(placements[0].values()), return_counts=True)[1]) == [10, 10, 10]


def test_planners_get_the_same_rows_under_one_seed():
    tuples = [simulate(changed(planner=Named(name=name), clean=True), seed=3) for name in ("llf", "random")]
    one, other = tuples
    np.testing.assert_allclose(one.timeline.load.sum(axis=0), other.timeline.load.sum(axis=0))
    assert one.placement != other.placement


def test_same_seed_same_run():
    scenario = changed(planner=Named(name="llf"), workload=OnOff())
    hashes = [simulate(scenario, seed=seed).trace_hash for seed in (5, 5, 6)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_held_out_measures_are_of_the_samples_that_follow():
    scenario = changed(planner=Named(name="correlation"), clean=True, duration_s=60.0)
    outcome = simulate(scenario, seed=1)
    lived = outcome.timeline.load
    assert lived.shape == (3, 60)
    assert outcome.held_out_load_std == pytest.approx(lived.std(axis=1).mean())
    assert outcome.held_out_load_std != outcome.load_std
    assert outcome.load_std >= outcome.load_std_bound


def test_a_plan_that_cannot_be_made_is_a_failed_run():
    pinned = network(
        model("a", "I", table="t", pinned="n1"),
        model("b", "I", table="t", pinned="n2"),
        streams=(Stream(name="I", rate=(50.0,)),),
    )
    start = {"a": "n1", "b": "n2"}
    with pytest.raises(RunError, match="llf has no plan: infeasible"):
        simulate(changed(network=pinned, start=start, load=None, planner=Named(name="llf")))


def test_a_stated_load_series_is_seen_by_planners_and_measures():
    heavy = Operator(name="s", spec=Model(series=(0.2, 0.6)))
    net = network(model("a", "I"), model("b", "I"), heavy, streams=(Stream(name="I", rate=(100.0,)),))
    outcome = simulate(changed(network=net, load=None, planner=Named(name="llf"), clean=True))
    alone = outcome.placement["s"]
    assert [name for name, node in outcome.placement.items() if node == alone] == ["s"]
    load = outcome.timeline.load[int(alone[1]) - 1]
    np.testing.assert_allclose(load, np.tile([0.2, 0.6], 10), atol=0.002)


def test_samples_begin_when_recording_does():
    outcome = simulate(changed(warmup_s=10.3, duration_s=7.0))
    np.testing.assert_allclose(outcome.timeline.at_s, np.arange(1.0, 8.0))


def test_a_thousand_nodes_run():
    scenario = changed(
        network=Chains(chains=1000, length=3), cluster=Cluster.equal(1000), warmup_s=1.0, window_s=1.0,
        samples=2, duration_s=2.0, load=0.5,
    )  # fmt: skip
    script, outcome = run_with(scenario)
    assert outcome.tuples > 100_000
    assert script.of(StatisticsReported)[0].series.shape == (3000, 2)


@pytest.mark.parametrize("outputs", [(), ("b", "c")])
def test_rows_are_counted_once_whoever_reads_them(outputs):
    """Half of the routes is read by nobody, the other half whole and by two instances."""
    routed = Operator(
        name="a",
        spec=Filter(routes={"x": "true", "y": "true"}),
        inputs=(Port(source="I"),),
        cost_s=1e-3,
        route_selectivity={"x": 0.25, "y": 0.25},
    )
    reads = [Operator(name=n, spec=Model(), inputs=(Port(source="a", route="x"),), cost_s=1e-3) for n in "bc"]
    reads[1] = replace(reads[1], split=Split(into=2))
    net = network(
        routed,
        *reads,
        streams=(Stream(name="I", rate=(100.0,)),),
        outputs={name: Output(name=name, input=Port(source=name)) for name in outputs},
    )
    script = Script()
    script.statistics = {"rows_in", "rows_out"}
    scenario = changed(network=net, load=None, workload=None, period_s=10.0)
    simulate(scenario, seed=0, manager=lambda *_: script)
    seen = script.of(StatisticsReported)[-1].seen
    assert seen["rows_in"] == pytest.approx([100.0, 25.0, 12.5, 12.5], rel=0.05)
    assert seen["rows_out"][0] == pytest.approx(50.0, rel=0.05)
