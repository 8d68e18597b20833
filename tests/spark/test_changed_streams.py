"""A network that goes on from a checkpoint may have other traces and generators than before."""

from __future__ import annotations

import os

import polars as pl
import pytest
from same_rows import rows_of

pytestmark = pytest.mark.spark


def network(folder, files, streams):
    """Counts by second of one stream of files and some generators; a stream's rows are numbered."""
    made = {
        name: {
            "schema": {"ts": "timestamp", "n": "bigint"},
            "time": "ts",
            "source": {
                "format": "generator",
                "shape": "steady",
                "rate": 10,
                "duration": duration,
                "speed": "max",
                "columns": {"n": {"kind": "sequence"}},
            },
        }
        for name, duration in streams.items()
    }
    source = {"format": "parquet", "path": str(files), "maxFilesPerTrigger": 1}
    made["f"] = {"schema": {"ts": "timestamp", "n": "bigint"}, "time": "ts", "source": source}
    window = {"kind": "aggregate", "window": {"size": "1s"}, "compute": {"rows": "count(*)", "sum": "sum(n)"}}
    return {
        "name": "changed",
        "streams": made,
        "operators": [{"name": f"of_{name}", "input": name, **window} for name in made],
        "outputs": {
            name: {"input": f"of_{name}", "sink": {"format": "parquet", "path": str(folder / name)}}
            for name in made
        },
    }


def write_files(folder, numbers):
    folder.mkdir(exist_ok=True)
    for number in numbers:
        times = pl.Series([number * 1_000_000]).cast(pl.Datetime("us", "UTC"))
        rows = pl.DataFrame({"ts": times, "n": pl.Series([number], dtype=pl.Int64)})
        path = folder / f"{number}.parquet"
        rows.write_parquet(path)
        # Files are read in the order of their times: one second apart leaves no doubt.
        os.utime(path, (1_700_000_000 + number,) * 2)


def sums(folder):
    rows = rows_of(folder).sort("window_start")
    assert rows.get_column("window_start").is_unique().all()
    return rows.get_column("rows").to_list(), rows.get_column("sum").sum()


def test_a_stream_is_added_and_another_taken_out(server, tmp_path):
    files = tmp_path / "files"
    write_files(files, range(3))
    asked = {"nodes": 2, "checkpoint": tmp_path / "checkpoint"}
    before = network(tmp_path, files, {"gone": "60s", "stays": "8s"})
    first = server.run(before, run_dir=tmp_path / "first", stop_after=3, until_idle=False, **asked)
    assert first.get("state") == "stopped", first
    of_gone = sums(tmp_path / "gone") if (tmp_path / "gone").exists() else None

    write_files(files, range(3, 5))
    after = network(tmp_path, files, {"new": "4s", "stays": "8s"})
    second = server.run(after, run_dir=tmp_path / "second", **asked)
    assert second.get("state") == "finished", second["error"]
    assert "read from their beginning: stream new" in second["notes"]
    assert "no longer read: stream gone" in second["notes"]
    assert sums(tmp_path / "stays") == ([10] * 8, sum(range(80)))
    assert sums(tmp_path / "new") == ([10] * 4, sum(range(40)))
    assert sums(tmp_path / "f") == ([1] * 5, sum(range(5)))
    assert (sums(tmp_path / "gone") if of_gone else None) == of_gone
