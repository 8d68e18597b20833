"""Hosts of a Spark cluster that have an executor: who is there, waiting for them, and who is whose."""

from __future__ import annotations

import time
from functools import cache

from pyspark import SparkContext

from levelwind.model import Cluster
from levelwind.runtime.hosts import (
    PATIENCE,
    addresses_of,
    bound,
    bound_again,
    no_executor,
    wait_for_hosts,
    without_executor,
)

# How long an executor that has just registered may take to be known to all parts of Spark.
HOST_KNOWN_S = 10.0


def is_embedded(master: str) -> bool:
    """Whether all runs in this process: there is one host, and no node is bound to it."""
    return master.startswith("local") and not master.startswith("local-cluster")


def executor_hosts(context: SparkContext, *, patience_s: float = HOST_KNOWN_S) -> tuple[str, ...]:
    """Hosts that have an executor now, sorted, each once; none on a local master.

    An executor that has just registered has no host yet in what Spark shows, or is not offered work yet: it
    is waited for.
    """
    if is_embedded(context.master):
        return ()
    spark = context._jsc.sc()
    scheduler, until = spark.taskScheduler(), time.monotonic() + patience_s
    while True:
        summaries = spark.statusStore().executorList(True)
        shown = [summaries.apply(i) for i in range(summaries.size())]
        found = {one.id(): one.hostPort().rpartition(":")[0] for one in shown if one.id() != "driver"}
        known = {host for host in found.values() if host}
        alive = {host for host in known if scheduler.hasExecutorsAliveOnHost(host)}
        registered = spark.schedulerBackend().getExecutorIds()
        missing = any(found.get(registered.apply(i)) not in alive for i in range(registered.size()))
        if not missing or time.monotonic() > until:
            return tuple(sorted(alive))
        time.sleep(0.05)


class Binding:
    """The host of each node of a run, while executors come and go.

    Attributes
    ----------
    hosts
        The host of each node, spelled as Spark spells it; None where any will do, as on a local master.
    there
        Hosts that had an executor when it was last looked.
    notes
        What the user should know about hosts.
    """

    def __init__(self, context: SparkContext, cluster: Cluster) -> None:
        self._context, self._cluster = context, cluster
        self._stated = tuple(node.host for node in cluster.nodes)
        # Names are looked up once: it may take seconds, and batches wait for it.
        self._addresses = cache(addresses_of)
        self.hosts: tuple[str | None, ...] = (None,) * len(self._stated)
        self.there: tuple[str, ...] = ()
        self._executors = 0
        self.notes: list[str] = []

    def wait(self) -> None:
        """Wait for executors, as long as Spark's setting says, and bind nodes to those that are there."""
        context = self._context
        if is_embedded(context.master):
            return
        spark = context._jsc.sc()
        if self._is_dynamic:
            # Else executors come with the first work only, when nodes are bound already.
            spark.requestExecutors(len(self._stated))
        self._executors = self._registered
        self.there = wait_for_hosts(
            self._stated,
            lambda: executor_hosts(context),
            patience_s=self._patience_s,
            addresses=self._addresses,
        )
        self.hosts = bound(self._stated, self.there, self._addresses)
        said = without_executor(self._cluster, self.hosts, self.there)
        self.notes = [said] if said else []

    def refuse_nowhere(self) -> None:
        """Refuse a cluster on which no node has an executor; not if executors come and go with the work."""
        if is_embedded(self._context.master) or self._is_dynamic:
            return
        anywhere = None in self._stated and self.there
        if not anywhere and set(self.hosts).isdisjoint(self.there):
            raise no_executor(self._stated, self.there, self._context.master, self._patience_s)

    def renew(self, *, missing: bool) -> bool:
        """Look who is there now, if a host is missing or there are more or fewer executors than before.

        Says whether nodes are bound to others since.
        """
        if is_embedded(self._context.master):
            return False
        count = self._registered
        new, self._executors = count != self._executors, count
        if not (missing or new):
            return False
        self.there = executor_hosts(self._context, patience_s=1.0 if new else 0.0)
        before, self.hosts = self.hosts, bound_again(self._stated, self.hosts, self.there, self._addresses)
        return self.hosts != before

    @property
    def _registered(self) -> int:
        """How many executors there are: asked before every batch, where a list of them would cost more."""
        return int(self._context._jsc.sc().schedulerBackend().getExecutorIds().size())

    @property
    def _is_dynamic(self) -> bool:
        told: str = self._context.getConf().get("spark.dynamicAllocation.enabled", "false") or ""
        return told.lower() == "true"

    @property
    def _patience_s(self) -> float:
        return float(self._context._jsc.sc().conf().getTimeAsMs(PATIENCE, "30s")) / 1e3
