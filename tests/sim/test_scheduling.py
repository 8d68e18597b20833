"""Rules inside a node: the kernel against a plain list of rows, and Chain against its definition."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.errors import InputError
from levelwind.loads.problem import make_problem
from levelwind.model import Cluster, Model, Network, Operator, Port, Stream
from levelwind.plugins import option
from levelwind.sim.arrivals import Arrivals
from levelwind.sim.chain import chain_ranks, envelope_slopes
from levelwind.sim.driver import simulate
from levelwind.sim.layout import Choices
from levelwind.sim.scenario_file import parse_scenario
from levelwind.sim.scheduling import Lap, Order, make_scheduler
from levelwind.sim.simulator import Simulator
from levelwind.sim.tables import Law, Rule, TraceKind


def chains(*chains):
    """Chains of (cost, selectivity), each on a stream of its own."""
    operators, streams = {}, {}
    for number, boxes in enumerate(chains):
        streams[f"I{number}"] = Stream(name=f"I{number}", rate=(1.0,))
        before = f"I{number}"
        for place, (cost, selectivity) in enumerate(boxes):
            name = f"c{number}o{place}"
            operators[name] = Operator(
                name=name, spec=Model(), inputs=(Port(source=before),), cost_s=cost, selectivity=selectivity
            )
            before = name
    return Network(streams=streams, operators=operators)


def simulated(network, times, rule, ranks=None):
    """(time, operator) of every row worked off on one node, and the credits that flows began with."""
    problem = make_problem(network, Cluster.equal(1))
    pieces = []
    arrivals = {
        name: Arrivals(law=Law.GIVEN, times_s=np.array(own), cycle_s=1e9)
        for name, own in zip(network.streams, times, strict=True)
    }
    placement = dict.fromkeys(network.operators, "n1")
    simulator = Simulator(
        problem,
        arrivals,
        placement,
        horizon_s=1e6,
        choices=Choices(queues="node" if rule is Rule.FIFO else "operator"),
        trace=pieces.append,
    )
    credits = dict(
        zip(simulator.plumbing.flows, simulator.plumbing.tables.flows["credit"].tolist(), strict=True)
    )
    if rule is not Rule.FIFO:
        simulator.schedule(rule, ranks)
    simulator.advance(1e6)
    simulator.flush_trace()
    trace = np.concatenate(pieces)
    done = trace[trace["kind"] == TraceKind.FINISHED]
    return [(float(row["at_s"]), int(row["what"])) for row in done], credits, simulator


def by_hand(network, times, rule, ranks, credits):
    """The same, from lists."""
    names = list(network.operators)
    reader = {o.inputs[0].source: k for k, o in enumerate(network.operators.values())}
    coming = sorted((t, reader[s]) for s, own in zip(network.streams, times, strict=True) for t in own)
    waiting, turns, done, now, number, credit = [], [], [], 0.0, 0, dict(credits)

    def wait(operator, born):
        nonlocal number
        waiting.append((number, operator, born))
        if operator not in turns:
            turns.append(operator)
        number += 1

    while coming or waiting:
        if not waiting:
            now = max(now, coming[0][0])
        while coming and coming[0][0] <= now:
            wait(coming[0][1], coming.pop(0)[0])
        if rule is Rule.TURN:
            operator = turns[0]
        elif rule is Rule.RANK:
            operator = min(waiting, key=lambda row: (-ranks[row[1]], row[2], row[0]))[1]
        else:
            operator = min(waiting)[1]
        row = min(row for row in waiting if row[1] == operator)
        waiting.remove(row)
        turns.remove(operator)
        if any(other == operator for _, other, _ in waiting):
            turns.append(operator)
        end = now + network.operators[names[operator]].cost_s
        while coming and coming[0][0] < end:
            wait(coming[0][1], coming.pop(0)[0])
        now = end
        done.append((now, operator))
        name = names[operator]
        if name in reader:
            credit[name] += network.operators[name].selectivity
            rows = int(credit[name])
            credit[name] -= rows
            for _ in range(rows):
                wait(reader[name], row[2])
    return done


worlds = st.lists(
    st.lists(
        st.tuples(st.sampled_from([0.25, 0.5, 0.75, 1.25]), st.sampled_from([0.2, 0.5, 1.0, 1.5])),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=40)
@given(worlds, st.data())
def test_the_kernel_serves_as_the_rules_say(boxes, data):
    network = chains(*boxes)
    # No two rows come at one moment, nor one when another is done: which is first is not what is tested.
    # Costs are whole milliseconds, and every row comes so many hundredths of one after a whole one.
    moments, number = st.lists(st.integers(0, 6000), min_size=1, max_size=6), count(1)
    times = [sorted(1e-3 * ms + 1.234567e-5 * next(number) for ms in data.draw(moments)) for _ in boxes]
    ranks = np.array([data.draw(st.sampled_from([0.0, 1.0, 2.0])) for _ in network.operators])
    for rule in (Rule.OLDEST, Rule.TURN, Rule.RANK):
        found, credits, _ = simulated(network, times, rule, ranks)
        expected = by_hand(network, times, rule, ranks, credits)
        assert [operator for _, operator in found] == [operator for _, operator in expected]
        assert [at for at, _ in found] == pytest.approx([at for at, _ in expected])
    oldest, fifo = (simulated(network, times, rule)[0] for rule in (Rule.OLDEST, Rule.FIFO))
    assert oldest == fifo


@given(st.lists(st.tuples(st.floats(0.1, 2.0), st.floats(0.0, 1.0)), min_size=1, max_size=5))
def test_slopes_are_those_of_the_lower_envelope(boxes):
    costs, sizes = np.array([c for c, _ in boxes]), np.array([s for _, s in boxes])
    sizes[-1] = 0.0
    found = envelope_slopes(costs, sizes)
    # They fall from segment to segment, and the envelope lies below every point.
    assert (np.diff(found) <= 1e-9).all()
    height = 1.0 - np.cumsum(found * costs)
    assert (height <= sizes + 1e-9).all()
    assert height[-1] == pytest.approx(0.0, abs=1e-9)
    # Where the slope changes it touches a point, so no line that lies below all points is higher.
    for k in np.flatnonzero(np.diff(found) < -1e-9):
        assert height[k] == pytest.approx(sizes[k], abs=1e-9)


def test_chain_on_two_operators():
    """The first frees 0.8 of a row in a second, the second the fifth that is left, in a second: 5 s a row.

    A row comes every second, just before the one before it is done.
    """
    network = chains([(1.0, 0.2), (5.0, 0.0)])
    ranks = chain_ranks(make_problem(network, Cluster.equal(1)))
    assert ranks.tolist() == pytest.approx([0.8, 0.2])
    times = [[0.0, 0.9, 1.9, 2.9, 3.9]]
    served, _, _ = simulated(network, times, Rule.RANK, ranks)
    # By its definition Chain works off all first operators before any second.
    assert [operator for _, operator in served][:5] == [0] * 5


def test_chain_holds_fewer_rows_than_first_come_first_served():
    """A burst through a chain whose first operator frees nearly all: rows that wait, at every moment."""
    network = chains([(1.0, 0.1), (1.0, 1.0)], [(1.0, 1.0), (1.0, 1.0)])
    times = [[k / 10 for k in range(20)], [k / 10 + 0.05 for k in range(20)]]
    ranks = chain_ranks(make_problem(network, Cluster.equal(1)))
    held = {}
    for rule in (Rule.RANK, Rule.OLDEST, Rule.TURN):
        waiting = []
        problem = make_problem(network, Cluster.equal(1))
        arrivals = {
            name: Arrivals(law=Law.GIVEN, times_s=np.array(own), cycle_s=1e9)
            for name, own in zip(network.streams, times, strict=True)
        }
        simulator = Simulator(
            problem, arrivals, dict.fromkeys(network.operators, "n1"), horizon_s=1e6,
            choices=Choices(queues="operator"),
        )  # fmt: skip
        simulator.schedule(rule, ranks)
        for second in range(1, 70):
            simulator.advance(float(second))
            waiting.append(simulator.in_system)
        held[rule] = sum(waiting)
    assert held[Rule.RANK] < 0.9 * held[Rule.TURN]
    assert held[Rule.RANK] < 0.75 * held[Rule.OLDEST]


@pytest.mark.parametrize("scheduling", ["fifo", "round_robin", "chain", "adaptive"])
def test_scenarios_name_a_scheduler(scheduling):
    text = f"""
generate: {{chains: 4, length: 3}}
nodes: 2
load: 0.7
duration: 20s
scheduling: {scheduling}
events: [{{at: 5s, lost: n1}}]
"""
    outcome = simulate(parse_scenario(text).scenario, seed=3)
    again = simulate(parse_scenario(text).scenario, seed=3)
    assert outcome.trace_hash == again.trace_hash
    assert outcome.tuples > 1000
    figures = outcome.as_dict()
    assert figures["rows_held"]["peak"] >= figures["rows_held"]["mean"] > 0
    assert figures["output_rate"] == pytest.approx(outcome.tuples / 20, rel=0.2)
    if scheduling == "fifo":
        plain = simulate(parse_scenario(text.replace("scheduling: fifo", "")).scenario, seed=3)
        assert plain.trace_hash == outcome.trace_hash


def outcomes():
    """What the same rows come to on one node under each scheduler."""
    text = """
generate: {chains: 4, length: 3, selectivity: [0.2, 0.9]}
nodes: 1
load: 0.9
workload: {kind: periodic}
duration: 20s
"""
    found = {}
    for name in ("fifo", "round_robin", "chain", "adaptive"):
        found[name] = simulate(parse_scenario(text + f"scheduling: {name}").scenario, seed=3)
    return found


def test_schedulers_do_what_they_are_named_for():
    """Same rows, other orders: none acts as another, and on one node none holds fewer rows than Chain."""
    found = outcomes()
    assert len({outcome.trace_hash for outcome in found.values()}) == 4
    held = {name: outcome.as_dict()["rows_held"]["mean"] for name, outcome in found.items()}
    assert held["chain"] < 0.9 * held["fifo"]
    assert held["chain"] == min(held.values())
    # It tries all, and stays with what did well.
    assert held["chain"] < held["adaptive"] < held["fifo"]


def test_a_third_partys_scheduler_is_found_by_its_entry_point(bring):
    """One that ranks operators as told, in turns with first come, first served."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class RankScheduler:
        name: ClassVar[str] = "ranks"
        summary: ClassVar[str] = "last or first operators of each chain first, every other sample"
        origin: ClassVar[str] = "tests"

        last: bool = option(True, "whether later operators come first")

        def orders(self, problem):
            ranks = np.arange(len(problem.physical.names), dtype=float)
            return (Order(Rule.RANK, ranks if self.last else -ranks), Order(Rule.OLDEST))

        def choose(self, laps, *, rng):
            asked.append(len(laps))
            return len(laps) % 2

    asked = []

    bring("levelwind.schedulers", ranks=RankScheduler)
    head = "generate: {chains: 2, length: 3}\nnodes: 1\nload: 0.9\nduration: 10s\nscheduling: "
    traces = set()
    for text in ("ranks", "{name: ranks, last: false}", "fifo"):
        outcome = simulate(parse_scenario(head + text).scenario, seed=3)
        assert outcome.tuples > 1000
        traces.add(outcome.trace_hash)
    assert len(traces) == 3
    assert max(asked) == 10  # after every sample of the recording
    with pytest.raises(InputError) as caught:
        parse_scenario(head + "{name: ranks, lst: false}")
    assert caught.value.problems[0].key == "scheduling.lst"
    with pytest.raises(InputError) as caught:
        parse_scenario(head + "rank")
    assert caught.value.problems[0].hint == "did you mean 'ranks'?"


def test_an_unknown_scheduler_is_named():
    with pytest.raises(InputError, match="must name a scheduler"):
        parse_scenario(
            {"generate": {"chains": 1, "length": 1}, "nodes": 1, "load": 0.5, "scheduling": "chian"}
        )


def test_one_good_sample_does_not_undo_a_bad_one():
    """The worst sample of all scores 0, which is a score: what follows is weighed against it."""
    scheduler, rng = make_scheduler("adaptive", {"memory": 0.9}), np.random.default_rng(0)
    laps = [Lap(0, 100.0, 1.0), Lap(1, 50.0, 1.0), Lap(2, 50.0, 1.0), Lap(0, 0.0, 1.0)]
    chosen = np.bincount([scheduler.choose(laps, rng=rng) for _ in range(2000)], minlength=3)
    assert chosen / 2000 == pytest.approx([0.1 / 1.1, 0.5 / 1.1, 0.5 / 1.1], abs=0.05)


def test_adaptive_tries_all_and_then_favours_what_did_well():
    scheduler, rng = make_scheduler("adaptive"), np.random.default_rng(0)
    laps = []
    for _ in range(3):
        used = scheduler.choose(laps, rng=rng)
        laps.append(Lap(used, {0: 100.0, 1: 90.0, 2: 10.0}[used], 1.0))
    assert {lap.used for lap in laps} == {0, 1, 2}
    chosen = [scheduler.choose(laps, rng=rng) for _ in range(300)]
    assert np.bincount(chosen, minlength=3)[2] > 200
    by_rate = make_scheduler("adaptive", {"goal": "output_rate"})
    laps = [Lap(0, 1.0, 5.0), Lap(1, 1.0, 1.0), Lap(2, 1.0, 1.0)]
    assert np.bincount([by_rate.choose(laps, rng=rng) for _ in range(300)], minlength=3)[0] > 200
