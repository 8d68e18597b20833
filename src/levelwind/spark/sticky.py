"""The exchange: payloads addressed to nodes, each node's partition on the host that it is bound to.

Spark puts a task where its data prefers to be, and data that comes out of a shuffle prefers nothing. So the
shuffle's output is united, partition by partition, with an empty RDD whose partition ``k`` prefers the host
of node ``k``; the union prefers what most of its parts prefer. Nothing is cached, so nothing can be lost: a
chosen host is preferred from the first round on, and again after it was away.

Payloads are bytes already, so they are framed and not pickled: PySpark's own ``partitionBy`` collects lists
of pairs and pickles them, to unpickle them on the other side.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from pyspark import SparkContext
from pyspark.core.rdd import RDD
from pyspark.serializers import NoOpSerializer, pack_long

from levelwind.errors import input_error
from levelwind.spark.hosts import is_embedded

Out = TypeVar("Out")


class Sticky:
    """Sends payloads to nodes, and has each node's partition computed on its host.

    A preference is no promise: a task waits up to ``spark.locality.wait`` for its host, then runs elsewhere.
    A host that has lost its executor is not waited for; it is preferred again once it is back.

    Parameters
    ----------
    context
        The driver's context. On a local master there is one host, and the exchange is a bare shuffle.
    hosts
        The host of each node, spelled as Spark spells it (`levelwind.spark.hosts`); None where any will do.
    """

    def __init__(self, context: SparkContext, hosts: Sequence[str | None]) -> None:
        if not hosts:
            rule = "names at least one node's host"
            raise input_error(rule, key="hosts")
        self.context = context
        self.bind(hosts)
        self._partitioner = context._jvm.PythonPartitioner(len(hosts), 0)
        self._serializer = NoOpSerializer()
        self._anchor: Any = None
        self._anchored: tuple[str | None, ...] = ()

    def bind(self, hosts: Sequence[str | None]) -> None:
        """From the next exchange on, nodes have these hosts."""
        self.hosts = tuple(hosts)
        self._bound = not is_embedded(self.context.master) and any(host is not None for host in hosts)

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

    def present(self) -> tuple[str | None, ...]:
        """Each node's host if it has an executor now, else None; asking takes a fraction of a millisecond."""
        scheduler = self.context._jsc.sc().taskScheduler()
        wanted = {host for host in self.hosts if host is not None}
        there = {host for host in wanted if scheduler.hasExecutorsAliveOnHost(host)}
        return tuple(host if host in there else None for host in self.hosts)

    def missing(self) -> frozenset[int]:
        """Numbers of the nodes whose host has no executor now; never any on a local master."""
        if not self._bound:
            return frozenset()
        there = self.present()
        return frozenset(
            number for number, host in enumerate(self.hosts) if host is not None and there[number] is None
        )

    def _at_home(self, shuffled: Any) -> Any:
        """The shuffled payloads, with the hosts that are present as preferences.

        A host without an executor would be waited for, in vain and for ``spark.locality.wait`` every time.
        """
        hosts = self.present()
        if not any(host is not None for host in hosts):
            return shuffled
        jvm, spark = self.context._jvm, self.context._jsc.sc()
        tag = shuffled.classTag()
        if self._anchor is None or self._anchored != hosts:
            preferences = jvm.java.util.HashMap()
            for k, host in enumerate(hosts):
                preferences.put(k, _scala_list(jvm, [] if host is None else [host]))
            located = jvm.scala.jdk.javaapi.CollectionConverters.asScala(preferences)
            nothing = _scala_list(jvm, [])
            rdds = jvm.org.apache.spark.rdd
            self._anchor = rdds.ParallelCollectionRDD(spark, nothing, len(hosts), located, tag)
            self._anchored = hosts
        # Twice, to outvote the host that holds most of the payloads: `spark.shuffle.reduceLocality.enabled`.
        parts = _scala_list(jvm, [self._anchor, self._anchor, shuffled.rdd()])
        # Unlike `SparkContext.union`, this one unites partitions by number and asks for no partitioner.
        united = jvm.org.apache.spark.rdd.SQLPartitioningAwareUnionRDD(spark, parts, len(hosts), tag)
        return united.toJavaRDD()


def on_nodes(payloads: RDD[bytes], function: Callable[[int, Iterator[bytes]], Iterable[Out]]) -> RDD[Out]:
    """Run ``function(node's number, its payloads)`` on every node, at the least cost per task.

    Spark collects garbage in a Python worker after each task, which takes long once Arrow and Polars are
    imported: what is there after the first task is set aside. And it throws a worker away that has left input
    unread, to start another for the next task: what the function leaves is read.
    """
    return payloads.mapPartitionsWithIndex(partial(_thrifty, function))


def _thrifty(
    function: Callable[[int, Iterator[bytes]], Iterable[Out]], node: int, payloads: Iterable[bytes]
) -> Iterator[Out]:
    waiting = iter(payloads)
    yield from function(node, waiting)
    deque(waiting, maxlen=0)
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()


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
