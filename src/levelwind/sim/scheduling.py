"""Which of its waiting rows a simulated node takes up next: plug-ins, chosen by name.

A scheduler gives the kernel a rule, and ranks of operators where the rule goes by them. It may look back at
every sample and give another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from levelwind.loads.problem import Problem
from levelwind.plugins import Registry, option
from levelwind.sim.chain import chain_ranks
from levelwind.sim.tables import Floats, Rule


class Order(NamedTuple):
    """What nodes go by: a rule, and ranks of operators (higher is first) if that is `Rule.RANK`."""

    rule: Rule
    ranks: Floats | None = None


class Lap(NamedTuple):
    """A sample that is over: what was used in it, rows in the system at its end, results per second."""

    used: int
    rows_held: float
    output_rate: float


class Scheduler(Protocol):
    """Chooses among waiting rows. A frozen dataclass without state; its fields are its options.

    ``orders`` gives what it may choose from, at least one; nodes begin with the first. ``choose`` is asked
    after every sample, with all laps so far, and answers with a position in ``orders``.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    origin: ClassVar[str]

    def orders(self, problem: Problem) -> tuple[Order, ...]:
        """What there is to choose from. Pure."""
        ...

    def choose(self, laps: Sequence[Lap], *, rng: np.random.Generator) -> int:
        """What to use next."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FifoScheduler:
    """First come, first served, whatever the operator."""

    name: ClassVar[str] = "fifo"
    summary: ClassVar[str] = "rows in the order in which they came to the node"
    origin: ClassVar[str] = "seed 003, section 3.3"

    def orders(self, problem: Problem) -> tuple[Order, ...]:
        """The age of rows."""
        return (Order(Rule.OLDEST),)

    def choose(self, laps: Sequence[Lap], *, rng: np.random.Generator) -> int:
        """There is no choice."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRobinScheduler:
    """Operators with waiting rows take turns, one row each."""

    name: ClassVar[str] = "round_robin"
    summary: ClassVar[str] = "operators that have rows take turns"
    origin: ClassVar[str] = "seed 003, section 3.3"

    def orders(self, problem: Problem) -> tuple[Order, ...]:
        """Turns."""
        return (Order(Rule.TURN),)

    def choose(self, laps: Sequence[Lap], *, rng: np.random.Generator) -> int:
        """There is no choice."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainScheduler:
    """The operator whose segment of the lower envelope is steepest: what frees most memory for its time."""

    name: ClassVar[str] = "chain"
    summary: ClassVar[str] = "the operator whose path frees most rows for the CPU time it takes"
    origin: ClassVar[str] = "Chain (Babcock and others, SIGMOD 2003), which seed 003, section 3.3 names"

    def orders(self, problem: Problem) -> tuple[Order, ...]:
        """Ranks by slope."""
        return (Order(Rule.RANK, chain_ranks(problem)),)

    def choose(self, laps: Sequence[Lap], *, rng: np.random.Generator) -> int:
        """There is no choice."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveScheduler:
    """Uses several in turns and mostly those that did well: fewer rows held, or more results.

    After every sample the one in use is scored by what the sample brought, against the best and the worst
    sample so far; the next is drawn by score, so that one that did badly is still tried at times.
    """

    name: ClassVar[str] = "adaptive"
    summary: ClassVar[str] = "now one, now another: by chance, in favour of those that did well"
    origin: ClassVar[str] = "seed 003, section 3.3, which names the idea"

    goal: str = option("memory", "what counts", choices=("memory", "output_rate"))
    memory: float = option(0.8, "weight of older samples against the newest", least=0.0)
    least: float = option(0.05, "least chance of each to be tried", least=0.0)

    def orders(self, problem: Problem) -> tuple[Order, ...]:
        """All three."""
        return (Order(Rule.OLDEST), Order(Rule.TURN), Order(Rule.RANK, chain_ranks(problem)))

    def choose(self, laps: Sequence[Lap], *, rng: np.random.Generator) -> int:
        """Each once, then by score. O(laps)."""
        used = {lap.used for lap in laps}
        fresh = [k for k in range(3) if k not in used]
        if fresh:
            return fresh[0]
        values = np.array([-lap.rows_held if self.goal == "memory" else lap.output_rate for lap in laps])
        low, high = float(values.min()), float(values.max())
        scaled = (values - low) / (high - low) if high > low else np.ones(len(values))
        score, seen = np.zeros(3), set[int]()
        for lap, value in zip(laps, scaled.tolist(), strict=True):
            older = self.memory if lap.used in seen else 0.0
            score[lap.used] = older * score[lap.used] + (1.0 - older) * value
            seen.add(lap.used)
        chance = np.maximum(score, self.least)
        return int(rng.choice(3, p=chance / chance.sum()))


BUILT_IN = {
    "fifo": "levelwind.sim.scheduling:FifoScheduler",
    "round_robin": "levelwind.sim.scheduling:RoundRobinScheduler",
    "chain": "levelwind.sim.scheduling:ChainScheduler",
    "adaptive": "levelwind.sim.scheduling:AdaptiveScheduler",
}
ENTRY_POINTS = "levelwind.schedulers"
SCHEDULERS = Registry(kind="scheduler", built_in=BUILT_IN, entry_points=ENTRY_POINTS)


def make_scheduler(name: str, options: Mapping[str, Any] | None = None) -> Scheduler:
    """A scheduler with options; a bad name or option is an input error."""
    scheduler: Scheduler = SCHEDULERS.make(name, options)
    return scheduler
