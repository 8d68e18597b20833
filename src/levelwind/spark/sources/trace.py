"""Recorded streams: ``spark.readStream.format("trace")``."""

from __future__ import annotations

from levelwind.runtime.sources import TRACE
from levelwind.runtime.traces import read_trace
from levelwind.spark.sources.reader import ReplaySource


class TraceSource(ReplaySource):
    """Replays files by their own times; the options are those of `levelwind.runtime.traces`.

    The files must be at the same path on every node, and must not change while they are replayed.
    """

    describe = staticmethod(read_trace)

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return TRACE
