"""Frozen data: it stays as made, travels, and refuses what cannot be planned."""

from __future__ import annotations

import copy
import pickle

import pytest

from levelwind.errors import InputError
from levelwind.loads import make_problem
from levelwind.model import Cluster, Filter, Measures, Model, Network, Node, Operator, Port, Stream
from levelwind.model.frozen import FrozenMapping, frozen_mapping
from levelwind.testing import world


def box(name, *ports, spec=None):
    return Operator(name=name, spec=spec or Model(), inputs=ports)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.__setitem__("a", 2),
        lambda m: m.pop("a"),
        lambda m: m.popitem(),
        lambda m: m.clear(),
        lambda m: m.update(a=2),
        lambda m: m.setdefault("b", 2),
        lambda m: m.__delitem__("a"),
        lambda m: m.__ior__({"b": 2}),
    ],
)
def test_a_frozen_mapping_cannot_be_changed(change):
    mapping = frozen_mapping({"a": 1})
    with pytest.raises(TypeError):
        change(mapping)
    assert mapping == {"a": 1}


def test_a_frozen_mapping_is_a_copy_and_travels():
    mine = {"b": 1, "a": 2}
    mapping = frozen_mapping(mine)
    mine["c"] = 3
    assert list(mapping) == ["b", "a"]
    for other in (pickle.loads(pickle.dumps(mapping)), copy.deepcopy(mapping)):
        assert isinstance(other, FrozenMapping)
        assert other == mapping
        assert hash(other) == hash(mapping)


def test_networks_travel_and_compare():
    network = world("worked_example").network
    other = pickle.loads(pickle.dumps(network))
    assert other == network
    assert other.order == network.order == ("o1", "o3", "o2", "o4")
    assert isinstance(other.operators, FrozenMapping)


def test_an_operator_that_reads_nothing_known():
    with pytest.raises(InputError) as error:
        Network(operators={"a": box("a", Port(source="nobody")), "b": box("b", Port(source="nobody"))})
    assert [p.key for p in error.value.problems] == ["a", "b"]


def test_a_cycle_is_named():
    a, b, c = box("a", Port(source="c")), box("b", Port(source="a")), box("c", Port(source="b"))
    with pytest.raises(InputError) as error:
        Network(operators={"a": a, "b": b, "c": c})
    names = error.value.problems[0].value.split(" → ")
    assert names[0] == names[-1]
    assert set(names) == {"a", "b", "c"}


@pytest.mark.parametrize(
    "port", [Port(source="f", route="z"), Port(source="f"), Port(source="I", route="x")], ids=str
)
def test_a_route_that_does_not_exist(port):
    # Fixed: a network made in Python "is checked for what planning needs: names that exist"; a wrong
    # route passes, and planning ends with a bare KeyError.
    fork = box("f", Port(source="I"), spec=Filter(routes={"x": "true", "y": "true"}))
    with pytest.raises(InputError):
        make_problem(
            Network(streams={"I": Stream(name="I")}, operators={"f": fork, "a": box("a", port)}),
            Cluster.equal(1),
        )


@pytest.mark.parametrize("cpu", [0.0, -1.0, float("nan")])
def test_a_node_has_cpu(cpu):
    with pytest.raises(InputError):
        Cluster(nodes=(Node(name="n1", cpu=cpu),))


def test_node_names_are_unique_and_there_is_one():
    with pytest.raises(InputError) as error:
        Cluster(nodes=(Node(name="n1"), Node(name="n1")))
    assert error.value.problems[0].value == "n1"
    with pytest.raises(InputError):
        Cluster(nodes=())


def test_equal_nodes():
    cluster = Cluster.equal(3, cpu=2.0)
    assert cluster.names == ("n1", "n2", "n3")
    assert {node.cpu for node in cluster.nodes} == {2.0}


def test_measures_have_the_names_of_the_contract():
    assert list(Measures().as_dict()) == [
        "feasible_ratio", "feasible_error", "min_plane_distance", "min_axis_distance", "max_load",
        "load_spread", "load_std", "load_std_bound", "load_correlation", "network_usage", "delay",
        "cut_streams", "moved_load",
    ]  # fmt: skip
