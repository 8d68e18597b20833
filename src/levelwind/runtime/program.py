"""What every node has to do under one plan: what runs where, in which superstep, and who reads what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from levelwind.model import Network, Operator, Port
from levelwind.model.operator import Aggregate, Diffusion, Fusion, Join, JoinPart, Multijoin, RowWindow
from levelwind.operators.rows import RowType, row_types
from levelwind.rewrite import diffused
from levelwind.runtime.cuts import Cut, cuts_of

# What comes out of these has no order of its own.
UNORDERED = Aggregate | Join | Multijoin | Diffusion | JoinPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One physical operator: a whole one or the instance ``instance`` of a split one."""

    index: int
    name: str
    operator: Operator
    instance: int | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the rows on a port that travels as a whole: all of them, or one instance's share."""

    port: Port
    cut: Cut | None = None
    instance: int = 0


@dataclass(frozen=True, slots=True)
class Reader:
    """An input of a box."""

    box: int
    input: int


@dataclass(frozen=True, eq=False)
class Layout:
    """The physical network as the runtime needs it; the same for every plan.

    ``network`` has joins spread that are to be.
    """

    network: Network
    boxes: tuple[Box, ...] = field(init=False)
    types: Mapping[Port, RowType] = field(init=False)
    cuts: Mapping[str, tuple[Cut, ...]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "network", diffused(self.network))
        boxes: list[Box] = []
        for name in self.network.order:
            operator = self.network.operators[name]
            if operator.split is None:
                boxes.append(Box(index=len(boxes), name=name, operator=operator))
                continue
            for instance in range(operator.split.into):
                boxes.append(
                    Box(
                        index=len(boxes),
                        name=f"{name}[{instance}]",
                        operator=operator,
                        instance=instance,
                    )
                )
        object.__setattr__(self, "boxes", tuple(boxes))
        object.__setattr__(self, "types", row_types(self.network))
        split = [operator for operator in self.network.operators.values() if operator.split is not None]
        cuts = {each.name: cuts_of(each, [self.types[port] for port in each.inputs]) for each in split}
        object.__setattr__(self, "cuts", cuts)

    @cached_property
    def boxes_of(self) -> Mapping[str, tuple[Box, ...]]:
        """The boxes of each operator as written."""
        found: dict[str, list[Box]] = {}
        for box in self.boxes:
            found.setdefault(box.operator.name, []).append(box)
        return {name: tuple(boxes) for name, boxes in found.items()}

    @cached_property
    def box_named(self) -> Mapping[str, Box]:
        """The box of each name."""
        return {box.name: box for box in self.boxes}

    @cached_property
    def readers(self) -> Mapping[Part, tuple[Reader, ...]]:
        """Who reads each part; parts that nobody reads are left out."""
        found: dict[Part, list[Reader]] = {}
        for box in self.boxes:
            for number in range(len(box.operator.inputs)):
                found.setdefault(self.part_read(box, number), []).append(Reader(box.index, number))
        return {part: tuple(readers) for part, readers in found.items()}

    def part_read(self, box: Box, number: int) -> Part:
        """What one input of a box reads."""
        port = box.operator.inputs[number]
        if box.instance is None:
            return Part(port)
        return Part(port, self.cuts[box.operator.name][number], box.instance)

    @cached_property
    def parts(self) -> Mapping[Port, tuple[Part, ...]]:
        """The parts in which each port is read."""
        found: dict[Port, list[Part]] = {}
        for part in self.readers:
            found.setdefault(part.port, []).append(part)
        return {port: tuple(parts) for port, parts in found.items()}

    @cached_property
    def outputs(self) -> Mapping[Port, tuple[str, ...]]:
        """The outputs that each port feeds."""
        found: dict[Port, list[str]] = {}
        for output in self.network.outputs.values():
            found.setdefault(output.input, []).append(output.name)
        return {port: tuple(names) for port, names in found.items()}

    @cached_property
    def ordered(self) -> frozenset[Port]:
        """The ports whose rows carry a rank, since an operator behind them depends on the order of rows."""
        found: set[Port] = set()
        for name in reversed(self.network.order):
            operator = self.network.operators[name]
            ends = isinstance(operator.spec, UNORDERED)
            asked = any(Port(source=name, route=route) in found for route in operator.routes)
            if depends_on_order(operator) or (asked and not ends):
                found.update(operator.inputs)
        return frozenset(found)

    @cached_property
    def leaves(self) -> Mapping[Port, int]:
        """For each port, how many sources of rows it brings together, each with an order of its own."""
        found = {Port(source=name): 1 for name in self.network.streams}
        for name in self.network.order:
            operator = self.network.operators[name]
            count = 1
            if not isinstance(operator.spec, UNORDERED | Fusion) and operator.inputs:
                count = sum(found[port] for port in operator.inputs)
                count *= operator.split.into if operator.split is not None else 1
            found.update({Port(source=name, route=route): count for route in operator.routes})
        return found

    @cached_property
    def sources_of(self) -> tuple[frozenset[str], ...]:
        """For each box, the streams it depends on."""
        of_operator: dict[str, frozenset[str]] = {}
        for name in self.network.order:
            inputs = self.network.operators[name].inputs
            of_operator[name] = frozenset().union(
                *(of_operator.get(port.source, frozenset({port.source})) for port in inputs)
            )
        return tuple(of_operator[box.operator.name] for box in self.boxes)

    @cached_property
    def met_by(self) -> Mapping[str, frozenset[str]]:
        """For each stream, the others that some operator brings together with it."""
        found: dict[str, set[str]] = {name: set() for name in self.network.streams}
        for sources in set(self.sources_of):
            for name in sources:
                found[name] |= sources - {name}
        return {name: frozenset(others) for name, others in found.items()}


def _side_by_side(box: Box) -> tuple[str, int | None] | None:
    """The join and the hop that a part of a spread join belongs to; None for other boxes."""
    spec = box.operator.spec
    return (spec.of, spec.hop) if isinstance(spec, JoinPart) else None


def depends_on_order(operator: Operator) -> bool:
    """Whether its result depends on the order of rows of one event time."""
    if not isinstance(operator.spec, Aggregate):
        return False
    if isinstance(operator.spec.window, RowWindow):
        return True
    return any("first" in text.lower() or "last" in text.lower() for text in operator.spec.compute.values())


@dataclass(frozen=True, eq=False)
class Program:
    """A layout under one placement: ``home[i]`` is the number of the node that box i runs on."""

    layout: Layout
    nodes: tuple[str, ...]
    home: tuple[int, ...]

    @classmethod
    def of(cls, layout: Layout, nodes: tuple[str, ...], placement: Mapping[str, str]) -> Program:
        """From a placement by names."""
        number = {name: index for index, name in enumerate(nodes)}
        return cls(layout, nodes, tuple(number[placement[box.name]] for box in layout.boxes))

    @property
    def placement(self) -> dict[str, str]:
        """The placement by names."""
        return {box.name: self.nodes[home] for box, home in zip(self.layout.boxes, self.home, strict=True)}

    @property
    def within(self) -> bool:
        """Whether rows hop between nodes within a batch."""
        return self.layout.network.hops == "within"

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The superstep in which each box runs: one later than what it reads from another node.

        Instances of a spread join run in the same one. If one that stands where its rows come from ran at
        once, the others would begin after it, and not beside it. O(boxes + arcs), a few times.
        """
        least: dict[tuple[str, int | None], int] = {}
        while True:
            levels = self._levels(least)
            found: dict[tuple[str, int | None], int] = {}
            for box, level in zip(self.layout.boxes, levels, strict=True):
                if (side := _side_by_side(box)) is not None:
                    found[side] = max(level, found.get(side, 0))
            if found == least:
                return levels
            least = found

    def _levels(self, least: Mapping[tuple[str, int | None], int]) -> tuple[int, ...]:
        levels: list[int] = []
        for box in self.layout.boxes:
            side = _side_by_side(box)
            level = 0 if side is None else least.get(side, 0)
            for port in box.operator.inputs:
                for source in self.layout.boxes_of.get(port.source, ()):
                    hop = self.home[source.index] != self.home[box.index]
                    level = max(level, levels[source.index] + (hop and self.within))
            levels.append(level)
        return tuple(levels)

    @cached_property
    def depth(self) -> int:
        """Supersteps in a batch."""
        return 1 + max(self.levels, default=0)

    @cached_property
    def boxes_at(self) -> Mapping[tuple[int, int], tuple[Box, ...]]:
        """The boxes that run on (node, superstep), in an order in which each follows what it reads."""
        found: dict[tuple[int, int], list[Box]] = {}
        for box in self.layout.boxes:
            found.setdefault((self.home[box.index], self.levels[box.index]), []).append(box)
        return {place: tuple(boxes) for place, boxes in found.items()}

    @cached_property
    def destinations(self) -> Mapping[Part, tuple[tuple[int, int], ...]]:
        """Where each part is read: (node, first superstep that reads it there), one per node."""
        found: dict[Part, dict[int, int]] = {}
        for part, readers in self.layout.readers.items():
            first: dict[int, int] = {}
            for reader in readers:
                node, level = self.home[reader.box], self.levels[reader.box]
                first[node] = min(level, first.get(node, level))
            found[part] = first
        return {part: tuple(sorted(first.items())) for part, first in found.items()}
