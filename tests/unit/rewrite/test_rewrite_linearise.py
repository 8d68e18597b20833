"""How many variables a network needs, and what they stand for: hand-made cases."""

from __future__ import annotations

import pytest

from levelwind.model import Filter, Join, Model, Network, Operator, Port, Split, Stream, Union
from levelwind.rewrite import linearise, split


def box(name, *sources, spec=None, cost_s=1.0, **more):
    inputs = tuple(Port(source=s.split(".")[0], route=s.split(".")[1] if "." in s else None) for s in sources)
    return Operator(name=name, spec=spec or Model(), inputs=inputs, cost_s=cost_s, **more)


def join(name, *sources, **more):
    return box(name, *sources, spec=Join(aliases=("a", "b"), within_s=0.5), **more)


def network(*boxes, streams=("I", "J")):
    return Network(streams={s: Stream(name=s) for s in streams}, operators={b.name: b for b in boxes})


CASES = {
    "no nonlinear operator": ([box("a", "I"), box("b", "a"), box("c", "J")], 0),
    "varying, nobody reads it": ([box("a", "I"), box("b", "a", varying=True), box("c", "J")], 0),
    "varying in a chain": ([box("a", "I", varying=True), box("b", "a"), box("c", "b"), box("d", "J")], 1),
    "join": ([box("a", "I"), box("b", "J"), join("c", "a", "b")], 1),
    "join with readers": ([box("a", "I"), box("b", "J"), join("c", "a", "b"), box("d", "c")], 1),
    "two varying into one union": (
        [
            box("a", "I", varying=True),
            box("b", "J", varying=True),
            box("u", "a", "b", spec=Union()),
            box("d", "u"),
        ],
        1,
    ),
    "two varying into one union, one read elsewhere too": (
        [box("a", "I", varying=True), box("b", "J", varying=True), box("u", "a", "b"), box("d", "a")],
        2,
    ),
    "join fed by varying": (
        [box("a", "I", varying=True), box("b", "J"), join("c", "a", "b")],
        1,
    ),
    "varying join, nobody reads it": ([box("a", "I"), box("b", "J"), join("c", "a", "b", varying=True)], 1),
    "varying join with readers": (
        [box("a", "I"), box("b", "J"), join("c", "a", "b", varying=True), box("d", "c")],
        2,
    ),
    "join that lets nothing through": (
        [box("a", "I"), box("b", "J"), join("c", "a", "b", selectivity=0.0), box("d", "c")],
        1,
    ),
    "varying routes, each read": (
        [
            box("f", "I", spec=Filter(routes={"x": "true", "y": "true"}), varying=True),
            box("a", "f.x"),
            box("b", "f.y"),
            box("c", "J"),
        ],
        2,
    ),
    "varying that feeds only what costs nothing": (
        [box("a", "I", varying=True), box("b", "a", cost_s=0.0), box("c", "J")],
        0,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_introduced_variables(case):
    boxes, count = CASES[case]
    linear = linearise(network(*boxes))
    assert len(linear.introduced) == count
    assert linear.variables == ("I", "J", *linear.introduced)


def test_a_stream_without_load_is_no_variable():
    linear = linearise(network(box("a", "I"), box("b", "J", cost_s=0.0)))
    assert linear.variables == ("I",)


def test_unequal_weights_of_merged_variables():
    # Each row of a counts three times in the union's load, since u reads a three times as densely.
    third = box("t", "a", selectivity=3.0, cost_s=0.0)
    boxes = [box("a", "I", varying=True), box("b", "J", varying=True), third, box("u", "t", "b")]
    (members,) = linearise(network(*boxes)).introduced.values()
    assert members == pytest.approx({"a": 1.0, "b": 1 / 3})


def test_a_join_loads_by_pairs():
    boxes = [box("a", "I", cost_s=0.0), join("c", "I", "J", cost_s=0.2, selectivity=0.1)]
    linear = linearise(network(*boxes))
    assert linear.loads["c"] == pytest.approx({"c": 2.0})


@pytest.mark.parametrize(
    ("own", "x", "y"),
    [
        ({"selectivity": 0.6}, 0.3, 0.3),
        ({}, 0.5, 0.5),
        ({"selectivity": 0.6, "route_selectivity": {"x": 0.1, "y": 0.7}}, 0.1, 0.7),
    ],
    ids=["one figure is shared equally", "unstated is 1 in all", "route by route"],
)
def test_routes(own, x, y):
    fork = box("f", "I", spec=Filter(routes={"x": "true", "y": "true"}), **own)
    loads = linearise(network(fork, box("a", "f.x"), box("b", "f.y"))).loads
    assert loads["f"] == {"I": 1.0}
    assert loads["a"] == pytest.approx({"I": x})
    assert loads["b"] == pytest.approx({"I": y})


def test_stated_load_replaces_cost_and_rows_still_flow():
    boxes = [box("a", "I", spec=Model(load={"J": 5.0}), selectivity=0.5), box("b", "a", cost_s=2.0)]
    loads = linearise(network(*boxes)).loads
    assert loads == {"a": {"J": 5.0}, "b": {"I": 1.0}}


def test_an_operator_that_reads_a_stream_twice_counts_it_twice():
    assert linearise(network(box("a", "I", "I"))).loads["a"] == {"I": 2.0}


def test_instances_are_named_by_number():
    physical = split(
        network(box("pre", "I"), box("busy", "pre", split=Split(into=4, by=("src",))), box("post", "busy"))
    )
    assert physical.names == ("pre", "busy[0]", "busy[1]", "busy[2]", "busy[3]", "post")
    assert [o.share for o in physical.operators] == [1.0, 0.25, 0.25, 0.25, 0.25, 1.0]
    to_busy = [s for s in physical.streams if s.source == "pre"]
    assert [(s.producer, s.consumers, s.share) for s in to_busy] == [(0, (i,), 0.25) for i in range(1, 5)]
    from_busy = [s for s in physical.streams if s.source == "busy"]
    assert [(s.producer, s.consumers, s.share) for s in from_busy] == [(i, (5,), 0.25) for i in range(1, 5)]


def test_between_two_split_operators_each_pair_of_instances_has_its_stream():
    physical = split(network(box("a", "I", split=Split(into=2)), box("b", "a", split=Split(into=3))))
    between = [s for s in physical.streams if s.source == "a"]
    assert sorted((s.producer, *s.consumers) for s in between) == [(p, c) for p in (0, 1) for c in (2, 3, 4)]
    assert [s.share for s in between] == pytest.approx([1 / 6] * 6)
