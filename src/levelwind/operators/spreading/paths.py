"""Paths of coordinated routing as the hops know them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from levelwind.diffusion.coordinated import Path
from levelwind.diffusion.join import Flags, Ints

WINDOWS = "windows"
_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "era": pl.Int64,
    "slot": pl.Int64,
    "stream": pl.Int64,
    "first": pl.Int64,
    "until": pl.Int64,
    "order": pl.List(pl.Int64),
    "serve": pl.List(pl.List(pl.Int64)),
    WINDOWS: pl.List(pl.Int64),
}


def path_rows(paths: Sequence[Path], windows_us: Sequence[int]) -> pl.DataFrame:
    """Paths as rows, with the windows by which they were laid."""
    windows = list(windows_us)
    rows = [
        (p.era, p.slot, p.stream, p.first, p.until_us, p.order.tolist(), p.serve.tolist(), windows)
        for p in paths
    ]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def with_windows(rows: pl.DataFrame, windows_us: Sequence[int]) -> pl.DataFrame:
    """Paths with their windows; those from before paths had any get the windows given."""
    if WINDOWS in rows.columns:
        return rows
    given = pl.Series(WINDOWS, [list(windows_us)] * rows.height, dtype=_SCHEMA[WINDOWS])
    return rows.with_columns(given)


def longest_windows(frames: Sequence[pl.DataFrame], windows_us: Sequence[int]) -> list[int]:
    """The longest window of each input, of those by which paths were laid and those given."""
    found = [list(windows_us), *(each for frame in frames for each in frame.get_column(WINDOWS).to_list())]
    return [max(of_input) for of_input in zip(*found, strict=True)]


@dataclass(frozen=True, slots=True)
class KnownPaths:
    """Paths by number: ``orders[p]`` the inputs visited in turn, ``serve[p]`` hosts by hop and slot.

    ``windows`` are those of each era.
    """

    numbers: dict[tuple[int, int, int], int]
    orders: list[tuple[int, ...]]
    firsts: list[int]
    serve: list[Ints]
    windows: dict[int, tuple[int, ...]]

    @classmethod
    def of(cls, frames: Sequence[pl.DataFrame], streams: int) -> KnownPaths:
        """From rows that `path_rows` made. O(paths)."""
        known = cls({}, [], [], [], {})
        for frame in frames:
            columns = (frame.get_column(name).to_list() for name in _SCHEMA if name != "until")
            for era, slot, stream, first, order, serve, windows in zip(*columns, strict=True):
                known.numbers[era, slot, stream] = len(known.orders)
                known.orders.append(tuple(order))
                known.firsts.append(first)
                known.windows[era] = tuple(windows)
                known.serve.append(np.array(serve, dtype=np.int64).reshape(streams - 1, -1))
        return known

    def number(self, eras: Ints, slots: Ints, stream: int) -> Ints:
        """The number of each row's path."""
        if not len(eras):
            return np.empty(0, dtype=np.int64)
        # Both lie close together: a table of all that may be is small, and nothing needs to be sorted.
        first_era, first_slot = int(eras.min()), int(slots.min())
        wide = int(slots.max()) - first_slot + 1
        table = np.full((int(eras.max()) - first_era + 1) * wide, -1, dtype=np.int64)
        codes = (eras - first_era) * wide + slots - first_slot
        table[codes] = 0
        for code in np.flatnonzero(table == 0).tolist():
            era, slot = divmod(code, wide)
            table[code] = self.numbers[first_era + era, first_slot + slot, stream]
        return table[codes]

    def by_order(self, number: Ints, hops: int) -> Iterator[tuple[tuple[int, ...], Ints]]:
        """Rows whose paths begin with the same inputs, with those inputs."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for path in np.unique(number).tolist():
            groups.setdefault(self.orders[path][:hops], []).append(path)
        for order, paths in groups.items():
            yield order, np.flatnonzero(np.isin(number, paths))

    def answered(self, number: Ints, hop: int, host: int) -> tuple[Flags, int]:
        """For each row, whether the host answers for each slot from the one that is returned on."""
        distinct, back = np.unique(number, return_inverse=True)
        low = min(self.firsts[path] for path in distinct.tolist())
        high = max(self.firsts[path] + self.serve[path].shape[1] for path in distinct.tolist())
        table = np.zeros((len(distinct), high - low), dtype=np.bool_)
        for i, path in enumerate(distinct.tolist()):
            at = self.firsts[path] - low
            table[i, at : at + self.serve[path].shape[1]] = self.serve[path][hop] == host
        return table[back.reshape(-1)], low

    def hosts(self, path: int, hop: int) -> Ints:
        """The hosts of a hop."""
        found = np.unique(self.serve[path][hop])
        return found[found >= 0]
