"""Plans are checked before they are sent, silence is heard, and costs are remembered."""

from __future__ import annotations

import gc
import sys
import tracemalloc

import numpy as np
import pytest
from test_control_manager import box, network

from levelwind.balance import make_policy
from levelwind.control import Manager
from levelwind.control.events import (
    Heartbeat,
    MoveDone,
    MoveFailed,
    NodeLost,
    PlanProposed,
    QueryAdded,
    StatisticsReported,
)
from levelwind.control.footprint import Meter
from levelwind.control.instructions import Alarm, AskAgain, Move, Place
from levelwind.control.journal import Record
from levelwind.control.plans import ATTEMPTS
from levelwind.control.references import References
from levelwind.errors import InputError
from levelwind.model import Cluster, Network, Operator, Port, Stream
from levelwind.model import Model as ModelSpec


def managed(boxes, placement, *, nodes=3, policy=None, **options):
    return Manager(
        network(*boxes),
        Cluster.equal(nodes),
        placement,
        policy=policy,
        rng=np.random.default_rng(0),
        **options,
    )


BOXES = [box("a"), box("b"), box("c")]
ON_ONE = {"a": "n1", "b": "n1", "c": "n1"}


def test_only_differences_are_sent():
    manager = managed(BOXES, ON_ONE)
    plan = PlanProposed(at_s=1.0, placement={"a": "n1", "b": "n2", "c": "n1"}, reason="because")
    assert manager.handle(plan) == (Move(operator="b", source="n1", target="n2", reason="because"),)
    assert manager.handle(plan) == ()
    assert manager.placement == plan.placement


@pytest.mark.parametrize(
    ("placement", "what"),
    [
        ({"a": "n1", "b": "n1"}, "every operator must have a node"),
        ({**ON_ONE, "d": "n1"}, "must name an operator of the network"),
        ({**ON_ONE, "a": "n9"}, "must name a node of the cluster"),
        ({**ON_ONE, "a": "n2"}, "must name a node that is there"),
        ({**ON_ONE, "a": "n3"}, "must name a node that is ready"),
    ],
)
def test_an_invalid_plan_is_asked_for_again_and_then_somebody_must_look(placement, what):
    manager = managed(BOXES, ON_ONE)
    manager.handle(NodeLost(at_s=0.0, node="n2"))
    manager.handle(Heartbeat(at_s=0.0, node="n3", ready=False))
    for attempt in range(1, ATTEMPTS + 1):
        (answer,) = manager.handle(PlanProposed(at_s=1.0, placement=placement, attempt=attempt))
        assert manager.placement == ON_ONE
        if attempt < ATTEMPTS:
            assert isinstance(answer, AskAgain)
            assert answer.attempt == attempt + 1
            assert answer.nodes == ("n1",)
            assert what in answer.problems[0]
        else:
            assert isinstance(answer, Alarm)
    assert manager.journal.counts["rejected"] == ATTEMPTS


def test_rules_hold_for_plans_too():
    boxes = [box("a", pinned="n1"), box("b", table="t"), box("c", table="t")]
    manager = managed(boxes, ON_ONE)
    (answer,) = manager.handle(PlanProposed(at_s=0.0, placement={"a": "n2", "b": "n1", "c": "n2"}))
    assert isinstance(answer, AskAgain)
    assert len(answer.problems) == 2


def test_a_node_that_does_not_answer_is_dropped_and_joins_again_when_it_does():
    manager = managed(BOXES, {"a": "n1", "b": "n2", "c": "n3"}, silent_after_s=2.0)
    for second in range(5):
        asked = [
            instruction
            for node in ("n1", "n3")
            for instruction in manager.handle(Heartbeat(at_s=float(second), node=node))
        ]
        if second < 3:
            assert asked == []
            assert manager.nodes == ("n1", "n2", "n3")
        elif second == 3:
            assert [type(each) for each in asked] == [Place]
            assert asked[0].operator == "b"
    assert manager.nodes == ("n1", "n3")
    manager.handle(Heartbeat(at_s=5.0, node="n2"))
    assert set(manager.nodes) == {"n1", "n2", "n3"}
    with pytest.raises(InputError):
        manager.handle(Heartbeat(at_s=5.0, node="n7"))


def test_a_node_that_was_never_heard_of_is_dropped_too():
    manager = managed(BOXES, ON_ONE, silent_after_s=2.0)
    for second in range(4):
        for node in ("n1", "n2"):
            manager.handle(Heartbeat(at_s=float(second), node=node))
    assert manager.nodes == ("n1", "n2")


def test_nodes_that_are_not_ready_take_nothing():
    manager = managed(BOXES, {"a": "n1", "b": "n2", "c": "n3"})
    manager.handle(Heartbeat(at_s=0.0, node="n2", ready=False))
    (placed,) = manager.handle(NodeLost(at_s=1.0, node="n1"))
    assert placed.node == "n3"


@pytest.mark.parametrize(
    "policy", ["balance", "degradation", "replan", "llf_bal", "cor_se_imp", "steady_pairs"]
)
def test_a_policy_goes_by_the_nodes_that_are_ready(policy):
    """The empty node is not ready: what is to move goes to the other, and nothing is asked for in vain."""
    boxes = [box(name) for name in "abcdef"]
    stands = {**dict.fromkeys("abcde", "n1"), "f": "n2"}
    manager = managed(boxes, stands, policy=make_policy(policy))
    manager.handle(Heartbeat(at_s=0.0, node="n3", ready=False))
    seen = {name: np.zeros(6) for name in manager.statistics}
    told = {"operators": tuple("abcdef"), "series": np.full((6, 4), 0.15), "seen": seen}
    moves = manager.handle(StatisticsReported(at_s=1.0, **told))
    assert len(moves) == 2
    assert {move.target for move in moves} == {"n2"}
    assert "rejected" not in manager.journal.counts
    for move in moves:
        manager.handle(MoveDone(at_s=1.5, operator=move.operator))
    manager.handle(Heartbeat(at_s=2.0, node="n3"))
    later = [
        each for second in range(2, 9) for each in manager.handle(StatisticsReported(at_s=second, **told))
    ]
    # No node has become worse than it was after the moves, which is all that `degradation` minds.
    assert {move.target for move in later} == (set() if policy == "degradation" else {"n3"})


def test_an_operator_that_could_not_go_back_to_its_pin_is_asked_for_with_every_report():
    boxes = [box("a", pinned="n1", table="t"), box("b", table="t"), box("c")]
    manager = managed(boxes, ON_ONE)
    manager.handle(NodeLost(at_s=0.0, node="n1"))
    told = {"operators": ("a", "b", "c"), "series": np.full((3, 2), 0.1)}
    assert manager.handle(StatisticsReported(at_s=1.0, **told)) == ()
    moves = manager.handle(Heartbeat(at_s=2.0, node="n1"))
    for second in range(3, 6):
        assert {(move.operator, move.target) for move in moves} == {("a", "n1"), ("b", "n1")}
        assert manager.handle(StatisticsReported(at_s=float(second), **told)) == ()
        for _ in range(2):  # the first to fail is to follow the other, once
            for name in "ab":
                manager.handle(MoveFailed(at_s=float(second), operator=name, reason="no"))
        moves = manager.handle(StatisticsReported(at_s=second + 0.5, **told))


def test_malformed_figures_change_nothing():
    manager = managed(BOXES, ON_ONE, policy=make_policy("balance"))
    told = {"operators": ("a", "b", "c"), "series": np.full((3, 2), 0.5), "seen": {"rows_out": np.zeros(2)}}
    with pytest.raises(InputError):
        manager.handle(StatisticsReported(at_s=0.0, **told))
    assert manager.loads == {"n1": 0.0, "n2": 0.0, "n3": 0.0}


def test_important_operators_find_a_place_first():
    boxes = [box("a", 0.5), box("b", 0.2, priority=3.0), box("c", 0.3)]
    manager = managed(boxes, ON_ONE)
    assert [each.operator for each in manager.handle(NodeLost(at_s=0.0, node="n1"))] == ["b", "a", "c"]


def chain(count):
    operators = {
        f"o{k}": Operator(name=f"o{k}", spec=ModelSpec(), inputs=(Port(source=f"o{k - 1}" if k else "I"),))
        for k in range(count)
    }
    return Network(streams={"I": Stream(name="I", rate=(1.0,))}, operators=operators)


def report(manager, at_s, rows, load=0.1):
    names = tuple(manager.network.operators)
    return manager.handle(
        StatisticsReported(
            at_s=at_s,
            operators=names,
            series=np.full((len(names), 2), load),
            seen={"rows_in": np.array(rows), "rows_out": np.array(rows)},
        )
    )


def test_costs_are_remembered_from_when_a_node_changed():
    """A node that costs what it did is left alone, though it could cost less; one that rose gives."""
    policy = make_policy("degradation", {"cost": "output_rate", "room": 200})
    together = {f"o{k}": "n1" for k in range(8)}
    manager = Manager(chain(8), Cluster.equal(2), together, policy=policy, rng=np.random.default_rng(0))
    assert manager.statistics == {"rows_in", "rows_out"}
    rows = np.full(8, 10.0)
    assert report(manager, 0.0, rows) == ()
    # Somebody puts one from the middle elsewhere: from then on it is sent rows, and sends them back.
    (move,) = manager.handle(PlanProposed(at_s=0.5, placement={**together, "o3": "n2"}))
    manager.handle(MoveDone(at_s=0.6, operator=move.operator))
    assert [report(manager, float(second), rows) for second in (1, 2, 3)] == [(), (), ()]
    rows[3] = 10.9
    assert report(manager, 4.0, rows) == ()
    rows[3] = 12.0
    (back,) = report(manager, 5.0, rows)
    assert (back.operator, back.target) == ("o3", "n1")
    assert "its node's cost rose" in back.reason


def test_operators_with_like_names_are_told_apart():
    """By CRC-32 the first two add up to the same as the last two: that they changed places went unseen."""
    names = ("o49", "o189", "o50", "o190")
    references, cost = References(), np.array([1.0, 2.0])
    references.seen(names, np.array([0, 0, 1, 1]), ("n1", "n2"), cost)
    after = references.seen(names, np.array([1, 1, 0, 0]), ("n1", "n2"), cost)
    assert after.tolist() == [1.0, 2.0]


def test_a_policy_may_wait_until_a_report_holds_nothing_from_before_its_moves():
    """Windows of three samples: a load that turns round right after a move is heeded three reports later."""
    manager = managed(BOXES, ON_ONE, nodes=2, policy=make_policy("replan"))

    def reported(at_s, *loads):
        sent = {name: np.zeros(3) for name in ("sent", "sending", "receiving")}
        series = np.repeat(np.array(loads)[:, None], 3, axis=1)
        operators = ("a", "b", "c")
        return manager.handle(StatisticsReported(at_s=at_s, operators=operators, series=series, seen=sent))

    moves = reported(0.0, 0.4, 0.2, 0.2)
    for move in moves:
        manager.handle(MoveDone(at_s=0.5, operator=move.operator))
    assert sorted(map(sorted, by_node(manager.placement))) == [["a"], ["b", "c"]]
    turned = (0.2, 0.4, 0.2)
    assert [reported(at_s, *turned) for at_s in (1.0, 2.0, 3.0)] == [(), (), ()]
    assert reported(4.0, *turned)


@pytest.mark.parametrize(("period_s", "waits"), [(0.5, 6), (1.0, 3), (1.5, 2), (3.0, 1), (10.0, 1)])
def test_it_waits_as_long_as_the_window_is_however_often_it_is_asked(period_s, waits):
    """Three samples of a second each: a load that turns round is heeded 3 s after the move was seen."""
    manager = managed(BOXES, ON_ONE, nodes=2, policy=make_policy("replan"))
    asked, turned = [], (0.2, 0.4, 0.2)
    for number in range(10):
        told = StatisticsReported(
            at_s=number * period_s,
            operators=("a", "b", "c"),
            series=np.repeat(np.array(turned if number else (0.4, 0.2, 0.2))[:, None], 3, axis=1),
            seen={name: np.zeros(3) for name in ("sent", "sending", "receiving")},
            window_s=3.0,
        )
        moves = manager.handle(told)
        asked.append(bool(moves))
        for move in moves:
            manager.handle(MoveDone(at_s=(number + 0.5) * period_s, operator=move.operator))
    assert asked == [number in (0, 1 + waits) for number in range(10)]


def test_it_waits_while_operators_are_on_their_way():
    manager = managed(BOXES, ON_ONE, nodes=2, policy=make_policy("replan"))
    told = {"operators": ("a", "b", "c"), "window_s": 2.0}
    told["seen"] = {name: np.zeros(3) for name in ("sent", "sending", "receiving")}

    def reported(at_s, *loads):
        return manager.handle(
            StatisticsReported(at_s=at_s, series=np.repeat(np.array(loads)[:, None], 2, axis=1), **told)
        )

    (move,) = reported(0.0, 0.4, 0.2, 0.2)
    turned = (0.2, 0.4, 0.2)
    assert [reported(float(second), *turned) for second in range(1, 7)] == [()] * 6
    manager.handle(MoveDone(at_s=6.5, operator=move.operator))
    assert [bool(reported(float(second), *turned)) for second in (7, 8)] == [False, True]


@pytest.mark.parametrize("window_s", [0.0, -1.0, np.nan])
def test_a_window_has_a_length(window_s):
    manager = managed(BOXES, ON_ONE)
    with pytest.raises(InputError):
        manager.handle(
            StatisticsReported(
                at_s=0.0, operators=("a", "b", "c"), series=np.zeros((3, 1)), window_s=window_s
            )
        )


def test_a_plan_leaves_a_table_alone_that_is_on_its_way_elsewhere():
    """One of two operators has arrived, the other not: neither goes anywhere else, by whoever's plan."""
    boxes = [box("a", table="t"), box("b", table="t"), box("c")]
    manager = managed(boxes, ON_ONE)
    manager.handle(PlanProposed(at_s=0.0, placement={"a": "n2", "b": "n2", "c": "n1"}))
    manager.handle(MoveDone(at_s=1.0, operator="a"))
    for plan in ({"a": "n3", "b": "n3", "c": "n3"}, {"a": "n1", "b": "n1", "c": "n3"}):
        asked = manager.handle(PlanProposed(at_s=2.0, placement=plan))
        assert [each.operator for each in asked if isinstance(each, Move)] in (["c"], [])
        assert manager.placement == {"a": "n2", "b": "n2", "c": "n3"}
    ignored = [record for record in manager.journal if record.what == "ignored"]
    assert {(record.operator, record.reason) for record in ignored} == {
        ("a", "with b, already on its way to n2"),
        ("b", "already on its way to n2"),
    }
    # What it is on its way to is no other plan.
    assert manager.handle(PlanProposed(at_s=3.0, placement={"a": "n2", "b": "n2", "c": "n3"})) == ()


def by_node(placement):
    found = {}
    for operator, node in placement.items():
        found.setdefault(node, []).append(operator)
    return found.values()


def test_statistics_must_have_a_figure_per_operator():
    policy = make_policy("degradation", {"cost": "output_rate"})
    manager = Manager(
        chain(3),
        Cluster.equal(2),
        {f"o{k}": "n1" for k in range(3)},
        policy=policy,
        rng=np.random.default_rng(0),
    )
    with pytest.raises(InputError, match="a number per operator"):
        report(manager, 0.0, [1.0, 2.0])


def test_the_meter_counts_what_passes():
    ticks = iter(range(100))
    meter = Meter(managed(BOXES, ON_ONE), cpu_clock=lambda: float(next(ticks)))
    meter.handle(StatisticsReported(at_s=0.0, operators=("a", "b", "c"), series=np.zeros((3, 10))))
    meter.handle(StatisticsReported(at_s=1.0, operators=("a", "b", "c"), series=np.zeros((3, 10))))
    meter.handle(Heartbeat(at_s=2.0, node="n1"))
    spent = meter.footprint(3)
    assert (spent.events, spent.cpu_s, spent.seconds) == (3, 3.0, 2.0)
    # Twice 8 bytes and 30 samples, names once; a heartbeat is a time, a flag and a name.
    assert spent.bytes_in == 2 * (8 + 240) + 3 + 18
    assert spent.bytes_out == 0
    assert 1000 < spent.memory_bytes < 100_000
    assert spent.as_dict()["cpu_s"] == 0.5


def test_rates_are_not_known_before_there_is_a_time_that_they_are_of():
    ticks = iter(range(100))
    meter = Meter(managed(BOXES, ON_ONE), cpu_clock=lambda: float(next(ticks)))
    rates = ("cpu_s", "bytes_in", "bytes_out")
    for event in (None, Heartbeat(at_s=5.0, node="n1"), Heartbeat(at_s=5.0, node="n2")):
        if event is not None:
            meter.handle(event)
        told = meter.footprint(3).as_dict()
        assert [told[key] for key in rates] == [None] * 3
        assert told["memory_bytes"] > 0
    meter.handle(Heartbeat(at_s=6.0, node="n1"))
    assert meter.footprint(3).as_dict()["cpu_s"] == pytest.approx(1.0)


def test_making_what_is_told_counts_as_cpu_and_is_no_event():
    ticks = iter(range(100))
    meter = Meter(managed(BOXES, ON_ONE), cpu_clock=lambda: float(next(ticks)))
    made = meter.making(lambda: Heartbeat(at_s=0.0, node="n1"))
    assert made == Heartbeat(at_s=0.0, node="n1")
    spent = meter.footprint(3)
    assert (spent.events, spent.cpu_s, spent.longest_s, spent.bytes_in) == (0, 1.0, 0.0, 0)


def test_what_was_decided_is_part_of_the_memory():
    manager = managed(BOXES, ON_ONE)
    before = Meter(manager, cpu_clock=lambda: 0.0).footprint(3).memory_bytes
    records = [Record(at_s=float(k), what="ignored", reason=f"for reason {k}") for k in range(2000)]
    for record in records:
        manager.journal.add(record)
    grown = Meter(manager, cpu_clock=lambda: 0.0).footprint(3).memory_bytes - before
    own = sum(sys.getsizeof(each) + sys.getsizeof(each.reason) for each in records)
    assert own < grown < 2 * own


def test_a_network_that_is_added_is_placed_by_the_loads_that_come_with_it():
    manager = managed([box("a")], {"a": "n1"}, nodes=2)
    added = network(box("a"), box("b", 0.0), box("c", 0.0))
    placed = manager.handle(QueryAdded(at_s=0.0, network=added, loads={"b": 5.0, "c": 1.0}))
    assert [(each.operator, each.node) for each in placed] == [("b", "n2"), ("c", "n1")]


def test_the_memory_that_a_manager_is_said_to_hold_is_what_it_takes():
    """Against the allocator: what stands in memory once a manager has seen a few reports, its network too."""
    names = tuple(f"o{k}" for k in range(2000))
    policy, series = make_policy("balance", {"cost": "output_rate"}), np.full((2000, 10), 0.01)

    def seasoned():
        placement = {name: f"n{k % 50 + 1}" for k, name in enumerate(names)}
        rng = np.random.default_rng(0)
        meter = Meter(
            Manager(chain(2000), Cluster.equal(50), placement, policy=policy, rng=rng), cpu_clock=lambda: 0.0
        )
        for second in range(3):
            told = StatisticsReported(
                at_s=float(second), operators=names, series=series, seen={"rows_out": np.ones(2000)}
            )
            for move in meter.handle(told):
                meter.handle(MoveDone(at_s=float(second), operator=move.operator))
        return meter

    seasoned()  # whatever is imported, compiled and kept for ever
    gc.collect()
    tracemalloc.start()
    try:
        meter = seasoned()
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    said = meter.footprint(50).memory_bytes
    assert 0.7 * taken < said < 1.4 * taken
    assert said / 50 < 100_000


def test_a_limit_on_state_has_its_size_reported():
    assert managed(BOXES, ON_ONE).statistics == frozenset()
    manager = managed(BOXES, ON_ONE, policy=make_policy("llf_bal"), most_state_bytes=100.0)
    assert manager.statistics == {"state_bytes"}
    names, series = ("a", "b", "c"), np.full((3, 2), 0.3)
    large = dict.fromkeys(names, 1000)
    told = StatisticsReported(at_s=0.0, operators=names, series=series, state_bytes=large)
    assert manager.handle(told) == ()
    assert manager.journal.counts["rejected"] > 0
    assert manager.handle(StatisticsReported(at_s=1.0, operators=names, series=series)) != ()
