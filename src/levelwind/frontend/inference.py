"""The type of an expression's result, by Spark's rules where the text tells it, else ``unknown``.

Decimal results follow Spark's rules for precision and scale
(https://spark.apache.org/docs/latest/sql-ref-ansi-compliance.html, "Type promotion and precedence").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from levelwind.frontend.columntypes import INTEGERS, UNKNOWN, normal_type
from levelwind.frontend.expressions import column_name, spark
from levelwind.frontend.functions import SUPPORTED

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Types = Mapping[str, str]
_DECIMAL = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_BOOLEAN_NODES = frozenset(
    {"And", "Or", "Not", "EQ", "NEQ", "GT", "GTE", "LT", "LTE", "NullSafeEQ", "NullSafeNEQ"}
    | {"Is", "In", "Between", "Like", "ILike", "RegexpLike", "Escape", "Boolean"}
)
_INTERVAL = "interval"


def infer_type(node: Expr, types: Types) -> str:
    """The Spark type of a tree whose columns have the given types.

    Parameters
    ----------
    node
        A tree from `parse_expression`, without faults.
    types
        Type by column name; a column that is not in it is unknown.
    """
    kind = type(node).__name__
    if kind in _BOOLEAN_NODES:
        return "boolean"
    rule = _RULES.get(kind)
    if rule is not None:
        return rule(node, types)
    result = _results().get(kind)
    name = node.name.lower() if kind == "Anonymous" else None
    if name is not None:
        result = SUPPORTED[name].result if name in SUPPORTED else None
    return UNKNOWN if result is None else _apply(result, node, types)


@cache
def _results() -> dict[str, str]:
    """Rule for the result by sqlglot's class name, found by parsing a call of every function."""
    from sqlglot.expressions import Expr

    found: dict[str, str] = {}
    for name, function in SUPPORTED.items():
        if function.result == "cast":
            continue
        text = f"{name}({', '.join('abcd'[: function.least])})"
        (tree,) = spark().parser().parse_into(Expr, spark().tokenize(text), text)
        found.setdefault(type(tree).__name__, function.result)
    return found


def _apply(result: str, node: Expr, types: Types) -> str:
    """A function's result from the rule in its declaration."""
    if result in _FROM_FIRST:
        argument = _first_argument(node)
        of = infer_type(argument, types) if argument is not None else UNKNOWN
        return _FROM_FIRST[result](of)
    if result == "common":
        return widest([infer_type(argument, types) for argument in node.iter_expressions()])
    return result


def _first_argument(node: Expr) -> Expr | None:
    return next(node.iter_expressions(), None)


def _whole(of: str) -> str:
    """Of ceil and floor."""
    if match := _DECIMAL.fullmatch(of):
        return of if match[2] == "0" else _decimal(int(match[1]) - int(match[2]) + 1, 0)
    return "bigint" if of in INTEGERS or of in ("float", "double") else UNKNOWN


def _sum(of: str) -> str:
    if match := _DECIMAL.fullmatch(of):
        return _decimal(int(match[1]) + 10, int(match[2]))
    return "bigint" if of in INTEGERS else "double" if of in ("float", "double") else UNKNOWN


def _average(of: str) -> str:
    if match := _DECIMAL.fullmatch(of):
        return _decimal(int(match[1]) + 4, int(match[2]) + 4)
    return "double" if of in INTEGERS or of in ("float", "double") else UNKNOWN


_FROM_FIRST: Mapping[str, Callable[[str], str]] = {
    "first": lambda of: of,
    # A string is read as a double.
    "number": lambda of: "double" if of in ("string", "void") else of,
    "whole": _whole,
    # Its scale is the second argument, which need not be a literal.
    "rounded": lambda of: UNKNOWN if of.startswith("decimal") else _FROM_FIRST["number"](of),
    "sum": _sum,
    "average": _average,
}


def widest(kinds: list[str]) -> str:
    """The widest of some types; unknown if they do not agree in a simple way."""
    distinct = {kind for kind in kinds if kind != "void"}
    if len(distinct) == 1:
        return distinct.pop()
    if not distinct or not distinct <= {*INTEGERS, "float", "double"}:
        return UNKNOWN
    if distinct <= set(INTEGERS):
        return max(distinct, key=INTEGERS.index)
    return "double"  # also of float and an integer, under ANSI rules


def _column(node: Expr, types: Types) -> str:
    return types.get(column_name(node), UNKNOWN)


def _literal(node: Expr, types: Types) -> str:
    text = node.name
    if node.is_string:
        return "string"
    if text.isdigit():
        return "int" if int(text) < 2**31 else "bigint" if int(text) < 2**63 else UNKNOWN
    if "e" in text.lower():
        return "double"
    whole, _dot, part = text.partition(".")
    digits = len((whole + part).lstrip("0"))
    return _decimal(max(digits, len(part), 1), len(part))


def _arithmetic(node: Expr, types: Types) -> str:
    """Of ``+ - * / %``."""
    kind = type(node).__name__
    left, right = infer_type(node.this, types), infer_type(node.expression, types)
    if _INTERVAL in (left, right):
        other = right if left == _INTERVAL else left
        return other if other == "timestamp" and kind in ("Add", "Sub") else UNKNOWN
    if left.startswith("decimal") or right.startswith("decimal"):
        sides = [_as_decimal(node.this, left), _as_decimal(node.expression, right)]
        if None not in sides:
            return _decimal_result(kind, *(side for side in sides if side is not None))
        return "double" if {left, right} & {"float", "double"} and UNKNOWN not in (left, right) else UNKNOWN
    common = widest([left, right])
    if common not in (*INTEGERS, "float", "double"):
        return UNKNOWN
    return "double" if kind == "Div" else common


def _as_decimal(node: Expr, kind: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal, or of an integer next to one."""
    if match := _DECIMAL.fullmatch(kind):
        return int(match[1]), int(match[2])
    if kind not in _INTEGER_DIGITS:
        return None
    while type(node).__name__ in ("Paren", "Neg"):
        node = node.this
    return (len(node.name) if type(node).__name__ == "Literal" else _INTEGER_DIGITS[kind]), 0


def _decimal_result(kind: str, left: tuple[int, int], right: tuple[int, int]) -> str:
    (p1, s1), (p2, s2) = left, right
    scale = max(s1, s2)
    if kind == "Mul":
        return _decimal(p1 + p2 + 1, s1 + s2)
    if kind == "Div":
        scale = max(6, s1 + p2 + 1)
        return _decimal(p1 - s1 + s2 + scale, scale)
    if kind == "Mod":
        return _decimal(min(p1 - s1, p2 - s2) + scale, scale)
    return _decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)


def _decimal(precision: int, scale: int) -> str:
    """A decimal cut to 38 digits as Spark does: the scale gives way, down to 6."""
    if precision > 38:
        precision, scale = 38, max(38 - (precision - scale), min(scale, 6))
    return f"decimal({precision},{scale})"


def _bracketed(node: Expr, types: Types) -> str:
    return infer_type(node.this, types)


def _negated(node: Expr, types: Types) -> str:
    inner = node.this
    if type(inner).__name__ == "Literal" and not inner.is_string and inner.name.isdigit():
        # The sign belongs to the literal: there is one more number below zero than above.
        value = -int(inner.name)
        return "int" if value >= -(2**31) else "bigint" if value >= -(2**63) else _literal(inner, types)
    return _FROM_FIRST["number"](infer_type(inner, types))


def _cast(node: Expr, _: Types) -> str:
    return normal_type(node.args["to"].sql(dialect="spark")) or UNKNOWN


def _branches(node: Expr, types: Types) -> str:
    """Of ``if(…)`` and ``case``."""
    branches = [node.args.get("true"), node.args.get("false"), node.args.get("default")]
    branches += [branch.args.get("true") for branch in node.args.get("ifs") or ()]
    return widest([infer_type(branch, types) for branch in branches if branch is not None])


def _bits(node: Expr, types: Types) -> str:
    found = widest([infer_type(side, types) for side in node.iter_expressions()])
    return found if found in INTEGERS else UNKNOWN


_RULES: Mapping[str, Callable[[Expr, Types], str]] = {
    "Column": _column,
    "Dot": _column,
    "Literal": _literal,
    "Null": lambda node, types: "void",
    "Interval": lambda node, types: _INTERVAL,
    "Paren": _bracketed,
    "Neg": _negated,
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod"), _arithmetic),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"), _bits),
    "IntDiv": lambda node, types: "bigint",
    "DPipe": lambda node, types: "string",
    **dict.fromkeys(("Cast", "TryCast"), _cast),
    **dict.fromkeys(("If", "Case"), _branches),
}
