"""Rows that are on their way between two steps, when another network runs in the second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from levelwind.runtime.inheriting import origin
from levelwind.runtime.messages import InFlight
from levelwind.runtime.program import Layout


def rerouted(
    in_flight: Iterable[InFlight], before: Layout, after: Layout, inherited: Mapping[str, str] | None = None
) -> tuple[InFlight, ...]:
    """The rows with the numbers that parts and boxes have in ``after``; what nobody reads there is left out.

    Rows follow who reads them: an input of a box that stays gets what was on its way to it, and so does that
    input of a box that goes on from another (``inherited``, to whom from whom), whoever it reads by then.
    O(readers + rows' entries).
    """
    number = {part: index for index, part in enumerate(after.readers)}
    # Each input as it was, with the parts and boxes of those that go on from it.
    following: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for part, readers in after.readers.items():
        for reader in readers:
            old = before.box_named.get(origin(after.boxes[reader.box].name, inherited or {}))
            if old is not None:
                following.setdefault((old.index, reader.input), []).append((number[part], reader.box))
    parts, old_parts = tuple(after.readers), tuple(before.readers)
    found = []
    for entry in in_flight:
        boxes: dict[int, dict[int, None]] = {}
        for reader in before.readers[old_parts[entry.part]]:
            if reader.box in entry.readers:
                for part_number, box in following.get((reader.box, reader.input), ()):
                    boxes.setdefault(part_number, {})[box] = None
        instance = before.boxes[entry.producer].instance
        for part_number, told in boxes.items():
            source = parts[part_number].port.source
            producer = after.box_named[source if instance is None else f"{source}[{instance}]"].index
            found.append(
                msgspec.structs.replace(entry, part=part_number, producer=producer, readers=tuple(told))
            )
    return tuple(found)
