"""Round trips between the hosts of a Spark cluster, measured by the executors themselves."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence

from pyspark import BarrierTaskContext, SparkContext

from levelwind.model import Cluster
from levelwind.spark.hosts import executor_hosts

# Of the samples of a pair this share lies below what counts: queues only ever add (seed 002, section 3.1.1).
PERCENTILE = 0.2
TIMEOUT_S = 10.0

Trips = dict[tuple[str, str], float]


def round_trips_ms(context: SparkContext, *, samples: int) -> Trips:
    """Round trip between every two hosts that have an executor, as the first of them sees it.

    One task per core, all at once, so that every host has one; the first on each host echoes and measures.
    On a local master there is one host, and nothing to measure. O(hosts² × samples).
    """
    if not executor_hosts(context):
        return {}
    slots = context.defaultParallelism
    rows = context.parallelize(range(slots), slots).barrier()
    found = rows.mapPartitions(lambda _: _measure(samples)).collect()
    return {(source, target): trip for source, target, trip in found}


def latency_matrix(cluster: Cluster, hosts: Sequence[str | None], trips: Trips) -> list[list[float | None]]:
    """One-way ms between nodes: half a round trip of their hosts, 0 on one host, None where it is unknown."""

    def between(one: str | None, other: str | None) -> float | None:
        if one == other:
            return 0.0
        trip = trips.get((str(one), str(other)), trips.get((str(other), str(one))))
        return None if trip is None else round(trip / 2.0, 4)

    assert len(hosts) == len(cluster.nodes)
    return [[between(one, other) for other in hosts] for one in hosts]


def _measure(samples: int) -> Iterator[tuple[str, str, float]]:
    """In a task: echo for the others, and measure them if this is the first task of its host."""
    context = BarrierTaskContext.get()
    mine = context.partitionId()
    seen = context.getTaskInfos()[mine].address.rpartition(":")[0]
    # Where several hosts are one machine, all seem to come from the same address.
    me = os.environ.get("SPARK_LOCAL_IP") or seen
    first = context.allGather(me).index(me) == mine
    server = socket.create_server((me, 0)) if first else None
    port = 0 if server is None else server.getsockname()[1]
    if server is not None:
        threading.Thread(target=_echo, args=(server,), daemon=True).start()
    told = [json.loads(text) for text in context.allGather(json.dumps([me, port]))]
    ports = {host: number for host, number in told if number}
    found = []
    if first:
        # Each begins with its next neighbour, so that not all measure the same host at once.
        hosts = sorted(ports)
        turn = hosts.index(me)
        for host in hosts[turn + 1 :] + hosts[:turn]:
            found.append((me, host, _round_trip_ms(host, ports[host], samples)))
    context.barrier()
    if server is not None:
        server.close()
    return iter(found)


def _round_trip_ms(host: str, port: int, samples: int) -> float:
    with socket.create_connection((host, port), timeout=TIMEOUT_S) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        seen = []
        for _ in range(samples):
            begin = time.perf_counter()
            line.sendall(b"?")
            line.recv(1)
            seen.append((time.perf_counter() - begin) * 1e3)
    return sorted(seen)[min(len(seen) - 1, int(PERCENTILE * len(seen)))]


def _echo(server: socket.socket) -> None:
    def answer(line: socket.socket) -> None:
        with line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while line.recv(1):
                line.sendall(b"!")

    while True:
        try:
            line, _ = server.accept()
        except OSError:
            return  # closed: all have measured
        threading.Thread(target=answer, args=(line,), daemon=True).start()
