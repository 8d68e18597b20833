"""Spark SQL expressions: parsed once, and held against what can be carried out.

Parsing is sqlglot's, in the Spark dialect; it is imported when the first expression is met, since a file
of `model` operators has none. What sqlglot would let through and we cannot run (subqueries, window
functions, lambdas, functions that are not in `functions`) is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from levelwind.errors import nearest
from levelwind.frontend.functions import (
    AGGREGATES,
    NOT_CALLED,
    PLAIN_NODES,
    SUPPORTED,
    TYPES_WITH_ARGUMENTS,
    WINDOW_FUNCTION,
)

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.expressions import Expr
    from sqlglot.tokenizer_core import Token


class Fault(NamedTuple):
    """Why an expression cannot be used, before it is known where it stands."""

    rule: str
    value: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """An expression and what was found in it.

    ``outside`` are the columns that stand outside every aggregate, ``inside`` those within one.
    The tree is shared by everybody who parses the same text: it must not be changed.
    """

    text: str
    tree: Expr | None
    faults: tuple[Fault, ...]
    outside: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    aggregates: int = 0
    nested_aggregate: str | None = None


@lru_cache(maxsize=1 << 16)
def parse_expression(text: str) -> Parsed:
    """Parses one expression; equal texts are parsed once."""
    from sqlglot.errors import SqlglotError
    from sqlglot.expressions import Expr

    try:
        tokens = spark().tokenize(text)
        faults = tuple(unsupported_calls(tokens))
        if faults:  # the tree of an unknown function says nothing more
            return Parsed(text, None, faults)
        trees = spark().parser().parse_into(Expr, tokens, text)
    except SqlglotError as error:
        return Parsed(text, None, (syntax_fault(error, text, "a Spark SQL expression"),))
    except RecursionError:
        return Parsed(text, None, (Fault("must not nest this deep", clip(text)),))
    if len(trees) != 1 or trees[0] is None:
        hint = "write a single expression without ';'"
        return Parsed(text, None, (Fault("must be a Spark SQL expression", clip(text), hint),))
    return _Survey(text).of(trees[0])


@cache
def spark() -> Dialect:
    """Sqlglot's Spark dialect."""
    from sqlglot.dialects.dialect import Dialect

    return Dialect.get_or_raise("spark")


def unsupported_calls(tokens: list[Token], *, window: bool = False) -> Iterator[Fault]:
    """Faults for functions that are not supported, by the names as written.

    The tokens are asked, not the tree: in the tree ``nvl`` has become ``coalesce``, and a message
    must name what the user wrote.
    """
    seen = set()
    for before, after in pairwise(tokens):
        name = before.text.lower()
        if after.text != "(" or not (name[:1].isalpha() or name[:1] == "_") or name in seen:
            continue
        if (
            before.token_type.name in ("STRING", "NUMBER")
            or name in NOT_CALLED
            or name in TYPES_WITH_ARGUMENTS
        ):
            continue
        seen.add(name)
        if name not in SUPPORTED and not (window and name == WINDOW_FUNCTION):
            yield _unsupported(name)


def _unsupported(name: str) -> Fault:
    near = nearest(name, SUPPORTED)
    hint = f"the nearest that is supported: {near}" if near else "see the list of functions in the reference"
    return Fault("a function must be a supported one", name, hint)


def syntax_fault(error: Exception, text: str, what: str) -> Fault:
    """What sqlglot said, in our words."""
    details: list[dict[str, Any]] = getattr(error, "errors", None) or []
    hint = None
    if details:
        said = str(details[0].get("description") or "").partition(" but got")[0].lower()
        near = details[0].get("highlight") or details[0].get("start_context")
        if "number of provided arguments" in said:
            hint = "a function has too many arguments"
        elif said.startswith("required keyword"):
            hint = f"something is missing at {near!r}, character {details[0].get('col')}"
        else:
            hint = f"{said} at {near!r}, character {details[0].get('col')}"
    elif "Missing" in str(error):
        hint = "a quote is not closed"
    return Fault(f"must be {what}", clip(text), hint)


def clip(text: str) -> str:
    """A text short enough for a message."""
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:58]}…"


@cache
def _allowed_nodes() -> frozenset[str]:
    """Names of sqlglot's node classes that supported expressions are made of.

    Found by parsing a call of every supported function, so that the list of functions is the only list.
    """
    from sqlglot.expressions import Expr

    found = set(PLAIN_NODES)
    parser = spark().parser()
    for name, function in SUPPORTED.items():
        for count in {function.least, min(function.most, function.least + 2)}:
            arguments = "a as int" if function.result == "cast" else ", ".join("abcd"[:count])
            text = f"{name}({arguments})"
            (tree,) = parser.parse_into(Expr, spark().tokenize(text), text)
            if tree is not None:
                found |= {type(node).__name__ for node in tree.walk()}
    return frozenset(found)


def node_parts(node: Expr) -> list[Expr]:
    """The parts between the dots of a column or table."""
    parts: list[Expr] = list(node.parts)  # type: ignore[attr-defined]
    return parts


def column_name(node: Expr) -> str:
    """The full name of a column: its parts joined by dots, as join outputs are called."""
    return ".".join(part.name for part in node_parts(node))


def is_aggregate(node: Expr) -> bool:
    """Whether a node is a call of an aggregate function."""
    from sqlglot.expressions import AggFunc, Anonymous

    return isinstance(node, AggFunc) or (isinstance(node, Anonymous) and node.name.lower() in AGGREGATES)


class _Survey:
    """One walk over a tree: what is in it, and what must not be."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.faults: list[Fault] = []
        self.columns: tuple[dict[str, None], dict[str, None]] = ({}, {})
        self.aggregates = 0
        self.nested: str | None = None

    def of(self, tree: Expr) -> Parsed:
        """Walks the whole tree; without recursion, since expressions may be long chains."""
        stack: list[tuple[Expr, bool]] = [(tree, False)]
        while stack:
            node, inside = stack.pop()
            if is_aggregate(node):
                self.aggregates += 1
                if inside:
                    self.nested = node.sql(dialect="spark")
                inside = True
            if self._look(node, inside):
                # Reversed, so that columns come in the order in which they are written.
                stack += [(child, inside) for child in reversed(list(node.iter_expressions()))]
        return Parsed(
            text=self.text,
            tree=None if self.faults else tree,
            faults=tuple(dict.fromkeys(self.faults)),
            outside=tuple(self.columns[0]),
            inside=tuple(self.columns[1]),
            aggregates=self.aggregates,
            nested_aggregate=self.nested,
        )

    def _look(self, node: Expr, inside: bool) -> bool:
        """Notes one node; says whether to go on below it."""
        from sqlglot import expressions as exp

        if type(node).__name__ not in _allowed_nodes():
            hint = {
                "Alias": "write no alias; the key is the column's name",
                "Window": "use an aggregate operator",
            }
            what = node.sql(dialect="spark") or type(node).__name__
            kind = type(node).__name__
            self._fault("must be made of columns, operators and supported functions", what, hint.get(kind))
            return False
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            self._fault("'*' must stand inside count(*)", self.text)
        elif isinstance(node, exp.Distinct) and not isinstance(node.parent, exp.Count):
            self._fault("distinct must stand inside count(distinct …)", self.text)
        elif isinstance(node, exp.In) and not (node.expressions or node.args.get("query")):
            self._fault("'in' must have a list of values", self.text)
        elif isinstance(node, exp.Count) and node.this is None:
            self._fault("count must have at least 1 argument", self.text)
        elif isinstance(node, exp.Anonymous):
            self._count_arguments(node)
        elif isinstance(node, exp.Column | exp.Dot):
            return self._column(node, inside)
        return not isinstance(node, exp.DataType)

    def _column(self, node: Expr, inside: bool) -> bool:
        from sqlglot import expressions as exp

        if any(not isinstance(part, exp.Identifier) for part in node_parts(node)):
            self._fault(
                "must be made of columns, operators and supported functions", node.sql(dialect="spark")
            )
        else:
            self.columns[inside][column_name(node)] = None
        return False

    def _count_arguments(self, node: Expr) -> None:
        name = node.name.lower()
        function, count = SUPPORTED.get(name), len(node.expressions)
        if function is None:
            self.faults.append(_unsupported(name))
        elif not function.least <= count <= function.most:
            wanted = str(function.least) if function.least == function.most else f"at least {function.least}"
            self._fault(f"{name} must have {wanted} argument{'' if wanted == '1' else 's'}", self.text)

    def _fault(self, rule: str, value: str, hint: str | None = None) -> None:
        self.faults.append(Fault(rule, clip(value), hint))
