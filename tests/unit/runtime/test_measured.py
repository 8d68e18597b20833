"""What is worked out from statistics, against statistics whose answers are known."""

from __future__ import annotations

import json

import polars as pl
import pytest

from levelwind import planning
from levelwind.errors import InputError
from levelwind.frontend import parse_network
from levelwind.frontend.writing import network_document, network_text
from levelwind.model import Cluster
from levelwind.operators.rows import BEGINNING
from levelwind.runtime import measured as module
from levelwind.runtime.measured import NO_OUTPUT, measure, measured_network
from levelwind.runtime.recording import OPERATORS, STEPS
from levelwind.runtime.rundir import RunDirectory

SOURCE = "{format: generator, shape: steady, rate: 100, duration: 60s, speed: SPEED}"
TEXT = """
streams:
  p: {schema: {ts: timestamp, k: string, v: int}, time: ts, source: SOURCE}
operators:
  - {name: keep, kind: filter, input: p, where: "v > 0"}
  - {name: sum, kind: aggregate, input: keep, by: [k], window: {size: 1s}, compute: {n: "count(*)"},
     split: {into: 2, by: k}}
outputs: {o: {input: sum}}
"""
CPU = {"n1": 1.0, "n2": 0.5}
T0 = 1_000_000.0


def network(text=TEXT, speed="max"):
    return parse_network(text.replace("SOURCE", SOURCE.replace("SPEED", str(speed)))).network


class Script:
    """Statistics as a run would leave them: equal steps, warm-up first, a closing step last."""

    def __init__(self, *, steps=20, wall_s=1.0, every_s=None, session=1.0):
        self.operators, self.steps = [], []
        self._numbers = range(steps)
        self._wall, self._every, self._session = wall_s, every_s or wall_s, session

    def _common(self, step):
        return {"session": self._session, "step": step, "time": T0 + step * self._every}

    def _warm(self, step):
        return 50.0 if step < 3 else 1.0

    def operator(self, name, node, *, cpu_s, rows_in, rows_out, state_bytes=0, moved_to=None):
        for step in self._numbers:
            here = moved_to if moved_to and step >= len(self._numbers) // 2 else node
            figures = {"rows_in": rows_in, "rows_out": rows_out, "rejected": 0, "state_bytes": state_bytes}
            self.operators.append(
                {**self._common(step), "operator": name, "node": here, "host": "h",
                 "cpu_s": cpu_s * self._warm(step), **figures}
            )  # fmt: skip
        end = {**self.operators[-1], **self._common(len(self._numbers)), "cpu_s": 99.0, "rows_out": 10**6}
        self.operators.append(end)
        return self

    def stream(self, name, *, rows, event_s):
        for step in range(len(self._numbers) + 1):
            mark = BEGINNING if event_s is None else round((step + 1) * event_s * 1e6)
            closing = step == len(self._numbers)
            self.steps.append(
                {**self._common(step), "wall_s": self._wall, "run_s": self._wall, "stream": name,
                 "rows": 0 if closing else rows, "watermark": mark, "closing": closing}
            )  # fmt: skip
        return self

    def sent(self, name, *, out_bytes, away_bytes=0, away_s=0.0):
        """What an operator put out and sent, in each of its steps."""
        for row in self.operators:
            if row["operator"] == name:
                row |= {"out_bytes": out_bytes, "away_bytes": away_bytes, "away_s": away_s}
        return self

    def received(self, *, bytes, cpu_s):
        for row in self.steps:
            row |= {"received_bytes": bytes, "received_s": cpu_s}
        return self

    def measure(self, network, cpu=CPU):
        return measure(network, pl.DataFrame(self.operators), pl.DataFrame(self.steps), cpu=cpu)


def usual(**timing):
    return (
        Script(**timing)
        .stream("p", rows=1000, event_s=2.0)
        .operator("keep", "n1", cpu_s=0.1, rows_in=1000, rows_out=400)
        .operator("sum[0]", "n1", cpu_s=0.03, rows_in=300, rows_out=30, state_bytes=70)
        .operator("sum[1]", "n2", cpu_s=0.02, rows_in=100, rows_out=50, state_bytes=30)
    )


def test_costs_and_selectivities_are_exact_without_warm_up_and_closing():
    found = usual().measure(network())
    assert (found.steps, found.left_out, found.seconds) == (17, 3, 17.0)
    keep, first, second = (found.operators[name] for name in ("keep", "sum[0]", "sum[1]"))
    assert keep.cost_s == pytest.approx(1e-4)
    assert keep.selectivity == pytest.approx(0.4)
    assert first.cost_s == pytest.approx(1e-4)
    assert second.cost_s == pytest.approx(2e-4)
    assert (first.state_bytes, second.node, first.logical) == (70, "n2", "sum")
    assert found.costs["sum"].cost_s == pytest.approx(0.05 / 400)
    assert found.costs["sum"].selectivity == pytest.approx(0.2)


def test_sending_is_no_part_of_the_cost_and_has_its_own():
    # Of its 0.1 CPU seconds keep spends 0.02 on sending 8,000 bytes; nobody sends what sum puts out.
    script = usual().sent("keep", out_bytes=8000, away_bytes=8000, away_s=0.02)
    script = script.sent("sum[0]", out_bytes=600).sent("sum[1]", out_bytes=1000)
    found = script.received(bytes=16_000, cpu_s=0.008).measure(network())
    keep, summed = found.costs["keep"], found.costs["sum"]
    assert keep.cost_s == pytest.approx(0.8e-4)
    assert (keep.bytes, summed.bytes) == pytest.approx((20.0, 20.0))
    sending_s, receiving_s = 0.02 / 8000, 0.008 / 16_000
    assert keep.transfer_cost_s == pytest.approx(20 * (sending_s + receiving_s))
    assert summed.transfer_cost_s == pytest.approx(20 * (sending_s + receiving_s))
    written = measured_network(network(), found).operators["keep"]
    assert written.transfer_cost_s == pytest.approx(keep.transfer_cost_s)
    assert written.bytes == pytest.approx(20.0)
    # A run that began before it was counted says nothing of it.
    assert usual().measure(network()).costs["keep"].transfer_cost_s is None


def test_the_rate_is_what_the_source_offers_not_what_got_through():
    # A step takes a second and covers two seconds of event time: 1000 rows a second go through, 500 come.
    found = usual().measure(network())
    assert found.streams["p"].rate == pytest.approx(500)
    assert found.streams["p"].wall_rate == pytest.approx(1000)
    # A replay at speed 4 that comes 4 times as fast as its event time:
    assert usual().measure(network(speed=4)).streams["p"].rate == pytest.approx(2000)


def test_an_overloaded_node_shows_the_load_it_should_carry():
    # One second of event time takes four: the node is busy all the time and needs four times what it has.
    script = Script(wall_s=4.0).stream("p", rows=1000, event_s=1.0)
    script.operator("keep", "n1", cpu_s=4.0, rows_in=1000, rows_out=400)
    script.operator("sum[0]", "n2", cpu_s=0.3, rows_in=300, rows_out=30)
    script.operator("sum[1]", "n2", cpu_s=0.1, rows_in=100, rows_out=10)
    found = script.measure(network())
    assert found.streams["p"].rate == pytest.approx(1000)
    assert found.nodes["n1"].load == pytest.approx(1.0)
    assert found.nodes["n1"].ideal_load == pytest.approx(4.0)
    assert found.operators["sum[0]"].ideal_load == pytest.approx(0.3)
    assert found.nodes["n2"].ideal_load == pytest.approx(0.4 / 0.5)


def test_a_stream_whose_event_time_is_not_known_goes_by_the_wall():
    script = Script(every_s=2.0).stream("p", rows=1000, event_s=None)
    script.operator("keep", "n1", cpu_s=0.1, rows_in=1000, rows_out=1000)
    found = script.measure(network())
    assert found.streams["p"].rate == pytest.approx(17 * 1000 / 33.0)


def test_series_have_a_sample_a_second_and_add_up():
    found = usual(wall_s=0.5, every_s=1.0).measure(network())
    keep = found.operators["keep"]
    assert keep.series == pytest.approx([0.1] * 16)
    node = found.nodes["n2"]
    assert node.series == pytest.approx([0.04] * 16)  # half a CPU
    assert (node.load, node.max, node.std) == pytest.approx((0.04, 0.04, 0.0))
    slow = usual(wall_s=2.5).measure(network())
    assert sum(slow.operators["keep"].series) == pytest.approx(0.1 / 2.5 * 42)


def test_long_series_are_cut_at_their_start(monkeypatch):
    monkeypatch.setattr(module, "MOST_SAMPLES", 5)
    assert len(usual().measure(network()).operators["keep"].series) == 5


def test_a_node_has_the_load_of_the_operators_that_stood_on_it_then():
    script = Script().stream("p", rows=10, event_s=1.0)
    script.operator("keep", "n1", cpu_s=0.5, rows_in=10, rows_out=10, moved_to="n2")
    found = script.measure(network())
    assert found.operators["keep"].node == "n2"
    assert found.nodes["n1"].load == pytest.approx(0.5 * 7 / 17)
    assert found.nodes["n2"].load == pytest.approx(0.5 / 0.5 * 10 / 17)


def test_joins_are_measured_per_pair():
    text = """
    streams:
      a: {schema: {ts: timestamp, x: int}, time: ts, source: {format: rate}}
      b: {schema: {ts: timestamp, x: int}, time: ts, source: {format: rate}}
    operators:
      - {name: j, kind: join, inputs: [a, b], within: 3s, where: "a.x = b.x",
         split: {into: 2, by: [a.x, b.x]}}
    outputs: {o: {input: j}}
    """
    script = Script().stream("a", rows=20, event_s=2.0).stream("b", rows=10, event_s=2.0)
    script.operator("j[0]", "n1", cpu_s=0.06, rows_in=15, rows_out=30)
    script.operator("j[1]", "n1", cpu_s=0.06, rows_in=15, rows_out=30)
    found = script.measure(parse_network(text).network)
    pairs = 2 * 3 * 10 * 5 * 2  # in a step: 2 · within · r_a · r_b · seconds
    assert found.costs["j"].cost_s == pytest.approx(0.12 / pairs)
    assert found.costs["j"].selectivity == pytest.approx(60 / pairs)
    assert found.operators["j[0]"].cost_s == pytest.approx(0.12 / pairs)
    assert found.operators["j[0]"].ideal_load == pytest.approx(0.06 / 2)
    plan = planning.plan(measured_network(parse_network(text).network, found), 2, "llf")
    assert plan.measures.max_load == pytest.approx(0.03)


def test_multijoins_are_measured_per_group_that_is_near_in_time():
    text = """
    streams:
      a: {schema: {ts: timestamp, x: int}, time: ts, source: {format: rate}}
      b: {schema: {ts: timestamp, x: int}, time: ts, source: {format: rate}}
    operators:
      - {name: m, kind: multijoin, inputs: {p: a, q: a, r: b}, windows: {p: 1s, q: 2s, r: 3s},
         where: "abs(p.x - q.x) < r.x"}
    outputs: {o: {input: m}}
    """
    script = Script().stream("a", rows=20, event_s=2.0).stream("b", rows=10, event_s=2.0)
    script.operator("m", "n1", cpu_s=0.12, rows_in=50, rows_out=30)
    found = script.measure(parse_network(text).network)
    # In a step: any of the three may be the latest, and then each other one lies in its window.
    groups = 10 * 10 * 5 * (2 * 3 + 1 * 3 + 1 * 2) * 2
    assert found.costs["m"].cost_s == pytest.approx(0.12 / groups)
    assert found.costs["m"].selectivity == pytest.approx(30 / groups)
    assert found.operators["m"].ideal_load == pytest.approx(0.06)
    assert found.operators["m"].shed == 0
    plan = planning.plan(measured_network(parse_network(text).network, found), 2, "llf")
    assert plan.measures.max_load == pytest.approx(0.06)


ROUTED = """
streams: {p: {schema: {ts: timestamp, v: int}, time: ts, source: SOURCE}}
operators:
  - {name: f, kind: filter, input: p, routes: {low: "v < 1", mid: "v < 2", high: true}}
  - {name: m, kind: map, input: f.low, select: {w: v}}
  - {name: u, kind: union, inputs: [f.mid, f.high]}
outputs: {x: {input: m}, y: {input: u}, z: {input: m}}
"""


def routed():
    script = Script().stream("p", rows=100, event_s=1.0)
    script.operator("f", "n1", cpu_s=0.2, rows_in=100, rows_out=90)
    script.operator("m", "n1", cpu_s=0.1, rows_in=50, rows_out=50)
    return script.operator("u", "n2", cpu_s=0.04, rows_in=40, rows_out=40)


def test_routes_are_counted_by_their_readers():
    costs = routed().measure(network(ROUTED)).costs
    assert costs["f"].route_selectivity == pytest.approx({"low": 0.5, "mid": 0.2, "high": 0.2})


def test_what_several_outputs_use_is_shared_among_them():
    queries = routed().measure(network(ROUTED)).queries
    assert queries["x"].load == pytest.approx(0.2 / 3 + 0.1 / 2)
    assert queries["z"].load == pytest.approx(queries["x"].load)
    assert queries["y"].load == pytest.approx(0.2 / 3 + 0.04)
    assert sum(query.load for query in queries.values()) == pytest.approx(0.34)
    alone = network(ROUTED.replace("y: {input: u}, ", ""))
    assert routed().measure(alone).queries[NO_OUTPUT].load == pytest.approx(0.04)


def test_only_the_last_start_counts():
    old, new = usual(session=1.0), usual(session=2.0)
    for row in old.operators:
        row["cpu_s"] = 77.0
    new.operators += old.operators
    new.steps += old.steps
    assert new.measure(network()).operators["keep"].cost_s == pytest.approx(1e-4)


@pytest.mark.parametrize(("steps", "left_out"), [(1, 0), (2, 1), (4, 2), (10, 3), (100, 10)])
def test_how_many_steps_are_left_out(steps, left_out):
    found = usual(steps=steps).measure(network())
    assert (found.left_out, found.steps) == (left_out, steps - left_out)


def test_nothing_done_is_bad_input():
    script = usual(steps=1)
    steps = pl.DataFrame(script.steps).filter(pl.col("closing"))
    with pytest.raises(InputError):
        measure(network(), pl.DataFrame(script.operators), steps, cpu=CPU)


def test_operators_that_saw_nothing_stay_as_stated():
    script = Script().stream("p", rows=0, event_s=1.0)
    script.operator("keep", "n1", cpu_s=0.1, rows_in=0, rows_out=0)
    found = script.measure(network())
    assert found.operators["keep"].cost_s is None
    assert found.operators["keep"].ideal_load == pytest.approx(0.1)
    written = measured_network(network(), found)
    assert written.operators["keep"] == network().operators["keep"]


@pytest.mark.parametrize("text", [TEXT, ROUTED])
def test_the_measured_network_can_be_written_and_read(text):
    script = usual() if text is TEXT else routed()
    given = network(text)
    written = measured_network(given, script.measure(given))
    assert written != given
    assert written.streams["p"].rate is not None
    assert parse_network(network_text(written)).network == written
    assert parse_network(json.dumps(network_document(written))).network == written
    assert planning.plan(written, Cluster.equal(2), "llf").measures.max_load is not None


def test_a_stated_load_gives_way_to_the_measured_cost():
    text = "streams: {I: {}}\noperators:\n  - {name: m, kind: model, input: I, load: {I: 3}}\n"
    given = parse_network(text).network
    script = Script().stream("I", rows=10, event_s=None)
    script.operator("m", "n1", cpu_s=0.5, rows_in=10, rows_out=10)
    written = measured_network(given, script.measure(given))
    assert written.operators["m"].cost_s == pytest.approx(0.05)
    assert planning.measure(written, 1, {"m": "n1"}).max_load == pytest.approx(0.5)


def test_a_run_directory_is_measured(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.create({"name": "x", "nodes": ["n1", "n2"], "cpu": CPU}, network_document(network()))
    with pytest.raises(InputError):
        module.measure_run(directory)
    script = usual()
    for name, rows in ((OPERATORS, script.operators), (STEPS, script.steps)):
        pl.DataFrame(rows).write_parquet(tmp_path / "statistics" / f"{name}-000000000.parquet")
    found_network, found = module.measure_run(directory)
    assert found_network == network()
    assert found == script.measure(network())
