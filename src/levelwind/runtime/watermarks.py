"""Watermarks: how far event time has come, on streams and behind every operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from levelwind.model import Network
from levelwind.operators.rows import BEGINNING, END
from levelwind.runtime.messages import Seen
from levelwind.runtime.program import Program

MICROSECONDS = 1_000_000


def microseconds(seconds: float) -> int:
    """A duration in whole microseconds."""
    return round(seconds * MICROSECONDS)


def advance(network: Network, before: Mapping[str, int], seen: Iterable[Seen]) -> dict[str, int]:
    """The streams' watermarks after a batch: the largest event time so far, less the lateness."""
    after = {name: before.get(name, BEGINNING) for name in network.streams}
    for part in seen:
        stream = network.streams[part.stream]
        if part.latest > BEGINNING and stream.time is not None:
            after[part.stream] = max(after[part.stream], part.latest - microseconds(stream.lateness_s))
    return after


def input_watermarks(
    program: Program, streams: Mapping[str, int], before: Sequence[int] | None
) -> tuple[list[list[int]], list[int]]:
    """For every box the watermark of each input, and the one behind it.

    Parameters
    ----------
    streams
        Of the streams, after this batch.
    before
        Behind every box, after the last batch: what a reader on another node sees if rows hop in the
        next. None: as if nothing were on its way.

    O(boxes + arcs).
    """
    layout, home = program.layout, program.home
    at_once = program.within or before is None
    behind: list[int] = []
    inputs: list[list[int]] = []
    for box in layout.boxes:
        of_box = []
        for port in box.operator.inputs:
            sources = layout.boxes_of.get(port.source)
            if sources is None:
                of_box.append(streams[port.source])
                continue
            marks = [
                behind[source.index]
                if at_once or before is None or home[source.index] == home[box.index]
                else before[source.index]
                for source in sources
            ]
            of_box.append(min(marks))
        inputs.append(of_box)
        behind.append(min(of_box, default=END))
    return inputs, behind
