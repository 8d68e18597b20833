"""Made-up streams: ``spark.readStream.format("generator")``."""

from __future__ import annotations

from levelwind.runtime.sources import GENERATOR
from levelwind.runtime.workloads import read_generator
from levelwind.spark.sources.reader import ReplaySource


class GeneratorSource(ReplaySource):
    """Makes up rows from a seed; the options are those of `levelwind.runtime.workloads`."""

    describe = staticmethod(read_generator)

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return GENERATOR
