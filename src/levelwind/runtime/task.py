"""What every task of a step has: a token of its own, a stage for rows that leave, a file for state."""

from __future__ import annotations

import os
import resource
import socket
import time
from uuid import uuid4

from levelwind.runtime.batch import Batch
from levelwind.runtime.durable import force
from levelwind.runtime.messages import BoxReport, InFlight, NodeReport, Seen
from levelwind.runtime.staging import Stage
from levelwind.runtime.storage import SegmentWriter

# The address by which Spark knows this host; several executors of one machine have addresses of their own.
HOST = os.environ.get("SPARK_LOCAL_IP") or socket.gethostname()
# CPU time is the process's, not the thread's: Polars does part of its work in a thread of its own, and a
# worker process does nothing else.
PAGES = 1024  # ru_maxrss is in kibibytes


class Task:
    """One attempt to run one node's part of a superstep (node -1: reading the sources)."""

    def __init__(self, batch: Batch, node: int, level: int) -> None:
        self.batch, self.node, self.level = batch, node, level
        self.token = uuid4().hex[:12]
        name = f"{batch.step:09d}-{node}-{level}-{self.token}"
        self.stage = Stage(batch.staging, name)
        self.segments = SegmentWriter(batch.directory, name)
        self.boxes: list[BoxReport] = []
        self.in_flight: list[InFlight] = []
        self.seen: list[Seen] = []
        self.failures: list[str] = []
        self.sent_bytes = 0
        self.received_bytes, self.received_s = 0, 0.0
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def finish(self) -> NodeReport:
        """Write what is to be written, see it all on the disk, and report."""
        self.stage.close()
        self.segments.close()
        force([*self.stage.files, *self.segments.files])
        return NodeReport(
            node=self.node,
            level=self.level,
            token=self.token,
            host=HOST,
            boxes=tuple(self.boxes),
            staged=tuple(self.stage.staged),
            in_flight=tuple(self.in_flight),
            seen=tuple(self.seen),
            cpu_s=time.process_time() - self._cpu,
            wall_s=time.perf_counter() - self._wall,
            sent_bytes=self.sent_bytes,
            memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * PAGES,
            failures=tuple(self.failures),
            received_bytes=self.received_bytes,
            received_s=self.received_s,
        )
