"""Networks that were written for planning can be run: streams without a source are made up."""

from __future__ import annotations

import polars as pl
import pytest

from levelwind.errors import InputError
from levelwind.frontend import load_network, parse_network
from levelwind.model import Column, Port
from levelwind.operators.model import SECONDS
from levelwind.operators.rows import RowType
from levelwind.runtime.coordinator import Coordinator
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.program import Layout
from levelwind.runtime.stand_ins import with_stand_ins
from levelwind.runtime.workloads import read_generator

SECOND = 1_000_000


def network(streams, operators=None):
    told = [model(load={next(iter(streams)): 0})] if operators is None else operators
    return parse_network({"streams": streams, "operators": told}).network


def model(name="o", **told):
    return {"name": name, "kind": "model", **told}


def replay(stream):
    options = {key: value for key, value in stream.source.items() if key != "format"}
    return read_generator(options, stream.schema, stream.time)


def rows_by_second(stream, seconds):
    found = replay(stream)
    return [sum(batch.num_rows for batch in found.read(n * SECOND, (n + 1) * SECOND)) for n in range(seconds)]


def test_a_stream_with_a_rate_gets_a_generator_of_that_rate():
    made, notes = with_stand_ins(network({"I1": {"rate": 30}}, [model(input="I1", cost=0.001)]), ())
    stream = made.streams["I1"]
    assert stream.schema == (Column(name="ts", type="timestamp"),)
    assert stream.time == "ts"
    assert Layout(made).types[Port(source="o")] == RowType(stream.schema, "ts")
    assert rows_by_second(stream, 3) == [30, 30, 30]
    assert replay(stream).end() is None
    assert notes == ["made up, since they state no source: I1 (30 rows/s)"]


def test_a_rate_series_is_replayed_sample_by_sample_and_ends_the_others_with_it():
    made, _ = with_stand_ins(network({"a": {"rate": [3, 0, 10]}, "b": {"rate": 2}, "c": {"rate": 0}}), ())
    assert rows_by_second(made.streams["a"], 4) == [3, 0, 10, 0]
    assert rows_by_second(made.streams["c"], 2) == [0, 0]
    assert {replay(stream).end() for stream in made.streams.values()} == {3 * SECOND}


def test_a_stated_schema_is_filled():
    told = {"schema": {"ts": "timestamp", "k": "string", "n": "int"}, "time": "ts", "rate": 5}
    made, _ = with_stand_ins(network({"a": told}), ())
    rows = next(iter(replay(made.streams["a"]).read(0, SECOND)))
    assert rows.schema.names == ["ts", "k", "n"]
    assert rows.num_rows == 5


def test_without_a_rate_a_planning_stream_brings_a_row_a_second():
    made, notes = with_stand_ins(load_network("examples/worked.yaml").network, ())
    assert rows_by_second(made.streams["I2"], 2) == [1, 1]
    assert notes == ["made up, since they state no source: I1, I2 (no rate stated: 1 row/s each)"]


def test_streams_with_rows_of_their_own_are_left_alone():
    generator = {"format": "generator", "shape": "steady", "rate": 1}
    streams = {
        "sourced": {"schema": {"ts": "timestamp"}, "time": "ts", "rate": 9, "source": generator},
        "given": {"rate": 9},
        "forgotten": {"schema": {"ts": "timestamp"}, "time": "ts"},
    }
    before = network(streams)
    after, notes = with_stand_ins(before, ("given",))
    assert after is before
    assert notes == []


def test_an_operator_that_needs_columns_nobody_stated_is_refused():
    told = network({"I1": {"rate": 5}}, [{"name": "f", "kind": "filter", "input": "I1", "where": "x > 3"}])
    with pytest.raises(InputError) as raised:
        with_stand_ins(told, ())
    assert [problem.key for problem in raised.value.problems] == ["operators[0].where"]


def test_a_load_series_brings_a_clock():
    made, notes = with_stand_ins(network({}, [model(series=[0.1, 0.3])]), ())
    assert list(made.streams) == [SECONDS]
    assert rows_by_second(made.streams[SECONDS], 2) == [1, 1]
    assert replay(made.streams[SECONDS]).end() == 2 * SECOND
    assert notes == []
    again, _ = with_stand_ins(made, ())
    assert again is made


def steps(told, seconds, folder):
    """What each box did, (instances of) operators by name, in steps of a second each."""
    made, _ = with_stand_ins(told, ())
    layout = Layout(made)
    placement = {box.name: "n1" for box in layout.boxes}
    coordinator = Coordinator(
        layout, ("n1",), placement, directory=str(folder), executor=InProcess(), sinks={}
    )
    found = []
    for second in range(seconds):
        reading = []
        for name, stream in made.streams.items():
            batches = replay(stream).read(second * SECOND, (second + 1) * SECOND)
            reading += [(name, frame_of(batch)) for batch in batches]
        step = coordinator.step([reading])
        found.append({layout.boxes[box.box].name: box for _, box in step.boxes})
    return found


def spent(told, seconds, folder):
    """CPU seconds of all operators in each step."""
    return [sum(box.cpu_s for box in step.values()) for step in steps(told, seconds, folder)]


def frame_of(batch):
    return pl.DataFrame(pl.from_arrow(batch))


def test_loads_stated_outright_are_burned(tmp_path):
    series = spent(network({}, [model(series=[0.05, 0.2])]), 2, tmp_path / "series")
    assert 0.05 <= series[0] < 0.15
    assert 0.2 <= series[1] < 0.3
    load = spent(network({"I1": {"rate": [20, 5]}}, [model(load={"I1": 0.01})]), 2, tmp_path / "load")
    assert 0.2 <= load[0] < 0.3
    assert 0.05 <= load[1] < 0.15


def test_a_series_goes_before_a_load_and_both_before_a_cost(tmp_path):
    told = model(input="I1", cost=0.05, load={"I1": 0.05}, series=[0.1])
    (burned,) = spent(network({"I1": {"rate": 20}}, [told]), 1, tmp_path)
    assert 0.1 <= burned < 0.2


def test_instances_share_a_stated_load(tmp_path):
    told = model(input="I1", series=[0.2], split={"into": 4, "by": "ts"})
    (burned,) = spent(network({"I1": {"rate": 20}}, [told]), 1, tmp_path)
    assert 0.2 <= burned < 0.3


def test_rows_pass_a_model_whose_first_input_is_silent(tmp_path):
    made = [model("m1", input="a"), model("m2", input="b"), model("m3", inputs=["m1", "m2"], selectivity=2)]
    (step,) = steps(network({"a": {"rate": 0}, "b": {"rate": 5}}, made), 1, tmp_path)
    assert step["m3"].rows_in == 5
    assert step["m3"].rows_out == 10
