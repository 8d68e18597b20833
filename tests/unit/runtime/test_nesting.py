"""What row windows put out at the end reaches the operators behind them, and is not late there."""

from __future__ import annotations

import polars as pl
import pytest

from levelwind.frontend import parse_network
from levelwind.operators.rows import TIME
from levelwind.runtime.coordinator import Coordinator
from levelwind.runtime.inprocess import InProcess
from levelwind.runtime.program import Layout
from levelwind.runtime.sinks import ParquetSink
from levelwind.runtime.staging import DEAD_LETTERS


def layout(hops):
    told = {
        "hops": hops,
        "streams": {"s": {"schema": {"ts": "timestamp", "k": "string"}, "time": "ts"}},
        "operators": [
            {
                "name": "few",
                "kind": "aggregate",
                "input": "s",
                "by": "k",
                "window": {"rows": 2},
                "compute": {"n": "count(*)"},
            },
            {
                "name": "all",
                "kind": "aggregate",
                "input": "few",
                "window": {"size": "10s"},
                "compute": {"rows": "sum(n)"},
            },
        ],
        "outputs": {"all": {"input": "all"}},
    }
    return Layout(parse_network(told).network)


@pytest.mark.parametrize("hops", ["within", "next"])
def test_every_row_counts_once_behind_windows_that_are_cut_short(tmp_path, hops):
    sinks = {name: ParquetSink(str(tmp_path / (name or "dead"))) for name in ("all", DEAD_LETTERS)}
    coordinator = Coordinator(
        layout(hops),
        ("n1", "n2"),
        {"few": "n1", "all": "n2"},
        directory=str(tmp_path / "checkpoint"),
        executor=InProcess(),
        sinks=sinks,
    )
    # One row of "a" is never followed by another, while those of "b" take the watermark far beyond it.
    for seconds, keys in (((1, 2, 3), "abb"), ((21, 22), "bb"), ((41, 42), "bb")):
        times = pl.Series([second * 1_000_000 for second in seconds]).cast(TIME)
        coordinator.step([[("s", pl.DataFrame({"ts": times, "k": list(keys)}))]])
    coordinator.close()
    files = sorted((tmp_path / "all").glob("*.parquet"))
    found = pl.concat([pl.read_parquet(file) for file in files]).sort("window_start")
    assert found.get_column("rows").to_list() == [2, 2, 3]
    assert not (tmp_path / "dead").exists()
