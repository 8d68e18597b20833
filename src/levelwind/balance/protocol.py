"""What a policy is: recent load in, proposed moves out, nothing else touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from levelwind.balance.facts import Facts
from levelwind.balance.surroundings import Surroundings
from levelwind.loads.arrays import Floats, Ints
from levelwind.model import Node
from levelwind.model.frozen import frozen_mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a policy decides on. Nodes and operators are positions; lost nodes are not in it.

    Parameters
    ----------
    series
        Load of each operator (operators × samples, oldest first) in CPU seconds per second, as the offered
        rates ask for it, not as what got through.
    node
        Where each operator stands, or will stand when the moves under way are done.
    cpu
        Capacity of each node.
    movable
        Whether an operator may move now: not if it is pinned, declared immovable, or on its way.
    unit
        Operators with the same number stand together (one table) and move together.
    state_bytes
        State that a move of the operator carries.
    around
        What operators send each other and what lies between the nodes, where latencies are known.
    nodes
        The nodes themselves, for policies that read their names, memory, bandwidth or properties.
    facts
        Wiring, priorities and properties of the operators; None if whoever asks does not know them.
    seen
        Further statistics by name, a figure per operator: those that the policy says it needs.
    parts
        The share of its producer's rows that each stream of the wiring carries, as measured; None: go by what
        is stated. See `part`.
    reference
        What each node cost when operators last came to it or left it, by the policy's own `CostPolicy.costs`;
        NaN where that was never.
    still
        How often the window that ``series`` cover would fit into the time since operators last came to any
        node or left it, for a `CostPolicy`: from 1 on it holds nothing from before. None: they never did, or
        nobody knows.
    ready
        Whether each node can take operators now; None: all can. One that cannot keeps what it has.
    """

    series: Floats
    node: Ints
    cpu: Floats
    movable: NDArray[np.bool_]
    unit: Ints
    state_bytes: Floats
    around: Surroundings | None = None
    nodes: tuple[Node, ...] = ()
    facts: Facts | None = None
    seen: Mapping[str, Floats] = field(default_factory=frozen_mapping)
    parts: Floats | None = None
    reference: Floats | None = None
    still: float | None = None
    ready: NDArray[np.bool_] | None = None

    @property
    def open(self) -> NDArray[np.bool_]:
        """Whether each node can take operators now."""
        return np.ones(len(self.cpu), dtype=bool) if self.ready is None else self.ready

    @property
    def part(self) -> Floats:
        """The share of its producer's rows that each stream carries: as measured, or else as stated."""
        if self.parts is not None:
            return self.parts
        return np.zeros(0) if self.facts is None else self.facts.wiring.part

    @property
    def mean_load(self) -> Floats:
        """Mean load of each operator over the window."""
        return self.series.mean(axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A move that a policy would make: operator and node by position, and why.

    Moves of one ``group`` are parts of one exchange: each may do harm without the others.
    """

    operator: int
    to: int
    reason: str
    group: int = 0


class Policy(Protocol):
    """Proposes moves, best first; the manager accepts or rejects them one by one.

    Pure: the same situation and generator give the same proposals, no clock and no file is read, and nodes
    are told apart by position alone. Operators that may not move stay, those of one unit move together, and
    one without load never moves. A node that is not ready is given nothing. Where ``facts`` tell priorities,
    less important operators move first. A policy is a frozen dataclass; its fields are its options, made by
    `option`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    origin: ClassVar[str]

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """Decide. See the class for the contract."""
        ...


@runtime_checkable
class CostPolicy(Protocol):
    """A policy that goes by a cost of its own: it says what it must see, and what every node costs.

    ``statistics`` names what a run must count for it (see `levelwind.balance.costs.STATISTICS`); of these
    only the load is counted anyway.
    """

    @property
    def statistics(self) -> frozenset[str]:
        """Names of the statistics that it reads."""
        ...

    def costs(self, situation: Situation) -> Floats:
        """Cost of each node, to be remembered as the reference when its operators change."""
        ...
