"""What a policy is: recent load in, proposed moves out, nothing else touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from levelwind.balance.surroundings import Surroundings
from levelwind.loads.arrays import Floats, Ints


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
    """

    series: Floats
    node: Ints
    cpu: Floats
    movable: NDArray[np.bool_]
    unit: Ints
    state_bytes: Floats
    around: Surroundings | None = None


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
    one without load never moves. A policy is a frozen dataclass; its fields are its options, made by
    `option`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    origin: ClassVar[str]

    def propose(self, situation: Situation, *, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """Decide. See the class for the contract."""
        ...
