"""What an experiment is, and what it says in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

# Both are plain JSON values: they travel to other processes or to Spark, and into the record on disk.
Item = Mapping[str, Any]
Result = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One part of a claim, decided by the data; ``reason`` is why it fails here, if it does."""

    passed: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the paper shows, what came out here, and whether the paper's claim holds.

    ``paper`` is in words, since most of its figures were printed as pictures only. ``ours`` holds numbers.
    ``why`` is empty if the claim holds. ``set_up`` says what was run otherwise than in the paper, where that
    is more than sizes and seeds.
    """

    paper: str
    ours: Mapping[str, Any]
    claim: str
    holds: bool
    why: str = ""
    set_up: tuple[str, ...] = ()


class Experiment(Protocol):
    """A table or figure: work to do, what each piece of it measures, and what the whole says.

    Every module named after a figure or table is one. ``measure`` is a function at the top of a module (so
    that it can be sent elsewhere) and takes all its randomness from seeds inside the item; it is called by
    position. Experiments with the same ``measure`` and the same cells are measured once.
    """

    TITLE: str

    def cells(self, quick: bool, seed: int) -> list[Item]:
        """Independent pieces of work, small enough to keep all cores busy until the end."""
        ...

    def measure(self, item: Item, /) -> Result:
        """One piece of work: the item with what was measured."""
        ...

    def summarise(self, results: Sequence[Result]) -> Outcome:
        """Decide from the results alone whether the claim holds."""
        ...

    def draw(self, results: Sequence[Result], path: Path) -> None:
        """Write the figure as PNG."""
        ...


def judge(
    paper: str, claim: str, ours: Mapping[str, Any], checks: Sequence[Check], set_up: tuple[str, ...] = ()
) -> Outcome:
    """The outcome of a claim with several parts: it holds if all of them do."""
    failed = [check.reason for check in checks if not check.passed]
    why = "; ".join(failed)
    return Outcome(paper=paper, ours=ours, claim=claim, holds=not failed, why=why, set_up=set_up)
