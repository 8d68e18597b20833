"""Operators that go on from the state and the rows of another, which computed for them until now.

Equal operators are computed once, and the state lies under the name of the one that computes. When that one
goes, or no longer computes for another, the other takes its record over. The last commit has it under the old
name until the next one is written, so whoever reads state from there must ask for it under that name.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping

import msgspec

from levelwind.runtime.commits import Commit
from levelwind.runtime.program import Box, Layout


def origin(name: str, inherited: Mapping[str, str]) -> str:
    """The operator, or instance of one, that this one goes on from: itself unless it inherits."""
    base, bracket, rest = name.partition("[")
    return inherited.get(base, base) + bracket + rest


def origins(layout: Layout, before: Container[str], inherited: Mapping[str, str]) -> dict[str, str]:
    """For each box of a layout that goes on from one there was ``before``, the name of that one.

    O(boxes).
    """
    found = {box.name: origin(box.name, inherited) for box in layout.boxes}
    return {name: old for name, old in found.items() if old in before}


def inherited_from(commit: Commit, layout: Layout) -> dict[str, str]:
    """Operators that others computed for at a commit and that compute themselves now, with those others."""
    computing = {box.name.partition("[")[0] for box in layout.boxes}
    return {name: by for name, by in commit.served_by.items() if name in computing}


def gone_on_from(commit: Commit, origins: Mapping[str, str]) -> Commit:
    """A commit with the records that boxes go on from under their own names, and no others."""
    boxes = {name: commit.boxes[old] for name, old in origins.items() if old in commit.boxes}
    return msgspec.structs.replace(commit, boxes=boxes)


def taken_over(layout: Layout, nodes: Collection[str], commit: Commit) -> dict[str, str]:
    """The nodes that operators stay on where a commit has them, under their own names.

    Not those whose node is gone, or that a pin or a table that came since binds to another place. O(boxes).
    """
    units: dict[str, list[Box]] = {}
    for box in layout.boxes:
        table = box.operator.table
        units.setdefault(box.name if table is None else f"table {table}", []).append(box)
    found: dict[str, str] = {}
    known = set(nodes)
    for boxes in units.values():
        stood = {commit.boxes[box.name].node if box.name in commit.boxes else None for box in boxes}
        pins = {box.operator.pinned for box in boxes} - {None}
        if len(stood) == 1 and stood <= known and pins <= stood:
            found.update({box.name: commit.boxes[box.name].node for box in boxes})
    return found
