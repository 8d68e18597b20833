"""Router, hosts and fusion in one process, on small streams: to see that a spread join is the join.

Hosts here are as plain as can be. They know what they were sent and nothing else; `naive_groups`, which they
are compared with, knows no hosts at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from levelwind.diffusion.coordinated import Path
from levelwind.diffusion.join import Flags, Floats, Ints
from levelwind.diffusion.router import KEEPS, LOOKS, Router
from levelwind.diffusion.saving import restore, save

Group = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of all streams in order of arrival. Rows agree if the values of neighbouring streams are close."""

    streams: Ints
    times: Ints
    values: Floats
    near: float

    def agree(self, i: int, left: Ints, k: int, right: Ints) -> Flags:
        """Whether rows of stream i agree with rows of stream k, pair by pair."""
        if abs(i - k) != 1:
            return np.ones(len(left), dtype=np.bool_)
        close: Flags = np.abs(self.values[left] - self.values[right]) <= self.near
        return close


def naive_groups(rows: Rows, windows: Sequence[int]) -> Counter[Group]:
    """All groups, by looking at every combination of rows."""
    return _naive(rows, np.array([windows]), np.zeros(len(rows.times), dtype=np.int64), None)


def naive_groups_of(
    rows: Rows, batches: Sequence[tuple[Ints, int]], windows: Sequence[Sequence[int]]
) -> Counter[Group]:
    """All groups, if there are other windows in each batch.

    A group goes by the windows of the batch in which the last of its rows comes. Rows that were given up by
    the windows of a batch before that are not there any more.
    """
    came = np.empty(len(rows.times), dtype=np.int64)
    gone = np.full(len(rows.times), len(batches))
    for number, (at, _) in enumerate(batches):
        came[at] = number
    for number, (_, watermark) in reversed(list(enumerate(batches))):
        old = rows.times < watermark - np.array(windows[number])[rows.streams]
        gone[old & (came <= number)] = number
    return _naive(rows, np.array(windows), came, gone)


def _naive(rows: Rows, windows: Ints, came: Ints, gone: Ints | None) -> Counter[Group]:
    n = windows.shape[1]
    own = [np.flatnonzero(rows.streams == k) for k in range(n)]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*own, indexing="ij")], axis=1)
    times, last = rows.times[grid], came[grid].max(axis=1)
    holds = (times.max(axis=1)[:, np.newaxis] - times <= windows[last]).all(axis=1)
    if gone is not None:
        holds &= (gone[grid] >= last[:, np.newaxis]).all(axis=1)
    for k in range(n - 1):
        holds &= np.abs(rows.values[grid[:, k]] - rows.values[grid[:, k + 1]]) <= rows.near
    return Counter(map(tuple, grid[holds].tolist()))


@dataclass(slots=True)
class _Held:
    """What one host was sent of one era: rows it keeps (with slots), and rows that look for partners."""

    kept: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    looking: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Fused:
    """The groups that the hosts found, and how many eras there were."""

    groups: Counter[Group]
    eras: int


def fused_groups(
    router: Router,
    rows: Rows,
    batches: Iterable[tuple[Ints, int]],
    changes: Mapping[int, Callable[[Router], None]] | None = None,
) -> Fused:
    """What the hosts find together.

    Parameters
    ----------
    batches
        Positions of the rows that arrive together, and the watermark after them.
    changes
        Functions of the router to call before a batch, by its number. If one renews it with other windows,
        the rows that the plain join would hold are routed again.
    """
    held: dict[tuple[int, int], _Held] = {}
    paths: dict[tuple[int, int, int], Path] = {}
    aligned: set[int] = set()
    windows: dict[int, Sequence[int]] = {}
    again: dict[int, frozenset[int]] = {}
    old: frozenset[int] = frozenset()
    known = np.empty(0, dtype=np.int64)
    for number, (at, watermark) in enumerate(batches):
        # A host that takes the router over knows no more than what was saved.
        router = restore(router.shape, save(router))
        change = (changes or {}).get(number)
        before, first = router.shape.windows_us, router.next_number
        if change is not None:
            change(router)
        sent = at
        if router.shape.windows_us != before:
            sent, old = np.concatenate([known, at]), frozenset(known.tolist())
        routed = router.route(rows.streams[sent], rows.times[sent])
        paths.update({(path.era, path.slot, path.stream): path for path in routed.paths})
        for row, host, era, role, slot in zip(
            sent[routed.row].tolist(),
            routed.host.tolist(),
            routed.era.tolist(),
            routed.role.tolist(),
            routed.slot.tolist(),
            strict=True,
        ):
            place = held.setdefault((era, host), _Held())
            stream = int(rows.streams[row])
            if role & KEEPS:
                place.kept.setdefault(stream, []).append((row, slot))
            if role & LOOKS and slot >= 0:
                place.looking.append((row, stream, slot))
            if slot < 0:
                aligned.add(era)
        router.settle(watermark)
        for era in range(first, router.next_number):
            windows[era] = router.shape.windows_us
            again[era] = old
        known = np.concatenate([known, at])
        spans = np.array(router.shape.windows_us)[rows.streams[known]]
        known = known[rows.times[known] >= watermark - spans]
    found = _found(rows, held, paths, aligned, windows, again)
    return Fused(found, router.next_number)


def _found(
    rows: Rows,
    held: dict[tuple[int, int], _Held],
    paths: Mapping[tuple[int, int, int], Path],
    aligned: set[int],
    windows: Mapping[int, Sequence[int]],
    again: Mapping[int, frozenset[int]],
) -> Counter[Group]:
    """The groups of all hosts; by era the windows, and the rows that were known before it."""
    found: Counter[Group] = Counter()
    for (era, host), place in held.items():
        if era in aligned:
            groups = _joined(rows, windows[era], place)
        else:
            groups = [
                group
                for row, stream, slot in place.looking
                for group in _along(rows, windows[era], held, paths[era, slot, stream], host, row)
            ]
        found.update(group for group in groups if not again[era].issuperset(group))
    return found


def _joined(rows: Rows, windows: Sequence[int], place: _Held) -> list[Group]:
    """The join of all that one host holds of one era."""
    n = len(windows)
    groups = np.array([row for row, _ in place.kept.get(0, ())], dtype=np.int64)[:, np.newaxis]
    for k in range(1, n):
        own = np.array([row for row, _ in place.kept.get(k, ())], dtype=np.int64)
        left, right = np.repeat(np.arange(len(groups)), len(own)), np.tile(own, len(groups))
        wider = np.concatenate([groups[left], right[:, np.newaxis]], axis=1)
        times = rows.times[wider]
        holds = (times.max(axis=1, keepdims=True) - times <= np.array(windows[: k + 1])).all(axis=1)
        holds &= rows.agree(k - 1, wider[:, k - 1], k, wider[:, k])
        groups = wider[holds]
    return [tuple(group) for group in groups.tolist()]


def _along(
    rows: Rows,
    windows: Sequence[int],
    held: dict[tuple[int, int], _Held],
    path: Path,
    begin: int,
    row: int,
) -> list[Group]:
    """The groups that a row finds which begins its path on one of the hosts of the first hop."""
    n = len(windows)
    stream, latest = path.stream, int(rows.times[row])
    partial: list[dict[int, int]] = [{stream: row}]
    for hop, k in enumerate(path.order.tolist()):
        hosts = [begin] if hop == 0 else path.hosts(hop).tolist()
        longer: list[dict[int, int]] = []
        for host in hosts:
            place = held.get((path.era, host), _Held())
            for other, slot in place.kept.get(k, ()):
                j = slot - path.first
                if not 0 <= j < path.serve.shape[1] or path.serve[hop, j] != host:
                    continue
                time = int(rows.times[other])
                if (time, k) > (latest, stream) or latest - time > windows[k]:
                    continue
                for group in partial:
                    if all(
                        rows.agree(i, np.array([member]), k, np.array([other]))[0]
                        for i, member in group.items()
                    ):
                        longer.append({**group, k: other})
        partial = longer
        if not partial:
            return []
    return [tuple(group[k] for k in range(n)) for group in partial]
