"""What a join's condition is made of: conditions that must all hold, and which inputs each of them reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from levelwind.errors import input_error
from levelwind.frontend.expressions import column_name, parse_expression
from levelwind.frontend.sql.conditions import conjuncts
from levelwind.operators.join_safety import key_type, value_type

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Types = Mapping[str, str]


def conditions_of(where: str | None) -> list[Expr]:
    """The conditions that must all hold, in written order, without those that always do."""
    if where is None:
        return []
    parsed = parse_expression(where)
    if parsed.tree is None:
        fault = parsed.faults[0]
        raise input_error(fault.rule, value=fault.value, hint=fault.hint)
    return [each for each in conjuncts(parsed.tree) if not _is_true(each)]


def _is_true(node: Expr) -> bool:
    from sqlglot import expressions as exp

    return isinstance(node, exp.Boolean) and bool(node.this)


def names_in(node: Expr) -> Iterator[str]:
    """The names of the columns below a node, as written."""
    from sqlglot import expressions as exp

    for found in node.walk(prune=lambda each: isinstance(each, exp.Column | exp.Dot)):
        if isinstance(found, exp.Column | exp.Dot):
            yield column_name(found)


def stands_for(name: str, column: str) -> bool:
    """Whether a name stands for a column or for a field inside it."""
    return name == column or name.startswith(f"{column}.")


def column_in(node: Expr, types: Types) -> str | None:
    """The column that a value is, None if it is something else."""
    if type(node).__name__ not in ("Column", "Dot"):
        return None
    name = column_name(node)
    return name if name in types else None


def inputs_read(node: Expr, inputs: Sequence[Types]) -> set[int]:
    """The inputs that a condition reads, given the columns of each, behind its alias."""
    return {
        number
        for name in names_in(node)
        for number, types in enumerate(inputs)
        if any(stands_for(name, column) for column in types)
    }


@dataclass(frozen=True, slots=True)
class Equality:
    """Values of two inputs that a condition sets equal, and the type in which they are compared."""

    inputs: tuple[int, int]
    values: tuple[Expr, Expr]
    type: str


def equality_in(node: Expr, inputs: Sequence[Types], types: Types) -> Equality | None:
    """The equality that a condition is, if it is one between inputs that a hash can find and cannot fail.

    The input that stands first among ``inputs`` comes first, however it is written.
    """
    from sqlglot import expressions as exp

    if not isinstance(node, exp.EQ):
        return None
    halves: list[tuple[int, Expr]] = []
    for half in (node.this, node.expression):
        read = inputs_read(half, inputs)
        if len(read) != 1:
            return None
        halves.append((read.pop(), half))
    if halves[0][0] == halves[1][0]:
        return None
    (first, left), (second, right) = sorted(halves, key=lambda half: half[0])
    kinds = value_type(left, types), value_type(right, types)
    if kinds[0] is None or kinds[1] is None:
        return None
    kind = key_type(kinds[0], kinds[1])
    return None if kind is None else Equality((first, second), (left, right), kind)


@dataclass(frozen=True, slots=True)
class EqualValues:
    """Values that are all equal, at most one of each input, and the type in which they are compared."""

    values: Mapping[int, Expr]
    type: str


def equal_values(equalities: Iterable[Equality]) -> list[EqualValues]:
    """Equalities taken together where they have a value in common: of a = b and b = c, that all are equal."""
    found: list[EqualValues] = []
    for each in equalities:
        values = dict(zip(each.inputs, each.values, strict=True))
        apart = []
        for other in found:
            shared = values.keys() & other.values.keys()
            if other.type == each.type and shared and all(values[i] == other.values[i] for i in shared):
                values = {**other.values, **values}
            else:
                apart.append(other)
        found = [*apart, EqualValues(dict(sorted(values.items())), each.type)]
    return found


@dataclass(frozen=True, slots=True)
class EqualColumns:
    """A column of each input that are equal in all that is joined, and the type of comparison."""

    columns: tuple[str, ...]
    type: str


def equal_columns(where: str | None, inputs: Sequence[Types]) -> list[EqualColumns]:
    """The columns, one of each input, that a condition sets equal.

    Parameters
    ----------
    where
        The condition; None holds always.
    inputs
        Spark type by column of each input, columns behind their input's alias.
    """
    types = {name: kind for of_input in inputs for name, kind in of_input.items()}
    equalities = (equality_in(node, inputs, types) for node in conditions_of(where))
    found = []
    for each in equal_values(equality for equality in equalities if equality is not None):
        columns = [column_in(value, inputs[input]) for input, value in each.values.items()]
        named = tuple(column for column in columns if column is not None)
        if len(named) == len(inputs):
            found.append(EqualColumns(named, each.type))
    return found
