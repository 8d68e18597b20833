"""Expressions in one form: equal texts for expressions that mean the same, however they were written.

The case of keywords, spacing, brackets, the order of equals, of summands, of factors, of lists and of
conditions that cannot fail do not matter. What could change which rows are errors is left alone:
`b <> 0 AND a / b > 1` is not `a / b > 1 AND b <> 0`. So is what could change the last digit of a float:
`a + (b + c)` is not `(a + b) + c`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from levelwind.frontend.expressions import parse_expression

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


@lru_cache(maxsize=1 << 16)
def canonical(text: str) -> str:
    """The one form of an expression; a text that cannot be parsed stands for itself.

    Examples
    --------
    >>> canonical("port IN (80,443)") == canonical("port in ( 80, 443 )")
    True
    >>> canonical("5 < size") == canonical("(size > 5)")
    True
    >>> canonical("a = 1 and b = 2") == canonical("b = 2 and a = 1")
    True
    >>> canonical("b <> 0 and a / b > 1") == canonical("a / b > 1 and b <> 0")
    False
    """
    tree = parse_expression(text).tree
    return text if tree is None else _text(_form(tree.copy()))


def qualifiers(text: str) -> frozenset[str]:
    """What columns are written behind, such as ``a`` in ``a.size``."""
    from sqlglot import expressions as exp

    tree = parse_expression(text).tree
    if tree is None:
        return frozenset()
    return frozenset(column.table.lower() for column in tree.find_all(exp.Column) if column.table)


def _form(tree: Expr) -> Expr:
    from sqlglot import expressions as exp

    turned: dict[type[Any], type[Any]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}
    opposite: dict[type[Any], type[Any]] = {exp.EQ: exp.NEQ, exp.NEQ: exp.EQ}

    def change(node: Expr) -> Expr:
        if isinstance(node, exp.Paren):
            return node.this
        if isinstance(node, exp.Identifier):
            return exp.to_identifier(node.this, quoted=False)  # backticks do not make another column
        if type(node) in turned:
            return turned[type(node)](this=node.expression, expression=node.this)
        if isinstance(node, exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.Add | exp.Mul):
            sides = sorted((node.this, node.expression), key=_text)
            return type(node)(this=sides[0], expression=sides[1])
        if isinstance(node, exp.Not) and type(node.this) in opposite:
            return opposite[type(node.this)](this=node.this.this, expression=node.this.expression)
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            low = exp.LTE(this=node.args["low"], expression=node.this.copy())
            return exp.And(this=low, expression=exp.LTE(this=node.this, expression=node.args["high"]))
        if isinstance(node, exp.In) and all(_cannot_fail(each) for each in node.expressions):
            node.set("expressions", sorted(node.expressions, key=_text))
            return node
        if isinstance(node, exp.And | exp.Or):
            parts = list(node.flatten(unnest=True))
            if all(_cannot_fail(part) for part in parts):
                parts = [part for _, part in sorted({_text(part): part for part in parts}.items())]
            whole = parts[0]
            for part in parts[1:]:
                whole = type(node)(this=whole, expression=part)
            return whole
        return node

    return _bottom_up(tree, change)


def _bottom_up(node: Expr, change: Any) -> Expr:
    from sqlglot.expressions import Expr

    for name, value in list(node.args.items()):
        if isinstance(value, Expr):
            node.set(name, _bottom_up(value, change))
        elif isinstance(value, list):
            node.set(name, [_bottom_up(v, change) if isinstance(v, Expr) else v for v in value])
    return change(node)


def _cannot_fail(node: Expr) -> bool:
    """Whether it is made of columns, constants and comparisons alone, which no row can make an error."""
    from sqlglot import expressions as exp

    plain = (
        exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.EQ, exp.NEQ, exp.LT, exp.LTE,
        exp.And, exp.Or, exp.Not, exp.In, exp.Is, exp.Between, exp.Like, exp.Tuple,
    )  # fmt: skip
    return all(isinstance(each, plain) for each in node.walk())


def _text(node: Any) -> str:
    """A tree spelled out: unlike SQL without its brackets, it can be read in one way only."""
    from sqlglot.expressions import Expr

    if isinstance(node, list):
        return f"[{', '.join(map(_text, node))}]"
    if not isinstance(node, Expr):
        return repr(node)
    inside = ", ".join(f"{name}={_text(value)}" for name, value in sorted(node.args.items()) if value)
    return f"{type(node).__name__}({inside})"
