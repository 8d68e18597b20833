"""The load model's edges, one small network each."""

from __future__ import annotations

import numpy as np
import pytest

from levelwind import planning
from levelwind.errors import InputError
from levelwind.loads import make_problem
from levelwind.model import Cluster, Join, Model, Multijoin, Network, Node, Operator, Output, Port, Stream
from levelwind.placement import make_planner


def box(name, *sources, spec=None, cost_s=1.0, **more):
    inputs = tuple(Port(source=source) for source in sources)
    return Operator(name=name, spec=spec or Model(), inputs=inputs, cost_s=cost_s, **more)


def network(*boxes, outputs=(), **streams):
    return Network(
        streams={n: Stream(name=n, **own) for n, own in streams.items()},
        operators={b.name: b for b in boxes},
        outputs={o.name: o for o in outputs},
    )


def apart(count=2):
    latency = tuple(tuple(0.0 if i == j else 10.0 for j in range(count)) for i in range(count))
    return Cluster(nodes=tuple(Node(name=f"n{i + 1}") for i in range(count)), latency_ms=latency)


def test_pairs_of_a_join_and_a_multijoin():
    join = box("j", "I", "J", spec=Join(aliases=("a", "b"), within_s=0.5))
    trio = box(
        "t", "I", "J", "J", spec=Multijoin(aliases=("a", "b", "c"), windows_s={"a": 1.0, "b": 2.0, "c": 4.0})
    )
    problem = make_problem(network(join, trio, I={"rate": (3.0,)}, J={"rate": (5.0,)}), Cluster.equal(1))
    # 2 · 0.5 · 3 · 5, and 3 · 5 · 5 · (2·4 + 1·4 + 1·2).
    np.testing.assert_allclose(problem.mean_load, [15.0, 1050.0])


def test_series_of_an_operator_add_to_its_load():
    # One operator states a series of its own, the other follows its stream.
    own = box("own", spec=Model(series=(0.1, 0.3)))
    problem = make_problem(network(own, box("a", "I"), I={"rate": (1.0,)}), Cluster.equal(1))
    np.testing.assert_allclose(problem.load_series, [[0.1, 0.3], [1.0, 1.0]])
    np.testing.assert_allclose(problem.mean_load, [0.2, 1.0])
    assert problem.variables == ("I",)


def test_given_rates_replace_the_stated_ones():
    net = network(box("a", "I"), I={"rate": (1.0, 3.0)})
    assert make_problem(net, Cluster.equal(1)).mean_load == [2.0]
    assert make_problem(net, Cluster.equal(1), rates={"I": 5.0}).mean_load == [5.0]


@pytest.mark.parametrize("rates", [{"nobody": 1.0}, {"I": -1.0}, {"I": float("nan")}])
def test_rates_that_make_no_sense(rates):
    with pytest.raises(InputError):
        make_problem(network(box("a", "I"), I={}), Cluster.equal(1), rates=rates)


def test_names_of_nodes_that_do_not_exist_are_all_reported():
    net = network(
        box("a", "I", pinned="x"),
        I={"node": "y"},
        outputs=[Output(name="o", input=Port(source="a"), node="z")],
    )
    with pytest.raises(InputError) as error:
        make_problem(net, Cluster.equal(2))
    assert [p.key for p in error.value.problems] == ["a.pinned", "I.node", "o.node"]


def test_what_stood_on_a_node_that_is_gone_must_move():
    net = network(box("a", "I", movable=False), box("b", "I"), I={"rate": (1.0,)})
    found = planning.plan(net, 2, current={"a": "gone", "b": "n1"})
    assert found.placement["a"] in ("n1", "n2")
    assert make_problem(net, Cluster.equal(2), current={"a": "n2"}).fixed.tolist() == [1, -1]


def test_sending_what_only_a_join_reads_counts_in_max_load():
    # Fixed: no operator's load depends on v's output, so its rate is dropped from the variables, and with
    # it what its rows cost to send. 10 rows a second, 0.1 s each, half at either end.
    varying = box("v", "I", cost_s=0.01, varying=True, transfer_cost_s=0.1)
    join = box("j", "v", "J", spec=Join(aliases=("a", "b"), within_s=0.01), cost_s=0.0)
    net = network(varying, join, box("k", "J", cost_s=0.01), I={"rate": (10.0,)}, J={"rate": (1.0,)})
    found = planning.measure(net, 2, {"v": "n1", "j": "n2", "k": "n2"})
    assert found.max_load == pytest.approx(10 * 0.01 + 10 * 0.05)


def test_sending_between_operators_that_cost_nothing_counts_in_max_load():
    # Fixed: the same with a stream: nothing that reads it has load, so sending it is free.
    boxes = [box("a", "I", cost_s=0.0, transfer_cost_s=0.1), box("b", "a", cost_s=0.0)]
    found = planning.measure(network(*boxes, I={"rate": (10.0,)}), 2, {"a": "n1", "b": "n2"})
    assert found.max_load == pytest.approx(0.5)


def test_only_streams_that_cause_load_are_missing():
    # Fixed: "names the streams that cause load and state no rate" — an unread one is named as well.
    net = network(box("a", "I"), I={}, unread={})
    assert make_problem(net, Cluster.equal(1)).rates.missing == ("I",)


def test_network_usage_without_the_rate_of_a_stream_that_causes_no_load():
    # Fixed: I causes no load, so its rate is not missed: network_usage is NaN, not None with a note.
    net = network(box("a", "I", cost_s=0.0), box("b", "J"), I={"node": "n1"}, J={"rate": (1.0,)})
    found = planning.measure(net, apart(), {"a": "n2", "b": "n2"})
    assert found.network_usage is None


def test_rows_of_no_bytes_use_no_network():
    # Fixed: `bytes: 0` is taken for unstated, and counted as rows.
    net = network(box("a", "I", bytes=0.0), box("b", "a"), I={"rate": (1.0,)})
    assert planning.measure(net, apart(), {"a": "n1", "b": "n2"}).network_usage == 0.0


def test_equal_nodes_up_to_rounding_have_one_plane():
    # Fixed (exact volume): 0.1 + 0.2 on one node, 0.3 on another differ by rounding, and count twice.
    boxes = [box("a", "I", cost_s=0.1), box("b", "I", cost_s=0.2), box("c", "I", cost_s=0.3)]
    boxes += [box("d", "J", cost_s=0.1), box("e", "J", cost_s=0.1), box("f", "J", cost_s=0.6)]
    net = network(*boxes, I={}, J={})
    near = {"a": "n1", "b": "n1", "c": "n2", "d": "n1", "e": "n2", "f": "n3"}
    # Loads (.3, .1), (.3, .1), (0, .6) of (.6, .8): with x = l·r/3 the planes are (1.5, .375), (0, 2.25).
    # Of the triangle 1.5x + .375y ≤ 1 what lies below y = 4/9: (2/3 + 5/9)/2 · 4/9 = 22/81; ideal 1/2.
    assert planning.measure(net, 3, near).feasible_ratio == pytest.approx(44 / 81, abs=1e-12)


def test_max_rate_sees_loads_that_are_stated_as_series():
    # Fixed: the peak is worked out from stream rates alone, so stated series weigh nothing: all on one node.
    boxes = [box(f"s{i}", spec=Model(series=(0.2, 0.8))) for i in range(4)]
    problem = make_problem(network(*boxes, box("a", "I"), I={"rate": (0.001,)}), Cluster.equal(2))
    found = make_planner("max_rate").plan(problem, rng=np.random.default_rng(0)).assignment
    assert np.bincount(found[:4], minlength=2).tolist() == [2, 2]


@pytest.mark.parametrize("own", [{"pinned": "n2"}, {}], ids=["pin", "entry"])
def test_size_of_a_network_that_names_nodes(own):
    # The search must not stumble over one node, where n2 does not exist.
    net = network(
        box("a", "I", cost_s=0.1, **own), box("b", "I", cost_s=0.1), I={"node": None if own else "n2"}
    )
    assert planning.size(net, {"I": 1.0}).nodes == 2
