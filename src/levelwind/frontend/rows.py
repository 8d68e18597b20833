"""What is known of the rows that flow between operators, and expressions held against it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from levelwind.frontend.columntypes import UNKNOWN
from levelwind.frontend.document import KeyPath
from levelwind.frontend.expressions import Parsed, clip, parse_expression
from levelwind.frontend.inference import infer_type
from levelwind.frontend.report import Report, Said
from levelwind.model.stream import Column, Schema

_NO_TYPES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns of a stream or of an operator's output, and which of them is the event time.

    ``schema`` is None where the columns cannot be known (downstream of a `model` operator, of a stream
    without a schema, or of something broken): nothing is then said about columns.
    """

    schema: Schema | None = None
    time: str | None = None

    @property
    def types(self) -> Mapping[str, str]:
        """Type by column name."""
        return {column.name: column.type for column in self.schema} if self.schema else _NO_TYPES


NOTHING_KNOWN = Rows()


def columns(types: Mapping[str, str]) -> Schema:
    """A schema from types by name, in their order."""
    return tuple([Column(name=name, type=kind) for name, kind in types.items()])


def check_scalar(text: str, rows: Rows, path: KeyPath, report: Report, *, boolean: bool = False) -> str:
    """Checks an expression that is computed row by row; returns its type."""
    parsed = parse_expression(text)
    if not _is_sound(parsed, path, report):
        return UNKNOWN
    if parsed.aggregates:
        report.add(path, "an aggregate function must stand in an aggregate operator", clip(text))
        return UNKNOWN
    if not _columns_exist(parsed.outside, rows, path, report):
        return UNKNOWN
    kind = _type(parsed, rows)
    if boolean and kind not in ("boolean", UNKNOWN):
        report.add(
            path, "must be a condition: true or false for each row", Said(f"{clip(text)}, which is {kind}")
        )
    return kind


def check_aggregate(text: str, rows: Rows, by: Collection[str], path: KeyPath, report: Report) -> str:
    """Checks an expression that is computed once per window and group; returns its type."""
    parsed = parse_expression(text)
    if not _is_sound(parsed, path, report):
        return UNKNOWN
    if parsed.nested_aggregate is not None:
        rule = "an aggregate must not stand inside another"
        report.add(path, rule, clip(text), "put a second aggregate operator behind this one")
        return UNKNOWN
    if not parsed.aggregates:
        rule = "must use an aggregate function"
        report.add(path, rule, clip(text), "such as count(*), sum(…), avg(…), or put the column in 'by'")
        return UNKNOWN
    if not _columns_exist((*parsed.outside, *parsed.inside), rows, path, report):
        return UNKNOWN
    loose = [name for name in parsed.outside if name not in by]
    for name in loose:
        rule = "a column outside an aggregate function must be in 'by'"
        report.add(path, rule, name, f"put {name!r} in 'by' or use first({name})")
    return UNKNOWN if loose else _type(parsed, rows)


def check_column(name: str, rows: Rows, path: KeyPath, report: Report) -> bool:
    """Checks that a column exists, where the columns are known."""
    return _columns_exist((name,), rows, path, report)


def _is_sound(parsed: Parsed, path: KeyPath, report: Report) -> bool:
    for fault in parsed.faults:
        report.add(path, fault.rule, fault.value, fault.hint)
    return not parsed.faults


def _columns_exist(names: Collection[str], rows: Rows, path: KeyPath, report: Report) -> bool:
    if rows.schema is None:
        return True
    types = rows.types
    missing = [name for name in names if name not in types and not _is_field(name, types)]
    for name in missing:
        report.add(path, "a column must exist", name, _nearest_column(name, types, report))
    return not missing


def _nearest_column(name: str, types: Mapping[str, str], report: Report) -> str:
    """The column that was probably meant; after a join often the same name behind an input's name."""
    qualified = [known for known in types if known.endswith(f".{name}") or known.lower() == name.lower()]
    if qualified:
        return f"did you mean {' or '.join(map(repr, qualified[:3]))}?"
    return report.suggest(name, types)


def _is_field(name: str, types: Mapping[str, str]) -> bool:
    """Whether the name is a field inside a column that is a struct."""
    head, dot, _ = name.rpartition(".")
    while dot:
        if head in types:
            return types[head].startswith("struct<")
        head, dot, _ = head.rpartition(".")
    return False


def _type(parsed: Parsed, rows: Rows) -> str:
    if parsed.tree is None:
        return UNKNOWN
    try:
        kind = infer_type(parsed.tree, rows.types)
    except RecursionError:  # a chain of thousands of operators
        return UNKNOWN
    return UNKNOWN if kind in ("void", "interval") else kind
