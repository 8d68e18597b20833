"""Growing partial groups: the step from groups of some inputs to groups of one more.

Everything here is a function of its arguments alone, so that the step can be made wherever both sides are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from levelwind.operators.join_pairs import CHUNK, stretches
from levelwind.operators.multijoin.condition import Conjunct
from levelwind.operators.multijoin.index import Index
from levelwind.operators.multijoin.meeting import BY_TIME, Flags, Meeting
from levelwind.operators.multijoin.partials import Partials, columns_of, gathered
from levelwind.operators.timespans import Numbers, minus, plus

# Of groups and rows by their positions, pair by pair: which may meet at all, whatever the condition says.
Meant = Callable[[Numbers, Numbers], Flags]
# A search by another value than the time is tried if the time leaves more candidates than that per group.
_MANY = 4
# From so many candidates on a compiled loop thins them out: it is not worth loading for fewer.
_SIEVED = 1 << 15


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows of an input that may join each of some partial groups: stretches of an index.

    ``compared`` are the equal values that made the index's key, ``by`` what its stretches go by. Of the rows
    in them, those at ``below`` or after it are not meant; None means all.
    """

    index: Index
    first: Numbers
    last: Numbers
    compared: tuple[int, ...]
    by: int
    below: int | None

    @property
    def count(self) -> int:
        """How many pairs of a group and a row there are."""
        return int((self.last - self.first).sum())

    def pairs(self, chunk: int) -> Iterator[tuple[Numbers, Numbers]]:
        """Groups and rows by their positions, so many at a time."""
        if len(self.first):
            for group, place in stretches(self.first, self.last, chunk):
                yield group, self.index.rows[place]


def candidates(meeting: Meeting, partials: Partials, target: int, *, known: bool = False) -> Candidates:
    """The rows of ``target`` that agree with each partial group in keys and time, or in keys and a band.

    Whichever leaves fewer; with ``known``, only rows that were there before the step.
    O((groups + rows) log rows), less where an index is at hand.
    """
    bound = tuple(partials.at)
    hashed = meeting.hashed(meeting.condition.equal(bound, target))
    same = tuple(number for number, _ in hashed)
    keys = meeting.keys(hashed, partials.at)
    # Most rows are known ones: one index of all is less work than one for each of both.
    below = meeting.members[target].known if known else None
    index = meeting.index(target, same, BY_TIME)
    earliest = minus(partials.latest, meeting.windows_us[target])
    best = Candidates(index, *index.find(keys, earliest, partials.until), same, BY_TIME, below)
    if best.count <= _MANY * len(partials):
        return best
    for number, other in meeting.condition.near(bound, target):
        numbers = meeting.numbers(number)
        if numbers is None:
            continue
        low, high = meeting.condition.bands[number].around(target, numbers[other][partials.at[other]])
        index = meeting.index(target, same, number)
        first, last = index.find(keys, low, high)
        last = np.where(np.isnan(low), first, last)
        best = min(best, Candidates(index, first, last, same, number, below), key=lambda each: each.count)
    return best


def thinned(
    meeting: Meeting, partials: Partials, target: int, found: Candidates, chunk: int
) -> Iterator[tuple[Numbers, Numbers]]:
    """Groups and rows of the candidates, many of those left out that cannot be admitted.

    By time and all bands, where the rows they were found in are fewer than the candidates: O(rows) to lay
    them out, then O(candidates) with a small factor.
    """
    bands = [
        (meeting.condition.bands[number], numbers, other)
        for number, other in meeting.condition.near(tuple(partials.at), target)
        if number != found.by and (numbers := meeting.numbers(number)) is not None
    ]
    by_time = [] if found.by == BY_TIME else [meeting.members[target].times.astype(np.float64)]
    rows = found.index.rows
    if found.count < max(_SIEVED, len(rows)) or not (bands or by_time):
        yield from found.pairs(chunk)
        return
    from levelwind.operators.multijoin.sieve import sieved  # numba, only where it pays

    bounds = [band.around(target, numbers[other][partials.at[other]]) for band, numbers, other in bands]
    if by_time:
        # As floats, times and their bounds are rounded alike: what is between them stays so.
        earliest = minus(partials.latest, meeting.windows_us[target])
        bounds.append((earliest.astype(np.float64), partials.until.astype(np.float64)))
    values = np.column_stack([each[rows] for each in [numbers[target] for _, numbers, _ in bands] + by_time])
    low, high = (np.column_stack(each) for each in zip(*bounds, strict=True))
    for group, place in sieved(found.first, found.last, values, low, high, chunk):
        yield group, rows[place]


def admitted(
    meeting: Meeting,
    partials: Partials,
    target: int,
    found: Candidates,
    group: Numbers,
    row: Numbers,
    meant: Meant | None = None,
) -> Partials:
    """Of pairs of a group and a row, those that are groups of one more input as far as can be told.

    What is asked of both together is asked last, of the pairs that are left.
    """
    member = meeting.members[target]
    bound = tuple(partials.at)
    keep = np.ones(len(row), dtype=np.bool_) if found.below is None else row < found.below
    times = member.times[row]
    if found.by != BY_TIME:
        keep &= times >= minus(partials.latest, meeting.windows_us[target])[group]
        keep &= times <= partials.until[group]
    if member.spans is not None:
        keep &= times >= minus(partials.latest[group], member.spans[row])
    for number, other in meeting.condition.equal(bound, target):
        if number not in found.compared:
            codes, _ = meeting.codes(number)
            own = codes[target][row]
            keep &= (own >= 0) & (own == codes[other][partials.at[other][group]])
    if meant is not None:
        keep &= meant(group, row)
    if not keep.all():
        group, row, times = group[keep], row[keep], times[keep]
    fails = None if partials.fails is None else partials.fails[group]
    if member.fails is not None:
        fails = member.fails[row] if fails is None else fails | member.fails[row]
    wider = Partials(
        {**{input: at[group] for input, at in partials.at.items()}, target: row},
        np.maximum(partials.latest[group], times),
        np.minimum(partials.until[group], plus(times, meeting.span(target, row))),
        fails,
    )
    for conjunct in meeting.condition.due(bound, target):
        if not len(wider):
            break
        wider = agreeing(meeting, wider, conjunct)
    return wider


def agreeing(meeting: Meeting, partials: Partials, conjunct: Conjunct) -> Partials:
    """The groups for which a condition holds or could not be computed."""
    mask, reasons = conjunct.test(columns_of(meeting, partials, conjunct.columns))
    keep = mask.to_numpy()
    if reasons is not None and reasons.null_count() < len(reasons):
        failed = reasons.is_not_null().to_numpy()
        keep = keep | failed
        fails = failed if partials.fails is None else partials.fails | failed
        partials = Partials(partials.at, partials.latest, partials.until, fails)
    return partials if keep.all() else partials.take(keep)


def extended(
    meeting: Meeting,
    partials: Partials,
    target: int,
    *,
    known: bool = False,
    meant: Meant | None = None,
    chunk: int = CHUNK,
) -> Iterator[Partials]:
    """The partial groups with one more input, a bounded number at a time; of all pairs those ``meant``.

    Costs O((groups + rows) log rows) and the candidates; O(chunk) memory.
    """
    found = candidates(meeting, partials, target, known=known)
    pairs = thinned(meeting, partials, target, found, chunk)
    pieces = (admitted(meeting, partials, target, found, group, row, meant) for group, row in pairs)
    return gathered(pieces, chunk // 8)


def grown(
    meeting: Meeting, partials: Partials, order: Sequence[tuple[int, bool]], *, chunk: int = CHUNK
) -> Iterator[Partials]:
    """The groups that partial groups grow to by some inputs in turn; depth first, so that memory is bounded.

    Parameters
    ----------
    order
        The inputs, each with whether only rows that were there before the step may join.
    """
    if not order:
        yield partials
        return
    target, known = order[0]
    for piece in partials.pieces(chunk):
        for wider in extended(meeting, piece, target, known=known, chunk=chunk):
            yield from grown(meeting, wider, order[1:], chunk=chunk)
