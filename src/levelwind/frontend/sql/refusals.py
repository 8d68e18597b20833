"""What SQL can say and a continuous query cannot mean, or we cannot carry out: each by its rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from levelwind.frontend.expressions import Fault, clip
from levelwind.frontend.functions import WINDOW_FUNCTION

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

# A fault, and the words in the text that would else be taken for unsupported functions.
Refusal = tuple[Fault, tuple[str, ...]]

WINDOW_HINT = "write GROUP BY …, window(time, '10 seconds')"
_NO_ORDER = "rows are ordered by their event time; order them where they are read"
_CLAUSES: dict[str, tuple[str, str | None]] = {
    "distinct": ("DISTINCT", f"equal rows are told apart within a window: {WINDOW_HINT}"),
    "order": ("ORDER BY", _NO_ORDER),
    "sort": ("SORT BY", _NO_ORDER),
    "cluster": ("CLUSTER BY", "leave it out: planners decide where rows go"),
    "distribute": ("DISTRIBUTE BY", "leave it out: planners decide where rows go"),
    "limit": ("LIMIT", "a stream has no end to count from; filter its rows with WHERE"),
    "offset": ("OFFSET", "a stream has no end to count from; filter its rows with WHERE"),
    "qualify": ("QUALIFY", f"aggregate in a window: {WINDOW_HINT}"),
    "windows": ("a WINDOW clause", f"aggregate in a window: {WINDOW_HINT}"),
    "laterals": ("LATERAL VIEW", None),
    "pivots": ("PIVOT", None),
    "sample": ("TABLESAMPLE", "pick rows with WHERE, such as hash(key) % 10 = 0"),
    "joins": ("a join in brackets", "write it as a subquery: (SELECT … FROM a JOIN b ON …) AS c"),
    "locks": ("FOR UPDATE", None),
}
_KNOWN = {
    "Select": {"with_", "expressions", "from_", "joins", "where", "group", "having", "hint", "kind"},
    "Union": {"with_", "this", "expression", "distinct"},
    "Table": {"this", "db", "catalog", "alias", "hints"},
    "Subquery": {"with_", "this", "alias"},
    "Group": {"expressions"},
}
_SETS = {"Intersect": "INTERSECT", "Except": "EXCEPT"}
_GROUPINGS = {"Rollup": "ROLLUP", "Cube": "CUBE", "GroupingSets": "GROUPING SETS"}


def refusals(tree: Expr) -> list[Refusal]:
    """Everything in a query that is refused for what it is, whatever it reads."""
    found: dict[Fault, tuple[str, ...]] = {}
    for node in tree.walk():
        for fault, words in _of_node(node):
            found[fault] = (*found.get(fault, ()), *words)
    return list(found.items())


def _of_node(node: Expr) -> Iterator[Refusal]:
    from sqlglot import expressions as exp

    kind = type(node).__name__
    if kind in _KNOWN:
        yield from _clauses(node, _KNOWN[kind])
    if kind in _SETS:
        yield _without(_SETS[kind], "join with a time bound, or filter"), (_SETS[kind].lower(),)
    elif isinstance(node, exp.Union) and node.args.get("distinct"):
        yield _without("UNION without ALL", "write UNION ALL"), ()
    elif isinstance(node, exp.Join):
        yield from _join(node)
    elif isinstance(node, exp.Group):
        yield from _grouping(node)
    elif isinstance(node, exp.With) and node.args.get("recursive"):
        yield _without("WITH RECURSIVE", None), ()
    elif isinstance(node, exp.TableAlias) and node.args.get("columns"):
        hint = "give the columns their names with AS in the SELECT"
        rule = "an alias must not rename columns"
        yield Fault(rule, clip(node.sql(dialect="spark")), hint), (node.name.lower(),)
    elif isinstance(node, exp.Star) and (node.args.get("except_") or node.args.get("replace")):
        yield _without("* EXCEPT", "name the columns one by one"), ("except", "replace")
    elif isinstance(node, exp.Window) and isinstance(node.this, exp.Func):
        shown = clip(node.sql(dialect="spark", normalize_functions="lower"))
        words = (node.this.sql_name().lower(), node.this.name.lower())
        rule = "a continuous query must not have window functions (OVER)"
        yield Fault(rule, shown, f"aggregate in a window: {WINDOW_HINT}"), words
    elif isinstance(node, exp.Select | exp.SetOperation) and not _stands_in_from(node):
        yield Fault("a subquery must stand in FROM", clip(node.sql(dialect="spark")), "join with it"), ()
    elif isinstance(node, exp.Anonymous) and node.name.lower() == WINDOW_FUNCTION:
        if node.find_ancestor(exp.Group) is None:
            hint = "read window.start and window.end elsewhere"
            yield Fault("window(…) must stand in GROUP BY", _shown(node), hint), ()
    elif isinstance(node, exp.Lateral | exp.Values | exp.Unnest):
        yield not_a_table(node), ("lateral", "values", "explode")


def not_a_table(node: Expr) -> Fault:
    """The fault of something in FROM that has no rows to read."""
    return Fault("FROM must read streams, operators, routes, queries or subqueries", _shown(node))


def _without(what: str, hint: str | None) -> Fault:
    return Fault("a continuous query cannot have this part of SQL", what, hint)


def _shown(node: Expr) -> str:
    return clip(node.sql(dialect="spark", normalize_functions="lower"))


def _clauses(node: Expr, known: set[str]) -> Iterator[Refusal]:
    from sqlglot.expressions import Func

    for name, value in node.args.items():
        if value and name not in known:
            what, hint = _CLAUSES.get(name, (name.rstrip("_").upper().replace("_", " "), None))
            words = [what.lower(), what.split()[-1].lower()]
            if name == "laterals":
                words += [each.this.sql_name().lower() for each in value if isinstance(each.this, Func)]
            yield _without("GROUP BY ALL" if name == "all" else what, hint), tuple(words)


def _join(node: Expr) -> Iterator[Refusal]:
    side, kind, method = node.args.get("side"), node.args.get("kind"), node.args.get("method")
    if side or kind in ("OUTER", "SEMI", "ANTI"):
        what = " ".join(word for word in (side, kind) if word)
        fault = _without(f"{what.upper()} JOIN", "only inner joins can be carried out: write JOIN … ON")
        yield fault, (str(kind).lower(),)
    elif method or node.args.get("using"):
        what = f"{method.upper()} JOIN" if method else "USING"
        yield _without(what, "write the columns out: JOIN … ON a.x = b.x"), ()
    elif node.args.get("pivots"):
        yield _without("PIVOT", None), ("pivot",)


def _grouping(node: Expr) -> Iterator[Refusal]:
    for item in node.expressions:
        what = _GROUPINGS.get(type(item).__name__)
        if what is not None:
            yield _without(what, "write a query for each grouping"), (what.lower(),)


def _stands_in_from(node: Expr) -> bool:
    """Whether a SELECT is the whole query, a part of a set operation, or read by FROM, JOIN or WITH."""
    from sqlglot import expressions as exp

    parent = node.parent
    if isinstance(parent, exp.Subquery | exp.Paren):
        return isinstance(node, exp.Subquery) or _stands_in_from(parent)
    if isinstance(parent, exp.In | exp.Exists):
        return False
    return parent is None or isinstance(
        parent, exp.From | exp.Join | exp.CTE | exp.SetOperation | exp.Lateral
    )
