"""The functions that expressions may call: those that can be carried out on Arrow data as Spark would.

Each has the number of arguments it takes and a rule for the type of its result:
a Spark type, ``first`` (that of its first argument), ``common`` (the widest of all), or ``unknown``.
"""

from __future__ import annotations

from typing import NamedTuple


class Function(NamedTuple):
    """How a function is called and what comes out."""

    least: int
    most: int
    result: str


ANY_NUMBER = 99
_TO_DOUBLE = (
    "sqrt",
    "exp",
    "ln",
    "log10",
    "log2",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "radians",
    "degrees",
)
_TEXT_TO_TEXT = ("lower", "upper", "ltrim", "rtrim", "reverse", "md5")
_TIME_TO_INT = ("year", "month", "day", "dayofmonth", "dayofweek", "hour", "minute", "second")
_TWO_TEXTS_TO_BOOLEAN = ("contains", "startswith", "endswith", "like", "ilike", "rlike")
_CASTS = ("tinyint", "smallint", "int", "bigint", "float", "double", "string", "boolean", "date", "timestamp")

SCALARS: dict[str, Function] = {
    **{name: Function(1, 1, "double") for name in _TO_DOUBLE},
    **{name: Function(1, 1, "string") for name in _TEXT_TO_TEXT},
    **{name: Function(1, 1, "int") for name in _TIME_TO_INT},
    **{name: Function(2, 2, "boolean") for name in _TWO_TEXTS_TO_BOOLEAN},
    **{name: Function(1, 1, name) for name in _CASTS},
    "abs": Function(1, 1, "number"),
    "atan2": Function(2, 2, "double"),
    "ceil": Function(1, 1, "whole"),
    "floor": Function(1, 1, "whole"),
    "round": Function(1, 2, "rounded"),
    "log": Function(1, 2, "double"),
    "pow": Function(2, 2, "double"),
    "power": Function(2, 2, "double"),
    "sign": Function(1, 1, "double"),
    "mod": Function(2, 2, "common"),
    "pmod": Function(2, 2, "common"),
    "greatest": Function(2, ANY_NUMBER, "common"),
    "least": Function(2, ANY_NUMBER, "common"),
    "coalesce": Function(1, ANY_NUMBER, "common"),
    "ifnull": Function(2, 2, "common"),
    "nvl": Function(2, 2, "common"),
    "nullif": Function(2, 2, "first"),
    "if": Function(3, 3, "branches"),
    "isnan": Function(1, 1, "boolean"),
    "isnull": Function(1, 1, "boolean"),
    "isnotnull": Function(1, 1, "boolean"),
    "trim": Function(1, 1, "string"),
    "length": Function(1, 1, "int"),
    "char_length": Function(1, 1, "int"),
    "substring": Function(2, 3, "string"),
    "substr": Function(2, 3, "string"),
    "left": Function(2, 2, "string"),
    "right": Function(2, 2, "string"),
    "concat": Function(1, ANY_NUMBER, "string"),
    "concat_ws": Function(2, ANY_NUMBER, "string"),
    "replace": Function(2, 3, "string"),
    "lpad": Function(2, 3, "string"),
    "rpad": Function(2, 3, "string"),
    "instr": Function(2, 2, "int"),
    "sha2": Function(2, 2, "string"),
    "crc32": Function(1, 1, "bigint"),
    "hash": Function(1, ANY_NUMBER, "int"),
    "xxhash64": Function(1, ANY_NUMBER, "bigint"),
    "date_trunc": Function(2, 2, "timestamp"),
    "unix_timestamp": Function(1, 2, "bigint"),
    "to_timestamp": Function(1, 2, "timestamp"),
    "cast": Function(1, 1, "cast"),
    "try_cast": Function(1, 1, "cast"),
}

AGGREGATES: dict[str, Function] = {
    "count": Function(1, 1, "bigint"),
    "sum": Function(1, 1, "sum"),
    "avg": Function(1, 1, "average"),
    "mean": Function(1, 1, "average"),
    "min": Function(1, 1, "first"),
    "max": Function(1, 1, "first"),
    "first": Function(1, 1, "first"),
    "last": Function(1, 1, "first"),
    "stddev": Function(1, 1, "double"),
    "stddev_samp": Function(1, 1, "double"),
    "stddev_pop": Function(1, 1, "double"),
    "variance": Function(1, 1, "double"),
    "var_samp": Function(1, 1, "double"),
    "var_pop": Function(1, 1, "double"),
}

SUPPORTED: dict[str, Function] = {**SCALARS, **AGGREGATES}
WINDOW_FUNCTION = "window"

# Words that may stand before a bracket without being called.
NOT_CALLED = frozenset(
    {"all", "and", "any", "as", "between", "by", "case", "distinct", "div", "else", "end", "exists", "from"}
    | {"group", "having", "ilike", "in", "intersect", "interval", "is", "join", "like", "not", "on", "or"}
    | {"order", "over", "partition"}
    | {"rlike", "select", "some", "then", "union", "using", "values", "when", "where", "with", "xor"}
)
# Types with arguments of their own, as in cast(x as decimal(10, 2)).
TYPES_WITH_ARGUMENTS = frozenset(("decimal", "dec", "numeric", "varchar", "char"))

# sqlglot's names of what an expression may be made of besides functions.
PLAIN_NODES = frozenset(
    {"Column", "Dot", "Identifier", "Star", "Literal", "Boolean", "Null", "Paren", "Tuple", "Var"}
    | {"DataType", "DataTypeParam", "Cast", "TryCast", "Interval", "IntervalSpan", "Case", "If", "Distinct"}
    | {"And", "Or", "Not", "EQ", "NEQ", "GT", "GTE", "LT", "LTE", "NullSafeEQ", "NullSafeNEQ"}
    | {"Is", "In", "Between", "Like", "ILike", "RegexpLike", "Escape"}
    | {"Neg", "Add", "Sub", "Mul", "Div", "IntDiv", "Mod", "DPipe"}
    | {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"}
)
