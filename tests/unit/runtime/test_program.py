from __future__ import annotations

import pytest

from levelwind.errors import InputError
from levelwind.frontend import parse_network
from levelwind.model import Port
from levelwind.runtime.cuts import Cut
from levelwind.runtime.program import Layout, Part, Program, Reader

SCHEMA = {"ts": "timestamp", "k": "string", "v": "bigint"}
NODES = ("n1", "n2", "n3")


def stream(**more):
    return {"schema": SCHEMA, "time": "ts", **more}


def layout(*operators, hops="within", streams=("a", "b"), outputs=None):
    told = {
        "name": "t",
        "hops": hops,
        "streams": {name: stream() for name in streams},
        "operators": list(operators),
        "outputs": outputs or {"out": {"input": operators[-1]["name"]}},
    }
    return Layout(parse_network(told).network)


def keep(name, source, **more):
    return {"name": name, "kind": "filter", "input": source, "where": "v > 0", **more}


def count(name, source, **more):
    told = {"window": {"size": "2s"}, "compute": {"n": "count(*)"}, **more}
    return {"name": name, "kind": "aggregate", "input": source, "by": ["k"], **told}


def union(name, *sources, **more):
    return {"name": name, "kind": "union", "inputs": list(sources), **more}


def pair(name, left, right, **more):
    where = f"{left}.k = {right}.k"
    return {"name": name, "kind": "join", "inputs": [left, right], "within": "1s", "where": where, **more}


def three(name, where, **more):
    told = {"inputs": {"x": "a", "y": "b", "z": "a"}, "windows": {"x": "1s", "y": "1s", "z": "1s"}}
    return {"name": name, "kind": "multijoin", "where": where, **told, **more}


SPLIT = {"into": 2, "by": "k"}
CHAIN = (keep("f", "a"), keep("g", "f"), count("h", "g"))
DIAMOND = (keep("f", "a"), keep("g", "f"), keep("h", "f"), union("u", "g", "h"))


def program(of, **homes):
    """A program where the boxes that are not named stand on n1."""
    return Program.of(of, NODES, {box.name: homes.get(box.name, "n1") for box in of.boxes})


def port(source, route=None):
    return Port(source=source, route=route)


class TestBoxes:
    """Operators as they run."""

    def test_a_split_operator_is_as_many_boxes(self):
        of = layout(
            keep("f", "a"), count("h", "f", split={"into": 3, "by": "k"}), keep("z", "h", where="n > 0")
        )
        assert [box.name for box in of.boxes] == ["f", "h[0]", "h[1]", "h[2]", "z"]
        assert [box.index for box in of.boxes] == [0, 1, 2, 3, 4]
        assert [box.instance for box in of.boxes] == [None, 0, 1, 2, None]
        assert [box.name for box in of.boxes_of["h"]] == ["h[0]", "h[1]", "h[2]"]
        assert of.box_named["h[1]"] is of.boxes[2]

    def test_the_streams_behind_each(self):
        of = layout(keep("f", "a"), union("u", "f", "b"), keep("g", "b"))
        found = {box.name: of.sources_of[box.index] for box in of.boxes}
        assert found == {"f": {"a"}, "u": {"a", "b"}, "g": {"b"}}

    def test_outputs_by_what_they_read(self):
        of = layout(*CHAIN, outputs={"x": {"input": "f"}, "y": {"input": "f"}, "z": {"input": "h"}})
        assert of.outputs == {port("f"): ("x", "y"), port("h"): ("z",)}


class TestParts:
    """What travels as a whole, and who reads it."""

    def test_a_whole_port_is_one_part_for_all_its_readers(self):
        of = layout(*DIAMOND)
        assert of.readers[Part(port("f"))] == (Reader(1, 0), Reader(2, 0))
        assert of.readers[Part(port("h"))] == (Reader(3, 1),)
        assert of.parts[port("f")] == (Part(port("f")),)
        assert port("u") not in of.parts
        assert port("b") not in of.parts

    def test_readers_that_are_cut_alike_share_their_parts(self):
        of = layout(count("h", "a", split=SPLIT), count("i", "a", split=SPLIT), keep("f", "a"))
        cut = Cut(("k",), (None,), 2)
        assert of.parts[port("a")] == (Part(port("a"), cut, 0), Part(port("a"), cut, 1), Part(port("a")))
        assert of.readers[Part(port("a"), cut, 1)] == (Reader(1, 0), Reader(3, 0))

    def test_readers_that_are_cut_otherwise_do_not(self):
        of = layout(count("h", "a", split=SPLIT), count("i", "a", split={"into": 3, "by": "k"}))
        assert [(part.cut, part.instance) for part in of.parts[port("a")]] == [
            (Cut(("k",), (None,), 2), 0),
            (Cut(("k",), (None,), 2), 1),
            (Cut(("k",), (None,), 3), 0),
            (Cut(("k",), (None,), 3), 1),
            (Cut(("k",), (None,), 3), 2),
        ]

    def test_a_split_join_cuts_each_input_by_its_own_columns(self):
        of = layout(pair("p", "a", "b", split={"into": 2, "by": ["a.k", "b.k"]}))
        assert of.part_read(of.boxes[1], 0) == Part(port("a"), Cut(("k",), (None,), 2), 1)
        assert of.part_read(of.boxes[1], 1) == Part(port("b"), Cut(("k",), (None,), 2), 1)

    def test_a_split_multijoin_cuts_all_inputs_by_columns_that_are_equal_in_all(self):
        of = layout(three("m", "x.k = y.k and y.k = z.k", split={"into": 2, "by": "z.k"}))
        assert of.cuts["m"] == (Cut(("k",), (None,), 2),) * 3

    @pytest.mark.parametrize("by", ["x.v", "x.k"])
    def test_a_multijoin_is_not_split_by_columns_that_are_equal_in_some(self, by):
        with pytest.raises(InputError) as raised:
            layout(three("m", "x.k = y.k and y.v < z.v", split={"into": 2, "by": by}))
        (problem,) = raised.value.problems
        assert problem.key == "operators.m.split.by"
        assert problem.hint == "it sets no columns of all inputs equal"

    def test_routes_are_ports_of_their_own(self):
        routes = {"low": "v < 5", "rest": "true"}
        of = layout({"name": "r", "kind": "filter", "input": "a", "routes": routes}, keep("f", "r.low"))
        assert of.parts == {port("a"): (Part(port("a")),), port("r", "low"): (Part(port("r", "low")),)}

    def test_one_that_reads_a_port_twice_is_two_readers(self):
        of = layout(union("u", "a", "a"))
        assert of.readers[Part(port("a"))] == (Reader(0, 0), Reader(0, 1))


class TestOrder:
    """Where rows carry a rank, and how many orders come together."""

    @pytest.mark.parametrize(
        ("operators", "ordered"),
        [
            ([keep("f", "a"), count("h", "f")], set()),
            ([keep("f", "a"), count("h", "f", compute={"x": "first(v)"})], {"a", "f"}),
            ([keep("f", "a"), count("h", "f", compute={"x": "LAST(v) + 1"})], {"a", "f"}),
            ([keep("f", "a"), count("h", "f", window={"rows": 3})], {"a", "f"}),
            ([keep("f", "a"), keep("g", "a"), count("h", "g", window={"rows": 3})], {"a", "g"}),
            ([union("u", "a", "b"), count("h", "u", window={"rows": 3})], {"a", "b", "u"}),
            # Behind an aggregate or a join the order is a new one.
            ([count("h", "a"), count("i", "h", window={"rows": 3})], {"h"}),
            ([pair("p", "a", "b"), count("i", "p", by=["a.k"], window={"rows": 3})], {"p"}),
        ],
    )
    def test_only_before_those_that_depend_on_it(self, operators, ordered):
        assert {each.source for each in layout(*operators).ordered} == ordered

    @pytest.mark.parametrize(
        ("operators", "leaves"),
        [
            ([keep("f", "a")], {"a": 1, "b": 1, "f": 1}),
            ([union("u", "a", "b"), union("w", "u", "a")], {"a": 1, "b": 1, "u": 2, "w": 3}),
            ([keep("f", "a", split={"into": 3}), keep("g", "f")], {"a": 1, "b": 1, "f": 3, "g": 3}),
            (
                [union("u", "a", "b"), count("h", "u"), keep("f", "h", where="n > 0")],
                {"a": 1, "b": 1, "u": 2, "h": 1, "f": 1},
            ),
            ([pair("p", "a", "b")], {"a": 1, "b": 1, "p": 1}),
        ],
    )
    def test_sources_that_a_port_brings_together(self, operators, leaves):
        assert {each.source: n for each, n in layout(*operators).leaves.items()} == leaves


class TestProgram:
    """A layout under a placement."""

    @pytest.mark.parametrize(
        ("homes", "levels"),
        [
            ({}, [0, 0, 0]),
            ({"f": "n2"}, [0, 1, 1]),
            ({"g": "n2"}, [0, 1, 2]),
            ({"h": "n2"}, [0, 0, 1]),
            ({"g": "n2", "h": "n2"}, [0, 1, 1]),
            ({"g": "n2", "h": "n3"}, [0, 1, 2]),
        ],
    )
    def test_each_hop_takes_a_superstep(self, homes, levels):
        found = program(layout(*CHAIN), **homes)
        assert list(found.levels) == levels
        assert found.depth == max(levels) + 1
        assert found.placement == {"f": "n1", "g": "n1", "h": "n1", **homes}

    def test_the_longest_way_decides(self):
        found = program(layout(*DIAMOND), g="n2")
        assert list(found.levels) == [0, 1, 0, 2]
        assert found.boxes_at[0, 0] == (found.layout.boxes[0], found.layout.boxes[2])
        assert found.boxes_at[1, 1] == (found.layout.boxes[1],)
        assert found.boxes_at[0, 2] == (found.layout.boxes[3],)
        assert len(found.boxes_at) == 3

    def test_one_instance_elsewhere_is_a_hop(self):
        of = layout(count("h", "a", split=SPLIT), keep("z", "h", where="n > 0"))
        assert list(program(of, **{"h[1]": "n2"}).levels) == [0, 0, 1]
        assert list(program(of).levels) == [0, 0, 0]

    @pytest.mark.parametrize("method", ["atr", "ctr"])
    def test_instances_of_a_spread_join_run_beside_each_other(self, method):
        join = {
            "name": "j",
            "kind": "multijoin",
            "inputs": {"a": "a", "b": "b", "c": "a"},
            "windows": {"a": "1s", "b": "1s", "c": "1s"},
            "where": "a.v = b.v",
            "diffuse": {"method": method, "instances": 2},
        }
        of = layout(join)
        found = program(of, **{box.name: "n2" for box in of.boxes if box.name.startswith("j[1")})
        levels = {box.name: found.levels[box.index] for box in of.boxes}
        # The first stands where its rows come from, and could run at once.
        assert levels["j[0]"] == levels["j[1]"] == 1
        assert levels["j[in]"] == 0
        assert levels["j"] == max(levels.values()) == (2 if method == "atr" else 3)
        assert set(program(of).levels) == {0}

    def test_in_the_next_batch_hops_take_no_superstep(self):
        found = program(layout(*CHAIN, hops="next"), g="n2", h="n3")
        assert not found.within
        assert list(found.levels) == [0, 0, 0]
        assert found.depth == 1

    def test_a_part_goes_to_each_node_once_for_the_first_that_reads_it(self):
        of = layout(keep("f", "a"), keep("g", "f"), union("u", "f", "g"), keep("z", "f"))
        found = program(of, g="n2", z="n2")
        # On n1 only the union reads f, in the third superstep; on n2 there are two readers in the second.
        levels = {box.name: found.levels[box.index] for box in of.boxes}
        assert levels == {"f": 0, "g": 1, "u": 2, "z": 1}
        assert found.destinations[Part(port("f"))] == ((0, 2), (1, 1))
        assert found.destinations[Part(port("a"))] == ((0, 0),)

    def test_of_several_readers_on_a_node_the_first_counts(self):
        of = layout(keep("f", "a"), keep("g", "f"), union("u", "f", "g"))
        found = program(of, f="n2", g="n3")
        assert list(found.levels) == [0, 1, 2]
        assert program(of, g="n2").destinations[Part(port("f"))] == ((0, 2), (1, 1))
        # The filter reads what the union reads as well, a superstep before it.
        of = layout(keep("f", "a"), keep("g", "f"), keep("h", "g"), union("u", "f", "h"))
        found = program(of, f="n2", h="n3")
        assert list(found.levels) == [0, 1, 2, 3]
        assert found.destinations[Part(port("f"))] == ((0, 1),)

    def test_the_parts_of_a_split_reader_go_to_their_instances(self):
        of = layout(keep("f", "a"), count("h", "f", split=SPLIT))
        found = program(of, **{"h[1]": "n3"})
        cut = Cut(("k",), (None,), 2)
        assert found.destinations[Part(port("f"), cut, 0)] == ((0, 0),)
        assert found.destinations[Part(port("f"), cut, 1)] == ((2, 1),)
