"""Routes and split readers: what cost models reckon with is what was really sent."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest

from levelwind.balance.costs import make_cost_model
from levelwind.frontend import parse_network
from levelwind.model import Cluster
from levelwind.operators.rows import TIME
from levelwind.runtime.coordinator import Coordinator
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.managing import Balancing, Steward
from levelwind.runtime.program import Layout
from levelwind.runtime.sinks import Discard
from levelwind.runtime.staging import DEAD_LETTERS

SECOND, ROWS, STEPS, SAMPLES = 1_000_000, 200, 9, 4
WINDOW = {"size": "1s"}
NETWORK = parse_network(
    {
        "streams": {"numbers": {"schema": {"ts": "timestamp", "v": "bigint"}, "time": "ts"}},
        "operators": [
            {"name": "kind", "kind": "filter", "input": "numbers", "routes": {"few": "v < 20", "rest": True}},
            {"name": "seldom", "kind": "map", "input": "kind.few", "select": {"v": "v"}},
            {"name": "often", "kind": "map", "input": "kind.rest", "select": {"v": "v"}},
            {"name": "sums", "kind": "aggregate", "input": "kind.rest", "by": ["v"], "window": WINDOW,
             "compute": {"n": "count(*)"}, "split": {"into": 3, "by": "v"}},
        ],
        "outputs": {name: {"input": name} for name in ("seldom", "often", "sums")},
    }
).network  # fmt: skip
CLUSTER = Cluster.equal(3)
PLACES = {"kind": "n1", "seldom": "n2", "often": "n1", "sums[0]": "n1", "sums[1]": "n2", "sums[2]": "n3"}


@dataclass(frozen=True)
class Watching:
    """Moves nothing, and keeps what it was shown last."""

    shown: list
    statistics = make_cost_model("work").statistics

    def costs(self, situation):
        return np.zeros(len(situation.cpu))

    def propose(self, situation, *, rng):
        self.shown.append(situation)
        return ()


def run(folder, places):
    """What a policy sees after some steps, and the boxes of the last one by name."""
    sinks = dict.fromkeys((*NETWORK.outputs, DEAD_LETTERS), Discard())
    coordinator = Coordinator(
        Layout(NETWORK), CLUSTER.names, places, directory=str(folder), executor=InProcess(), sinks=sinks
    )
    policy, now = Watching([]), 1000.0
    steward = Steward(NETWORK, CLUSTER, places, Balancing(policy=policy, samples=SAMPLES))
    for number in range(STEPS):
        times = number * SECOND + np.arange(ROWS)
        frame = pl.DataFrame({"ts": pl.Series(times).cast(TIME), "v": range(ROWS)})
        step = coordinator.step([[("numbers", frame)]])
        object.__setattr__(step, "started", now)
        object.__setattr__(step, "wall_s", 1.0)
        now += 1.0
        steward.saw(step)
    names = [box.name for box in step.program.layout.boxes]
    return policy.shown[-1], {names[box.box]: box for _, box in step.boxes}


def test_only_the_rows_of_a_route_or_an_instance_are_sent(tmp_path):
    seen, boxes = run(tmp_path, PLACES)
    # The 20 of `few` to n2, and of the 180 of `rest` what goes to the instances there and on n3.
    row = pl.DataFrame({"ts": pl.Series([0]).cast(TIME), "v": [1]}).estimated_size()
    sent = boxes["kind"].away_bytes / row
    assert sent == 20 + boxes["sums[1]"].rows_in + boxes["sums[2]"].rows_in
    table = make_cost_model("output_rate").amounts(seen, seen.node, np.arange(len(seen.node)))
    assert dict(zip(seen.facts.operators, table, strict=True))["kind"] == pytest.approx(sent)
    # By what is stated alone, both routes would have a half, and every instance a third of that.
    stated = make_cost_model("output_rate").amounts(
        replace(seen, parts=None), seen.node, np.arange(len(seen.node))
    )
    assert stated[0] == pytest.approx(ROWS * (1 / 2 + 2 / 6))


def test_a_reader_receives_its_own_rows_and_no_others(tmp_path):
    seen, boxes = run(tmp_path, PLACES)
    each = seen.seen["receiving"][0] / ROWS
    working = np.maximum(seen.mean_load - seen.seen["sent"], 0.0)
    amounts = make_cost_model("work").amounts(seen, seen.node, np.arange(len(seen.node)))
    received = dict(zip(seen.facts.operators, amounts - working, strict=True))
    for name, here in PLACES.items():
        if name != "kind":
            rows = boxes[name].rows_in if here != "n1" else 0
            assert received[name] == pytest.approx(each * rows, rel=1e-6, abs=1e-15)
    sent = boxes["kind"].away_bytes / boxes["kind"].out_bytes
    assert received["kind"] == pytest.approx(seen.seen["sending"][0] * sent)
