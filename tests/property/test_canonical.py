"""Expressions in one form mean what they meant: against another engine, on rows with nulls."""

from __future__ import annotations

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import expressions as exp

from levelwind.frontend.expressions import parse_expression
from levelwind.rewrite.canonical import _bottom_up, _form, canonical

ROWS = """(SELECT * FROM (VALUES (NULL), (-1), (0), (1), (2)) a(v), (VALUES (NULL), (0), (1), (3)) b(w),
(VALUES (NULL), ('a'), ('b')) c(k))"""
numbers = st.recursive(
    st.sampled_from(["v", "w", "0", "1", "2"]),
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
    max_leaves=4,
)
compared = st.tuples(numbers, st.sampled_from(["<", "<=", ">", ">=", "=", "<>", "!=", "<=>"]), numbers).map(
    " ".join
)
between = st.tuples(numbers, st.sampled_from(["", "not "]), numbers, numbers).map(
    lambda t: f"{t[0]} {t[1]}between {t[2]} and {t[3]}"
)
listed = st.tuples(numbers, st.sampled_from(["", "not "]), st.lists(numbers, min_size=1, max_size=3)).map(
    lambda t: f"{t[0]} {t[1]}in ({', '.join(t[2])})"
)
texts = st.sampled_from(["k = 'a'", "'b' <> k", "k is null", "k is not null"])
conditions = st.recursive(
    st.one_of(compared, between, listed, texts),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        inner.map("not ({})".format),
    ),
    max_leaves=6,
)


def answers(tree):
    """What the condition says of every row; brackets around everything, since the one form has none."""

    def bracketed(node):
        return exp.Paren(this=node) if isinstance(node, exp.Binary | exp.Not | exp.In | exp.Between) else node

    text = _bottom_up(tree.copy(), bracketed).sql(dialect="duckdb")
    return duckdb.sql(f"SELECT ({text}) FROM {ROWS} ORDER BY v, w, k").fetchall()


@settings(deadline=None, max_examples=60)
@given(conditions)
def test_the_one_form_means_the_same(text):
    tree = parse_expression(text).tree
    assert answers(_form(tree.copy())) == answers(tree)


@settings(deadline=None, max_examples=60)
@given(conditions, conditions)
def test_turned_around_it_is_the_same(one, other):
    """Conditions that cannot fail may change places."""
    if any(sign in one + other for sign in "+-*"):
        return
    assert canonical(f"({one}) and ({other})") == canonical(f"({other}) and ({one})")
