"""Plans for what runs: within the groups, on nodes that can be used, and nothing that is immovable moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_control_tiers import chains, cluster, managed, pinned, report

from levelwind.control import Manager
from levelwind.control.events import Heartbeat, MoveDone, NodeLost, PlanProposed
from levelwind.control.instructions import AskAgain, Move, Place
from levelwind.control.replanning import plan_anew
from levelwind.runtime.managing import Balancing, Steward

LOADS = [0.8, 0.1, 0.1, 0.1, 0.1, 0.1]
# All of the light queries stand with each other, as a plan that knows loads would not have them.
LOPSIDED = {f"q{k}{end}": node for k, node in enumerate(["y0", "x0", "x0", "x1", "y1", "y0"]) for end in "ab"}


def immovable(network, *names):
    operators = {n: replace(o, movable=n not in names) for n, o in network.operators.items()}
    return replace(network, operators=operators)


def steward_of(network, nodes, placement, groups="rack"):
    return Steward(network, nodes, placement, Balancing(groups=groups))


def replanned(steward, network, nodes, *, groups="rack", planner="llf", seed=0):
    """As a live run does it; who moves, and how often a plan was asked for."""
    asked = []

    def ask(usable, attempt):
        asked.append(attempt)
        manager = steward.manager
        return plan_anew(
            network,
            nodes,
            planner,
            usable=usable,
            stands=manager.placement,
            groups=groups,
            homes=manager.homes if groups else None,
            seed=seed + attempt - 1,
        )

    return steward.plan(ask, "asked for"), len(asked)


def test_a_plan_with_groups_leaves_queries_in_theirs_and_is_put_into_force():
    network, nodes = chains(LOADS), cluster(2, 2)
    steward = steward_of(network, nodes, LOPSIDED)
    moves, asked = replanned(steward, network, nodes)
    assert asked == 1
    assert moves
    assert steward.alarms == type(steward.alarms)()
    after = steward.manager.placement
    assert {name: node[0] for name, node in after.items()} == {n: at[0] for n, at in LOPSIDED.items()}
    # The heavy query has its two halves apart now.
    assert {after["q0a"], after["q0b"]} == {"y0", "y1"}


@pytest.mark.parametrize("groups", [None, "rack"])
def test_what_is_immovable_stays_where_it_is(groups):
    network, nodes = immovable(chains(LOADS), "q0a", "q0b"), cluster(2, 2)
    steward = steward_of(network, nodes, LOPSIDED, groups)
    moves, asked = replanned(steward, network, nodes, groups=groups)
    assert asked == 1
    assert moves
    assert {"q0a", "q0b"}.isdisjoint(moves)
    assert steward.manager.placement["q0a"] == steward.manager.placement["q0b"] == "y0"


def test_a_plan_that_would_move_it_is_refused():
    """Alone, and by a table that it shares; a pin that is there again is another matter."""
    network = immovable(chains([0.1, 0.1]), "q0a")
    tabled = {n: replace(o, table="t" if n[1] == "0" else None) for n, o in network.operators.items()}
    for one in (network, replace(network, operators=tabled)):
        manager = Manager(
            one, cluster(2), dict.fromkeys(one.operators, "x0"), policy=None, rng=np.random.default_rng(0)
        )
        (again,) = manager.handle(PlanProposed(at_s=0.0, placement=dict.fromkeys(one.operators, "x1")))
        assert isinstance(again, AskAgain)
        assert "immovable" in again.problems[0]
        assert len(again.problems) == (1 if one is network else 2)
        manager.handle(NodeLost(at_s=1.0, node="x0"))
        assert manager.handle(PlanProposed(at_s=2.0, placement=dict.fromkeys(one.operators, "x1"))) == ()


def test_every_attempt_is_another():
    network, nodes, seen = chains(LOADS), cluster(2, 2), []
    steward = steward_of(network, nodes, LOPSIDED)

    def ask(usable, attempt):
        homes = steward.manager.homes
        made = plan_anew(
            network, nodes, "random", usable=usable, stands=LOPSIDED, groups="rack", homes=homes, seed=attempt
        )
        seen.append(made)
        return {**made, "q0a": "nowhere"}

    assert steward.plan(ask, "asked for") == {}
    assert len(seen) == 3
    assert seen[0] != seen[1]
    assert len(steward.alarms) == 1


def test_on_a_node_that_is_not_ready_immovable_and_pinned_operators_stay():
    network = pinned(immovable(chains(LOADS), "q0a"), q1a="x0")
    nodes, placement = cluster(2, 2), {**LOPSIDED, "q1a": "x0", "q1b": "x0"}
    steward = steward_of(network, nodes, placement)
    for node in ("x0", "y0"):
        steward.manager.handle(Heartbeat(at_s=0.0, node=node, ready=False))
    moves, asked = replanned(steward, network, nodes)
    assert asked == 2  # the first plan takes every node that lives
    after = steward.manager.placement
    assert (after["q0a"], after["q1a"]) == ("y0", "x0")
    assert set(moves.values()) == {"x1", "y1"}
    assert not steward.alarms


def test_a_group_of_which_no_node_is_ready_stays_as_it_is():
    network, nodes = chains(LOADS), cluster(2, 2)
    steward = steward_of(network, nodes, LOPSIDED)
    for node in ("y0", "y1"):
        steward.manager.handle(Heartbeat(at_s=0.0, node=node, ready=False))
    moves, _ = replanned(steward, network, nodes)
    assert moves
    assert {node[0] for node in moves.values()} == {"x"}
    assert not steward.alarms


def test_pins_to_lost_nodes_bind_nobody():
    for groups in (None, "rack"):
        network = pinned(chains(LOADS), q0a="y0")
        nodes = cluster(2, 2)
        steward = steward_of(network, nodes, LOPSIDED, groups)
        steward.manager.handle(NodeLost(at_s=0.0, node="y0"))
        replanned(steward, network, nodes, groups=groups)
        assert "y0" not in steward.manager.placement.values()
        assert not steward.alarms


def test_a_query_that_cannot_go_back_to_its_pin_does_not_stand_in_the_way_of_a_plan():
    """Its node is back, but an immovable operator of it runs in the other group by now."""
    network = pinned(immovable(chains([0.4, 0.3, 0.2, 0.1]), "q0b"), q0a="x0")
    nodes = cluster(1, 2)
    placement = {name: "x0" if name[1] == "0" else "y0" for name in network.operators}
    steward = steward_of(network, nodes, placement)
    steward.manager.handle(NodeLost(at_s=0.0, node="x0"))
    steward.manager.handle(Heartbeat(at_s=1.0, node="x0"))
    stands = steward.manager.placement["q0b"]
    moves, asked = replanned(steward, network, nodes)
    assert asked == 1
    assert moves
    assert steward.manager.placement["q0b"] == stands
    assert steward.manager.group_of("q0a") == "y"


def test_a_query_between_groups_is_left_alone_by_a_plan():
    manager = managed(chains([0.4, 0.3, 0.2, 0.1]), cluster(2, 2))
    moves = [each for each in report(manager, [0.4, 0.3, 0.2, 0.9]) if isinstance(each, Move)]
    manager.handle(MoveDone(at_s=0.5, operator=moves[0].operator))
    before = manager.placement
    other = {name: node[0] + ("1" if node[1] == "0" else "0") for name, node in before.items()}
    asked = manager.handle(PlanProposed(at_s=1.0, placement=other))
    query = {move.operator for move in moves}
    assert {each.operator for each in asked} == set(before) - query
    assert {name: manager.placement[name] for name in query} == {name: before[name] for name in query}
    assert {record.operator for record in manager.journal if record.what == "ignored"} == query


@settings(max_examples=40)
@given(st.data())
def test_plans_for_a_live_run_are_valid_at_the_first_or_second_attempt(data):
    """Whatever is pinned, immovable, lost or not ready."""
    network = chains(data.draw(st.lists(st.floats(0.1, 1.0), min_size=4, max_size=4)))
    nodes = cluster(2, 2)
    groups = data.draw(st.sampled_from([None, "rack"]))
    names = st.sets(st.sampled_from(sorted(network.operators)))
    network = immovable(network, *data.draw(names))
    placement = {f"q{k}{end}": data.draw(st.sampled_from(["x0", "x1"] if k % 2 else ["y0", "y1"]))
                 for k in range(4) for end in "ab"}  # fmt: skip
    network = pinned(network, **{name: placement[name] for name in data.draw(names)})
    steward = steward_of(network, nodes, placement, groups)
    for node in sorted(data.draw(st.sets(st.sampled_from(nodes.names), max_size=2))):
        event = data.draw(st.sampled_from([NodeLost, Heartbeat]))
        more = {"ready": False} if event is Heartbeat else {}
        told = steward.manager.handle(event(at_s=0.0, node=node, **more))
        assert all(isinstance(each, Place) or event is NodeLost for each in told)
    before = steward.manager.placement
    moves, asked = replanned(steward, network, nodes, groups=groups)
    assert asked <= 2
    assert not steward.alarms
    stuck = {name for name, operator in network.operators.items() if not operator.movable}
    assert stuck.isdisjoint(moves)
    assert set(steward.manager.placement) == set(before)
