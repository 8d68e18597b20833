"""From the text of a query to its tree, and from trees back to the text of expressions."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from levelwind.frontend.expressions import Fault, clip, column_name, spark, syntax_fault, unsupported_calls
from levelwind.frontend.sql.refusals import refusals

if TYPE_CHECKING:
    from sqlglot.expressions import Column, Expr

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# sqlglot's columns have so many parts at most.
_MOST_PARTS = 4


def parse_query(sql: str) -> tuple[Expr | None, list[Fault]]:
    """The tree of the only statement, which must be a SELECT, and what is wrong with it.

    A tree may come along with faults: what else is wrong with it can then be told in one go.
    """
    from sqlglot.errors import SqlglotError
    from sqlglot.expressions import Query
    from sqlglot.tokenizer_core import TokenType

    try:
        tokens = spark().tokenize(sql)
        for token, after in pairwise(tokens):
            # sqlglot takes "GROUP BY window(…)" for a WINDOW clause unless told that it is a name
            if token.token_type == TokenType.WINDOW and after.token_type == TokenType.L_PAREN:
                token.token_type = TokenType.VAR
        calls = list(unsupported_calls(tokens, window=True))
        trees = [tree for tree in spark().parser().parse(tokens, sql) if tree is not None]
        if len(trees) != 1 or not isinstance(trees[0], Query):
            return None, [Fault("must be a single SELECT", clip(sql))]
        tree = trees[0]
        refused = refusals(tree)
    except SqlglotError as error:
        return None, [syntax_fault(error, sql, "a Spark SQL query")]
    except RecursionError:
        return None, [Fault("must not nest this deep", clip(sql))]
    # Words before a bracket that are no functions, and are refused for what they are.
    explained = {word for _, words in refused for word in words}
    faults = [fault for fault in calls if fault.value not in explained]
    return tree, [*faults, *(fault for fault, _ in refused)]


def tables_read(tree: Expr) -> tuple[str, ...]:
    """The names that a query reads from outside, common table expressions left out.

    Raises
    ------
    ValueError
        If the query cannot be taken apart.
    """
    from sqlglot.errors import SqlglotError
    from sqlglot.expressions import Identifier, Table
    from sqlglot.optimizer.scope import traverse_scope

    try:
        sources = [source for scope in traverse_scope(tree) for source in scope.sources.values()]
    except (SqlglotError, RecursionError) as error:
        raise ValueError(clip(str(error))) from None
    tables = [source for source in sources if isinstance(source, Table)]
    return tuple(dict.fromkeys(column_name(table) for table in tables if isinstance(table.this, Identifier)))


def to_text(tree: Expr) -> str:
    """An expression as text that `parse_expression` reads as the same expression."""
    from sqlglot import expressions as exp
    from sqlglot.errors import ErrorLevel

    def supported(node: Expr) -> Expr:
        if isinstance(node, exp.StrPosition):  # sqlglot would write locate
            return exp.Anonymous(this="instr", expressions=[node.this, node.args["substr"]])
        return node

    changed = tree.copy().transform(supported)
    return changed.sql(
        dialect="spark",
        normalize_functions="lower",
        comments=False,
        unsupported_level=ErrorLevel.IGNORE,  # what cannot be written is refused, not warned of
    )


def column_node(name: str) -> Column:
    """A column by its full name, dots and all."""
    from sqlglot import expressions as exp

    parts = name.split(".")
    if len(parts) > _MOST_PARTS or not all(parts):
        parts = [name]
    nodes = [exp.Identifier(this=part, quoted=_needs_quotes(part)) for part in reversed(parts)]
    return exp.Column(**dict(zip(("this", "table", "db", "catalog"), nodes, strict=False)))


def column_text(name: str) -> str:
    """A column by its full name, in quotes where it would not be read as one without."""
    return to_text(column_node(name))


@cache
def _needs_quotes(part: str) -> bool:
    return not _PLAIN.fullmatch(part) or part.upper() in spark().tokenizer_class.KEYWORDS
