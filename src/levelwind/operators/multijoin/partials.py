"""Partial groups: rows of some of the inputs that may come to be a group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import polars as pl

from levelwind.operators.multijoin.meeting import Flags, Meeting
from levelwind.operators.timespans import Numbers, plus


@dataclass(frozen=True, slots=True)
class Partials:
    """Partial groups of one set of bound inputs.

    Attributes
    ----------
    at
        For each bound input, the position of each group's row among the rows that meet.
    latest, until
        The latest event time in each group, and the last one that another row of it may have: a row of input
        k may join if its time is from ``latest`` less the window of k, to ``until``.
    fails
        Whether a condition could not be computed; None if all could.
    """

    at: Mapping[int, Numbers]
    latest: Numbers
    until: Numbers
    fails: Flags | None = None

    def __len__(self) -> int:
        return len(self.latest)

    def take(self, which: Numbers | Flags) -> Partials:
        """Some of the groups."""
        return Partials(
            {input: at[which] for input, at in self.at.items()},
            self.latest[which],
            self.until[which],
            None if self.fails is None else self.fails[which],
        )

    def pieces(self, most: int) -> Iterator[Partials]:
        """The groups, so many at a time."""
        if len(self) <= most:
            yield self
            return
        for low in range(0, len(self), most):
            yield self.take(np.arange(low, min(low + most, len(self))))


def single(meeting: Meeting, input: int, at: Numbers) -> Partials:
    """Groups of one row of one input each."""
    member = meeting.members[input]
    times = member.times[at]
    fails = None if member.fails is None else member.fails[at]
    return Partials({input: at}, times, plus(times, meeting.span(input, at)), fails)


def bound_in_frame(meeting: Meeting, inputs: Sequence[int]) -> Partials:
    """Groups that are the rows of one frame, which is the member of the meeting for all their inputs."""
    at = np.arange(len(meeting.members[inputs[0]].times))
    each = [single(meeting, input, at) for input in inputs]
    fails = [of_input.fails for of_input in each if of_input.fails is not None]
    return Partials(
        dict.fromkeys(inputs, at),
        reduce(np.maximum, (of_input.latest for of_input in each)),
        reduce(np.minimum, (of_input.until for of_input in each)),
        reduce(np.logical_or, fails) if fails else None,
    )


def one(pieces: Sequence[Partials]) -> Partials:
    """Groups of the same inputs taken together."""
    if len(pieces) == 1:
        return pieces[0]
    fails = None
    if any(piece.fails is not None for piece in pieces):
        fails = np.concatenate(
            [np.zeros(len(p), dtype=np.bool_) if p.fails is None else p.fails for p in pieces]
        )
    return Partials(
        {input: np.concatenate([p.at[input] for p in pieces]) for input in pieces[0].at},
        np.concatenate([p.latest for p in pieces]),
        np.concatenate([p.until for p in pieces]),
        fails,
    )


def gathered(pieces: Iterable[Partials], least: int) -> Iterator[Partials]:
    """Groups of the same inputs in larger pieces: what filters leave of a piece may be little."""
    held: list[Partials] = []
    count = 0
    for piece in pieces:
        if not len(piece):
            continue
        held.append(piece)
        count += len(piece)
        if count >= least:
            yield one(held)
            held, count = [], 0
    if held:
        yield one(held)


def columns_of(meeting: Meeting, partials: Partials, columns: Iterable[tuple[int, str]]) -> pl.DataFrame:
    """Columns of the groups' rows, each given with its input."""
    return pl.DataFrame(
        [meeting.members[input].frame.get_column(name).gather(partials.at[input]) for input, name in columns]
    )
