"""The exchange: payloads addressed to nodes, each node's partition on the host that it is bound to.

Spark puts a task where its data prefers to be, and data that comes out of a shuffle prefers nothing. So the
shuffle's output is united, partition by partition, with an empty RDD whose partition ``k`` prefers the host
of node ``k``; the union prefers what most of its parts prefer. Nothing is cached, so nothing can be lost: a
chosen host is preferred from the first round on, and again after it was away.

Payloads are bytes already, so they are framed and not pickled: PySpark's own ``partitionBy`` collects lists
of pairs and pickles them, to unpickle them on the other side.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from pyspark import SparkContext
from pyspark.core.rdd import RDD
from pyspark.serializers import NoOpSerializer, pack_long

from levelwind.errors import input_error

# How long a look at which hosts have executors is believed. Looking costs a call into the JVM per host.
LOOK_AGAIN_S = 1.0
HOST_KNOWN_S = 10.0
# Settings with which an exchange costs the least; every one can be left out.
CONFIGURATION = {
    # Payloads are Arrow data, compressed where that pays.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.broadcast.compress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
}


class Sticky:
    """Sends payloads to nodes, and has each node's partition computed on its host.

    A preference is no promise: a task waits up to ``spark.locality.wait`` for its host, then runs elsewhere.
    A host that has lost its executor is not waited for; it is preferred again once it is back.

    Parameters
    ----------
    context
        The driver's context. On a local master there is one host, and the exchange is a bare shuffle.
    hosts
        The host of each node, spelled as Spark spells it (`executor_hosts`); None where any will do.
    """

    def __init__(self, context: SparkContext, hosts: Sequence[str | None]) -> None:
        if not hosts:
            rule = "names at least one node's host"
            raise input_error(rule, key="hosts")
        self.context = context
        self.hosts = tuple(hosts)
        self._bound = not _one_host(context.master) and any(host is not None for host in hosts)
        self._partitioner = context._jvm.PythonPartitioner(len(hosts), 0)
        self._serializer = NoOpSerializer()
        self._anchor: Any = None
        self._alive: tuple[str | None, ...] = ()
        self._looked = float("-inf")

    def exchange(self, pairs: RDD[tuple[int, bytes]]) -> RDD[bytes]:
        """Partition ``k`` of the result holds the payloads addressed to node ``k``, in no certain order.

        Parameters
        ----------
        pairs
            (node's number, payload); a number that is no node's fails the task.
        """
        context = self.context
        keyed = pairs.mapPartitionsWithIndex(partial(_framed, len(self.hosts)))
        # The frames are ready to be sent, as those of `partitionBy` are.
        keyed._bypass_serializer = True
        pairwise = context._jvm.PairwiseRDD(keyed._jrdd.rdd()).asJavaPairRDD()
        shuffled = context._jvm.PythonRDD.valueOfPair(pairwise.partitionBy(self._partitioner))
        return RDD(self._at_home(shuffled) if self._bound else shuffled, context, self._serializer)

    def present(self, *, look_again: bool = False) -> tuple[str | None, ...]:
        """Each node's host if it has an executor now, else None; what was seen a moment ago is believed."""
        now = time.monotonic()
        if look_again or now - self._looked > LOOK_AGAIN_S:
            scheduler = self.context._jsc.sc().taskScheduler()
            wanted = {host for host in self.hosts if host is not None}
            there = {host for host in wanted if scheduler.hasExecutorsAliveOnHost(host)}
            found = tuple(host if host in there else None for host in self.hosts)
            if found != self._alive:
                self._alive, self._anchor = found, None
            self._looked = now
        return self._alive

    def _at_home(self, shuffled: Any) -> Any:
        """The shuffled payloads, with the hosts that are present as preferences."""
        hosts = self.present()
        if not any(host is not None for host in hosts):
            return shuffled
        jvm, spark = self.context._jvm, self.context._jsc.sc()
        tag = shuffled.classTag()
        if self._anchor is None:
            preferences = jvm.java.util.HashMap()
            for k, host in enumerate(hosts):
                preferences.put(k, _scala_list(jvm, [] if host is None else [host]))
            located = jvm.scala.jdk.javaapi.CollectionConverters.asScala(preferences)
            nothing = _scala_list(jvm, [])
            rdds = jvm.org.apache.spark.rdd
            self._anchor = rdds.ParallelCollectionRDD(spark, nothing, len(hosts), located, tag)
        # Twice, to outvote the host that holds most of the payloads: `spark.shuffle.reduceLocality.enabled`.
        parts = _scala_list(jvm, [self._anchor, self._anchor, shuffled.rdd()])
        # Unlike `SparkContext.union`, this one unites partitions by number and asks for no partitioner.
        united = jvm.org.apache.spark.rdd.SQLPartitioningAwareUnionRDD(spark, parts, len(hosts), tag)
        return united.toJavaRDD()


def executor_hosts(context: SparkContext) -> tuple[str, ...]:
    """Hosts that have an executor now, sorted, each once; none on a local master.

    An executor that has just registered has no host yet in what Spark shows: it is waited for.
    """
    if _one_host(context.master):
        return ()
    spark = context._jsc.sc()
    until = time.monotonic() + HOST_KNOWN_S
    while True:
        summaries = spark.statusStore().executorList(True)
        shown = [summaries.apply(i) for i in range(summaries.size())]
        found = {one.id(): one.hostPort().rpartition(":")[0] for one in shown if one.id() != "driver"}
        known = {host for host in found.values() if host}
        registered = spark.schedulerBackend().getExecutorIds()
        missing = any(not found.get(registered.apply(i)) for i in range(registered.size()))
        if not missing or time.monotonic() > until:
            return tuple(sorted(known))
        time.sleep(0.05)


def _one_host(master: str) -> bool:
    return master.startswith("local") and not master.startswith("local-cluster")


def _framed(nodes: int, _: int, pairs: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
    """What Spark's side reads: a number, a payload, a number, …"""
    for node, payload in pairs:
        if not 0 <= node < nodes:
            rule = f"is the number of a node, 0 to {nodes - 1}"
            raise input_error(rule, key="node", value=node)
        yield pack_long(node)
        yield payload


def _scala_list(jvm: Any, items: Iterable[Any]) -> Any:
    made = jvm.java.util.ArrayList()
    for item in items:
        made.add(item)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(made).toSeq()
