"""UNION ALL: columns go by their position, and take the names and the widest types of all parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from levelwind.frontend.columntypes import UNKNOWN
from levelwind.frontend.expressions import Fault
from levelwind.frontend.inference import widest
from levelwind.frontend.rows import Rows, columns
from levelwind.frontend.sql.builder import Builder
from levelwind.frontend.sql.naming import inside
from levelwind.frontend.sql.relations import BROKEN, OWN, Base, Relation, canonical
from levelwind.model import Union

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


def unite(parts: Sequence[Relation], prefix: str, builder: Builder) -> Relation:
    """All rows of all parts."""
    if any(part.names is None for part in parts):
        return _unknown(parts, prefix, builder)
    first = parts[0]
    wanted = list(first.names or ())
    for part in parts[1:]:
        if len(part.names or ()) != len(wanted):
            rule = "all parts of a UNION ALL must have as many columns as the first"
            builder.fault(Fault(rule, str(len(part.names or ())), f"the first has {len(wanted)}"))
            return BROKEN
        if part.rows.time != first.rows.time:
            rule = "all parts of a UNION ALL must have one time column"
            told = f"{first.rows.time or 'none'} and {part.rows.time or 'none'}"
            builder.fault(Fault(rule, told, "the rows of all parts go along with it"))
            return BROKEN
    types = [_common_type(parts, number, wanted, builder) for number in range(len(wanted))]
    aligned = [
        _aligned(part, wanted, types, inside(prefix, str(number)), builder)
        for number, part in enumerate(parts, start=1)
    ]
    if any(part is None for part in aligned):
        return BROKEN
    united = [part for part in aligned if part is not None]
    found = dict(zip(wanted, types, strict=True))
    if first.rows.time is not None:
        found.setdefault(first.rows.time, "timestamp")
    rows = Rows(columns(found), first.rows.time)
    port = builder.add(inside(prefix, "union"), Union(), [part.port for part in united], rows)
    near = {
        name: (min(part.near[name][0] for part in united), max(part.near[name][1] for part in united))
        for name in found
        if all(name in part.near for part in united)
    }
    return Relation(port, rows, {name: name for name in wanted}, near)


def _unknown(parts: Sequence[Relation], prefix: str, builder: Builder) -> Relation:
    """A part whose columns are not known is taken to fit."""
    if any(not part.port.source for part in parts):
        return BROKEN
    rows = Rows(None, parts[0].rows.time)
    port = builder.add(inside(prefix, "union"), Union(), [part.port for part in parts], rows)
    return Relation(port, rows, None)


def _type(part: Relation, number: int) -> str:
    return part.rows.types.get(list((part.names or {}).values())[number], UNKNOWN)


def _common_type(parts: Sequence[Relation], number: int, names: Sequence[str], builder: Builder) -> str:
    kinds = list(dict.fromkeys(_type(part, number) for part in parts))
    found = kinds[0] if len(kinds) == 1 else widest(kinds)
    if found == UNKNOWN and UNKNOWN not in kinds:
        rule = "the columns of a UNION ALL must have types that agree"
        builder.fault(Fault(rule, f"{names[number]}: {' and '.join(kinds)}", "write CAST(… AS type)"))
    return found


def _aligned(
    part: Relation, names: Sequence[str], types: Sequence[str], prefix: str, builder: Builder
) -> Relation | None:
    """A part under the names and types of all; itself if it has them."""
    time = part.rows.time
    select: dict[str, Expr] = {}
    for number, (name, wanted) in enumerate(zip(names, types, strict=True)):
        column = list((part.names or {}).values())[number]
        if name == time and column != time:
            rule = "the time column goes along under its name; another must not have it"
            builder.fault(Fault(rule, column, "choose another name in the first part"))
            return None
        tree: Expr = canonical(OWN, column)
        if _type(part, number) != wanted and wanted != UNKNOWN:
            tree = _cast(tree, wanted)
        select[name] = tree
    have = {column.name for column in part.rows.schema or ()}
    same = all(tree == canonical(OWN, name) for name, tree in select.items())
    if same and {*select, time} >= have:
        return part
    base = builder.map(Base(part.port, part.rows, {OWN: ""}, part.near), select, prefix, "select")
    return Relation(base.port, base.rows, {name: name for name in select}, base.near)


def _cast(tree: Expr, kind: str) -> Expr:
    from sqlglot import expressions as exp

    return exp.cast(tree, exp.DataType.build(kind, dialect="spark"), dialect="spark")
