"""A multijoin's condition taken apart: which part of it can be asked once which inputs are bound.

A group is *dropped* if one of the conditions that must all hold is false or NULL for it. It is *rejected* if
all that can be computed hold and some cannot be computed. So no order of asking changes what becomes of a
group: any condition may be asked as soon as the inputs it reads are bound, and a group that one of them drops
need not be grown. A group on which a condition fails is grown further: another condition may still drop it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from levelwind.operators.equality import as_key
from levelwind.operators.expressions import Scalar, compile_scalar, compile_tree, passing
from levelwind.operators.expressions.sparktypes import dtype_of
from levelwind.operators.join_conjuncts import (
    Equality,
    Types,
    conditions_of,
    equal_values,
    equality_in,
    inputs_read,
    names_in,
    stands_for,
)
from levelwind.operators.join_safety import never_fails
from levelwind.operators.multijoin.bands import Band, bands_in

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

# For rows of some columns: where it holds, and why it could not be computed (None: it could everywhere).
Test = Callable[[pl.DataFrame], tuple[pl.Series, pl.Series | None]]


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One of the conditions that must all hold.

    Attributes
    ----------
    reads
        The inputs whose rows it is about.
    columns
        The columns it reads, one at least, each with its input.
    may_fail
        Whether there may be rows for which it cannot be computed.
    """

    reads: frozenset[int]
    columns: tuple[tuple[int, str], ...]
    test: Test
    may_fail: bool


@dataclass(frozen=True, slots=True)
class Same:
    """Values that must all be equal, at most one of each input, and the type in which they are compared."""

    values: Mapping[int, Scalar]
    type: str

    def keys(self, input: int, rows: pl.DataFrame) -> pl.Series:
        """The values of one input, as keys of a join; see `as_key`."""
        values, _ = self.values[input](rows)
        dtype = dtype_of(self.type)
        assert dtype is not None
        return as_key(values.cast(dtype))


@dataclass(frozen=True, slots=True)
class GroupCondition:
    """A condition on groups of one row of each input.

    Attributes
    ----------
    alone
        For each input, what is asked of its rows alone.
    conjuncts
        What is asked of rows of several inputs, in written order.
    same
        What must be equal between inputs. If a.k = b.k and b.k = c.k, then a.k, b.k and c.k are one of them.
    bands
        Numbers that must be near each other; see `Band`.
    together
        Whether the first of ``same`` is a number that all inputs bring besides their own columns. It says
        which rows may meet at all, and is no condition that links them.
    """

    alone: tuple[tuple[Conjunct, ...], ...]
    conjuncts: tuple[Conjunct, ...] = ()
    same: tuple[Same, ...] = ()
    bands: tuple[Band, ...] = ()
    together: bool = False

    def due(self, bound: Collection[int], target: int) -> tuple[Conjunct, ...]:
        """What can be asked once ``target`` joins the inputs that are bound, and not before."""
        held = {*bound, target}
        return tuple(each for each in self.conjuncts if target in each.reads and each.reads <= held)

    def equal(self, bound: Collection[int], target: int) -> tuple[tuple[int, int], ...]:
        """What makes keys when ``target`` joins: numbers in ``same``, each with a bound input that has it."""
        found = []
        for number, same in enumerate(self.same):
            partner = next((input for input in bound if input in same.values), None)
            if target in same.values and partner is not None:
                found.append((number, partner))
        return tuple(found)

    def near(self, bound: Collection[int], target: int) -> tuple[tuple[int, int], ...]:
        """The bands when ``target`` joins: numbers in ``bands``, each with the bound input it is near to."""
        found = []
        for number, band in enumerate(self.bands):
            first, second = band.inputs
            if target in band.inputs:
                other = second if first == target else first
                if other in bound:
                    found.append((number, other))
        return tuple(found)

    @property
    def linked(self) -> tuple[tuple[int, int], ...]:
        """The pairs of inputs about which something is asked that reads no third."""
        found = {tuple(sorted(each.reads)) for each in self.conjuncts if len(each.reads) == 2}
        for same in self.same[int(self.together) :]:
            found |= {(a, b) for a in same.values for b in same.values if a < b}
        return tuple(sorted((pair[0], pair[1]) for pair in found))

    @property
    def fallible(self) -> tuple[Conjunct, ...]:
        """All that may fail."""
        every = [*(each for of_input in self.alone for each in of_input), *self.conjuncts]
        return tuple(each for each in every if each.may_fail)


def make_condition(
    where: str | None,
    inputs: Sequence[Types],
    *,
    tests: Sequence[Conjunct] = (),
    together: Sequence[str] | None = None,
) -> GroupCondition:
    """Takes a condition apart.

    Parameters
    ----------
    where
        The condition; None holds always.
    inputs
        Spark type by column of each input, columns behind their input's alias.
    tests
        More conditions that must hold, not written in SQL.
    together
        A whole number of each input, by its column, that must be equal in all; not part of ``inputs``.
    """
    types = {name: kind for of_input in inputs for name, kind in of_input.items()}
    alone: list[list[Conjunct]] = [[] for _ in inputs]
    rest: list[Conjunct] = []
    equalities: list[Equality] = []
    written: list[Expr] = []
    for node in conditions_of(where):
        equality = equality_in(node, inputs, types)
        if equality is not None:
            equalities.append(equality)
            continue
        conjunct = _conjunct(node, inputs, types)
        if len(conjunct.reads) == 1:
            (input,) = conjunct.reads
            alone[input].append(conjunct)
        else:
            rest.append(conjunct)
            written.append(node)
    same = tuple(
        Same({i: compile_tree(value.copy(), types) for i, value in each.values.items()}, each.type)
        for each in equal_values(equalities)
    )
    if together is not None:
        whole = {name: "bigint" for name in together}
        columns = {at: compile_scalar(_quoted(name), whole) for at, name in enumerate(together)}
        same = (Same(columns, "bigint"), *same)
    return GroupCondition(
        tuple(map(tuple, alone)),
        (*rest, *tests),
        same,
        bands_in(written, inputs, types),
        together is not None,
    )


def _quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))


def _conjunct(node: Expr, inputs: Sequence[Types], types: Types) -> Conjunct:
    read = inputs_read(node, inputs) or {0}  # what reads nothing is as well asked of the first input's rows
    names = set(names_in(node))
    columns = [
        (input, column)
        for input in sorted(read)
        for column in inputs[input]
        if any(stands_for(name, column) for name in names)
    ]
    columns = columns or [(0, next(iter(inputs[0])))]  # a frame without columns has no height
    scalar = compile_tree(node.copy(), types)
    return Conjunct(frozenset(read), tuple(columns), partial(passing, scalar), not never_fails(node, types))
