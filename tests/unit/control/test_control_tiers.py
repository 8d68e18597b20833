"""Managers of managers: no query in two groups, no group sees another's operators, nothing is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.balance import make_policy
from levelwind.control import TopManager
from levelwind.control.allotment import tiered_plan
from levelwind.control.events import (
    Heartbeat,
    LatencyMeasured,
    MoveDone,
    MoveFailed,
    NodeJoined,
    NodeLost,
    OperatorMoved,
    PlanProposed,
    QueryAdded,
    QueryRemoved,
    StatisticsReported,
)
from levelwind.control.instructions import Alarm, AskAgain, Move, Place
from levelwind.control.queries import allotted, part_of, queries_of
from levelwind.errors import InputError
from levelwind.model import Cluster, Model, Network, Node, Operator, Port, Stream


def chains(loads, **traits):
    """One query of two operators for each load."""
    operators = []
    for number, load in enumerate(loads):
        spec = Model(series=(load / 2, load / 2))
        operators += [
            Operator(name=f"q{number}a", spec=spec, **traits),
            Operator(name=f"q{number}b", spec=spec, inputs=(Port(source=f"q{number}a"),), **traits),
        ]
    return Network(streams={"I": Stream(name="I", rate=(1.0,))}, operators={o.name: o for o in operators})


def cluster(*sizes):
    nodes = [
        Node(name=f"{group}{k}", properties={"rack": group})
        for group, size in zip("xyz", sizes, strict=False)
        for k in range(size)
    ]
    return Cluster(nodes=tuple(nodes))


def managed(network, nodes, placement=None, policy=None, **options):
    placement = placement or tiered_plan(network, nodes, "rack", "llf")
    rng = np.random.default_rng(0)
    return TopManager(network, nodes, placement, groups="rack", policy=policy, rng=rng, **options)


def report(manager, loads, at_s=0.0):
    names = tuple(manager.network.operators)
    series = np.array([[loads[int(name[1:-1])] / 2] * 2 for name in names])
    return manager.handle(StatisticsReported(at_s=at_s, operators=names, series=series))


def whole(manager):
    """Every operator stands once, on a node of its query's group."""
    placement = manager.placement
    assert set(placement) == set(manager.network.operators)
    for query in queries_of(manager.network):
        assert len({placement[name][0] for name in query}) == 1
    for group, lower in manager.lower.items():
        assert all(node.startswith(group) for node in lower.nodes)
        assert all(placement[name][0] == group for name in lower.network.operators)
    seen = [set(lower.network.operators) for lower in manager.lower.values()]
    assert sum(map(len, seen)) == len(set().union(*seen))


def test_queries_are_what_feeds_each_other():
    network = chains([1.0, 1.0, 1.0])
    assert queries_of(network) == [("q0a", "q0b"), ("q1a", "q1b"), ("q2a", "q2b")]
    part = part_of(network, {"q1a", "q1b"})
    assert list(part.operators) == ["q1a", "q1b"]
    assert part.streams == {}


@given(st.lists(st.floats(0.1, 5.0), max_size=12), st.integers(1, 3))
def test_allotment_is_largest_first(loads, groups):
    cpu = {f"g{k}": 1.0 + k for k in range(groups)}
    found = allotted(loads, cpu)
    level = {g: sum(x for x, own in zip(loads, found, strict=True) if own == g) / cpu[g] for g in cpu}
    if loads:
        assert max(level.values()) <= sum(loads) / sum(cpu.values()) + max(loads) / min(cpu.values()) + 1e-9
    assert allotted([1.0], cpu, bound={0: "g0"}) == ["g0"]


def test_the_first_plan_keeps_queries_in_groups():
    network, nodes = chains([0.4, 0.3, 0.2, 0.1]), cluster(2, 2)
    manager = managed(network, nodes)
    whole(manager)
    assert report(manager, [0.4, 0.3, 0.2, 0.1]) == ()
    assert manager.group_loads == pytest.approx({"x": 0.25, "y": 0.25})
    with pytest.raises(InputError, match="in one group"):
        managed(network, nodes, {name: f"{'xy'[k % 2]}0" for k, name in enumerate(network.operators)})


def test_a_query_moves_between_groups_and_each_operator_moves_once():
    network, nodes = chains([0.4, 0.3, 0.2, 0.1]), cluster(2, 2)
    manager = managed(network, nodes)
    asked = report(manager, [0.4, 0.3, 0.2, 0.9])
    moves = [each for each in asked if isinstance(each, Move)]
    whole(manager)
    assert len(moves) == 2
    assert len({move.operator[:-1] for move in moves}) == 1
    assert {move.source[0] for move in moves} != {move.target[0] for move in moves}
    assert set(manager.under_way) == {move.operator for move in moves}
    # Until it has arrived, it does not go anywhere else.
    assert not [m for m in report(manager, [0.4, 0.3, 0.2, 0.9]) if m.operator in manager.under_way]
    for move in moves:
        assert manager.handle(MoveDone(at_s=1.0, operator=move.operator)) == ()
    assert manager.under_way == {}


def test_an_operator_whose_move_between_groups_fails_is_fetched_with_every_report():
    manager = managed(chains([0.4, 0.3, 0.2, 0.1]), cluster(2, 2))
    loads = [0.4, 0.3, 0.2, 0.9]
    move, other = (each for each in report(manager, loads) if isinstance(each, Move))
    manager.handle(MoveDone(at_s=0.5, operator=other.operator))
    for attempt in range(1, 5):
        answer = manager.handle(MoveFailed(at_s=float(attempt), operator=move.operator, reason="no"))
        # Somebody is to look once, not with every report.
        assert [type(each) for each in answer] == ([Alarm] if attempt == 2 else [])
        # It counts as under way: nobody else moves it, and its query stays.
        assert set(manager.under_way) == {move.operator}
        (again,) = report(manager, loads, at_s=attempt + 0.5)
        assert (again.operator, again.source, again.target) == (move.operator, move.source, move.target)
    manager.handle(MoveDone(at_s=9.0, operator=move.operator))
    assert manager.under_way == {}
    assert report(manager, loads, at_s=9.5) == ()
    whole(manager)


@given(st.lists(st.floats(0.05, 1.0), min_size=2, max_size=10), st.integers(0, 100))
def test_queries_do_not_go_back_and_forth(loads, seed):
    """Loads stay as they are, but for a little noise: no query moves time and again."""
    network, nodes, rng = chains(loads), cluster(2, 1), np.random.default_rng(seed)
    manager = managed(network, nodes, {name: f"x{k % 2}" for k, name in enumerate(network.operators)})
    crossings = Counter()
    for second in range(5 * len(loads)):
        noisy = np.array(loads) * rng.uniform(0.99, 1.01, len(loads))
        moves = [each for each in report(manager, noisy.tolist(), float(second)) if isinstance(each, Move)]
        crossings.update({each.operator[:-1] for each in moves})
        for each in moves:
            manager.handle(MoveDone(at_s=float(second), operator=each.operator))
    assert max(crossings.values(), default=0) <= 2


def pinned(network, **pins):
    """The network with some of its operators pinned."""
    operators = {name: replace(o, pinned=pins.get(name)) for name, o in network.operators.items()}
    return replace(network, operators=operators)


def test_low_priority_queries_move_first():
    network = chains([0.2] * 6)
    operators = {
        name: Operator(name=name, spec=o.spec, inputs=o.inputs, priority=0.0 if name[1] == "4" else 1.0)
        for name, o in network.operators.items()
    }
    network = Network(streams=network.streams, operators=operators)
    placement = {name: f"x{k % 2}" if int(name[1]) else "y0" for k, name in enumerate(operators)}
    manager = managed(network, cluster(2, 1), placement)
    moves = report(manager, [0.1, 0.2, 0.2, 0.2, 0.2, 0.2])
    assert {move.operator for move in moves} == {"q4a", "q4b"}


def test_a_lost_node_is_the_matter_of_its_group_and_an_empty_group_is_cleared():
    manager = managed(chains([0.4, 0.3, 0.2, 0.1]), cluster(2, 1))
    before = dict(manager.lower["y"].network.operators)
    manager.handle(NodeLost(at_s=0.0, node="x0"))
    whole(manager)
    assert manager.lower["y"].network.operators == before
    asked = manager.handle(NodeLost(at_s=1.0, node="y0"))
    whole(manager)
    assert {each.operator for each in asked if isinstance(each, Move | Place)} >= set(before)
    assert set(manager.placement.values()) == {"x1"}
    manager.handle(NodeJoined(at_s=2.0, node=Node(name="y9", properties={"rack": "y"})))
    assert "y9" in manager.nodes
    with pytest.raises(InputError, match="one of the groups"):
        manager.handle(NodeJoined(at_s=2.0, node=Node(name="z9", properties={"rack": "z"})))


def test_networks_that_change():
    manager = managed(chains([0.4, 0.3]), cluster(1, 1))
    stood = manager.placement
    placed = manager.handle(QueryAdded(at_s=0.0, network=chains([0.4, 0.3, 0.2])))
    assert {each.operator for each in placed} == {"q2a", "q2b"}
    assert {name: manager.placement[name] for name in stood} == stood
    whole(manager)
    manager.handle(QueryRemoved(at_s=1.0, network=chains([0.4, 0.3])))
    assert manager.placement == stood


def test_somebody_who_tears_a_query_apart_is_undone():
    manager = managed(chains([0.4, 0.3]), cluster(1, 1))
    group = manager.placement["q0a"]
    other = ({"x0", "y0"} - {group}).pop()
    alarm, back = manager.handle(OperatorMoved(at_s=0.0, operator="q0a", node=other))
    assert isinstance(alarm, Alarm)
    assert (back.source, back.target) == (other, group)
    torn = {**manager.placement, "q0a": other}
    (again,) = manager.handle(PlanProposed(at_s=0.0, placement=torn))
    assert isinstance(again, AskAgain)


@settings(max_examples=40)
@given(st.data())
def test_whatever_happens_queries_stay_whole(data):
    manager = managed(chains([0.4, 0.3, 0.2, 0.1, 0.1]), cluster(3, 2, 1))
    for step in range(data.draw(st.integers(1, 8))):
        kind = data.draw(st.sampled_from(["report", "lost", "back", "done"]))
        if kind == "report":
            loads = data.draw(st.lists(st.floats(0.0, 2.0), min_size=5, max_size=5))
            report(manager, loads, at_s=float(step))
        elif kind == "lost" and len(manager.nodes) > 1:
            manager.handle(NodeLost(at_s=float(step), node=data.draw(st.sampled_from(manager.nodes))))
        elif kind == "back":
            gone = sorted({node.name for node in cluster(3, 2, 1).nodes} - set(manager.nodes))
            if gone:
                node = next(n for n in cluster(3, 2, 1).nodes if n.name == gone[0])
                manager.handle(NodeJoined(at_s=float(step), node=node))
        else:
            for operator in manager.under_way:
                manager.handle(MoveDone(at_s=float(step), operator=operator))
        whole(manager)


def beat(manager, at_s, *nodes):
    return [each for node in nodes for each in manager.handle(Heartbeat(at_s=at_s, node=node))]


def test_a_group_that_falls_silent_is_cleared_too():
    """Nobody says that a node is lost: its group's manager finds out, and the top one moves the queries."""
    manager = managed(chains([0.4, 0.3, 0.2, 0.1]), cluster(2, 1), silent_after_s=2.0)
    of_y = set(manager.lower["y"].network.operators)
    beat(manager, 0.0, "x0", "x1", "y0")
    asked = []
    for second in range(1, 5):
        asked += beat(manager, float(second), "x0", "x1")
        asked += report(manager, [0.4, 0.3, 0.2, 0.1], at_s=float(second))
        whole(manager)
    assert manager.nodes == ("x0", "x1")
    assert {each.operator for each in asked if isinstance(each, Place)} == of_y
    assert set(manager.placement.values()) == {"x0", "x1"}
    # When it is heard of again, it is there again, and gets a query back.
    beat(manager, 5.0, "y0")
    moves = report(manager, [0.4, 0.3, 0.2, 0.1], at_s=5.5)
    assert {move.target for move in moves} == {"y0"}


def test_a_node_lost_under_a_query_on_its_way():
    """Whichever end of the way is lost: every operator of the query is started somewhere, once."""
    for end in ("source", "target"):
        manager = managed(chains([0.4, 0.3, 0.2, 0.1]), cluster(2, 2))
        moves = [m for m in report(manager, [0.4, 0.3, 0.2, 0.9]) if isinstance(m, Move)]
        lost = getattr(moves[0], end)
        hit = {move.operator for move in moves if getattr(move, end) == lost}
        placed = [p for p in manager.handle(NodeLost(at_s=1.0, node=lost)) if isinstance(p, Place)]
        assert hit <= {each.operator for each in placed}, end
        assert len({each.operator for each in placed}) == len(placed)
        assert all(manager.placement[each.operator] == each.node != lost for each in placed)
        assert hit.isdisjoint(manager.under_way)
        whole(manager)


def test_queries_of_a_lost_group_go_by_the_loads_that_were_measured():
    """All are stated alike; the first turns out to be as heavy as nine others."""
    network = chains([0.1] * 5)
    homes = {"q0": "x0", "q1": "y0", "q2": "z0", "q3": "z0", "q4": "z0"}
    placement = {name: homes[name[:2]] for name in network.operators}
    manager = managed(network, cluster(1, 1, 1), placement, difference=10.0)
    report(manager, [0.0, 0.0, 0.9, 0.1, 0.1])
    manager.handle(NodeLost(at_s=1.0, node="z0"))
    where = {query: manager.placement[f"{query}a"] for query in ("q2", "q3", "q4")}
    assert where["q3"] == where["q4"] != where["q2"]
    whole(manager)


def test_the_first_node_that_comes_back_takes_all():
    manager = managed(chains([0.4, 0.3, 0.2, 0.1]), cluster(1, 1))
    nodes = {node.name: node for node in cluster(1, 1).nodes}
    manager.handle(NodeLost(at_s=0.0, node="x0"))
    (alarm,) = manager.handle(NodeLost(at_s=1.0, node="y0"))
    assert isinstance(alarm, Alarm)
    assert manager.placement == {}
    manager.handle(QueryAdded(at_s=2.0, network=chains([0.4, 0.3, 0.2, 0.1, 0.1])))
    placed = manager.handle(NodeJoined(at_s=3.0, node=nodes["y0"]))
    assert {each.operator for each in placed if isinstance(each, Place)} == set(manager.network.operators)
    assert set(manager.placement.values()) == {"y0"}
    whole(manager)


def test_a_plan_that_is_wrong_in_one_group_is_put_into_force_in_none():
    manager = managed(chains([0.4, 0.3]), cluster(2, 2))
    before = manager.placement
    fine = {name: node[0] + ("1" if node[1] == "0" else "0") for name, node in before.items()}
    of_y = next(name for name, node in before.items() if node[0] == "y")
    wrong = [
        ({**fine, of_y: "y7"}, "must name a node of the cluster"),
        ({name: node for name, node in fine.items() if name != of_y}, "every operator must have a node"),
        ({**fine, "nobody": "x0"}, "must name an operator of the network"),
    ]
    for plan, rule in wrong:
        (again,) = manager.handle(PlanProposed(at_s=0.0, placement=plan))
        assert isinstance(again, AskAgain)
        assert again.nodes == ("x0", "x1", "y0", "y1")
        assert rule in again.problems[0]
        assert manager.placement == before
        assert manager.under_way == {}
        (alarm,) = manager.handle(PlanProposed(at_s=0.0, placement=plan, attempt=3))
        assert isinstance(alarm, Alarm)
    beat(manager, 0.0, "x0")
    manager.handle(Heartbeat(at_s=0.0, node="y1", ready=False))
    (again,) = manager.handle(PlanProposed(at_s=0.0, placement={**fine, of_y: "y1"}))
    assert again.nodes == ("x0", "x1", "y0")
    manager.handle(Heartbeat(at_s=0.0, node="y1"))
    moves = manager.handle(PlanProposed(at_s=0.0, placement=fine))
    assert {move.operator: move.target for move in moves} == fine


def test_malformed_reports_are_input_errors():
    manager = managed(chains([0.4, 0.3]), cluster(1, 1))
    names = tuple(manager.network.operators)
    for series in (np.zeros((3, 2)), np.zeros(4), np.full((4, 2), np.nan)):
        with pytest.raises(InputError):
            manager.handle(StatisticsReported(at_s=0.0, operators=names, series=series))
    with pytest.raises(InputError, match="square"):
        manager.handle(LatencyMeasured(at_s=0.0, nodes=("x0", "y0"), latency_ms=np.zeros((2, 3))))


class Spied:
    """Stands before a group's manager and keeps what it is told."""

    def __init__(self, lower):
        self.told, self._handle = [], lower.handle
        lower.handle = self

    def __call__(self, event):
        self.told.append(event)
        return self._handle(event)


def names_in(event):
    """Operators and nodes that an event speaks of."""
    operators, nodes = set(), set()
    if isinstance(event, StatisticsReported):
        operators |= {*event.operators, *event.state_bytes}
    if isinstance(event, QueryAdded | QueryRemoved):
        operators |= {*event.network.operators, *getattr(event, "loads", {})}
    if isinstance(event, MoveDone | MoveFailed | OperatorMoved):
        operators.add(event.operator)
    if isinstance(event, PlanProposed):
        operators, nodes = set(event.placement), set(event.placement.values())
    if isinstance(event, LatencyMeasured):
        nodes |= set(event.nodes)
    if isinstance(event, NodeLost | Heartbeat):
        nodes.add(event.node)
    if isinstance(event, OperatorMoved):
        nodes.add(event.node)
    return operators, nodes


@settings(max_examples=40)
@given(st.data())
def test_no_group_ever_hears_of_anothers_operators_or_nodes(data):
    manager = managed(chains([0.4, 0.3, 0.2, 0.1, 0.1]), cluster(3, 2, 1))
    spies = {group: Spied(lower) for group, lower in manager.lower.items()}
    every = tuple(node.name for node in cluster(3, 2, 1).nodes)
    for step in range(data.draw(st.integers(1, 8))):
        kind = data.draw(st.sampled_from(["report", "lost", "done", "plan", "latency", "beat", "moved"]))
        if kind == "report":
            report(
                manager, data.draw(st.lists(st.floats(0.0, 2.0), min_size=5, max_size=5)), at_s=float(step)
            )
        elif kind == "lost" and len(manager.nodes) > 1:
            manager.handle(NodeLost(at_s=float(step), node=data.draw(st.sampled_from(manager.nodes))))
        elif kind == "plan":
            manager.handle(PlanProposed(at_s=float(step), placement=manager.placement))
        elif kind == "latency":
            manager.handle(LatencyMeasured(at_s=float(step), nodes=every, latency_ms=np.ones((6, 6))))
        elif kind == "beat":
            beat(manager, float(step), data.draw(st.sampled_from(every)))
        elif kind == "moved":
            operator = data.draw(st.sampled_from(sorted(manager.placement)))
            node = data.draw(st.sampled_from(every))
            manager.handle(OperatorMoved(at_s=float(step), operator=operator, node=node))
        else:
            for operator in manager.under_way:
                manager.handle(MoveDone(at_s=float(step), operator=operator))
        for group, spy in spies.items():
            own = set(manager.lower[group].network.operators)
            for event in spy.told:
                operators, nodes = names_in(event)
                assert all(node.startswith(group) for node in nodes), event
                if event is spy.told[-1]:
                    # Before, other queries may have stood here.
                    assert operators <= own, event
        whole(manager)


def test_groups_know_the_latencies_between_their_own_nodes():
    nodes = cluster(2, 1)
    square = tuple(tuple(float(abs(i - j)) for j in range(3)) for i in range(3))
    manager = managed(chains([0.4, 0.3]), Cluster(nodes=nodes.nodes, latency_ms=square))
    known = {
        group: lower._adviser._distances.around(lower.network, lower._standing.live_nodes)
        for group, lower in manager.lower.items()
    }
    assert known["x"].latency_ms.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert known["y"].latency_ms.tolist() == [[0.0]]


class Doing:
    """Does what it is asked, or fails to; knows where every operator really stands."""

    def __init__(self, manager, silent):
        self.manager, self.silent = manager, silent
        self.where = dict(manager.placement)
        self.dead: set[str] = set()
        self.fails = False

    def tell(self, event):
        events = [event]
        while events:
            for each in self.manager.handle(events.pop(0)):
                if isinstance(each, Move | Place):
                    events += self.obey(each, event.at_s)

    def obey(self, each, at_s):
        target = each.target if isinstance(each, Move) else each.node
        if target in self.dead or (self.fails and isinstance(each, Move)):
            return [MoveFailed(at_s=at_s, operator=each.operator, reason="no")]
        self.where[each.operator] = target
        return [MoveDone(at_s=at_s, operator=each.operator)] if isinstance(each, Move) else []

    def lose(self, node, at_s):
        self.dead.add(node)
        self.where = {name: None if at == node else at for name, at in self.where.items()}
        if not self.silent:
            self.tell(NodeLost(at_s=at_s, node=node))

    def revive(self, node, at_s):
        self.dead.discard(node)
        self.tell(NodeJoined(at_s=at_s, node=next(n for n in cluster(3, 2, 1).nodes if n.name == node)))

    def second(self, at_s, loads):
        if self.silent:
            for node in cluster(3, 2, 1).names:
                if node not in self.dead:
                    self.tell(Heartbeat(at_s=at_s, node=node))
        names = tuple(self.manager.network.operators)
        series = np.array([[loads[int(name[1:-1])] / 2] * 2 for name in names])
        self.tell(StatisticsReported(at_s=at_s, operators=names, series=series))


@settings(max_examples=60)
@given(st.data(), st.booleans(), st.sampled_from([None, "llf_bal", "balance"]))
def test_what_the_managers_believe_becomes_true(data, silent, policy):
    """Moves fail, nodes die with a word or without: in the end every operator runs where the books say."""
    options = {"silent_after_s": 2.0 if silent else None, "policy": policy and make_policy(policy)}
    manager = managed(chains([0.4, 0.3, 0.2, 0.1, 0.1]), cluster(3, 2, 1), **options)
    world, at_s = Doing(manager, silent), 0.0
    for _ in range(data.draw(st.integers(1, 10))):
        at_s += 1.0
        world.fails = data.draw(st.booleans())
        if data.draw(st.integers(0, 3)) == 0 and len(world.dead) < 5:
            alive = sorted(set(cluster(3, 2, 1).names) - world.dead)
            world.lose(data.draw(st.sampled_from(alive)), at_s)
        world.second(at_s, data.draw(st.lists(st.floats(0.0, 2.0), min_size=5, max_size=5)))
    world.fails = False
    for _ in range(8):
        at_s += 1.0
        world.second(at_s, [0.2] * 5)
    whole(manager)
    assert world.where == manager.placement
    assert world.dead.isdisjoint(world.where.values())
    assert manager.under_way == {}
