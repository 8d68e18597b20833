"""Rows that are on their way between two steps, when another network runs in the second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from levelwind.runtime.messages import InFlight
from levelwind.runtime.program import Layout


def rerouted(
    in_flight: Iterable[InFlight], before: Layout, after: Layout, renamed: Mapping[str, str] | None = None
) -> tuple[InFlight, ...]:
    """The rows with the numbers that parts and boxes have in ``after``; what nobody reads there is left out.

    ``renamed`` has the new name of each operator that goes on under another. O(parts + rows' entries).
    """
    names = renamed or {}

    def now(name: str) -> str:
        base, bracket, rest = name.partition("[")
        return names.get(base, base) + bracket + rest

    parts = tuple(
        replace(part, port=replace(part.port, source=now(part.port.source))) for part in before.readers
    )
    number = {part: index for index, part in enumerate(after.readers)}
    index = {
        box.index: after.box_named[now(box.name)].index
        for box in before.boxes
        if now(box.name) in after.box_named
    }
    found = []
    for entry in in_flight:
        readers = tuple(index[box] for box in entry.readers if box in index)
        part = parts[entry.part]
        # What is read stays in a network, and so does what puts it out.
        if readers and part in number and entry.producer in index:
            found.append(
                msgspec.structs.replace(
                    entry, part=number[part], producer=index[entry.producer], readers=readers
                )
            )
    return tuple(found)
