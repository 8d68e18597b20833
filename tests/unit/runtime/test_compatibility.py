"""Which streams may differ from those of a checkpoint: the ones that are known by name, not by number."""

from __future__ import annotations

import json

import msgspec
import pytest

from levelwind.errors import InputError
from levelwind.frontend import parse_network
from levelwind.runtime.commits import BoxRecord, Commit
from levelwind.runtime.compatibility import check_commit, fingerprints
from levelwind.runtime.program import Layout
from levelwind.spark.sources.bundle import Bundled, BundleReader

FILES = {"format": "parquet", "path": "/data"}
STEADY = {"format": "generator", "shape": "steady", "rate": 5}


def layout(**sources):
    told = {
        "streams": {
            name: {"schema": {"ts": "timestamp"}, "time": "ts", "source": source}
            for name, source in sources.items()
        },
        "operators": [
            {"name": f"of_{name}", "kind": "filter", "input": name, "where": "true"} for name in sources
        ],
    }
    return Layout(parse_network(told).network)


def commit(of, *offsets):
    return Commit(
        step=3,
        nodes=("n1",),
        streams={},
        boxes={},
        batch=3,
        offsets=tuple(map(json.dumps, offsets)),
        fingerprints=fingerprints(of),
    )


def problems(before, after):
    with pytest.raises(InputError) as raised:
        check_commit(before, after, ("n1",))
    return [(problem.key, problem.value) for problem in raised.value.problems]


def test_streams_of_our_own_come_and_go():
    before = commit(layout(f=FILES, a=STEADY, b=STEADY), {"logOffset": 4}, {"a": 5, "b": 6})
    notes = check_commit(before, layout(c=STEADY, f=FILES, a=STEADY), ("n1",))
    assert "read from their beginning: stream c" in notes
    assert "no longer read: stream b" in notes


def test_a_stream_of_our_own_that_changed_is_refused():
    before = commit(layout(a=STEADY, b=STEADY), {"a": 5, "b": 6})
    after = layout(a={**STEADY, "seed": 3}, b=STEADY)
    assert problems(before, after) == [("streams.a", "has another source or schema")]


def test_spark_s_own_sources_must_stay():
    before = commit(layout(f=FILES, g=FILES, a=STEADY), {"logOffset": 4}, {"logOffset": 4}, {"a": 5})
    assert problems(before, layout(f=FILES, h=FILES, a=STEADY)) == [
        ("streams.g", "is gone"),
        ("streams.h", "is new"),
    ]


def test_our_source_must_be_there_before_and_after():
    """Else Spark would have a source more, or one less, than its offsets tell of."""
    before = commit(layout(f=FILES), {"logOffset": 4})
    assert problems(before, layout(f=FILES, a=STEADY)) == [("streams.a", "is new")]
    before = commit(layout(f=FILES, a=STEADY), {"logOffset": 4}, {"a": 5})
    assert problems(before, layout(f=FILES)) == [("streams.a", "is gone")]


def test_the_offset_of_a_stream_that_is_gone_is_dropped():
    told = {"source": {**STEADY, "speed": "max"}, "schema": (("ts", "timestamp"),), "time": "ts"}
    members = [Bundled(name=name, number=i, columns=("c0",), **told) for i, name in enumerate("ac")]
    reader = BundleReader(members, None, 1)
    second = 1_000_000
    found = reader.latestOffset({"a": 7 * second, "b": 9 * second}, reader.getDefaultReadLimit())
    assert found == {"a": 8 * second, "c": second}
    assert {share.ranges for share in reader.partitions({"a": 0, "b": 0}, {"a": second, "b": second})} == {
        ((0, 0, second),)
    }


def joined(**told):
    """A layout with a multijoin, of windows of 1 s if nothing else is told."""
    streams = {
        name: {"schema": {"ts": "timestamp", "x": "int"}, "time": "ts", "source": STEADY} for name in "pq"
    }
    spec = {"windows": {"a": "1s", "b": "1s", "c": "1s"}, "where": "a.x < b.x and b.x < c.x", **told}
    operator = {"name": "m", "kind": "multijoin", "inputs": {"a": "p", "b": "p", "c": "q"}, **spec}
    return Layout(parse_network({"streams": streams, "operators": [operator]}).network)


def joined_commit():
    marks = {f"window {alias}": 1_000_000 for alias in "abc"}
    return msgspec.structs.replace(
        commit(joined(), {"p": 1, "q": 1}), boxes={"m": BoxRecord(node="n1", watermark=0, marks=marks)}
    )


def test_the_windows_of_a_multijoin_may_change_and_how_much_it_sheds():
    assert check_commit(joined_commit(), joined(shed={"rows": 5}), ("n1",)) == []
    wider = joined(windows={"a": "1s", "b": "3s", "c": "500ms"})
    (note,) = check_commit(joined_commit(), wider, ("n1",))
    assert note.startswith("m: new windows for b, c: ")


def test_how_much_a_spread_join_sheds_may_change_and_nothing_else_of_it():
    def spread(**told):
        return joined(diffuse={"method": "auto", "instances": 2}, **told)

    before = commit(spread(shed={"rows": 9}), {"p": 1, "q": 1})
    state = BoxRecord(node="n1", watermark=0, marks={"steps": 1})
    boxes = {
        box.name: BoxRecord(node="n1", watermark=0) if box.name == "m" else state for box in spread().boxes
    }
    held = msgspec.structs.replace(before, boxes=boxes)
    assert check_commit(held, spread(shed={"rows": 5}), ("n1",)) == []
    assert check_commit(held, spread(), ("n1",)) == []
    changed = {key for key, _ in problems(held, spread(where="a.x < b.x"))}
    assert {"m[in]", "m[0]", "m[1>1]"} <= changed


def test_the_condition_of_a_multijoin_must_stay():
    assert [key for key, _ in problems(joined_commit(), joined(where="a.x < b.x"))] == ["m"]
