"""The sides of `bench join`: the spread join, and the same by hand in plain Structured Streaming."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from levelwind.bench.runtime_worlds import (
    CORES,
    MASTER,
    PLAIN,
    Seen,
    batch_seconds,
    file_source,
    watch,
)
from levelwind.model import JoinPart, Network
from levelwind.runtime.program import Layout
from levelwind.spark.session import start_session
from levelwind.testing.loopback import LoopbackCluster
from levelwind.testing.sides import answer, network_of

MODULE = "levelwind.bench.join_sides"
STREAMS = ("a", "b", "c")
WINDOW_S = 5
INSTANCES = (1, 2, 4)
# Segments that each instance gets of a batch.
SEGMENTS = 5
# On the capped cluster: workers, what each has of a core, and batches before the caps are in force, by when
# windows are full and all code is compiled.
WORKERS, CAP, WARM = 4, 0.35, 8
LIMIT_S = 600.0
SPAN = f"INTERVAL {WINDOW_S} SECONDS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Three streams of points, neighbours at most a band apart in every dimension.

    ``rows`` is what each stream brings a second. By hand, points are sent to buckets as wide as the band in
    the first ``bucketed`` dimensions: those of two streams to three buckets in each.
    """

    dimensions: int
    band: float
    rows: int
    bucketed: int

    @property
    def columns(self) -> tuple[str, ...]:
        """One a dimension; all values lie between 0 and 1."""
        return tuple(f"v{k + 1}" for k in range(self.dimensions))

    def near(self, one: str, other: str) -> str:
        """The condition on two neighbours."""
        return " AND ".join(f"abs({one}.{v} - {other}.{v}) <= {self.band}" for v in self.columns)

    def tables(self, batches: int, seed: int) -> Iterator[pa.Table]:
        """The batches of one stream: a second each, at even times."""
        rng = np.random.default_rng(seed)
        for number in range(batches):
            offsets = np.sort(rng.integers(0, 1_000_000, self.rows))
            times = (number * 1_000_000 + offsets).astype("datetime64[us]")
            points = {v: pa.array(np.round(rng.random(self.rows), 9)) for v in self.columns}
            yield pa.table({"ts": pa.array(times).cast(pa.timestamp("us", tz="UTC")), **points})


# One dimension and a narrow band: next to no work for a row. Eight wide ones: no bucket spares much of it.
SHAPES = {
    "narrow": Shape(dimensions=1, band=0.00005, rows=4_000, bucketed=1),
    "wide": Shape(dimensions=8, band=0.15, rows=4_000, bucketed=3),
}


def document(shape: Shape, folder: Path, instances: int, method: str = "atr") -> dict[str, Any]:
    """The join on files, spread over so many instances."""
    schema = {"ts": "timestamp"} | dict.fromkeys(shape.columns, "double")
    streams = {
        name: {"schema": schema, "time": "ts", "rate": shape.rows, "source": file_source(folder / name)}
        for name in STREAMS
    }
    join: dict[str, Any] = {
        "name": "trio", "kind": "multijoin", "inputs": {name: name for name in STREAMS},
        "windows": {name: f"{WINDOW_S}s" for name in STREAMS},
        "where": f"{shape.near('a', 'b')} AND {shape.near('b', 'c')}", "cost": "1us",
        "selectivity": (2 * shape.band) ** (2 * shape.dimensions),
    }  # fmt: skip
    if instances > 1:
        # So short that all instances have about as much of every batch, for which all wait.
        length = 1000 // (SEGMENTS * instances)
        join["diffuse"] = {"method": method, "instances": instances}
        if method == "atr":
            join["diffuse"]["segment"] = f"{length}ms"
    count = {
        "name": "counted", "kind": "aggregate", "input": "trio", "window": {"size": "1s"},
        "compute": {"n": "count(*)"}, "cost": "1us",
    }  # fmt: skip
    return {"name": "join", "streams": streams, "operators": [join, count]}


def by_hand(shape: Shape) -> str:
    """The join in Spark's SQL: an equality of buckets, then the band itself.

    Spark watches one time column in what two streams join to: the other becomes a number and back.
    """
    values, keys = ", ".join(shape.columns), [f"k{k + 1}" for k in range(shape.bucketed)]
    cells = [f"floor({v} / {shape.band})" for v in shape.columns[: shape.bucketed]]
    single = ", ".join(f"{cell} AS {key}" for cell, key in zip(cells, keys, strict=True))

    def spread(stream: str) -> str:
        made = stream
        for cell, key in zip(cells, keys, strict=True):
            made = f"(SELECT *, explode(array({cell} - 1, {cell}, {cell} + 1)) AS {key} FROM {made})"
        return made

    def same(one: str, other: str) -> str:
        return " AND ".join(f"{one}.{key} = {other}.{key}" for key in keys)

    return f"""
        SELECT ab.a_ts, ab.ts AS b_ts, unix_micros(c.ts) AS c_us
        FROM (
            SELECT b.*, timestamp_micros(unix_micros(a.ts)) AS a_ts
            FROM (SELECT ts, {values}, {single} FROM b) AS b JOIN {spread("a")} AS a
              ON {same("a", "b")} AND {shape.near("a", "b")}
             AND a.ts >= b.ts - {SPAN} AND a.ts <= b.ts + {SPAN}
        ) AS ab JOIN {spread("c")} AS c
          ON {same("c", "ab")} AND {shape.near("ab", "c")}
         AND c.ts >= ab.ts - {SPAN} AND c.ts <= ab.ts + {SPAN}
         AND c.ts >= ab.a_ts - {SPAN} AND c.ts <= ab.a_ts + {SPAN}
    """


def standing(network: Network, nodes: Sequence[str]) -> dict[str, str]:
    """Parts on all nodes in turn, all hops of an instance on one; what sends and what fuses on the first."""
    placement = {}
    for box in Layout(network).boxes:
        spec = box.operator.spec
        number = spec.instance if isinstance(spec, JoinPart) else 0
        placement[box.name] = nodes[number % len(nodes)]
    return placement


def spread_side(shape: str, data: str, batches: int, instances: int, method: str = "atr") -> dict[str, Any]:
    """Ours on the cores of this machine."""
    network = network_of(document(SHAPES[shape], Path(data), instances, method))
    placement = standing(network, [f"n{k + 1}" for k in range(CORES)])
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        seen = watch(network, folder=Path(folder), placement=placement, closing=True)
    return _told(seen, placement, batches)


def capped_side(shape: str, data: str, batches: int) -> dict[str, Any]:
    """Ours, all numbers of instances, on one cluster of capped workers."""
    found: dict[str, Any] = {}
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        LoopbackCluster(workers=WORKERS) as cluster,
    ):
        nodes = cluster.nodes(CAP)
        session = start_session(cluster.master, cluster.configuration, log=Path(folder, "spark.log"))
        for instances in INSTANCES:
            network = network_of(document(SHAPES[shape], Path(data), instances))
            placement = standing(network, nodes.names)
            seen = watch(
                network,
                folder=Path(folder, str(instances)),
                nodes=nodes,
                placement=placement,
                on_step=_Warm(cluster).count,
                session=session,
                closing=True,
            )
            found[str(instances)] = {**_told(seen, placement, batches), "capped": cluster.capped}
            cluster.cap(None)
    return found


def plain_side(shape: str, data: str, batches: int) -> dict[str, Any]:
    """The same by hand on the cores of this machine."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        session = start_session(MASTER, PLAIN, log=Path(folder, "spark.log"))
        return _plain(SHAPES[shape], session, Path(data), Path(folder), batches, lambda: None)


def plain_capped_side(shape: str, data: str, batches: int) -> dict[str, Any]:
    """The same by hand on a cluster of capped workers."""
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        LoopbackCluster(workers=WORKERS) as cluster,
    ):
        settings = {**PLAIN, **cluster.configuration, "spark.sql.shuffle.partitions": str(WORKERS)}
        session = start_session(cluster.master, settings, log=Path(folder, "spark.log"))
        warm = _Warm(cluster)
        found = _plain(SHAPES[shape], session, Path(data), Path(folder), batches, warm.count)
        return {**found, "capped": cluster.capped}


class _Warm:
    """Counts batches, and puts the caps in force after the first few."""

    def __init__(self, cluster: LoopbackCluster) -> None:
        self.cluster, self.batches = cluster, 0

    def count(self, _: object = None) -> None:
        self.batches += 1
        if self.batches == WARM:
            self.cluster.cap(CAP)


def _told(seen: Sequence[Seen], placement: Mapping[str, str], batches: int) -> dict[str, Any]:
    """What came of a run: times of batches, groups, and CPU seconds of the join, all of it and by node.

    Groups count to the very end: a row that is routed in coordination looks for partners once the watermark
    has passed it, which for the last rows of all is when the run is closed.
    """
    number = {box.name: box.index for box in seen[0].step.program.layout.boxes}
    own = {number[name] for name in placement if name != "counted"}
    timed = seen[:batches]
    return {
        "batch_s": batch_seconds(timed),
        "groups": sum(
            box.rows_out for each in seen for _, box in each.step.boxes if box.box == number["trio"]
        ),
        "join_cpu_s": [sum(b.cpu_s for _, b in each.step.boxes if b.box in own) for each in timed],
        "node_cpu_s": [
            [sum(b.cpu_s for r, b in each.step.boxes if r.node == node and b.box in own) for each in timed]
            for node in range(len(seen[0].step.program.nodes))
        ],
    }


def _plain(
    shape: Shape, session: Any, data: Path, folder: Path, batches: int, on_batch: Callable[[], None]
) -> dict[str, Any]:
    schema = ", ".join(["ts timestamp", *(f"{v} double" for v in shape.columns)])
    found = {"groups": 0}
    ends: list[float] = []
    for name in STREAMS:
        reader = session.readStream.schema(schema).option("maxFilesPerTrigger", "1")
        frame = reader.parquet(str(data / name)).withWatermark("ts", "0 seconds")
        frame.createOrReplaceTempView(name)
    whole = session.sql(by_hand(shape))

    def note(rows: Any, _: int) -> None:
        found["groups"] += rows.count()
        ends.append(time.perf_counter())
        on_batch()

    query = (
        whole.writeStream.foreachBatch(note)
        .outputMode("append")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    ended = query.awaitTermination(int(LIMIT_S))
    died = None if ended else f"not done within {LIMIT_S:g} s"
    if ended and query.exception() is not None:
        died = str(query.exception()).strip().splitlines()[0][:300]
    return {
        "batch_s": [after - before for before, after in pairwise(ends[:batches])],
        "groups": found["groups"],
        "died": died,
    }


if __name__ == "__main__":
    answer(
        {
            "spread": spread_side,
            "capped": capped_side,
            "plain": plain_side,
            "plain capped": plain_capped_side,
        }
    )
