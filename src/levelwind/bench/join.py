"""A three-way band join spread over instances, against one instance and against plain Structured Streaming.

Three streams of numbers; a group is three rows within 5 s of each other, neighbours at most a band apart. A
batch is a file of each stream that spans a second. Spark refuses such a join without an equality. The best a
user can do in plain Structured Streaming is to cut numbers into buckets as wide as the band, send rows of two
streams to three buckets each, join by bucket, and filter. Both sides read the same files on two cores, and
must find as many groups.

Two cores have little to give to four instances. So the same is run on a cluster of four workers too, each
capped at a part of a core: there one instance has a quarter of what four have.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from levelwind.bench.result import Figure, Result, Settings, spread_of
from levelwind.bench.runtime_worlds import (
    CORES,
    MASTER,
    PLAIN,
    Seen,
    batch_seconds,
    file_source,
    steady,
    watch,
    write_files,
)
from levelwind.spark.session import start_session
from levelwind.testing.loopback import LoopbackCluster
from levelwind.testing.sides import answer, network_of, ours, side

NAME = "join"
MODULE = "levelwind.bench.join"
SCHEMA = {"ts": "timestamp", "v": "double"}
STREAMS = ("a", "b", "c")
WINDOW_S, BAND, RANGE = 5, 50, 1_000_000
ROWS = 4_000
BATCHES, FULL_BATCHES = 16, 40
INSTANCES = (1, 2, 4)
# On the capped cluster: workers, what each has of a core, and the part of the rows that a batch there has.
WORKERS, CAP, FEWER = 4, 0.35, 2
ROUNDS = 1
LIMIT_S = 600.0
SPAN = f"INTERVAL {WINDOW_S} SECONDS"
NEAR = f"explode(array(floor(v / {BAND}) - 1, floor(v / {BAND}), floor(v / {BAND}) + 1)) AS bucket"
PLAIN_SQL = f"""
    SELECT a.ts AS a_ts, b.ts AS b_ts, c.ts AS c_ts, a.v AS a_v, b.v AS b_v, c.v AS c_v
    FROM (SELECT ts, v, floor(v / {BAND}) AS bucket FROM b) AS b
    JOIN (SELECT ts, v, {NEAR} FROM a) AS a
      ON a.bucket = b.bucket AND abs(a.v - b.v) <= {BAND}
     AND a.ts >= b.ts - {SPAN} AND a.ts <= b.ts + {SPAN}
    JOIN (SELECT ts, v, {NEAR} FROM c) AS c
      ON c.bucket = b.bucket AND abs(b.v - c.v) <= {BAND}
     AND c.ts >= b.ts - {SPAN} AND c.ts <= b.ts + {SPAN}
     AND c.ts >= a.ts - {SPAN} AND c.ts <= a.ts + {SPAN}
"""
WHERE = f"abs(a.v - b.v) <= {BAND} and abs(b.v - c.v) <= {BAND}"


def document(folder: Path, instances: int, method: str = "atr") -> dict[str, Any]:
    """The join on the files, spread over so many instances."""
    streams = {
        name: {"schema": SCHEMA, "time": "ts", "rate": ROWS, "source": file_source(folder / name)}
        for name in STREAMS
    }
    join: dict[str, Any] = {
        "name": "trio", "kind": "multijoin", "inputs": {name: name for name in STREAMS},
        "windows": {name: f"{WINDOW_S}s" for name in STREAMS}, "where": WHERE, "cost": "1us",
        "selectivity": (2 * BAND / RANGE) ** 2,
    }  # fmt: skip
    if instances > 1:
        # So short that every instance has a part of every batch, for which all wait.
        join["diffuse"] = {"method": method, "instances": instances, "segment": f"{1000 // instances}ms"}
    count = {
        "name": "counted", "kind": "aggregate", "input": "trio", "window": {"size": "1s"},
        "compute": {"n": "count(*)"}, "cost": "1us",
    }  # fmt: skip
    return {"name": NAME, "streams": streams, "operators": [join, count]}


def tables(rows: int, batches: int, seed: int) -> Iterator[pa.Table]:
    """The batches of one stream: a second each, at even times."""
    rng = np.random.default_rng(seed)
    for number in range(batches):
        times = (number * 1_000_000 + np.sort(rng.integers(0, 1_000_000, rows))).astype("datetime64[us]")
        yield pa.table(
            {
                "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
                "v": pa.array(np.round(rng.uniform(0, RANGE, rows), 3)),
            }
        )


def levelwind_side(data: str, batches: int, instances: int) -> dict[str, Any]:
    """Our side: parts on both nodes in turn, what sends and what fuses on the first."""
    network = network_of(document(Path(data), instances))
    placement = standing(instances, [f"n{k + 1}" for k in range(CORES)])
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        seen = watch(network, folder=Path(folder), placement=placement, batches=batches)
    return told(seen, placement)


def standing(instances: int, nodes: Sequence[str]) -> dict[str, str]:
    """Parts on all nodes in turn, what sends and what fuses on the first."""
    placement = {"trio": nodes[0], "counted": nodes[0]}
    if instances > 1:
        placement["trio[in]"] = nodes[0]
        placement |= {f"trio[{i}]": nodes[i % len(nodes)] for i in range(instances)}
    return placement


def capped_side(data: str, batches: int) -> dict[str, Any]:
    """All numbers of instances on one cluster of capped workers."""
    found: dict[str, Any] = {}
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        LoopbackCluster(workers=WORKERS) as cluster,
    ):
        nodes = cluster.nodes(CAP)
        session = start_session(cluster.master, cluster.configuration, log=Path(folder, "spark.log"))
        capped = True
        for instances in INSTANCES:
            placement = standing(instances, nodes.names)
            cluster.cap(CAP)
            seen = watch(
                network_of(document(Path(data), instances)),
                folder=Path(folder, str(instances)),
                nodes=nodes,
                placement=placement,
                batches=batches,
                session=session,
            )
            capped = capped and cluster.capped
            cluster.cap(None)
            found[str(instances)] = told(seen, placement)
    return {"runs": found, "capped": capped}


def told(seen: Sequence[Seen], placement: Mapping[str, str]) -> dict[str, Any]:
    """What came of a run: times of batches, groups, and CPU seconds of the join, all of it and by node."""
    number = {box.name: box.index for box in seen[0].step.program.layout.boxes}
    own = {number[name] for name in placement if name != "counted"}
    return {
        "batch_s": batch_seconds(seen),
        "groups": sum(
            box.rows_out for each in seen for _, box in each.step.boxes if box.box == number["trio"]
        ),
        "join_cpu_s": [sum(b.cpu_s for _, b in each.step.boxes if b.box in own) for each in seen],
        "node_cpu_s": [
            [sum(b.cpu_s for r, b in each.step.boxes if r.node == node and b.box in own) for each in seen]
            for node in range(len(seen[0].step.program.nodes))
        ],
    }


def plain_side(data: str, batches: int) -> dict[str, Any]:
    """The same by hand: buckets as wide as the band, an equality on them, then the band itself."""
    found = {"groups": 0}
    ends: list[float] = []
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        session = start_session(MASTER, PLAIN, log=Path(folder, "spark.log"))
        for name in STREAMS:
            reader = session.readStream.schema("ts timestamp, v double").option("maxFilesPerTrigger", "1")
            frame = reader.parquet(str(Path(data, name))).withWatermark("ts", "0 seconds")
            frame.createOrReplaceTempView(name)
        whole = session.sql(PLAIN_SQL)

        def note(rows: Any, _: int) -> None:
            found["groups"] += rows.count()
            ends.append(time.perf_counter())

        query = (
            whole.writeStream.foreachBatch(note)
            .outputMode("append")
            .option("checkpointLocation", str(Path(folder, "checkpoint")))
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


def run(settings: Settings, *, rows: int = ROWS, batches: int | None = None) -> Result:
    """Each number of instances and the plain query in turn."""
    batches = batches or (FULL_BATCHES if settings.full else BATCHES)
    rounds = settings.rounds(ROUNDS)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in (*map(str, INSTANCES), "plain")}
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        settings.step("files")
        for number, name in enumerate(STREAMS):
            write_files(Path(folder, name), tables(rows, batches, 10 * settings.seed + number))
        for number in range(rounds):
            for name in found:
                settings.step(f"{name}, round {number + 1} of {rounds}")
                if name == "plain":
                    found[name].append(side(MODULE, name, data=folder, batches=batches))
                else:
                    found[name].append(
                        ours(MODULE, "ours", data=folder, batches=batches, instances=int(name))
                    )
        settings.step("the capped cluster")
        small = Path(folder, "small")
        for number, name in enumerate(STREAMS):
            write_files(small / name, tables(rows // FEWER, batches, 10 * settings.seed + number))
        capped = ours(MODULE, "capped", data=str(small), batches=batches)
    per_batch = {
        name: [s for one in sides for s in steady(one.get("batch_s", []))] for name, sides in found.items()
    }
    read = rows * len(STREAMS)
    speed = {name: read / median(values) if values else 0.0 for name, values in per_batch.items()}
    groups = {name: [one.get("groups") for one in sides] for name, sides in found.items()}
    notes = [
        f"batches of {read:,} rows of three streams, {len(per_batch['1'])} batches after warm-up",
        f"groups found: {groups}",
    ]
    died = [one["died"] for one in found["plain"] if one.get("died")]
    notes += [f"the plain query: {text}" for text in died]
    best = max(INSTANCES, key=lambda i: speed[str(i)])
    mine, plain = per_batch[str(best)], per_batch["plain"]
    return Result(
        name=NAME,
        ours=Figure(label=f"{best} instances", value=speed[str(best)], unit="rows/s"),
        baseline=Figure(label="buckets by hand in a plain query", value=speed["plain"], unit="rows/s"),
        ratio=median(plain) / median(mine) if plain else float("inf"),
        spread=spread_of([b / a for a, b in zip(mine, plain, strict=False)]) if plain else 0.0,
        figures=[
            *(Figure(label=f"{i} instances", value=speed[str(i)], unit="rows/s") for i in INSTANCES),
            *(
                Figure(label=f"capped, {i} instances", value=each, unit="rows/s")
                for i, each in zip(INSTANCES, capped_speeds(capped, read // FEWER), strict=True)
            ),
        ],
        notes=[*notes, *_capped_notes(capped)],
        details={**found, "capped": capped},
    )


def capped_speeds(capped: Mapping[str, Any], read: int) -> list[float]:
    """Rows per second on the capped cluster, by number of instances."""
    return [read / median(steady(capped["runs"][str(i)]["batch_s"])) for i in INSTANCES]


def _capped_notes(capped: Mapping[str, Any]) -> list[str]:
    caps = f"capped at {CAP} core each" if capped["capped"] else "NOT capped: this machine does not allow it"
    lines = [f"capped cluster: {WORKERS} workers {caps}, batches of half as many rows"]
    for i in INSTANCES:
        own = capped["runs"][str(i)]
        cpu = [median(steady(each)) for each in own["node_cpu_s"]]
        shown = ", ".join(f"{each:.2f}" for each in cpu)
        lines.append(f"capped, {i} instances: {own['groups']} groups, CPU seconds a batch by node {shown}")
    return lines


if __name__ == "__main__":
    answer({"ours": levelwind_side, "plain": plain_side, "capped": capped_side})
