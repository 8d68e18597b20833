"""Supersteps in this process, one node after the other: for tests, and to see what a network does."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from levelwind.runtime.batch import Batch
from levelwind.runtime.entry import enter
from levelwind.runtime.messages import NodeReport, unpack
from levelwind.runtime.node import NodeStep
from levelwind.runtime.program import Program

# What one reading task brings: (stream, rows).
Reading = Sequence[tuple[str, pl.DataFrame]]


class InProcess:
    """An executor without Spark; ``rows`` is a list of what each reading task brings."""

    def run(self, program: Program, batch: Batch, rows: Sequence[Reading] | None) -> list[NodeReport]:
        """Run one step."""
        inboxes: list[list[bytes]] = [[] for _ in program.nodes]
        for partition, reading in enumerate(rows or ()):
            for node, message in enter(program, batch, partition, reading):
                inboxes[node].append(message)
        for level in range(program.depth):
            following: list[list[bytes]] = [[] for _ in program.nodes]
            for node, messages in enumerate(inboxes):
                for target, message in NodeStep(program, batch, node, level).run(messages):
                    following[target].append(message)
            inboxes = following
        return [header for header in _headers(inboxes) if isinstance(header, NodeReport)]


def _headers(inboxes: Sequence[Sequence[bytes]]) -> list[object]:
    return [unpack(message)[0] for messages in inboxes for message in messages]
