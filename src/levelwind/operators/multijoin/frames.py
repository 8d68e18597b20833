"""Growing partial groups that travel as frames: what one host does to groups that another has begun.

A frame of partial groups has all columns of the inputs that are bound, each behind its alias, and, if the
condition has parts that may fail, `FAILS`, which says of each group whether one could not be computed so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from levelwind.operators.join_pairs import CHUNK
from levelwind.operators.multijoin.condition import GroupCondition
from levelwind.operators.multijoin.extending import extended
from levelwind.operators.multijoin.meeting import FAILS, Meeting, Member
from levelwind.operators.multijoin.partials import bound_in_frame, columns_of


def extended_frames(
    condition: GroupCondition,
    windows_us: Sequence[int],
    clocks: Sequence[str],
    groups: pl.DataFrame,
    bound: Sequence[int],
    rows: pl.DataFrame,
    target: int,
    *,
    before: tuple[str, str] | None = None,
    chunk: int = CHUNK,
) -> Iterator[pl.DataFrame]:
    """The groups with one more input, a bounded number at a time; each has all columns of both.

    Costs O((groups + rows) log rows) and the candidates.

    Parameters
    ----------
    windows_us, clocks
        Of all inputs of the join: how old a row may be, and its column of event times.
    groups, bound
        The partial groups, and the inputs that are bound in them.
    rows, target
        The rows that may join, and their input.
    before
        A column of the rows and one of the groups, whole numbers: a row joins groups with a greater one only.
    """
    if groups.is_empty() or rows.is_empty():
        return
    members = {input: Member.of(groups, clocks[input]) for input in bound}
    members[target] = Member.of(rows, clocks[target])
    meeting = Meeting(condition, windows_us, members)
    partials = bound_in_frame(meeting, bound)
    carries = bool(condition.fallible)
    columns = [(bound[0], name) for name in groups.columns if name != FAILS]
    columns += [(target, name) for name in rows.columns if name != FAILS]
    for wider in extended(meeting, partials, target, chunk=chunk):
        found = columns_of(meeting, wider, columns)
        if carries:
            fails = np.zeros(len(wider), dtype=np.bool_) if wider.fails is None else wider.fails
            found = found.with_columns(pl.Series(FAILS, fails))
        if before is not None:
            found = found.filter(pl.col(before[0]) < pl.col(before[1]))
        if found.height:
            yield found
