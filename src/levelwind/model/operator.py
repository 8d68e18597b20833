"""Operators: what every box carries, and what each kind of box adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from levelwind.model.frozen import frozen_mapping
from levelwind.model.stream import Port, Schema

DEFAULT_COST_S = 1e-6
DEFAULT_SELECTIVITY = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Keeps rows: those that fulfil ``where``, or each row to the first of ``routes`` that holds."""

    kind: ClassVar[str] = "filter"
    where: str | None = None
    routes: Mapping[str, str] = field(default_factory=frozen_mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """Computes new columns; the time column is carried along."""

    kind: ClassVar[str] = "map"
    select: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """All rows of all inputs, which have one schema."""

    kind: ClassVar[str] = "union"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """Windows of ``size_s`` seconds, one every ``slide_s`` (equal to the size: tumbling)."""

    size_s: float
    slide_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWindow:
    """Windows of ``rows`` rows, one every ``slide`` rows."""

    rows: int
    slide: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """Computes one row per window and group."""

    kind: ClassVar[str] = "aggregate"
    window: TimeWindow | RowWindow
    compute: Mapping[str, str]
    by: tuple[str, ...] = ()
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Pairs of rows at most ``within_s`` seconds apart for which ``where`` holds."""

    kind: ClassVar[str] = "join"
    aliases: tuple[str, ...]
    within_s: float
    where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diffuse:
    """How a multi-way join is spread over nodes.

    ``weights`` are those of CPU, memory and bandwidth in the load of a host; they add up to 1.
    """

    method: str = "auto"
    instances: int = 1
    segment_s: float | None = None
    weights: tuple[float, float, float] = (1.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFunction:
    """A Python function, ``module:name``, that says which pairs of rows of two inputs may be in a group."""

    inputs: tuple[str, str]
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Multijoin:
    """Groups of one row per input, each within its window of the latest, for which ``where`` holds.

    ``pairs`` are conditions besides. At most ``shed_rows`` rows of an input are taken in a batch; None: all.
    """

    kind: ClassVar[str] = "multijoin"
    aliases: tuple[str, ...]
    windows_s: Mapping[str, float]
    where: str | None = None
    pairs: tuple[PairFunction, ...] = ()
    shed_rows: int | None = None
    diffuse: Diffuse | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlRead:
    """Reads a database table for each row."""

    kind: ClassVar[str] = "sql_read"
    options: Mapping[str, Any] = field(default_factory=frozen_mapping)
    schema: Schema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlWrite:
    """Writes each row to a database table."""

    kind: ClassVar[str] = "sql_write"
    options: Mapping[str, Any] = field(default_factory=frozen_mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """Calls a Python function, ``module:name``."""

    kind: ClassVar[str] = "custom"
    function: str
    schema: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Stands for work of a stated cost: for planning, simulation and burning CPU.

    ``load`` states load coefficients outright (CPU seconds per row of each stream),
    ``series`` a load series, one sample a second.
    """

    kind: ClassVar[str] = "model"
    load: Mapping[str, float] | None = None
    series: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diffusion:
    """Sends rows of a spread multi-way join to its parts. No kind that is written: `diffused` makes it.

    ``selectivity`` is that of the whole join, as stated.
    """

    kind: ClassVar[str] = "diffusion"
    join: Multijoin
    aligned: bool
    coordinated: bool
    selectivity: float = 1.0

    @property
    def inputs(self) -> dict[str, str | None]:
        """The input whose rows each route carries; that for paths carries none."""
        assert self.join.diffuse is not None
        ways = [aligned_route] if self.aligned else []
        ways += [coordinated_route] if self.coordinated else []
        instances = range(self.join.diffuse.instances)
        found: dict[str, str | None] = {
            way(i, alias): alias for way in ways for i in instances for alias in self.join.aliases
        }
        return found | {PATHS: None} if self.coordinated else found

    @property
    def routes(self) -> tuple[str, ...]:
        """A route for the rows of each input to each instance, by method; and one for paths."""
        return tuple(self.inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinPart:
    """A part of a spread multi-way join: one instance of it, of one hop if rows visit several.

    ``of`` is the join's name.
    """

    kind: ClassVar[str] = "join_part"
    join: Multijoin
    of: str
    instance: int
    hop: int | None = None

    @property
    def routes(self) -> tuple[str | None, ...]:
        """One for each host of the next hop; a last hop, and a part without hops, puts out groups."""
        assert self.join.diffuse is not None
        if self.hop is None or self.hop == len(self.join.aliases) - 2:
            return (None,)
        return tuple(str(instance) for instance in range(self.join.diffuse.instances))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fusion:
    """Puts the groups of all parts of a spread join together. ``ports`` is what the join reads as written."""

    kind: ClassVar[str] = "fusion"
    join: Multijoin
    ports: tuple[Port, ...]
    selectivity: float


PATHS = "paths"


def aligned_route(instance: int, alias: str) -> str:
    """The route of a diffusion by which an instance reads an input whole groups of which it joins."""
    return f"{instance}:{alias}"


def coordinated_route(instance: int, alias: str) -> str:
    """The route of a diffusion by which an instance's hops read an input."""
    return f"{instance}>{alias}"


Spec = (
    Filter
    | Map
    | Union
    | Aggregate
    | Join
    | Multijoin
    | SqlRead
    | SqlWrite
    | Custom
    | Model
    | Diffusion
    | JoinPart
    | Fusion
)
# The kinds that can be written.
KINDS: Mapping[str, type[Spec]] = frozen_mapping(
    {
        spec.kind: spec
        for spec in (Filter, Map, Union, Aggregate, Join, Multijoin, SqlRead, SqlWrite, Custom, Model)
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Divides an operator into instances by the hash of a key."""

    into: int
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A box of the network: what it reads, what it does (``spec``), what it costs, where it may stand.

    ``cost_s`` is in CPU seconds per input row (per pair for a join), ``selectivity`` in rows out per row
    in (per pair for a join); None means unstated. ``route_selectivity`` states it route by route.
    ``transfer_cost_s`` is in CPU seconds per output row sent to another node, half at each end. Where routes
    differ in it, or in ``bytes``, ``route_transfer_cost_s`` and ``route_bytes`` state them route by route.
    """

    name: str
    spec: Spec
    inputs: tuple[Port, ...] = ()
    cost_s: float | None = None
    selectivity: float | None = None
    route_selectivity: Mapping[str, float] | None = None
    varying: bool = False
    movable: bool = True
    pinned: str | None = None
    table: str | None = None
    reusable: bool = True
    priority: float = 0.0
    properties: Mapping[str, Any] = field(default_factory=frozen_mapping)
    bytes: float | None = None
    transfer_cost_s: float = 0.0
    route_bytes: Mapping[str, float | None] | None = None
    route_transfer_cost_s: Mapping[str, float] | None = None
    split: Split | None = None
    schema: Schema | None = None

    @property
    def kind(self) -> str:
        """The word that names the kind in a network file."""
        return self.spec.kind

    @property
    def routes(self) -> tuple[str | None, ...]:
        """The names of the outputs; a box with a single one has the name None."""
        if isinstance(self.spec, Filter) and self.spec.routes:
            return tuple(self.spec.routes)
        if isinstance(self.spec, Diffusion | JoinPart):
            return self.spec.routes
        return (None,)

    @property
    def is_join(self) -> bool:
        """Whether its work grows with the product of its inputs' rates."""
        return isinstance(self.spec, Join | Multijoin)

    @property
    def may_shed(self) -> bool:
        """Whether it says that rows may be left out under overload, and is the operator that does so."""
        if isinstance(self.spec, Diffusion):
            return self.spec.join.shed_rows is not None
        return isinstance(self.spec, Multijoin) and self.spec.shed_rows is not None and not self.spec.diffuse

    @property
    def stated_cost_s(self) -> float:
        """CPU seconds per row, 1 µs if unstated."""
        return DEFAULT_COST_S if self.cost_s is None else self.cost_s

    def selectivity_of(self, route: str | None) -> float:
        """Rows out on one route per row in; a single figure is shared equally by all routes."""
        if self.route_selectivity is not None and route is not None:
            return self.route_selectivity[route]
        whole = DEFAULT_SELECTIVITY if self.selectivity is None else self.selectivity
        return whole / len(self.routes)

    def bytes_of(self, route: str | None) -> float | None:
        """Bytes of a row on one route; None if unstated."""
        if self.route_bytes is not None and route is not None:
            return self.route_bytes.get(route)
        return self.bytes

    def transfer_cost_of(self, route: str | None) -> float:
        """CPU seconds per row of one route that is sent to another node."""
        if self.route_transfer_cost_s is not None and route is not None:
            return self.route_transfer_cost_s.get(route, 0.0)
        return self.transfer_cost_s
