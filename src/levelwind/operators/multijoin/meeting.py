"""Rows of several inputs that may be in groups together, and what is worked out of them on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from levelwind.operators.join_pairs import times_of
from levelwind.operators.multijoin.bands import Floats
from levelwind.operators.multijoin.condition import GroupCondition
from levelwind.operators.multijoin.index import Index, Values
from levelwind.operators.timespans import Numbers

Flags = npt.NDArray[np.bool_]
# A hidden column of rows on which a condition of their input alone could not be computed.
FAILS = "__fails"
# Hidden columns of rows sent to a part of a spread join: how old the row may be when the latest of its group
# comes, in microseconds; and whether it came before the windows changed, so that it makes no group with its
# like.
SPAN, KNOWN = "__span", "__known"
_NUMBER = "__number"
_VALUE = "__value"
# Keys of several values are made one number; values that would not fit are compared afterwards.
_MOST_KEYS = 1 << 62
# Stands for the event time where an index may go by a band.
BY_TIME = -1


@dataclass(frozen=True, slots=True)
class Member:
    """Rows of one input: what was known when the step began, then what has arrived.

    ``frame`` may hold columns of other inputs too, as partial groups that were sent from elsewhere do.
    ``spans`` has the window of each row, where they differ.
    """

    frame: pl.DataFrame
    times: Numbers
    known: int
    fails: Flags | None = None
    spans: Numbers | None = None

    @classmethod
    def of(cls, frame: pl.DataFrame, clock: str, *, known: int = 0) -> Member:
        """Rows whose event time is in the column ``clock``."""
        fails = None
        if FAILS in frame.columns:
            fails = frame.get_column(FAILS).to_numpy()
            fails = fails if fails.any() else None
        return cls(frame, times_of(frame, clock), known, fails)


@dataclass(frozen=True, slots=True)
class Meeting:
    """Rows that may meet in a step. What is worked out once is kept until the step is over.

    Attributes
    ----------
    members
        The rows of each input; inputs that are not there cannot be asked for.
    windows_us
        How old a row of each input may be when the latest of its group comes; at most, where rows of an input
        have windows of their own.
    """

    condition: GroupCondition
    windows_us: Sequence[int]
    members: Mapping[int, Member]
    _codes: dict[int, tuple[dict[int, Numbers], int]] = field(default_factory=dict)
    _numbers: dict[int, dict[int, Floats] | None] = field(default_factory=dict)
    _indexes: dict[tuple[int, tuple[int, ...], int], Index] = field(default_factory=dict)

    def span(self, input: int, at: Numbers) -> int | Numbers:
        """The window of an input, or of its rows at some positions."""
        spans = self.members[input].spans
        return self.windows_us[input] if spans is None else spans[at]

    def codes(self, same: int) -> tuple[dict[int, Numbers], int]:
        """For each input a number per row that tells equal values, -1 for NULL; and how many there are.

        O(rows) by hashing.
        """
        found = self._codes.get(same)
        if found is None:
            rule = self.condition.same[same]
            keys = {
                input: rule.keys(input, member.frame).alias(_VALUE).to_frame()
                for input, member in self.members.items()
                if input in rule.values
            }
            distinct = pl.concat(keys.values()).drop_nulls().unique(maintain_order=True)
            distinct = distinct.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(_NUMBER))
            codes = {
                input: frame.join(distinct, on=_VALUE, how="left", maintain_order="left")
                .get_column(_NUMBER)
                .fill_null(-1)
                .to_numpy()
                for input, frame in keys.items()
            }
            found = self._codes[same] = codes, distinct.height
        return found

    def numbers(self, band: int) -> dict[int, Floats] | None:
        """The values that a band keeps near, by input; None if it does not hold for what is there."""
        if band not in self._numbers:
            rule = self.condition.bands[band]
            found = {
                input: rule.numbers(input, self.members[input].frame)
                for input in rule.inputs
                if input in self.members
            }
            sound = {input: numbers for input, numbers in found.items() if numbers is not None}
            self._numbers[band] = sound if len(sound) == len(found) else None
        return self._numbers[band]

    def hashed(self, same: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Of equal values, each with a bound input, as many as fit into one number."""
        fitting, size = [], 1
        for number, partner in same:
            size *= self.codes(number)[1] + 1
            if size < _MOST_KEYS:
                fitting.append((number, partner))
        return fitting

    def keys(self, same: Sequence[tuple[int, int]], at: Mapping[int, Numbers]) -> Numbers | None:
        """The keys of rows: of each of the equal values that of the input beside it, at some positions.

        A key with a NULL in it is -1.
        """
        keys: Numbers | None = None
        for number, input in same:
            codes, size = self.codes(number)
            own = codes[input][at[input]]
            keys = own if keys is None else np.where((keys < 0) | (own < 0), -1, keys * size + own)
        return keys

    def index(self, target: int, same: Sequence[int], by: int) -> Index:
        """The rows of an input that have a key, by key and by event time or a band's value.

        Parameters
        ----------
        same, by
            What makes the key, and the number of a band or `BY_TIME`.
        """
        asked = (target, tuple(same), by)
        found = self._indexes.get(asked)
        if found is None:
            member = self.members[target]
            rows = np.arange(len(member.times))
            values: Values = member.times
            keys = self.keys([(number, target) for number in same], {target: rows})
            keep = None if keys is None else keys >= 0
            if by != BY_TIME:
                numbers = self.numbers(by)
                assert numbers is not None
                values = numbers[target]
                present = ~np.isnan(values[rows])
                keep = present if keep is None else keep & present
            if keep is not None and not keep.all():
                rows, keys = rows[keep], None if keys is None else keys[keep]
            found = self._indexes[asked] = Index.of(rows, keys, values[rows])
        return found
