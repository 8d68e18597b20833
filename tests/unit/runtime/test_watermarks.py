from __future__ import annotations

import pytest

from levelwind.frontend import parse_network
from levelwind.operators.rows import BEGINNING, END
from levelwind.runtime.messages import Seen
from levelwind.runtime.program import Layout, Program
from levelwind.runtime.watermarks import advance, input_watermarks, microseconds

SCHEMA = {"ts": "timestamp", "k": "string", "v": "bigint"}
NODES = ("n1", "n2")


def layout(hops):
    told = {
        "name": "t",
        "hops": hops,
        "streams": {
            "a": {"schema": SCHEMA, "time": "ts", "lateness": "2s"},
            "b": {"schema": SCHEMA, "time": "ts"},
        },
        "operators": [
            {"name": "f", "kind": "filter", "input": "a", "where": "v > 0", "split": {"into": 2, "by": "k"}},
            {"name": "u", "kind": "union", "inputs": ["f", "b"]},
            {"name": "g", "kind": "filter", "input": "u", "where": "v > 1"},
        ],
        "outputs": {"out": {"input": "g"}},
    }
    return Layout(parse_network(told).network)


LAYOUTS = {hops: layout(hops) for hops in ("within", "next")}


def marks(hops, streams, before=None, **homes):
    """The watermarks of the inputs, and those behind, by box."""
    of = LAYOUTS[hops]
    placement = {box.name: homes.get(box.name[0] + box.name[2:3], "n1") for box in of.boxes}
    inputs, behind = input_watermarks(Program.of(of, NODES, placement), streams, before)
    names = [box.name for box in of.boxes]
    return dict(zip(names, inputs, strict=True)), dict(zip(names, behind, strict=True))


class TestAdvance:
    """Streams, batch by batch."""

    network = LAYOUTS["within"].network

    def test_before_the_first_row_there_is_none(self):
        assert advance(self.network, {}, []) == {"a": BEGINNING, "b": BEGINNING}
        assert advance(self.network, {}, [Seen("a", 0, BEGINNING)]) == {"a": BEGINNING, "b": BEGINNING}

    def test_the_largest_time_of_all_readers_less_the_lateness(self):
        seen = [Seen("a", 1, 5_000_000), Seen("a", 3, 9_000_000), Seen("b", 1, 4)]
        assert advance(self.network, {}, seen) == {"a": 7_000_000, "b": 4}

    def test_it_never_goes_back(self):
        seen = [Seen("a", 1, 5_000_000), Seen("b", 1, -3)]
        assert advance(self.network, {"a": 4_000_000, "b": -5}, seen) == {"a": 4_000_000, "b": -3}

    def test_times_before_1970(self):
        assert advance(self.network, {}, [Seen("a", 1, -1)])["a"] == -2_000_001


@pytest.mark.parametrize(
    ("seconds", "wanted"), [(2.0, 2_000_000), (0.1, 100_000), (1e-6, 1), (0.29, 290_000)]
)
def test_durations_are_whole_microseconds(seconds, wanted):
    assert microseconds(seconds) == wanted


class TestWithin:
    """Rows hop within a batch: so does the watermark."""

    @pytest.mark.parametrize("homes", [{}, {"u": "n2"}, {"f1": "n2"}])
    def test_an_operators_is_the_smallest_of_its_inputs_wherever_they_are(self, homes):
        inputs, behind = marks("within", {"a": 5, "b": 9}, [0, 0, 0, 0], **homes)
        assert inputs == {"f[0]": [5], "f[1]": [5], "u": [5, 9], "g": [5]}
        assert behind == {"f[0]": 5, "f[1]": 5, "u": 5, "g": 5}

    def test_at_the_end_all_are_at_the_end(self):
        _, behind = marks("within", {"a": END, "b": END})
        assert set(behind.values()) == {END}

    def test_a_stream_without_rows_holds_back_what_reads_it(self):
        inputs, behind = marks("within", {"a": BEGINNING, "b": 9})
        assert inputs["u"] == [BEGINNING, 9]
        assert behind["g"] == BEGINNING


class TestNext:
    """Rows hop in the next batch: between nodes the watermark is that of the batch before."""

    before = (1, 2, 3, 4)  # behind f[0], f[1], u, g

    @pytest.mark.parametrize(
        ("homes", "union", "last"),
        [
            ({}, [5, 9], [5]),
            ({"u": "n2", "g": "n2"}, [1, 9], [1]),
            # One instance on another node holds back the whole input.
            ({"f1": "n2"}, [2, 9], [2]),
            ({"f0": "n2"}, [1, 9], [1]),
            ({"g": "n2"}, [5, 9], [3]),
            ({"u": "n2"}, [1, 9], [3]),
        ],
    )
    def test_only_what_crosses_between_nodes_is_behind(self, homes, union, last):
        inputs, behind = marks("next", {"a": 5, "b": 9}, self.before, **homes)
        assert inputs["f[0]"] == inputs["f[1]"] == [5]
        assert inputs["u"] == union
        assert inputs["g"] == last
        assert behind["u"] == min(union)
        assert behind["g"] == min(last)

    def test_as_if_nothing_were_on_its_way(self):
        inputs, _ = marks("next", {"a": 5, "b": 9}, None, u="n2", f1="n2")
        assert inputs == {"f[0]": [5], "f[1]": [5], "u": [5, 9], "g": [5]}

    def test_it_comes_through_hop_by_hop(self):
        behind = [BEGINNING] * 4
        seen = []
        for _ in range(4):
            found = marks("next", {"a": 5, "b": 5}, behind, u="n2")[1]
            behind = list(found.values())
            seen.append((found["u"], found["g"]))
        assert seen == [(BEGINNING, BEGINNING), (5, BEGINNING), (5, 5), (5, 5)]
