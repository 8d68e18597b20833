"""Queries written in SQL: syntax, tables, columns and functions, each by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from levelwind.frontend.document import KeyPath
from levelwind.frontend.draft import Sketch
from levelwind.frontend.expressions import Fault, clip, column_name, spark, syntax_fault, unsupported_calls
from levelwind.frontend.functions import WINDOW_FUNCTION
from levelwind.frontend.graph import find_port
from levelwind.frontend.rows import NOTHING_KNOWN, Rows

if TYPE_CHECKING:
    from sqlglot.expressions import Expr
    from sqlglot.optimizer.scope import Scope

# Column names by table alias; None for a table whose columns are not known.
Tables = dict[str, frozenset[str] | None]


def check_query(sql: str, path: KeyPath, sketch: Sketch) -> None:
    """Checks one query as far as the schemas of what it reads are known."""
    tree, faults = _parse(sql)
    for fault in faults:
        sketch.report.add(path, fault.rule, fault.value, fault.hint)
    if tree is None:
        return
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.scope import traverse_scope

    try:
        scopes = traverse_scope(tree)
    except (SqlglotError, RecursionError) as error:
        sketch.report.add(path, "must be a SELECT that can be understood", clip(sql), clip(str(error)))
        return
    for scope in scopes:
        _check_scope(scope, path, sketch)


def _parse(sql: str) -> tuple[Expr | None, list[Fault]]:
    """The tree of the only statement, which must be a SELECT, and what is wrong with it."""
    from sqlglot.errors import SqlglotError
    from sqlglot.expressions import Query, Select
    from sqlglot.tokenizer_core import TokenType

    try:
        tokens = spark().tokenize(sql)
        for token, after in pairwise(tokens):
            # sqlglot takes "GROUP BY window(…)" for a WINDOW clause unless told that it is a name
            if token.token_type == TokenType.WINDOW and after.token_type == TokenType.L_PAREN:
                token.token_type = TokenType.VAR
        faults = list(unsupported_calls(tokens, window=True))
        trees = [tree for tree in spark().parser().parse(tokens, sql) if tree is not None]
    except SqlglotError as error:
        return None, [syntax_fault(error, sql, "a Spark SQL query")]
    except RecursionError:
        return None, [Fault("must not nest this deep", clip(sql))]
    if len(trees) != 1 or not isinstance(trees[0], Query):
        return None, [Fault("must be a single SELECT", clip(sql))]
    tree = trees[0]
    if not any(select.args.get("from_") for select in tree.find_all(Select)):
        faults.append(Fault("a query must read a stream or operator", clip(sql), "add FROM …"))
    return tree, [*faults, *_misplaced_windows(tree)]


def _misplaced_windows(tree: Expr) -> Iterator[Fault]:
    """Faults for ``window(…)`` outside GROUP BY."""
    from sqlglot.expressions import Anonymous, Group

    for call in tree.find_all(Anonymous):
        if call.name.lower() == WINDOW_FUNCTION and call.find_ancestor(Group) is None:
            hint = "read window.start and window.end elsewhere"
            yield Fault("window(…) must stand in GROUP BY", clip(call.sql(dialect="spark")), hint)


def _check_scope(scope: Scope, path: KeyPath, sketch: Sketch) -> None:
    """Checks the tables and columns of one SELECT."""
    tables: Tables = {}
    for alias, source in scope.sources.items():
        tables[alias] = _table_columns(source, path, sketch)
    selects = getattr(scope.expression, "selects", ())
    own = {item.alias.lower() for item in selects if item.alias}  # ORDER BY and HAVING may read these
    for column in scope.columns:
        _check_column(column, tables, own, scope, path, sketch)


def _table_columns(source: Expr | Scope, path: KeyPath, sketch: Sketch) -> frozenset[str] | None:
    """The columns of a table, subquery or common table expression."""
    from sqlglot.expressions import Table

    if not isinstance(source, Table):
        names = list(_select_names(source.expression))
        return None if "*" in names else frozenset(names)
    text = column_name(source)
    port = find_port(text, path, sketch)
    rows: Rows = NOTHING_KNOWN if port is None else sketch.rows_of(port)
    return None if rows.schema is None else frozenset(column.name for column in rows.schema)


def _select_names(select: Expr) -> Iterator[str]:
    """The names of the columns that a SELECT puts out; ``*`` if they cannot be told."""
    for item in getattr(select, "selects", ()):
        yield "*" if item.is_star else item.alias_or_name


def _check_column(
    column: Expr, tables: Tables, own: set[str], scope: Scope, path: KeyPath, sketch: Sketch
) -> None:
    full = column_name(column)
    table, dot, name = full.partition(".")
    if column.is_star or table.lower() == WINDOW_FUNCTION:
        return
    if scope.is_correlated_subquery or any(known is None for known in tables.values()):
        if dot and table in tables and tables[table] is not None:
            _report_unknown(name, {table: tables[table]}, full, path, sketch)
        return
    if dot and table in tables:
        _report_unknown(name, {table: tables[table]}, full, path, sketch)
    elif full.lower() not in own:
        _report_unknown(full, tables, full, path, sketch)


def _report_unknown(
    name: str, tables: Mapping[str, frozenset[str] | None], full: str, path: KeyPath, sketch: Sketch
) -> None:
    known = sorted({column for columns in tables.values() if columns is not None for column in columns})
    if name.lower() not in {column.lower() for column in known}:
        sketch.report.add(path, "a column must exist", full, sketch.report.suggest(name, known))
