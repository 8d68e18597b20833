"""Who loses rows under overload, against a reckoning from the other end, and on nodes made up of numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levelwind.control import Manager, TopManager
from levelwind.control.events import QueryRemoved, StatisticsReported
from levelwind.control.instructions import Alarm, Shed
from levelwind.control.shedding import AIM, LEAST, kept_shares
from levelwind.model import Cluster, Model, Multijoin, Network, Node, Operator, Port, Stream
from levelwind.model.operator import Diffuse


def reckoned(load, may_shed, priority, room):
    """From below: class after class gives what is still too much, until it has nothing left to give."""
    share = [1.0] * len(load)
    excess = sum(load) - room
    for rank in sorted({p for p, may in zip(priority, may_shed, strict=True) if may}):
        equal = [j for j in range(len(load)) if may_shed[j] and priority[j] == rank]
        own = sum(load[j] for j in equal)
        given = min(max(excess, 0.0), (1 - LEAST) * own)
        excess -= given
        for j in equal:
            share[j] = 1.0 - given / own if own > 0 else 1.0
    return share


LOADS = st.one_of(st.just(0.0), st.floats(0.01, 2.0))
OPERATORS = st.lists(
    st.tuples(LOADS, st.booleans(), st.sampled_from([-1.0, 0.0, 2.0])), min_size=1, max_size=8
)


@given(OPERATORS, st.floats(0.0, 8.0))
def test_shares_are_those_reckoned_from_below(operators, room):
    load, may_shed, priority = (np.array(column) for column in zip(*operators, strict=True))
    found = kept_shares(load, may_shed.astype(bool), priority, room)
    assert found == pytest.approx(reckoned(load.tolist(), may_shed.tolist(), priority.tolist(), room))


def joined(name, priority, *, may_shed=True):
    spec = Multijoin(aliases=("a", "b"), windows_s={"a": 1.0, "b": 1.0}, shed_rows=10 if may_shed else None)
    inputs = (Port(source="I"), Port(source="I"))
    return Operator(name=name, spec=spec, inputs=inputs, priority=priority)


def network_of(*operators):
    return Network(streams={"I": Stream(name="I")}, operators={each.name: each for each in operators})


HIGH, LOW, FIXED = joined("high", 2.0), joined("low", 0.0), joined("fixed", -5.0, may_shed=False)
NETWORK = network_of(HIGH, LOW, FIXED)
HOME = {"high": "n1", "low": "n2", "fixed": "n2"}


class Plant:
    """Nodes whose load follows the shares: a join's by a power of its rows, over a window of samples."""

    def __init__(self, manager, full, power, samples=4):
        self.manager, self.full, self.power, self.samples = manager, full, power, samples
        self.share = dict.fromkeys(full, 1.0)
        self.seen = [[load] * samples for load in full.values()]
        self.instructions = []

    @property
    def load(self):
        return sum(self.full[n] * self.share[n] ** self.power for n in self.full)

    def run(self, reports):
        for number in range(reports):
            for row, name in zip(self.seen, self.full, strict=True):
                row.append(self.full[name] * self.share[name] ** self.power)
                del row[0]
            told = StatisticsReported(
                at_s=float(number), operators=tuple(self.full), series=np.array(self.seen)
            )
            for each in self.manager.handle(told):
                self.instructions.append(each)
                if isinstance(each, Shed):
                    self.share[each.operator] = each.share


def managed(network=NETWORK, home=HOME, cluster=None):
    return Manager(network, cluster or Cluster.equal(2), home, policy=None, rng=np.random.default_rng(0))


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_the_least_important_gives_until_the_nodes_can_bear_it(power):
    plant = Plant(managed(), {"high": 1.0, "low": 1.2, "fixed": 0.5}, power)
    plant.run(80)
    # 0.4 of `low` may stay: it alone gives, and about as much as it must.
    assert plant.share["high"] == plant.share["fixed"] == 1.0
    assert plant.load == pytest.approx(2 * AIM, rel=0.03)
    assert [type(each) for each in plant.instructions][:2] == [Alarm, Shed]
    reasons = [record.reason for record in plant.manager.journal if record.what == "shed"]
    assert "load 2.7 on CPUs of 2" in reasons[0]


def test_the_important_give_once_the_others_have_nothing_left():
    plant = Plant(managed(), {"high": 2.0, "low": 1.2, "fixed": 0.5}, 1.0)
    plant.run(120)
    assert plant.share["low"] == pytest.approx(LEAST, rel=0.2)
    assert LEAST < plant.share["high"] < 1.0
    assert plant.share["fixed"] == 1.0
    assert plant.load <= 2.0


def test_all_rows_are_taken_again_when_the_overload_is_over():
    plant = Plant(managed(), {"high": 1.0, "low": 1.2, "fixed": 0.5}, 2.0)
    plant.run(40)
    assert plant.share["low"] < 1.0
    plant.full = {"high": 0.5, "low": 0.6, "fixed": 0.5}
    plant.run(80)
    assert set(plant.share.values()) == {1.0}
    before = len(plant.instructions)
    plant.run(20)
    assert len(plant.instructions) == before


def test_without_overload_nobody_gives():
    plant = Plant(managed(), {"high": 0.9, "low": 0.6, "fixed": 0.4}, 1.0)
    plant.run(20)
    assert plant.instructions == []


def test_who_may_not_shed_never_does():
    rigid = network_of(joined("high", 2.0, may_shed=False), FIXED)
    plant = Plant(managed(rigid, {"high": "n1", "fixed": "n2"}), {"high": 3.0, "fixed": 1.0}, 1.0)
    plant.run(20)
    assert [type(each) for each in plant.instructions] == [Alarm]


def test_an_operator_that_goes_takes_all_its_rows_elsewhere():
    plant = Plant(managed(), {"high": 1.0, "low": 1.2, "fixed": 0.5}, 1.0)
    plant.run(10)
    told = plant.manager.handle(QueryRemoved(at_s=20.0, network=network_of(HIGH, FIXED)))
    assert Shed(operator="low", share=1.0, reason="no query uses it any more") in told


def test_a_group_sheds_by_itself():
    """The overload of one group costs nobody else rows."""
    nodes = tuple(Node(name=f"n{k}", cpu=1.0, properties={"g": f"g{k}"}) for k in (1, 2))
    busy, idle = joined("busy", 0.0), joined("idle", -1.0)
    pinned = {o.name: Operator(**{**fields(o), "pinned": n}) for o, n in ((busy, "n1"), (idle, "n2"))}
    network = Network(streams={"I": Stream(name="I")}, operators=pinned)
    top = TopManager(
        network,
        Cluster(nodes=nodes),
        {"busy": "n1", "idle": "n2"},
        groups="g",
        policy=None,
        rng=np.random.default_rng(0),
    )
    plant = Plant(top, {"busy": 1.5, "idle": 0.1}, 1.0)
    plant.run(60)
    assert plant.share["idle"] == 1.0
    assert plant.share["busy"] == pytest.approx(AIM / 1.5, rel=0.05)


def fields(operator):
    names = ("name", "spec", "inputs", "priority")
    return {name: getattr(operator, name) for name in names}


class Spread(Plant):
    """A spread join whose sender takes fewer rows, so that all its parts have less to do."""

    def run(self, reports):
        for _ in range(reports):
            super().run(1)
            for name in self.full:
                if name.startswith("wide"):
                    self.share[name] = self.share["wide[in]"]


def test_a_spread_join_gives_by_the_load_of_all_its_parts():
    join = joined("wide", 1.0)
    wide = replace(join, spec=replace(join.spec, diffuse=Diffuse(method="atr", instances=2)))
    full = {"wide[in]": 0.1, "wide[0]": 1.0, "wide[1]": 1.0, "wide": 0.1, "high": 0.5}
    home = {name: "n2" if name == "wide[1]" else "n1" for name in full}
    plant = Spread(managed(network_of(wide, HIGH), home), full, 1.0)
    plant.run(80)
    assert {each.operator for each in plant.instructions if isinstance(each, Shed)} == {"wide[in]"}
    assert plant.share["high"] == 1.0
    assert plant.load == pytest.approx(2 * AIM, rel=0.03)


def test_models_do_not_shed():
    assert not Operator(name="o", spec=Model(), inputs=(Port(source="I"),)).may_shed
