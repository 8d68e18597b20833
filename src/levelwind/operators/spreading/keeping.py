"""Rows that the sender of a spread join keeps, for the day on which windows change.

What it keeps is what the plain join would hold. When windows change, the eras so far get no more rows: they
are left with the groups whose rows had all come, which go by the old windows. All rows that are kept are sent
again, as rows known before, and those that come after them as new ones, in eras laid by the new windows.
There each group with a new row in it is found, and none without: the plain join, begun with what it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from levelwind.diffusion.join import Flags, Ints
from levelwind.operators.join_pairs import times_of
from levelwind.operators.multijoin.holding import WINDOW, freed, has_changed, held, others
from levelwind.operators.rows import Arrived
from levelwind.operators.state import State, one_frame

# Tables of kept rows are named by this and the input.
ROWS = "rows "


@dataclass(frozen=True, slots=True)
class Sent:
    """What is to be sent in a step: of each input first the rows that are sent again, then new ones."""

    frames: tuple[pl.DataFrame, ...]
    again: tuple[int, ...]
    clocks: tuple[str, ...]

    @property
    def streams(self) -> Ints:
        """The stream of each row, those of the first stream before the others."""
        return np.repeat(np.arange(len(self.frames)), [frame.height for frame in self.frames])

    @property
    def times(self) -> Ints:
        """The time of each row."""
        return np.concatenate(
            [
                times_of(frame, clock) if frame.height else np.empty(0, dtype=np.int64)
                for frame, clock in zip(self.frames, self.clocks, strict=True)
            ]
        )

    @property
    def known(self) -> Flags:
        """Whether each row is sent again."""
        return np.concatenate(
            [np.arange(frame.height) < count for frame, count in zip(self.frames, self.again, strict=True)]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """Keeps rows of all inputs. A step costs O(new rows), and O(kept rows) if windows have changed."""

    aliases: tuple[str, ...]
    clocks: tuple[str, ...]
    windows_us: tuple[int, ...]

    def has_changed(self, state: State) -> bool:
        """Whether other windows were in force in the step before."""
        return any(map(has_changed, [state.marks] * len(self.aliases), self.aliases, self.windows_us))

    def step(
        self, state: State, new: Sequence[pl.DataFrame], inputs: Sequence[Arrived]
    ) -> tuple[State, Sent]:
        """The state with the new rows and windows, and what is to be sent."""
        changed = self.has_changed(state)
        frames, again = [], []
        for k, (alias, clock, window) in enumerate(
            zip(self.aliases, self.clocks, self.windows_us, strict=True)
        ):
            table = state.table(ROWS + alias, clock)
            known = table.read() if changed else None
            # No rows at all may have come with other names of columns.
            parts = [rows for rows in (known, new[k]) if rows is not None and rows.height]
            frames.append(one_frame(parts) if parts else new[k])
            again.append(0 if known is None else known.height)
            before = freed(table) if has_changed(state.marks, alias, window) else table
            after = held(before, new[k], others(inputs, k), window)
            if after is not table:
                state = state.with_table(ROWS + alias, after)
            if state.marks.get(WINDOW + alias) != window:
                state = state.with_mark(WINDOW + alias, window)
        return state, Sent(tuple(frames), tuple(again), self.clocks)
