"""The manager: events in, instructions out, and the reasons."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levelwind.balance import Proposal, make_policy
from levelwind.control import Manager
from levelwind.control.events import (
    MoveDone,
    MoveFailed,
    NodeJoined,
    NodeLost,
    QueryAdded,
    QueryRemoved,
    StatisticsReported,
)
from levelwind.control.instructions import Alarm, Drop, Move, Place
from levelwind.errors import InputError
from levelwind.model import Cluster, Model, Network, Node, Operator


def box(name, load=0.1, **traits):
    return Operator(name=name, spec=Model(series=(load, load)), **traits)


def network(*boxes):
    return Network(operators={each.name: each for each in boxes})


@dataclass
class Script:
    """Proposes what it is told, and keeps what it was asked."""

    moves: tuple[Proposal, ...] = ()
    seen: object = None

    def propose(self, situation, *, rng):
        self.seen = situation
        return self.moves


def move(operator, to, group=0):
    return Proposal(operator=operator, to=to, reason="why not", group=group)


def managed(boxes, placement, *, nodes=3, moves=(), **options):
    policy = Script(tuple(moves))
    manager = Manager(
        network(*boxes),
        Cluster.equal(nodes),
        placement,
        policy=policy,
        rng=np.random.default_rng(0),
        **options,
    )
    return manager, policy


def report(manager, loads, at_s=1.0, samples=2, **more):
    names = tuple(manager.placement)
    rows = np.repeat(np.array([loads[name] for name in names])[:, None], samples, axis=1)
    return manager.handle(StatisticsReported(at_s=at_s, operators=names, series=rows, **more))


A, B, C = box("a"), box("b"), box("c")
HOME = {"a": "n1", "b": "n1", "c": "n2"}
LOADS = {"a": 0.4, "b": 0.3, "c": 0.1}


def reasons(manager, what):
    return [record.reason for record in manager.journal if record.what == what]


def test_an_accepted_move_is_under_way_until_it_is_done():
    manager, policy = managed([A, B, C], HOME, moves=[move(0, 2)])
    assert report(manager, LOADS) == (Move(operator="a", source="n1", target="n3", reason="why not"),)
    assert manager.placement == {"a": "n3", "b": "n1", "c": "n2"}
    assert manager.under_way["a"].source == "n1"
    assert report(manager, LOADS, at_s=2.0) == ()
    assert policy.seen.movable.tolist() == [False, True, True]
    assert policy.seen.node.tolist() == [2, 0, 1]
    assert reasons(manager, "rejected") == ["already on its way to n3"]
    assert manager.handle(MoveDone(at_s=2.5, operator="a")) == ()
    assert not manager.under_way
    assert str(next(iter(manager.journal))) == "1.000 s accepted a n1 → n3: why not"


def test_what_is_on_its_way_is_not_turned_round():
    manager, policy = managed([A, B, C], HOME, moves=[move(0, 2)])
    report(manager, LOADS)
    policy.moves = (move(0, 1),)
    assert report(manager, LOADS, at_s=2.0) == ()
    assert reasons(manager, "rejected") == ["already on its way to n3"]


def test_an_operator_moves_once_however_often_it_is_proposed():
    manager, _ = managed([A, B, C], HOME, moves=[move(0, 2, group=0), move(0, 1, group=1)])
    assert [(i.operator, i.target) for i in report(manager, LOADS)] == [("a", "n3")]
    assert reasons(manager, "rejected") == ["moves in an exchange that was accepted before"]


def test_a_move_that_failed_leaves_the_operator_where_it_was():
    manager, _ = managed([A, B, C], HOME, moves=[move(0, 2)])
    report(manager, LOADS)
    assert manager.handle(MoveFailed(at_s=2.0, operator="a", reason="no room")) == ()
    assert manager.placement == HOME
    assert reasons(manager, "failed") == ["no room"]
    assert manager.handle(MoveFailed(at_s=2.0, operator="a", reason="again")) == ()
    assert reasons(manager, "ignored") == ["no move of it is under way"]


@pytest.mark.parametrize(
    ("boxes", "moves", "options", "reason"),
    [
        ([replace(A, movable=False), B, C], [move(0, 2)], {}, "declared immovable"),
        ([replace(A, pinned="n1"), B, C], [move(0, 2)], {}, "pinned to n1"),
        ([replace(A, table="t"), replace(B, table="t"), C], [move(0, 2)], {}, "one table move together"),
        (
            [replace(A, table="t"), replace(B, table="t", movable=False), C],
            [move(0, 2), move(1, 2)],
            {},
            "immovable",
        ),
        ([A, B, C], [move(0, 2)], {"moved_load_budget": 0.3}, "budget of moved load: 0.3 left"),
        ([A, B, C], [move(0, 2)], {"most_moves": 0}, "as many moves"),
        ([A, B, C], [move(0, 2)], {"most_state_bytes": 99}, "state of 100 bytes"),
        ([A, B, C], [move(0, 0)], {}, "stands there already"),
    ],
)
def test_rejected_with_the_reason(boxes, moves, options, reason):
    manager, _ = managed(boxes, HOME, moves=moves, **options)
    assert report(manager, LOADS, state_bytes={"a": 100}) == ()
    assert manager.placement == HOME
    assert all(reason in text for text in reasons(manager, "rejected"))
    assert len(reasons(manager, "rejected")) == len(moves)


def test_operators_on_one_table_move_together():
    boxes = [replace(A, table="t"), replace(B, table="t"), C]
    manager, policy = managed(boxes, HOME, moves=[move(0, 2), move(1, 2)])
    assert [type(i).__name__ for i in report(manager, LOADS)] == ["Move", "Move"]
    assert policy.seen.unit.tolist() == [0, 0, 1]
    manager.handle(MoveDone(at_s=2.0, operator="a"))
    follow = manager.handle(MoveFailed(at_s=2.0, operator="b", reason="lost"))
    assert [(i.operator, i.target) for i in follow] == [("b", "n3")]
    (alarm,) = manager.handle(MoveFailed(at_s=3.0, operator="b", reason="lost"))
    assert isinstance(alarm, Alarm)
    assert "apart from its table" in alarm.text


def test_the_budget_goes_to_the_first_exchanges():
    boxes = [box(f"o{j}") for j in range(4)]
    home = dict.fromkeys(("o0", "o1", "o2", "o3"), "n1")
    moves = [move(0, 1, group=0), move(1, 2, group=1), move(2, 1, group=2)]
    manager, _ = managed(boxes, home, moves=moves, moved_load_budget=0.2)
    accepted = report(manager, dict.fromkeys(home, 0.1))
    assert [i.operator for i in accepted] == ["o0", "o1"]


def test_half_an_exchange_may_not_raise_the_larger_load():
    """a for c: with a pinned down by its state, c alone would make the fuller node fuller."""
    boxes = [replace(A, movable=False), B, C]
    manager, _ = managed(boxes, HOME, moves=[move(0, 1), move(2, 0)])
    assert report(manager, LOADS) == ()
    assert "without the rest of the exchange" in reasons(manager, "rejected")[1]
    whole, _ = managed([A, B, C], HOME, moves=[move(0, 1), move(2, 0)])
    assert len(report(whole, LOADS)) == 2


def test_accepted_parts_count_when_the_next_is_judged():
    """d is immovable, so the parts are judged one by one; a makes n2 as full as n1, then b may not follow."""
    boxes = [box("a"), box("b"), box("c"), box("d", movable=False)]
    home = {"a": "n1", "b": "n1", "c": "n2", "d": "n1"}
    manager, _ = managed(boxes, home, moves=[move(0, 1), move(1, 1), move(3, 1)])
    accepted = report(manager, {"a": 0.4, "b": 0.2, "c": 0.1, "d": 0.3})
    assert [i.operator for i in accepted] == ["a"]


def test_what_stood_on_a_lost_node_is_placed_on_the_least_loaded():
    manager, _ = managed([A, B, C], HOME)
    report(manager, LOADS)
    assert manager.handle(NodeLost(at_s=2.0, node="n1")) == (
        Place(operator="a", node="n3", reason="n1 was lost; least loaded node"),
        Place(operator="b", node="n2", reason="n1 was lost; least loaded node"),
    )
    assert manager.nodes == ("n2", "n3")
    assert manager.handle(NodeLost(at_s=3.0, node="n1")) == ()
    assert reasons(manager, "ignored") == ["n1 was lost before"]


def test_a_pin_to_a_lost_node_is_an_alarm_and_is_kept_again_when_it_is_back():
    manager, _ = managed([replace(A, pinned="n1"), B, C], HOME)
    report(manager, LOADS)
    found = manager.handle(NodeLost(at_s=2.0, node="n1"))
    assert Alarm(text="a is pinned to n1, which is not there: it runs on n3") in found
    assert manager.handle(NodeJoined(at_s=3.0, node=Node(name="n1", cpu=2.0))) == (
        Move(operator="a", source="n3", target="n1", reason="pinned to n1, which is back"),
    )


@pytest.mark.parametrize("lost", ["n1", "n3"])
def test_a_node_lost_in_the_middle_of_a_move(lost):
    manager, _ = managed([A, B, C], HOME, moves=[move(0, 2)])
    report(manager, LOADS)
    placed = manager.handle(NodeLost(at_s=2.0, node=lost))
    assert "a" in {i.operator for i in placed if isinstance(i, Place)}
    assert set(manager.placement) == {"a", "b", "c"}
    assert lost not in manager.placement.values()
    assert not manager.under_way
    assert manager.handle(MoveDone(at_s=3.0, operator="a")) == ()


def test_all_nodes_lost_and_one_back():
    manager, _ = managed([A, B, C], HOME, nodes=2)
    manager.handle(NodeLost(at_s=1.0, node="n1"))
    (alarm,) = manager.handle(NodeLost(at_s=2.0, node="n2"))
    assert "no node is left: 3 operators" in alarm.text
    assert manager.placement == {}
    placed = manager.handle(NodeJoined(at_s=3.0, node=Node(name="n9", cpu=1.0)))
    assert {i.operator for i in placed} == {"a", "b", "c"}
    assert set(manager.placement.values()) == {"n9"}


def test_a_query_comes_and_goes_and_the_others_stay():
    manager, _ = managed([A, B, C], HOME)
    report(manager, LOADS)
    more = network(A, B, C, box("d", 0.5), box("e", 0.1), box("f", pinned="n2"))
    placed = manager.handle(QueryAdded(at_s=2.0, network=more))
    assert {(i.operator, i.node) for i in placed} == {("d", "n3"), ("e", "n2"), ("f", "n2")}
    assert manager.handle(QueryRemoved(at_s=3.0, network=network(B, C, box("e")))) == (
        Drop(operator="a", node="n1", reason="no query uses it any more"),
        Drop(operator="d", node="n3", reason="no query uses it any more"),
        Drop(operator="f", node="n2", reason="no query uses it any more"),
    )
    assert manager.placement == {"b": "n1", "c": "n2", "e": "n2"}
    assert report(manager, {"b": 0.1, "c": 0.1, "e": 0.1}) == ()


def test_a_new_operator_joins_its_table():
    manager, _ = managed([replace(A, table="t"), B, C], HOME)
    more = network(replace(A, table="t"), B, C, box("d", table="t"), box("e", table="t", pinned="n2"))
    found = manager.handle(QueryAdded(at_s=1.0, network=more))
    assert {i.node for i in found if isinstance(i, Place)} == {"n1"}
    assert any("its table stands on n1" in i.text for i in found if isinstance(i, Alarm))


def test_an_operator_of_unknown_load_counts_as_the_mean():
    manager, _ = managed([A, B, C], HOME, nodes=2)
    report(manager, LOADS)
    unknown = Operator(name="d", spec=Model(load={}), inputs=())
    (place,) = manager.handle(QueryAdded(at_s=2.0, network=network(A, B, C, unknown)))
    assert place.node == "n2"


def test_overload_is_told_once():
    manager, _ = managed([A, B, C], HOME)
    (alarm,) = report(manager, {"a": 2.0, "b": 2.0, "c": 0.1})
    assert "no plan keeps the nodes below overload" in alarm.text
    assert report(manager, {"a": 2.0, "b": 2.0, "c": 0.2}) == ()
    assert report(manager, LOADS) == ()
    assert len(report(manager, {"a": 2.0, "b": 2.0, "c": 0.1})) == 1


def test_statistics_may_come_in_any_order():
    manager, policy = managed([A, B, C], HOME)
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    for names in (("c", "a", "b"), ("c", "a", "b"), ("a", "b", "c"), ("b", "c", "a")):
        manager.handle(StatisticsReported(at_s=1.0, operators=names, series=rows))
        expected = [rows[names.index(name)].tolist() for name in "abc"]
        assert policy.seen.series.tolist() == expected


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        (("a", "b"), np.ones((2, 2))),
        (("a", "b", "c"), np.ones((2, 2))),
        (("a", "b", "c"), np.ones((3, 0))),
        (("a", "b", "b"), np.ones((3, 2))),
        (("a", "b", "c"), np.full((3, 2), np.nan)),
        (("a", "b", "c"), np.full((3, 2), -1.0)),
    ],
)
def test_malformed_statistics_are_input_errors(names, rows):
    manager, _ = managed([A, B, C], HOME)
    with pytest.raises(InputError):
        manager.handle(StatisticsReported(at_s=1.0, operators=names, series=rows))


def test_the_placement_is_checked_whole():
    boxes = [replace(A, pinned="n2"), replace(B, table="t"), replace(C, table="t")]
    with pytest.raises(InputError) as error:
        managed([*boxes, box("d")], {"a": "n1", "b": "n1", "c": "n2", "x": "n1"})
    rules = [problem.rule for problem in error.value.problems]
    assert rules == [
        "every operator must have a node",
        "is pinned to n2",
        "must name an operator of the network",
        "operators on one table stand together",
    ]
    with pytest.raises(InputError, match="did you mean"):
        managed([A], {"a": "n11"})
    manager, _ = managed([A], {"a": "n1"})
    with pytest.raises(InputError):
        manager.handle(NodeLost(at_s=0.0, node="n7"))
    with pytest.raises(InputError):
        manager.handle(NodeJoined(at_s=0.0, node=Node(name="n7", cpu=0.0)))
    with pytest.raises(InputError):
        manager.handle(QueryAdded(at_s=0.0, network=network(A, box("b", pinned="n99"))))


def test_the_journal_is_bounded():
    manager, _ = managed([A, B, C], HOME, moves=[move(0, 0)], journal_size=5)
    for at_s in range(20):
        report(manager, LOADS, at_s=float(at_s))
    assert len(manager.journal) == 5
    assert manager.journal.counts == {"rejected": 20}


@settings(max_examples=40)
@given(data=st.data(), policy=st.sampled_from(["cor_se_imp", "steady_pairs", "rand_bal"]))
def test_whatever_happens_every_operator_stands_on_exactly_one_live_node(data, policy):
    boxes = [box(f"o{j}", table=data.draw(st.sampled_from([None, None, "t"])), pinned=None) for j in range(8)]
    table = data.draw(st.sampled_from(["n1", "n2"]))
    home = {b.name: table if b.table else f"n{j % 3 + 1}" for j, b in enumerate(boxes)}
    manager = Manager(
        network(*boxes), Cluster.equal(3), home, policy=make_policy(policy), rng=np.random.default_rng(1)
    )
    standing = dict(home)  # what a faithful driver would do
    live = {"n1", "n2", "n3"}
    lost: set[str] = set()
    for at_s in range(12):
        what = data.draw(st.sampled_from(["report", "report", "lose", "join", "done", "fail"]))
        found = ()
        if what == "report":
            seed = data.draw(st.integers(0, 99))
            rows = np.random.default_rng(seed).uniform(0, 0.6, (len(boxes), 4))
            names = tuple(b.name for b in boxes)
            found = manager.handle(StatisticsReported(at_s=float(at_s), operators=names, series=rows))
        elif what == "lose" and len(live) > 1:
            node = data.draw(st.sampled_from(sorted(live)))
            live.remove(node)
            lost.add(node)
            found = manager.handle(NodeLost(at_s=float(at_s), node=node))
        elif what == "join" and lost:
            node = data.draw(st.sampled_from(sorted(lost)))
            lost.remove(node)
            live.add(node)
            found = manager.handle(NodeJoined(at_s=float(at_s), node=Node(name=node, cpu=1.0)))
        elif what in ("done", "fail") and manager.under_way:
            name = data.draw(st.sampled_from(sorted(manager.under_way)))
            if what == "done":
                found = manager.handle(MoveDone(at_s=float(at_s), operator=name))
            else:
                standing[name] = manager.under_way[name].source
                found = manager.handle(MoveFailed(at_s=float(at_s), operator=name, reason="chance"))
        for instruction in found:
            if isinstance(instruction, Move):
                assert standing[instruction.operator] == instruction.source
                standing[instruction.operator] = instruction.target
            elif isinstance(instruction, Place):
                standing[instruction.operator] = instruction.node
        assert manager.placement == standing
        assert set(standing.values()) <= live
