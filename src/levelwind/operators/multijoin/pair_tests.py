"""Conditions on two inputs that are written in Python: ``f(left, right)`` over two frames of one height.

Row i of the one and row i of the other are a pair; the function returns a boolean for each (anything Polars
can make a series of; null counts as false). It sees each input's columns by their own names. What it says of
a pair must depend on that pair alone: pairs come in any order and number, and some more than once.

If it raises, its pairs are halved until the failing ones stand alone; groups with these are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from levelwind.errors import LevelwindError
from levelwind.model.operator import Multijoin
from levelwind.operators.custom import find_function
from levelwind.operators.join_conjuncts import Types
from levelwind.operators.multijoin.condition import Conjunct

Both = Callable[[pl.DataFrame, pl.DataFrame], Any]


class _WrongFormError(LevelwindError):
    """The function returned something it must not, whatever the rows: no pair is to blame."""


@dataclass(frozen=True, slots=True)
class PairTest:
    """A function of two frames, called on the columns of both inputs in one frame.

    ``columns`` are what both frames are made of: columns of the one frame, and what the function calls them.
    """

    operator: str
    path: str
    function: Both
    columns: tuple[dict[str, str], dict[str, str]]

    def __call__(self, rows: pl.DataFrame) -> tuple[pl.Series, pl.Series | None]:
        """Which pairs agree, and why the function failed where it did."""
        left, right = (
            rows.select(pl.col(name).alias(own) for name, own in columns.items()) for columns in self.columns
        )
        mask, reasons = self._ask(left, right)
        return mask, reasons if reasons.null_count() < len(reasons) else None

    def _ask(self, left: pl.DataFrame, right: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
        """O(failing · log(pairs)) calls."""
        height = left.height
        try:
            returned = self.function(left, right)
        except MemoryError:
            raise
        except Exception as error:
            if height <= 1:
                reason = pl.Series("reason", [f"{type(error).__name__}: {error}"] * height, dtype=pl.String)
                return pl.repeat(False, height, dtype=pl.Boolean, eager=True), reason
            half = height // 2
            parts = self._ask(left[:half], right[:half]), self._ask(left[half:], right[half:])
            return pl.concat([part[0] for part in parts]), pl.concat([part[1] for part in parts])
        return self._checked(returned, height), pl.repeat(None, height, dtype=pl.String, eager=True)

    def _checked(self, returned: Any, height: int) -> pl.Series:
        try:
            mask = returned if isinstance(returned, pl.Series) else pl.Series(returned)
        except Exception as error:
            message = f"operator {self.operator!r}: {self.path} returned a {type(returned).__name__}: {error}"
            raise _WrongFormError(message) from error
        if mask.dtype not in (pl.Boolean, pl.Null) or len(mask) != height:
            message = (
                f"operator {self.operator!r}: {self.path} must return a boolean for each of {height} pairs, "
                f"and returned {len(mask)} values of type {mask.dtype}"
            )
            raise _WrongFormError(message)
        return mask.cast(pl.Boolean).fill_null(False)


def pair_tests(name: str, spec: Multijoin, types: Sequence[Types]) -> list[Conjunct]:
    """The Python conditions of a multijoin.

    Parameters
    ----------
    name
        The operator's name.
    types
        The columns of each input, behind its alias.
    """
    found = []
    for index, pair in enumerate(spec.pairs):
        function = find_function(pair.function, f"operators.{name}.pairs.{index}.function")
        inputs = [spec.aliases.index(alias) for alias in pair.inputs]
        columns = tuple((input, column) for input in inputs for column in types[input])
        left, right = (
            {column: column.removeprefix(f"{spec.aliases[input]}.") for column in types[input]}
            for input in inputs
        )
        test = PairTest(name, pair.function, function, (left, right))
        found.append(Conjunct(frozenset(inputs), columns, test, may_fail=True))
    return found
