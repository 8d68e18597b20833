"""A run under overload in this process: the less important of two joins loses rows, the other none."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl
import pytest

from levelwind.control.shedding import AIM
from levelwind.frontend import parse_network
from levelwind.model import Cluster
from levelwind.operators.rows import TIME
from levelwind.operators.shedding import thinned
from levelwind.runtime.coordinator import Coordinator
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.managing import Balancing, Steward
from levelwind.runtime.memory import forget
from levelwind.runtime.program import Layout
from levelwind.runtime.progress import Progress
from levelwind.runtime.sinks import ParquetSink
from levelwind.runtime.staging import DEAD_LETTERS

SECOND, ROWS = 1_000_000, 20
STREAM = {"schema": {"ts": "timestamp", "v": "bigint"}, "time": "ts"}
JOIN = {
    "kind": "multijoin",
    "inputs": {"a": "p", "b": "q"},
    "windows": {"a": "2s", "b": "2s"},
    "where": "a.v = b.v",
    "shed": {"rows": 1000},
}
NETWORK = parse_network(
    {
        "streams": {"p": STREAM, "q": STREAM},
        "operators": [{"name": "dear", "priority": 3, **JOIN}, {"name": "cheap", **JOIN}],
        "outputs": {"much": {"input": "dear"}, "some": {"input": "cheap"}},
    }
).network
# CPU seconds per row that is taken: 40 rows a second make a load of 0.8 each, on one node.
COST_S = 0.02


class Priced(InProcess):
    """Every row that an operator takes costs the same."""

    def run(self, program, batch, rows):
        def priced(box):
            return msgspec.structs.replace(box, cpu_s=COST_S * (box.rows_in - box.shed))

        return [
            msgspec.structs.replace(report, boxes=tuple(priced(box) for box in report.boxes))
            for report in super().run(program, batch, rows)
        ]


def second(number, ids):
    """Rows of one second, all of it a little apart."""
    times = number * SECOND + np.arange(1, len(ids) + 1) * (SECOND // (len(ids) + 1))
    return pl.DataFrame({"ts": pl.Series(times, dtype=pl.Int64).cast(TIME), "v": ids})


@pytest.fixture
def coordinator(tmp_path):
    forget()
    names = (*NETWORK.outputs, DEAD_LETTERS)
    return Coordinator(
        Layout(NETWORK),
        ("n1",),
        dict.fromkeys(NETWORK.operators, "n1"),
        directory=str(tmp_path / "checkpoint"),
        executor=Priced(),
        sinks={name: ParquetSink(str(tmp_path / (name or "dead"))) for name in names},
    )


def found(tmp_path, output):
    files = sorted((tmp_path / output).glob("*.parquet"))
    return sorted(v for file in files for v in pl.read_parquet(file)["a_v"].to_list())


def test_only_what_is_left_out_is_missing(tmp_path, coordinator):
    """Every value comes once on each side, in one second: a group for each value that both sides keep."""
    progress, kept, everything = Progress(), [], []
    coordinator.shed({"cheap": 0.3})
    for number in range(6):
        ids = list(range(number * ROWS, (number + 1) * ROWS))
        p, q = second(number, ids), second(number, ids)
        everything += ids
        # The same content has the same hash, so both sides keep the same rows.
        kept += thinned(p, 0.3)["v"].to_list()
        progress.add(coordinator.step([[("p", p), ("q", q)]]))
    assert found(tmp_path, "much") == everything
    assert found(tmp_path, "some") == sorted(kept)
    assert len(kept) == 6 * 6
    assert progress.shed == 2 * (len(everything) - len(kept))
    coordinator.shed({})
    ids = list(range(1000, 1000 + ROWS))
    coordinator.step([[("p", second(7, ids)), ("q", second(7, ids))]])
    assert found(tmp_path, "some") == sorted([*kept, *ids])


def test_the_less_important_join_gives_what_the_node_cannot_bear(tmp_path, coordinator):
    balancing = Balancing(period_s=1.0, samples=3)
    steward = Steward(NETWORK, Cluster.equal(1), dict.fromkeys(NETWORK.operators, "n1"), balancing)
    taken, now = [], 1000.0
    for number in range(60):
        coordinator.move(steward.moves())
        coordinator.shed(steward.shares)
        ids = list(range(number * ROWS, (number + 1) * ROWS))
        step = coordinator.step([[("p", second(number, ids)), ("q", second(number, ids))]])
        object.__setattr__(step, "started", now)
        object.__setattr__(step, "wall_s", 1.0)
        now += 1.0
        steward.saw(step)
        boxes = step.program.layout.boxes
        taken.append({boxes[box.box].name: box.rows_in - box.shed for _, box in step.boxes})
    assert "no plan keeps the nodes below overload" in steward.alarms[0]
    # 1.6 seconds of work a second, of which the node bears 1: the rest is taken from one of them alone.
    assert {row["dear"] for row in taken} == {2 * ROWS}
    assert COST_S * sum(taken[-1].values()) == pytest.approx(AIM, abs=2 * COST_S)
    assert found(tmp_path, "much") == list(range(60 * ROWS))


def test_which_rows_stay_depends_on_their_content_alone():
    rows = second(0, list(range(50)))
    ranked = rows.with_columns(pl.Series("__order", range(50, 0, -1)))
    assert thinned(ranked, 0.2).drop("__order").equals(thinned(rows, 0.2))
    assert thinned(rows.reverse(), 0.2).sort("v").equals(thinned(rows, 0.2))
    assert thinned(rows, 0.001).height == 1
    assert thinned(rows.clear(), 0.5).height == 0


class PricedParts(InProcess):
    """Every row that a part of a spread join is sent costs the same, all else nothing."""

    def run(self, program, batch, rows):
        def priced(box):
            is_part = program.layout.boxes[box.box].operator.kind == "join_part"
            return msgspec.structs.replace(box, cpu_s=COST_S * box.rows_in if is_part else 0.0)

        return [
            msgspec.structs.replace(report, boxes=tuple(priced(box) for box in report.boxes))
            for report in super().run(program, batch, rows)
        ]


def test_a_spread_join_gives_what_its_parts_cannot_bear(tmp_path):
    forget()
    wide = {"name": "wide", **JOIN, "diffuse": {"method": "atr", "instances": 2, "segment": "250ms"}}
    told = {"streams": {"p": STREAM, "q": STREAM}, "operators": [wide], "outputs": {"out": {"input": "wide"}}}
    layout = Layout(parse_network(told).network)
    home = {box.name: "n2" if box.name == "wide[1]" else "n1" for box in layout.boxes}
    coordinator = Coordinator(
        layout,
        ("n1", "n2"),
        home,
        directory=str(tmp_path / "checkpoint"),
        executor=PricedParts(),
        sinks={name: ParquetSink(str(tmp_path / (name or "dead"))) for name in ("out", DEAD_LETTERS)},
    )
    steward = Steward(layout.network, Cluster.equal(2), home, Balancing(period_s=1.0, samples=3))
    shed, now, loads = {}, 1000.0, []
    for number in range(60):
        coordinator.move(steward.moves())
        coordinator.shed(steward.shares)
        ids = list(range(number * 4 * ROWS, (number + 1) * 4 * ROWS))
        step = coordinator.step([[("p", second(number, ids)), ("q", second(number, ids))]])
        object.__setattr__(step, "started", now)
        object.__setattr__(step, "wall_s", 1.0)
        now += 1.0
        steward.saw(step)
        loads.append(sum(box.cpu_s for _, box in step.boxes))
        for _, box in step.boxes:
            shed[layout.boxes[box.box].name] = shed.get(layout.boxes[box.box].name, 0) + box.shed
    assert {name for name, count in shed.items() if count} == {"wide[in]"}
    # More than twice what two nodes bear.
    assert loads[0] == pytest.approx(4.8)
    assert loads[-1] == pytest.approx(2 * AIM, rel=0.03)
