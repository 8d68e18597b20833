"""The manager of a run, driven by steps in this process that take as long as they are told to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec
import numpy as np
import polars as pl
import pytest

from levelwind.balance.costs.protocol import LOAD, STATE_BYTES, STATISTICS
from levelwind.balance.protocol import Proposal
from levelwind.errors import RunError
from levelwind.frontend import parse_network
from levelwind.frontend.addition import extended
from levelwind.model import Cluster, Model, Network, Node, Operator, Port, Stream
from levelwind.operators.rows import TIME
from levelwind.runtime.commits import Version
from levelwind.runtime.coordinator import Coordinator, Move
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.managing import Balancing, Steward, warm_up
from levelwind.runtime.program import Layout
from levelwind.runtime.sinks import Discard
from levelwind.runtime.staging import DEAD_LETTERS
from levelwind.runtime.window import LoadWindow

SECOND = 1_000_000
NETWORK = parse_network(
    {
        "streams": {
            name: {"schema": {"ts": "timestamp", "v": "bigint"}, "time": "ts"} for name in ("left", "right")
        },
        "operators": [
            {"name": "half", "kind": "filter", "input": "left", "where": "v % 2 = 0"},
            {"name": "after", "kind": "map", "input": "half", "select": {"v": "v + 1"}},
            {"name": "other", "kind": "map", "input": "right", "select": {"v": "v + 1"}},
        ],
        "outputs": {"one": {"input": "after"}, "two": {"input": "other"}},
    }
).network
CLUSTER = Cluster.equal(2)
ALONE = dict.fromkeys(NETWORK.operators, "n1")
# CPU seconds per row in, and per byte sent and received.
COST = {"half": 0.002, "after": 0.004, "other": 0.001}
SENDING_S, RECEIVING_S = 1e-5, 2e-5


class Priced(InProcess):
    """Every operator costs what `COST` says, whatever this machine is busy with."""

    def run(self, program, batch, rows):
        names = [box.name for box in program.layout.boxes]

        def priced(box):
            sending = SENDING_S * box.away_bytes
            cpu_s = COST.get(names[box.box], 0.0) * box.rows_in + sending
            return msgspec.structs.replace(box, cpu_s=cpu_s, away_s=sending)

        reports = super().run(program, batch, rows)
        return [
            msgspec.structs.replace(
                report,
                boxes=tuple(priced(box) for box in report.boxes),
                received_s=RECEIVING_S * report.received_bytes,
            )
            for report in reports
        ]


@dataclass
class World:
    """A run whose steps take as long as they are told to."""

    coordinator: Coordinator
    now: float = 1000.0

    def step(self, seconds=1.0, **rows):
        """A step with so many rows of each stream, spread over a second of event time that ends now."""
        number = self.coordinator.step_number
        reading = []
        for name, count in rows.items():
            times = number * SECOND + (np.arange(1, count + 1) * SECOND) // max(count, 1)
            frame = pl.DataFrame({"ts": pl.Series(times, dtype=pl.Int64).cast(TIME), "v": range(count)})
            reading.append([(name, frame)])
        step = self.coordinator.step(reading)
        self.now += seconds
        object.__setattr__(step, "started", self.now - seconds)
        object.__setattr__(step, "wall_s", seconds)
        return step


def world_in(folder):
    sinks = dict.fromkeys((*NETWORK.outputs, DEAD_LETTERS), Discard())
    return World(
        Coordinator(
            Layout(NETWORK), CLUSTER.names, ALONE, directory=str(folder), executor=Priced(), sinks=sinks
        )
    )


@pytest.fixture
def world(tmp_path):
    return world_in(tmp_path)


@dataclass(frozen=True)
class Once:
    """A policy that moves the first operator to the last node, and remembers what it was shown."""

    shown: list

    def propose(self, situation, *, rng):
        self.shown.append(situation)
        if situation.node[0] == len(situation.cpu) - 1:
            return ()
        return (Proposal(operator=0, to=len(situation.cpu) - 1, reason="first to last"),)


def drive(world, steward, steps, seconds=1.0, **rows):
    """So many steps, each as a run does it."""
    done = []
    for _ in range(steps):
        world.coordinator.move(steward.moves())
        done.append(world.step(seconds, **rows))
        steward.saw(done[-1])
    return done


def loads_of(window, world):
    layout = world.coordinator.layout
    return dict(zip((box.name for box in layout.boxes), window.loads(layout).tolist(), strict=True))


def test_loads_are_offered_rates_times_selectivities_times_costs(world):
    window = LoadWindow(period_s=1.0, samples=4)
    for _ in range(3):
        assert not window.add(world.step(left=100, right=100))
    for left in (100, 100, 300, 100):
        # The batch takes four seconds for one second of rows: the load is what they ask for, not a quarter.
        assert window.add(world.step(4.0, left=left, right=50))
    assert window.is_full
    loads = loads_of(window, world)
    assert loads["half"] == pytest.approx([0.2, 0.2, 0.6, 0.2])
    assert loads["after"] == pytest.approx([0.2, 0.2, 0.6, 0.2])
    assert loads["other"] == pytest.approx([0.05, 0.05, 0.05, 0.05])


def test_what_sending_costs_is_measured_by_the_byte(world):
    window, layout = LoadWindow(period_s=1.0, samples=4), world.coordinator.layout
    number = {box.name: box.index for box in layout.boxes}
    world.coordinator.move([Move(operator="after", target="n2", cause="asked")])
    # Four seconds of wall time for one of event time, as above: all figures are per second of the latter.
    for _ in range(7):
        window.add(world.step(4.0, left=100, right=50))
    found = {name: values.tolist() for name, values in window.sending(layout).items()}
    row = pl.DataFrame({"ts": pl.Series([0]).cast(TIME), "v": [1]}).estimated_size()
    half, after = number["half"], number["after"]
    assert found["sent"][half] == pytest.approx(SENDING_S * 50 * row)
    assert found["sent"][after] == 0.0
    # What stays on its node would cost as much by the byte as what does not.
    assert found["sending"][half] == pytest.approx(SENDING_S * 50 * row)
    assert found["sending"][number["other"]] == pytest.approx(SENDING_S * 50 * row)
    assert found["receiving"][half] == pytest.approx(RECEIVING_S * 50 * row)
    assert loads_of(window, world)["half"] == pytest.approx([0.2 + SENDING_S * 50 * row] * 4)


def test_nobody_has_sent_anything_yet(world):
    window, layout = LoadWindow(period_s=1.0, samples=1), world.coordinator.layout
    for _ in range(4):
        window.add(world.step(left=100, right=50))
    found = window.sending(layout)
    assert found["sent"].tolist() == [0.0] * 3
    assert (found["sending"] > 0).all()


def test_short_steps_share_a_sample_and_a_silent_stream_has_the_time_of_the_others(world):
    window = LoadWindow(period_s=2.0, samples=3)
    for _ in range(3):
        window.add(world.step(left=10, right=10))
    right = [40, 40, 0, 0, 40, 40]
    ended = [window.add(world.step(left=100, right=count)) for count in right]
    assert ended == [False, True] * 3
    loads = loads_of(window, world)
    assert loads["half"] == pytest.approx([0.2, 0.2, 0.2])
    # Four seconds lie between its last row and its next: they are not taken for two.
    assert loads["other"] == pytest.approx([0.04, 0.0, 0.04])


def test_a_move_is_made_at_the_next_step_with_its_reason_and_reported_done(world):
    policy = Once([])
    steward = Steward(NETWORK, CLUSTER, ALONE, Balancing(policy=policy, samples=2))
    steps = drive(world, steward, 7, left=100, right=50)
    # Three to warm up, two samples, then the move.
    assert [len(step.commit.moves) for step in steps] == [0, 0, 0, 0, 0, 1, 0]
    record = steps[5].commit.moves[0]
    assert (record.operator, record.source, record.target) == ("half", "n1", "n2")
    assert record.cause == "first to last"
    assert steward.manager.under_way == {}
    assert steward.manager.journal.counts == {"accepted": 1, "done": 1}
    assert policy.shown[0].series.shape == (3, 2)
    assert steps[-1].program.placement == {"half": "n2", "after": "n1", "other": "n1"}


def test_decisions_are_told_once_and_refused_proposals_once_per_reason(world):
    class Hopeful:
        def propose(self, situation, *, rng):
            return tuple(Proposal(operator=j, to=1, reason="why not", group=j) for j in range(3))

    steward = Steward(NETWORK, CLUSTER, ALONE, Balancing(policy=Hopeful(), samples=1, moved_load_budget=0.0))
    drive(world, steward, 5, left=100, right=50)
    (told,) = steward.decisions()
    assert (told["what"], told["operator"], told["source"], told["target"]) == (
        "rejected",
        "half",
        "n1",
        "n2",
    )
    assert "budget" in told["reason"]
    assert told["proposals"] == steward.manager.journal.counts["rejected"] >= 3
    assert steward.decisions() == []


def test_a_move_by_hand_goes_before_and_is_known(world):
    steward = Steward(NETWORK, CLUSTER, ALONE, Balancing(policy=Once([]), samples=1))
    drive(world, steward, 4, left=10, right=10)
    due = steward.moves()
    assert [move.operator for move in due] == ["half"]
    by_hand = [
        Move(operator="half", target="n1", cause="by hand"),
        Move(operator="other", target="n2", cause="by hand"),
    ]
    world.coordinator.move([*due, *by_hand])
    step = world.step(0.5, left=10, right=10)
    steward.saw(step)
    assert [record.operator for record in step.commit.moves] == ["other"]
    assert steward.manager.placement == {"half": "n1", "after": "n1", "other": "n2"}
    assert steward.manager.under_way == {}
    assert steward.manager.journal.counts["failed"] == 1


def test_what_stood_on_a_lost_node_runs_elsewhere_within_two_steps_and_the_node_is_used_again(world):
    steward = Steward(NETWORK, CLUSTER, ALONE, Balancing())
    drive(world, steward, 1, left=10, right=10)
    steward.watch({"n1"})
    assert steward.moves() == []
    steward.watch(set())
    steward.watch({"n1"})
    assert steward.moves() == []  # away for a moment, twice
    steward.watch({"n1"})
    (step,) = drive(world, steward, 1, left=10, right=10)
    assert set(step.program.placement.values()) == {"n2"}
    assert {record.cause for record in step.commit.moves} == {"n1 was lost; least loaded node"}
    assert steward.manager.nodes == ("n2",)
    steward.watch(set())
    assert steward.manager.nodes == ("n2", "n1")
    # By hand onto a node that is lost: it is not left there.
    steward.watch({"n1"})
    steward.watch({"n1"})
    world.coordinator.move([Move(operator="half", target="n1", cause="by hand")])
    drive(world, steward, 2, left=10, right=10)
    assert set(world.coordinator.program.placement.values()) == {"n2"}


def test_without_a_node_there_is_an_alarm_and_everything_stays(world):
    steward = Steward(NETWORK, CLUSTER, ALONE, Balancing())
    for _ in range(2):
        steward.watch({"n1", "n2"})
    assert any("no node is left" in text for text in steward.alarms)
    (step,) = drive(world, steward, 1, left=10, right=10)
    assert len(step.program.placement) == 3
    steward.watch({"n1"})
    drive(world, steward, 1, left=10, right=10)
    assert set(world.coordinator.program.placement.values()) == {"n2"}


def test_rows_on_their_way_meet_an_operator_that_came_since_and_depends_on_order(tmp_path):
    network = replace(NETWORK, hops="next")
    sinks = dict.fromkeys((*network.outputs, "pairs", DEAD_LETTERS), Discard())
    apart = {"half": "n1", "after": "n2", "other": "n1"}
    world = World(
        Coordinator(
            Layout(network), CLUSTER.names, apart, directory=str(tmp_path), executor=InProcess(), sinks=sinks
        )
    )
    assert world.step(left=10, right=10).commit.in_flight
    more = {
        "operators": [
            {"name": "pair", "kind": "aggregate", "input": "after", "window": {"rows": 2, "slide": 2},
             "compute": {"v": "first(v)"}}
        ],
        "outputs": {"pairs": {"input": "pair"}},
    }  # fmt: skip
    found = extended(network, more)
    version = Version(network="", origin="")
    placement = {**apart, "pair": "n2"}
    world.coordinator.change(Layout(found), placement, sinks=sinks, fingerprints={}, version=version)
    # It comes to where its rows are going: those with a rank meet those that were sent without.
    world.coordinator.move([Move(operator="half", target="n2", cause="test")])
    step = world.step(left=10, right=10)
    done = {step.program.layout.boxes[box.box].name: box.rows_in for _, box in step.boxes}
    assert done["after"] == done["pair"] == 10


def test_a_restart_leaves_operators_where_they_were_unless_a_pin_came_since(world):
    world.coordinator.move([Move(operator=name, target="n2", cause="test") for name in ("half", "other")])
    world.step(left=10, right=10)
    operators = {**NETWORK.operators, "other": replace(NETWORK.operators["other"], pinned="n1")}
    again = Coordinator(
        Layout(replace(NETWORK, operators=operators)), CLUSTER.names, ALONE,
        directory=world.coordinator.directory, executor=InProcess(), sinks=world.coordinator.sinks,
    )  # fmt: skip
    again.recover()
    assert again.program.placement == {"half": "n2", "after": "n1", "other": "n1"}


@dataclass(frozen=True)
class Onlooker:
    """A policy that goes by a cost of its own, and remembers what it was shown."""

    shown: list
    statistics = frozenset()

    def costs(self, situation):
        self.shown.append(situation)
        return np.zeros(len(situation.cpu))

    def propose(self, situation, *, rng):
        self.shown.append(situation)
        return ()


def test_before_a_run_a_policy_is_shown_a_small_situation_that_has_what_the_run_has():
    marked = [
        Operator(name=f"o{k}", spec=Model(), inputs=(Port(source="I"),), properties={"k": k})
        for k in range(3)
    ]
    nodes = tuple(Node(name=f"m{i}", cpu=2.0 + i, properties={"rack": i}) for i in range(3))
    for operators, count in ((3, 3), (1, 1), (0, 2)):
        boxes = {each.name: each for each in marked[:operators]}
        network = Network(streams={"I": Stream(name="I")}, operators=boxes)
        policy = Onlooker([])
        warm_up(policy, network, Cluster(nodes=nodes[:count]))
        assert len(policy.shown) == 2
        for seen in policy.shown:
            assert [node.properties["rack"] for node in seen.nodes] == ([0, 1] if count > 1 else [0, 0])
            stated = [own.get("k") for own in seen.facts.properties]
            assert stated == {3: [0, 1], 1: [0, 0], 0: [None, None]}[operators]
            assert {LOAD, STATE_BYTES, *seen.seen} == set(STATISTICS)
            # More than the first node has: whatever a policy does, it does it here.
            assert seen.mean_load.sum() > seen.cpu[0]


def test_a_policy_that_fails_while_it_runs_is_named(world):
    class Broken(Onlooker):
        name = "broken"

        def propose(self, situation, *, rng):
            raise KeyError(7)

    balancing = Balancing(policy=Broken([]), samples=1)
    steward = Steward(NETWORK, CLUSTER, ALONE, balancing)
    with pytest.raises(RunError, match="policy broken failed: KeyError: 7"):
        drive(world, steward, 6, left=100)
