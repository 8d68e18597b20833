"""Queries that come and go in a simulation leave the others as they are without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_worlds import model, network

from levelwind.control.events import QueryAdded, QueryRemoved
from levelwind.control.instructions import Place
from levelwind.model import Cluster, Output, Port, Stream
from levelwind.rewrite.removal import without
from levelwind.sim.driver import Run
from levelwind.sim.scenario import Change, Named, Scenario
from levelwind.sim.tables import TraceKind
from levelwind.sim.workloads import Recorded

WARMUP, DURATION = 10.0, 20.0
# Ten rows a second at stated times, no chance anywhere: two simulations can be compared row by row.
EVENLY = Recorded(columns=(tuple(np.arange(0.05, 10.0, 0.1).tolist()),), times=True)


STREAM = Stream(name="I", rate=(10.0,))


def outputs(*names):
    return {name: Output(name=name, input=Port(source=name)) for name in names}


def queries():
    """Three that read one stream, each on a node of its own; the tail of each bears its name."""
    operators = []
    for number, name in enumerate(("a", "b", "c"), start=1):
        node = f"n{number}"
        operators.append(model(f"{name}_head", "I", cost=2e-2, pinned=node))
        operators.append(model(name, f"{name}_head", cost=3e-2, pinned=node))
    return network(*operators, streams=(STREAM,), outputs=outputs("a", "b", "c"))


def twins():
    """Three with an equal head on the first node, and tails of their own on others."""
    operators = []
    for number, name in enumerate(("a", "b", "c"), start=2):
        operators.append(model(f"{name}_head", "I", cost=2e-2, pinned="n1"))
        operators.append(model(name, f"{name}_head", cost=number * 1e-2, pinned=f"n{number}"))
    return network(*operators, streams=(STREAM,), outputs=outputs("a", "b", "c"))


def scenario(net, *changes, **more):
    cluster = Cluster.equal(4)
    start = {name: operator.pinned or "n1" for name, operator in net.operators.items()}
    return Scenario(
        network=net, cluster=cluster, workload=EVENLY, start=start, changes=changes,
        warmup_s=WARMUP, duration_s=DURATION, **more,
    )  # fmt: skip


def traced(told, **more):
    """The run when it is over, and all that happened: (time, what, name)."""
    pieces = []
    run = Run(told, trace=pieces.append, **more)
    outcome = run.outcome()
    plumbing, operators = run.simulator.plumbing, run.problem.physical.names
    names = {TraceKind.RESULT: plumbing.flows, TraceKind.ARRIVED: plumbing.sources}
    found = []
    for row in np.concatenate(pieces):
        kind = TraceKind(int(row["kind"]))
        found.append((float(row["at_s"]), kind, names.get(kind, operators)[row["what"]]))
    return run, outcome, found


def of(events, *queries, kinds=(TraceKind.FINISHED, TraceKind.RESULT)):
    return [event for event in events if event[1] in kinds and event[2].partition("_")[0] in queries]


def results(events, query):
    return [at_s for at_s, _, _ in of(events, query, kinds=(TraceKind.RESULT,))]


def test_the_others_are_as_without_it_and_it_is_there_for_its_time():
    _, _, alone = traced(scenario(without(queries(), ["c"])))
    changes = (Change(at_s=5.0, added=("c",)), Change(at_s=12.0, removed=("c",)))
    run, outcome, events = traced(scenario(queries(), *changes))
    assert of(events, "a", "b") == of(alone, "a", "b")
    there = np.array(results(events, "c"))
    assert there.min() > WARMUP + 5.0
    assert there.max() < WARMUP + 12.0
    assert len(there) == pytest.approx(70, abs=2)  # ten rows a second
    load = outcome.timeline.load[2]
    assert load[:5] == pytest.approx(0.0)
    # A sample is judged under the placement at its beginning: what comes counts from the next on.
    assert load[6:12] == pytest.approx(0.5)
    assert load[12:] == pytest.approx(0.0)
    assert outcome.moves == ()
    assert set(outcome.placement) == {"a", "a_head", "b", "b_head"}
    assert (run.simulator.assignment >= 0).tolist() == [True] * 4 + [False] * 2


def test_it_may_go_first_and_come_back():
    _, _, alone = traced(scenario(without(queries(), ["b"])))
    changes = (
        Change(at_s=3.0, removed=("b",)),
        Change(at_s=8.0, added=("b",)),
        Change(at_s=15.0, removed=("b",)),
    )
    _, _, events = traced(scenario(queries(), *changes))
    assert of(events, "a", "c") == of(alone, "a", "c")
    there = np.array(results(events, "b")) - WARMUP
    assert not ((there > 3.0) & (there < 8.0)).any()
    assert len(there[(there > 8.0) & (there < 15.0)]) == pytest.approx(70, abs=2)
    assert not (there > 15.0).any()


def test_a_shared_operator_stays_as_long_as_one_query_uses_it():
    _, _, alone = traced(scenario(without(twins(), ["a", "b"])))
    # The first in the file computes for all, and goes first.
    changes = (
        Change(at_s=4.0, removed=("a",)),
        Change(at_s=9.0, removed=("b",)),
        Change(at_s=12.0, added=("a",)),
        Change(at_s=14.0, removed=("c",)),
    )
    run, outcome, events = traced(scenario(twins(), *changes, reuse=True))
    assert set(run.problem.physical.names) == {"a_head", "a", "b", "c"}
    before = [at_s for at_s in results(alone, "c") if at_s < WARMUP + 14.0]
    assert results(events, "c") == before
    heads = [at_s for at_s, kind, name in events if name == "a_head" and kind is TraceKind.FINISHED]
    assert len(heads) == pytest.approx(10 * (WARMUP + DURATION), abs=2)
    assert outcome.timeline.load[0] == pytest.approx(0.2)
    there = np.array(results(events, "a")) - WARMUP
    assert not ((there > 4.0) & (there < 12.0)).any()
    assert there.max() > DURATION - 1.0


def test_a_shared_operator_goes_with_the_last_query_that_used_it():
    net = twins()
    more = model("d", "I", cost=1e-2, pinned="n4")
    net = network(*net.operators.values(), more, streams=(STREAM,), outputs={**net.outputs, **outputs("d")})
    changes = tuple(
        Change(at_s=at_s, removed=(name,)) for at_s, name in ((4.0, "a"), (9.0, "b"), (13.0, "c"))
    )
    _, outcome, _ = traced(scenario(net, *changes, reuse=True))
    load = outcome.timeline.load[0]
    assert load[:13] == pytest.approx(0.2)
    assert load[13:] == pytest.approx(0.0)
    assert set(outcome.placement) == {"d"}


class Answering:
    """A manager that puts everything new on one node, and keeps what it was told."""

    def __init__(self, node):
        self.node, self.told = node, []

    def handle(self, event):
        if isinstance(event, QueryAdded | QueryRemoved):
            self.told.append(event)
        if isinstance(event, QueryAdded):
            return tuple(Place(operator=name, node=self.node, reason="") for name in event.loads)
        return ()


def test_the_manager_is_told_and_says_where_operators_begin():
    manager = Answering("n4")
    changes = (Change(at_s=5.0, added=("c",)), Change(at_s=12.0, removed=("a", "c")))
    _, outcome, _ = traced(scenario(queries(), *changes), manager=lambda *_: manager)
    added, removed = manager.told
    assert added.at_s == WARMUP + 5.0
    assert added.loads == {"c_head": pytest.approx(0.2), "c": pytest.approx(0.3)}
    assert set(added.network.outputs) == {"a", "b", "c"}
    assert set(removed.network.operators) == {"b_head", "b"}
    assert outcome.timeline.load[3][6:12] == pytest.approx(0.5)
    assert outcome.moves == ()


@settings(max_examples=15)
@given(
    data=st.data(),
    latency=st.sampled_from([0.0, 350.0]),
    busy=st.booleans(),
    scheduling=st.sampled_from([None, "round_robin"]),
)
def test_no_row_is_left_behind(data, latency, busy, scheduling):
    """However queries come and go, in the end only rows of those that are there are in the system."""
    net = twins() if data.draw(st.booleans()) else queries()
    if busy:  # queues grow without end
        net = replace(net, operators={n: replace(o, cost_s=0.15) for n, o in net.operators.items()})
    absent, changes = set(), []
    for number in range(data.draw(st.integers(1, 6))):
        name = data.draw(st.sampled_from(["a", "b"]))
        if name in absent:
            changes.append(Change(at_s=2.0 * number + 1.0, added=(name,)))
        else:
            changes.append(Change(at_s=2.0 * number + 1.0, removed=(name,)))
        absent ^= {name}
    told = scenario(net, *changes, reuse=True, scheduling=scheduling and Named(name=scheduling))
    matrix = tuple(tuple(0.0 if i == j else latency for j in range(4)) for i in range(4))
    told = replace(told, cluster=replace(told.cluster, latency_ms=matrix))
    run = Run(told)
    outcome = run.outcome()
    simulator = run.simulator
    simulator.sweep()
    there = simulator.assignment >= 0
    names = {name for name, here in zip(run.problem.physical.names, there.tolist(), strict=True) if here}
    assert {"c"} <= names == set(outcome.placement)
    assert names & {"a", "b"} == {"a", "b"} - absent
    held = simulator.held_bytes  # rows have no stated size: each counts 1
    assert held[~there].sum() <= 4  # at most what each node has in service
    # What is neither waiting nor in service is on the network, and only where that takes time.
    assert held.sum() <= simulator.in_system
    assert held.sum() == simulator.in_system or latency
