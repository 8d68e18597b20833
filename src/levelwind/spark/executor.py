"""Supersteps as one Spark job: rows to their nodes by an exchange, one task per node, as often as needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from pyspark import RDD, Broadcast, SparkContext
from pyspark.sql import DataFrame

from levelwind.runtime.batch import Batch
from levelwind.runtime.entry import enter
from levelwind.runtime.messages import NodeReport, unpack
from levelwind.runtime.node import NodeStep
from levelwind.runtime.program import Program
from levelwind.spark.intake import Intake, arrow_batches
from levelwind.spark.sticky import Sticky

Pair = tuple[int, bytes]


class SparkExecutor:
    """Runs a step as one job.

    The rows are read and addressed in the sources' tasks; each superstep is an exchange and one task per
    node. There are as many as the longest chain of hops between nodes under the plan.

    Parameters
    ----------
    hosts
        The host that each node's tasks prefer; None where any will do.
    """

    def __init__(self, context: SparkContext, hosts: Sequence[str | None]) -> None:
        self._context = context
        self._exchange = Sticky(context, hosts)
        self._intake: Intake | None = None
        self._program: tuple[Program, Broadcast[Program]] | None = None

    def read_with(self, intake: Intake) -> None:
        """How rows of all streams share one DataFrame."""
        self._intake = intake

    def bind(self, hosts: Sequence[str | None]) -> None:
        """From the next step on, nodes' tasks prefer these hosts."""
        self._exchange.bind(hosts)

    def missing(self) -> frozenset[int]:
        """Numbers of the nodes whose host has no executor now."""
        return self._exchange.missing()

    def run(self, program: Program, batch: Batch, rows: DataFrame | None) -> list[NodeReport]:
        """Run one step."""
        known = self._broadcast(program)
        pairs: RDD[Pair]
        if rows is None:
            pairs = self._context.parallelize([], 1)
        else:
            assert self._intake is not None
            read = arrow_batches(rows)
            pairs = read.mapPartitionsWithIndex(partial(_enter, known, batch, self._intake))
        for level in range(program.depth):
            arrived = self._exchange.exchange(pairs)
            pairs = arrived.mapPartitionsWithIndex(partial(_run_node, known, batch, level))
        found = []
        for _, message in pairs.collect():
            header, _ = unpack(message)
            if isinstance(header, NodeReport):
                found.append(header)
        return found

    def _broadcast(self, program: Program) -> Broadcast[Program]:
        """The program where the workers keep it: sent once for each plan."""
        if self._program is None or self._program[0] is not program:
            if self._program is not None:
                self._program[1].unpersist()
            self._program = (program, self._context.broadcast(program))
        return self._program[1]


def _enter(
    known: Broadcast[Program], batch: Batch, intake: Intake, partition: int, data: Iterable[bytes]
) -> Iterator[Pair]:
    return enter(known.value, batch, partition, intake.rows(data))


def _run_node(
    known: Broadcast[Program], batch: Batch, level: int, node: int, messages: Iterable[bytes]
) -> Iterator[Pair]:
    return NodeStep(known.value, batch, node, level).run(messages)
