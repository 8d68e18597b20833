"""Files are read in the same batches whether or not a run is killed: lateness depends on how batches are cut.

A kill may come after Spark has noted new files and before it has planned a batch with them, after it has
planned one, or after our commit and before Spark's own. What each leaves behind is made by hand here: the
same files are there as after the kill, and the same code finds them. Real kills are in test_kill.py.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from same_rows import rows_of

from levelwind.runtime.commits import path_of, read_commit, steps_of

pytestmark = pytest.mark.spark
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
# Seconds of the rows in each file. With a lateness of 1 s the 3 of the fifth file is late after the fourth,
# and in time if both are read in one batch.
SECONDS = [[0, 1], [2, 1], [3], [6, 5], [3, 7], [8]]
BEFORE = 3  # files that are there before the kill


def write_files(folder, format, first, last):
    folder.mkdir(exist_ok=True)
    for number, seconds in list(enumerate(SECONDS))[first:last]:
        path = folder / f"{number:04d}.{format}"
        rows = pl.DataFrame({"ts": [EPOCH + timedelta(seconds=s) for s in seconds], "v": seconds})
        text = rows.with_columns(pl.col("ts").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ"))
        if format == "parquet":
            rows.write_parquet(path)
        elif format == "csv":
            text.write_csv(path)
        else:
            text.write_ndjson(path)
        os.utime(path, (1_700_000_000 + number,) * 2)


def network(folder, format):
    header = {"header": "true"} if format == "csv" else {}
    source = {"format": format, "path": str(folder / "in"), "maxFilesPerTrigger": 1, **header}
    stream = {
        "schema": {"ts": "timestamp", "v": "bigint"},
        "time": "ts",
        "lateness": "1s",
        "source": source,
    }
    return {
        "name": "files",
        "streams": {"s": stream},
        "operators": [{"name": "all", "kind": "filter", "input": "s", "where": "true"}],
        "outputs": {"all": {"input": "all", "sink": {"format": "parquet", "path": str(folder / "out")}}},
        "errors": {"sink": {"format": "parquet", "path": str(folder / "dead")}},
    }


class Checkpoint:
    """What a run that was stopped has left, and what one that was killed would have left instead."""

    def __init__(self, folder):
        self.folder, self.spark = folder, folder / "spark"
        self.steps = steps_of(str(folder))
        self.batch = read_commit(str(folder), self.steps[-1]).batch
        assert self.batch == BEFORE - 1

    def note(self):
        """Spark has noted the next file, and planned nothing yet."""
        noted = json.loads((self.spark / "offsets" / str(self.batch)).read_text().splitlines()[2])[
            "logOffset"
        ]
        lines = (self.spark / "sources" / "0" / str(noted)).read_text().splitlines()
        entry = json.loads(lines[1])
        name = f"{noted + 1:04d}{Path(entry['path']).suffix}"
        path = str(Path(entry["path"]).with_name(name)).replace("file:/", "file:///", 1)
        after = {"path": path, "timestamp": entry["timestamp"] + 1000, "batchId": noted + 1}
        text = f"{lines[0]}\n{json.dumps(after, separators=(',', ':'))}"
        (self.spark / "sources" / "0" / str(noted + 1)).write_text(text)
        return noted + 1

    def plan(self):
        """Spark has planned the next batch, and nothing came of it."""
        noted = self.note()
        lines = (self.spark / "offsets" / str(self.batch)).read_text().splitlines()
        planned = [*lines[:2], json.dumps({"logOffset": noted}, separators=(",", ":"))]
        (self.spark / "offsets" / str(self.batch + 1)).write_text("\n".join(planned))

    def commit(self):
        """Our commit is made, Spark's is not."""
        (self.spark / "commits" / str(self.batch)).unlink()
        (self.spark / "commits" / f".{self.batch}.crc").unlink(missing_ok=True)

    def drop(self):
        """Neither commit is made, though the batch was planned and run."""
        self.commit()
        path_of(str(self.folder), self.steps[-1]).unlink()
        for sink in ("out", "dead"):
            (self.folder.parent / sink / f"part-{self.steps[-1]:09d}.parquet").unlink(missing_ok=True)


@pytest.mark.parametrize("left", ["note", "plan", "commit", "drop"])
@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_batches_are_cut_as_if_there_had_been_no_kill(server, tmp_path, format, left):
    write_files(tmp_path / "in", format, 0, BEFORE)
    document = network(tmp_path, format)
    asked = {"nodes": 2, "checkpoint": tmp_path / "checkpoint"}
    first = server.run(document, run_dir=tmp_path / "first", stop_after=BEFORE, until_idle=False, **asked)
    assert first.get("state") == "stopped", first
    write_files(tmp_path / "in", format, BEFORE, None)
    getattr(Checkpoint(tmp_path / "checkpoint"), left)()
    second = server.run(document, run_dir=tmp_path / "second", **asked)
    assert second.get("state") == "finished", second["error"]
    assert rows_of(tmp_path / "out").get_column("v").sort().to_list() == [0, 1, 1, 2, 3, 5, 6, 7, 8]
    assert [json.loads(row)["v"] for row in rows_of(tmp_path / "dead").get_column("row")] == [3]
